/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bandwidth of SEND from memory or the null region, into memory or the null region:
 *
 *     source_sink [-0] [-s SECONDS] PORT [CLIENT'S SERVER]
 *
 * With -0 a side uses the null region: the client's is the source, the server's is the sink. The
 * client prints Gb/s. The programs connect by TCP at PORT.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "raise_qp.h"

#define MESSAGE_BYTES (64u << 10)
#define DEPTH	      128 /* requests in flight */

/* A message from one side to the other. */
struct address {
	union ibv_gid gid;
	uint32_t qpn;
};

static struct {
	bool null;
	double seconds;
	struct ibv_context *context;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t gid_index;
	struct address own;
} side = {.seconds = 2};

static void __attribute__((noreturn)) fail(const char *what)
{
	fprintf(stderr, "source_sink: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Return the first IPv4 address of the device. */
static void find_gid(void)
{
	static const uint8_t ipv4[12] = {[10] = 0xff, 0xff};
	struct ibv_gid_entry entry;

	for (uint32_t i = 0; i < 256; i++) {
		if (ibv_query_gid_ex(side.context, 1, i, &entry, 0) == 0 &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    memcmp(entry.gid.raw, ipv4, sizeof(ipv4)) == 0) {
			side.gid_index = (uint8_t)i;
			side.own.gid = entry.gid;
			return;
		}
	}
	errno = ENOENT;
	fail("an IPv4 address of the device");
}

static void make_region(struct ibv_pd *pd)
{
	void *memory;

	if (side.null) {
		side.mr = ibv_alloc_null_mr(pd);
	} else {
		/* Each request has its own part of the region, as in real programs. */
		memory = mmap(NULL, (size_t)DEPTH * MESSAGE_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			fail("mmap");
		memset(memory, 1, (size_t)DEPTH * MESSAGE_BYTES);
		side.mr = ibv_reg_mr(pd, memory, (size_t)DEPTH * MESSAGE_BYTES,
				     IBV_ACCESS_LOCAL_WRITE);
	}
	if (!side.mr)
		fail("the region");
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_pd *pd;

	if (!list || !list[0] || !(side.context = ibv_open_device(list[0])))
		fail("no RDMA device");
	pd = ibv_alloc_pd(side.context);
	side.cq = ibv_create_cq(side.context, 2 * DEPTH, NULL, NULL, 0);
	if (!pd || !side.cq)
		fail("a domain and a completion queue");
	init.send_cq = side.cq;
	init.recv_cq = side.cq;
	side.qp = ibv_create_qp(pd, &init);
	if (!side.qp)
		fail("ibv_create_qp");
	side.own.qpn = side.qp->qp_num;
	find_gid();
	make_region(pd);
}

static void connect_qp(const struct address *peer)
{
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = peer->qpn,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid,
				    .sgid_index = side.gid_index,
				    .hop_limit = 1}},
	};
	const int rc = raise_qp(side.qp, &attr);

	if (rc != 0) {
		errno = rc;
		fail("ibv_modify_qp");
	}
}

static int meet(uint16_t port, const char *server)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0)
		fail("socket");
	if (server) {
		if (inet_pton(AF_INET, server, &addr.sin_addr) != 1 ||
		    connect(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0)
			fail(server);
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 || listen(fd, 1) != 0)
		fail("listen");
	return accept(fd, NULL, NULL);
}

static void exchange(int fd, const void *own, void *peer, size_t size)
{
	if (write(fd, own, size) != (ssize_t)size ||
	    recv(fd, peer, size, MSG_WAITALL) != (ssize_t)size)
		fail("the other side");
}

static void post(bool server, uint64_t id)
{
	struct ibv_sge sge = {.addr = (uintptr_t)side.mr->addr + id * MESSAGE_BYTES,
			      .length = MESSAGE_BYTES,
			      .lkey = side.mr->lkey};
	struct ibv_recv_wr recv_wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send_wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad_send;

	errno = server ? ibv_post_recv(side.qp, &recv_wr, &bad_recv)
		       : ibv_post_send(side.qp, &send_wr, &bad_send);
	if (errno != 0)
		fail("posting");
}

/* Post the completed requests again. Return how many. */
static unsigned int turn(bool server)
{
	struct ibv_wc wc[16];
	const int n = ibv_poll_cq(side.cq, 16, wc);

	if (n < 0)
		fail("ibv_poll_cq");
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "source_sink: %s\n", ibv_wc_status_str(wc[i].status));
			exit(1);
		}
		post(server, wc[i].wr_id);
	}
	return (unsigned int)n;
}

static double now_s(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void run_client(int fd)
{
	const double start = now_s();
	uint64_t messages = 0;
	double end;

	for (uint64_t id = 0; id < DEPTH; id++)
		post(false, id);
	do {
		messages += turn(false);
		end = now_s();
	} while (end - start < side.seconds);
	printf("%.2f\n", (double)messages * MESSAGE_BYTES * 8 / (end - start) / 1e9);
	fflush(stdout);
	close(fd);
	/* The requests in flight need not arrive. */
	_exit(0);
}

/* Serve until the client closes the connection. */
static void run_server(int fd)
{
	uint32_t idle = 0;
	char none;

	for (;;) {
		if (turn(true) > 0)
			idle = 0;
		else if (++idle % 1024 == 0 && recv(fd, &none, 1, MSG_DONTWAIT) == 0)
			_exit(0);
	}
}

int main(int argc, char **argv)
{
	struct address peer;
	bool server;
	int option, fd;
	char ready;

	while ((option = getopt(argc, argv, "0s:")) != -1) {
		if (option == '0')
			side.null = true;
		else if (option == 's')
			side.seconds = strtod(optarg, NULL);
		else
			return 2;
	}
	if (optind == argc)
		return 2;
	server = optind + 1 == argc;
	open_device();
	fd = meet((uint16_t)strtoul(argv[optind], NULL, 10), server ? NULL : argv[optind + 1]);
	exchange(fd, &side.own, &peer, sizeof(peer));
	connect_qp(&peer);
	for (uint64_t id = 0; server && id < DEPTH; id++)
		post(true, id);
	exchange(fd, "", &ready, 1);
	if (server)
		run_server(fd);
	run_client(fd);
	return 0;
}
