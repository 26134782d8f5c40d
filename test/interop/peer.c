/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that no stock program uses: memory windows, SEND with invalidate, ATOMIC WRITE and
 * FLUSH, huge page regions that come and go, absent pages. Two runs of this program, on any RDMA
 * devices, are the two sides.
 *
 * usage: interop_peer -d DEVICE -g GID_INDEX -p PORT CASE [SERVER]
 *
 * The server is the target, whose memory is accessed; the client is the initiator. Both exit with
 * 0, or with 1 and a line that names the fault. With "?" for SERVER the program only checks if the
 * device supports what an initiator needs, with "!" what a target needs: it exits with 0, or with
 * 77 if the device does not.
 */
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "peer.h"
#include "raise_qp.h"

#define WINDOW_AT    4096 /* bytes of the buffer */
#define WINDOW_BYTES 4096
#define WAIT_SECONDS 30
/* Linux's rxe gives programs the kernel's value of this flag. */
#define RXE_WC_WITH_INV (1 << 2)
#define EXIT_LACKS	77

/* Values of later versions of verbs.h than rdma-core 44, for kernels that have them. */
#define LATER_DEVICE_FLUSH_GLOBAL (1ull << 38)
#define LATER_DEVICE_ATOMIC_WRITE (1ull << 40)
#define LATER_ACCESS_FLUSH_GLOBAL 0x100
#define LATER_QP_EX_WITH_FLUSH	  (1 << 11)
#define LATER_WC_FLUSH		  ((enum ibv_wc_opcode)8)
#define LATER_PLACE_GLOBAL	  1
#define LATER_LEVEL_RANGE	  0

/* The field behind wr_atomic_write in struct ibv_qp_ex, since rdma-core 45. */
typedef void (*later_wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
			       size_t length, uint8_t type, uint8_t level);

struct run run;

void tell(const void *data, size_t len)
{
	REQUIRE(send(run.sock, data, len, MSG_NOSIGNAL) == (ssize_t)len);
}

void hear(void *data, size_t len)
{
	REQUIRE(recv(run.sock, data, len, MSG_WAITALL) == (ssize_t)len);
}

/* Wait until the other side has called this, too. */
void meet(void)
{
	char c = 'm';

	tell(&c, 1);
	hear(&c, 1);
}

struct ibv_wc completion(void)
{
	const time_t until = time(NULL) + WAIT_SECONDS;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(run.cq, 1, &wc)) == 0)
		REQUIRE(time(NULL) < until);
	REQUIRE(n == 1);
	return wc;
}

void expect(enum ibv_wc_status status, enum ibv_wc_opcode opcode)
{
	const struct ibv_wc wc = completion();

	if (wc.status != status) {
		printf("%s: status %s, not %s\n", run.name, ibv_wc_status_str(wc.status),
		       ibv_wc_status_str(status));
		exit(1);
	}
	/* Error completions have no opcode. */
	REQUIRE(status != IBV_WC_SUCCESS || wc.opcode == opcode);
}

/* Transfer a part of our buffer to or from the same part of the target's. */
static void rdma(enum ibv_wr_opcode opcode, uint32_t at, uint32_t len)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)run.buffer + at, .length = len, .lkey = run.mr->lkey};
	struct ibv_send_wr wr = {
		.opcode = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = run.peer.addr + at, .rkey = run.peer.rkey}};
	struct ibv_send_wr *bad;

	REQUIRE(ibv_post_send(run.qp, &wr, &bad) == 0);
}

static void fill(uint32_t at, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		run.buffer[at + i] = (uint8_t)(i * 7 + 1);
}

/* Return true if the part has the bytes that fill() writes, and nothing around it has changed. */
static bool is_filled(uint32_t at, uint32_t len)
{
	for (uint32_t i = 0; i < BUFFER_BYTES; i++) {
		const bool inside = i - at < len;

		if (run.buffer[i] != (inside ? (uint8_t)((i - at) * 7 + 1) : 0))
			return false;
	}
	return true;
}

/* The end of a window. */
enum ending {
	ENDING_RIGHTS, /* it stays valid, for writing only (rxe does not check a window's bounds) */
	ENDING_SEND,   /* the initiator invalidates it */
	ENDING_LOCAL,  /* the target invalidates it */
};

static const struct ibv_mw_bind_info *window_info(enum ending ending)
{
	static struct ibv_mw_bind_info info;

	info = (struct ibv_mw_bind_info){
		.mr = run.mr,
		.addr = run.own.addr + WINDOW_AT,
		.length = WINDOW_BYTES,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   (ending == ENDING_RIGHTS ? 0 : IBV_ACCESS_REMOTE_READ)};
	return &info;
}

static void bind_type_1(struct ibv_mw *mw, enum ending ending)
{
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED,
				   .bind_info = *window_info(ending)};

	REQUIRE(ibv_bind_mw(run.qp, mw, &bind) == 0);
	expect(IBV_WC_SUCCESS, IBV_WC_BIND_MW);
}

static void bind_type_2(struct ibv_mw *mw, enum ending ending)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW,
				 .send_flags = IBV_SEND_SIGNALED,
				 .bind_mw = {.mw = mw,
					     .rkey = ibv_inc_rkey(mw->rkey),
					     .bind_info = *window_info(ending)}};
	struct ibv_send_wr *bad;

	REQUIRE(ibv_post_send(run.qp, &wr, &bad) == 0);
	expect(IBV_WC_SUCCESS, IBV_WC_BIND_MW);
	mw->rkey = wr.bind_mw.rkey;
}

static void invalidate_here(uint32_t rkey)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV,
				 .send_flags = IBV_SEND_SIGNALED,
				 .invalidate_rkey = rkey};
	struct ibv_send_wr *bad;

	REQUIRE(ibv_post_send(run.qp, &wr, &bad) == 0);
	expect(IBV_WC_SUCCESS, IBV_WC_LOCAL_INV);
}

static void window_target(enum ibv_mw_type type, enum ending ending)
{
	struct ibv_mw *mw = ibv_alloc_mw(run.pd, type);
	struct ibv_wc wc;

	REQUIRE(mw);
	if (type == IBV_MW_TYPE_1)
		bind_type_1(mw, ending);
	else
		bind_type_2(mw, ending);
	tell(&mw->rkey, sizeof(mw->rkey));
	meet();
	REQUIRE(is_filled(WINDOW_AT, WINDOW_BYTES));
	if (ending == ENDING_SEND) {
		wc = completion();
		REQUIRE(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV);
		REQUIRE((wc.wc_flags & (IBV_WC_WITH_INV | RXE_WC_WITH_INV)) &&
			wc.invalidated_rkey == mw->rkey);
	} else if (ending == ENDING_LOCAL) {
		invalidate_here(mw->rkey);
	}
	meet();
	meet();
	REQUIRE(is_filled(WINDOW_AT, WINDOW_BYTES));
	/* Keep this order: rxe waits for ever for a queue pair to which a window is still bound. */
	REQUIRE(ibv_dealloc_mw(mw) == 0 && ibv_destroy_qp(run.qp) == 0);
}

static void window_initiator(enum ending ending)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_INV, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	hear(&run.peer.rkey, sizeof(run.peer.rkey));
	fill(WINDOW_AT, WINDOW_BYTES);
	rdma(IBV_WR_RDMA_WRITE, WINDOW_AT, WINDOW_BYTES);
	expect(IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
	memset(run.buffer, 0, BUFFER_BYTES);
	if (ending != ENDING_RIGHTS) {
		rdma(IBV_WR_RDMA_READ, WINDOW_AT, WINDOW_BYTES);
		expect(IBV_WC_SUCCESS, IBV_WC_RDMA_READ);
		REQUIRE(is_filled(WINDOW_AT, WINDOW_BYTES));
	}
	if (ending == ENDING_SEND) {
		wr.invalidate_rkey = run.peer.rkey;
		REQUIRE(ibv_post_send(run.qp, &wr, &bad) == 0);
		expect(IBV_WC_SUCCESS, IBV_WC_SEND);
	}
	meet();
	meet();
	rdma(ending == ENDING_RIGHTS ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, WINDOW_AT, 16);
	expect(IBV_WC_REM_ACCESS_ERR, IBV_WC_RDMA_WRITE);
	meet();
}

static void window_1(void)
{
	if (run.server)
		window_initiator(ENDING_RIGHTS);
	else
		window_target(IBV_MW_TYPE_1, ENDING_RIGHTS);
}

static void window_2(void)
{
	if (run.server)
		window_initiator(ENDING_RIGHTS);
	else
		window_target(IBV_MW_TYPE_2, ENDING_RIGHTS);
}

static void send_inv(void)
{
	if (run.server)
		window_initiator(ENDING_SEND);
	else
		window_target(IBV_MW_TYPE_2, ENDING_SEND);
}

static void local_inv(void)
{
	if (run.server)
		window_initiator(ENDING_LOCAL);
	else
		window_target(IBV_MW_TYPE_2, ENDING_LOCAL);
}

static void atomic_write(void)
{
	struct ibv_qp_ex *ex;

	if (!run.server) {
		meet();
		REQUIRE(is_filled(64, 8));
		return;
	}
	ex = ibv_qp_to_qp_ex(run.qp);
	fill(64, 8);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(ex, run.peer.rkey, run.peer.addr + 64, run.buffer + 64);
	REQUIRE(ibv_wr_complete(ex) == 0);
	expect(IBV_WC_SUCCESS, IBV_WC_ATOMIC_WRITE);
	meet();
}

static void flush(void)
{
	struct ibv_qp_ex *ex;

	if (!run.server) {
		meet();
		REQUIRE(is_filled(0, WINDOW_BYTES));
		return;
	}
	ex = ibv_qp_to_qp_ex(run.qp);
	fill(0, WINDOW_BYTES);
	rdma(IBV_WR_RDMA_WRITE, 0, WINDOW_BYTES);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	(*(later_wr_flush *)(&ex->wr_atomic_write + 1))(ex, run.peer.rkey, run.peer.addr,
							WINDOW_BYTES, LATER_PLACE_GLOBAL,
							LATER_LEVEL_RANGE);
	REQUIRE(ibv_wr_complete(ex) == 0);
	expect(IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
	expect(IBV_WC_SUCCESS, LATER_WC_FLUSH);
	meet();
}

static const struct test {
	const char *name;
	void (*body)(void);
	uint64_t send_ops;   /* capabilities that the initiator needs in addition */
	uint64_t capability; /* bits of device_cap_flags_ex that the target needs */
	int access;
} tests[] = {
	{"window_1", window_1, 0, 0, 0},
	{"window_2", window_2, 0, 0, 0},
	{"send_inv", send_inv, 0, 0, 0},
	{"local_inv", local_inv, 0, 0, 0},
	{"atomic_write", atomic_write, IBV_QP_EX_WITH_ATOMIC_WRITE, LATER_DEVICE_ATOMIC_WRITE, 0},
	{"huge", huge, 0, 0, 0},
	{"absent", absent, 0, 0, IBV_ACCESS_REMOTE_ATOMIC},
	{"flush", flush, LATER_QP_EX_WITH_FLUSH, LATER_DEVICE_FLUSH_GLOBAL,
	 LATER_ACCESS_FLUSH_GLOBAL},
};

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	REQUIRE(list);
	for (int i = 0; list[i] && !run.context; i++) {
		if (strcmp(ibv_get_device_name(list[i]), run.device) == 0)
			run.context = ibv_open_device(list[i]);
	}
	REQUIRE(run.context);
	run.pd = ibv_alloc_pd(run.context);
	run.cq = ibv_create_cq(run.context, 16, NULL, NULL, 0);
	run.buffer = aligned_alloc(4096, BUFFER_BYTES);
	REQUIRE(run.pd && run.cq && run.buffer);
	memset(run.buffer, 0, BUFFER_BYTES);
}

/* Return NULL if the device does not have the operations. */
static struct ibv_qp *create_qp(uint64_t send_ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = run.cq,
		.recv_cq = run.cq,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = run.pd,
	};

	if (send_ops) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = send_ops | IBV_QP_EX_WITH_RDMA_WRITE;
	}
	return ibv_create_qp_ex(run.context, &attr);
}

/* The library may be able to build a request that the kernel cannot execute. */
static int tell_what_it_has(const struct test *test)
{
	struct ibv_device_attr_ex attr;

	REQUIRE(ibv_query_device_ex(run.context, NULL, &attr) == 0);
	if ((attr.device_cap_flags_ex & test->capability) != test->capability)
		return EXIT_LACKS;
	return strcmp(run.server, "?") != 0 || create_qp(test->send_ops) ? 0 : EXIT_LACKS;
}

static void meet_over_tcp(void)
{
	const struct addrinfo hints = {
		.ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	const int on = 1;
	struct addrinfo *at;
	int listener;

	REQUIRE(getaddrinfo(run.server, run.port, &hints, &at) == 0);
	run.sock = socket(AF_INET, SOCK_STREAM, 0);
	REQUIRE(run.sock >= 0);
	if (run.server) {
		REQUIRE(connect(run.sock, at->ai_addr, at->ai_addrlen) == 0);
	} else {
		listener = run.sock;
		setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		REQUIRE(bind(listener, at->ai_addr, at->ai_addrlen) == 0 &&
			listen(listener, 1) == 0);
		run.sock = accept(listener, NULL, NULL);
		REQUIRE(run.sock >= 0);
		close(listener);
	}
	freeaddrinfo(at);
}

static void connect_qp(void)
{
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | run.access,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = run.peer.qpn,
		.rq_psn = run.peer.psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = run.peer.gid,
				    .sgid_index = run.gid_index,
				    .hop_limit = 64}},
		.sq_psn = run.own.psn,
		.timeout = 18, /* 1 s: an emulated peer is slow */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};

	REQUIRE(raise_qp(run.qp, &attr) == 0);
}

static void run_test(const struct test *test)
{
	struct ibv_recv_wr recv = {.wr_id = 1};
	struct ibv_recv_wr *bad;

	run.mr = ibv_reg_mr(run.pd, run.buffer, BUFFER_BYTES,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND | test->access);
	REQUIRE(run.mr);
	run.access = (unsigned int)test->access;
	run.own = (struct card){.qpn = run.qp->qp_num,
				.psn = run.qp->qp_num & 0xffffff,
				.rkey = run.mr->rkey,
				.addr = (uintptr_t)run.buffer};
	REQUIRE(ibv_query_gid(run.context, 1, run.gid_index, &run.own.gid) == 0);
	meet_over_tcp();
	tell(&run.own, sizeof(run.own));
	hear(&run.peer, sizeof(run.peer));
	connect_qp();
	REQUIRE(ibv_post_recv(run.qp, &recv, &bad) == 0);
	meet();
	test->body();
	printf("%s: done\n", run.name);
}

int main(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "d:g:p:")) != -1) {
		switch (option) {
		case 'd':
			run.device = optarg;
			break;
		case 'g':
			run.gid_index = (uint8_t)strtoul(optarg, NULL, 10);
			break;
		case 'p':
			run.port = optarg;
			break;
		default:
			return 2;
		}
	}
	run.name = optind < argc ? argv[optind] : "";
	run.server = optind + 1 < argc ? argv[optind + 1] : NULL;
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (strcmp(tests[i].name, run.name) != 0 || !run.device)
			continue;
		open_device();
		if (run.server && strpbrk(run.server, "?!"))
			return tell_what_it_has(&tests[i]);
		run.qp = create_qp(run.server ? tests[i].send_ops : 0);
		REQUIRE(run.qp);
		run_test(&tests[i]);
		return 0;
	}
	fprintf(stderr, "usage: interop_peer -d DEVICE -g GID_INDEX -p PORT CASE [SERVER]\n");
	return 2;
}
