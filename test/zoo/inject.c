/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asks for each kind of fault (uroce/inject.h), and looks if it is there, and counted. Runs by
 * itself under `uroce-run --inject none`.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "uroce/inject.h"
#include "zoo_world.h"

#define WAIT_MS	 10000
#define REQUESTS 3

bool wrong;

void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int add(const char *text)
{
	const int rule = uroce_inject(text);

	must(rule > 0, text);
	return rule;
}

/* Add a rule for one queue pair. */
static int add_of(const struct ibv_qp *qp, const char *rest, const char *status)
{
	char text[160];

	snprintf(text, sizeof(text), "qp=0x%x,%s%s", qp->qp_num, rest, status);
	return add(text);
}

/* End a rule that has made so many faults. */
static void end(int rule, int64_t count, const char *what)
{
	must(uroce_injected(rule) == count, what);
	must(uroce_inject_end(rule) == 0, what);
}

static struct ibv_wc next_completion(void)
{
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(world.cq, 1, &wc);
	} while (n == 0);
	must(n == 1, "ibv_poll_cq");
	return wc;
}

static void start_anew(void)
{
	world.attr_a.dest_qp_num = 0;
	connect_both();
}

static void stop(void)
{
	must(ibv_destroy_qp(world.a) == 0 && ibv_destroy_qp(world.b) == 0, "ibv_destroy_qp");
	must(ibv_destroy_cq(world.cq) == 0, "ibv_destroy_cq");
}

static void post_list(void)
{
	struct ibv_send_wr wr[REQUESTS], *bad;

	for (int i = 0; i < REQUESTS; i++) {
		wr[i] = request(IBV_WR_RDMA_WRITE);
		wr[i].wr_id = (uint64_t)i;
		wr[i].next = i + 1 < REQUESTS ? &wr[i + 1] : NULL;
	}
	must(ibv_post_send(world.a, wr, &bad) == 0, "ibv_post_send");
	must(wr[0].next == &wr[1] && wr[1].next == &wr[2], "the program's list");
}

/* The second of three requests has the status, and those behind it are flushed. */
static void expect_second(enum ibv_wc_status status, const char *name)
{
	for (uint64_t i = 0; i < REQUESTS; i++) {
		const struct ibv_wc wc = next_completion();

		must(wc.wr_id == i, name);
		must(wc.status == (i == 0   ? IBV_WC_SUCCESS
				   : i == 1 ? status
					    : IBV_WC_WR_FLUSH_ERR),
		     name);
	}
}

static void check_statuses(void)
{
	static const struct {
		const char *name;
		enum ibv_wc_status status;
	} statuses[] = {
		{"loc_prot_err", IBV_WC_LOC_PROT_ERR},
		{"loc_len_err", IBV_WC_LOC_LEN_ERR},
		{"loc_qp_op_err", IBV_WC_LOC_QP_OP_ERR},
		{"mw_bind_err", IBV_WC_MW_BIND_ERR},
		{"rem_inv_req_err", IBV_WC_REM_INV_REQ_ERR},
		{"rem_access_err", IBV_WC_REM_ACCESS_ERR},
		{"rem_op_err", IBV_WC_REM_OP_ERR},
		{"bad_resp_err", IBV_WC_BAD_RESP_ERR},
		{"retry_exc_err", IBV_WC_RETRY_EXC_ERR},
		{"rnr_retry_exc_err", IBV_WC_RNR_RETRY_EXC_ERR},
	};

	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		int rule;

		start_anew();
		rule = add_of(world.a, "op=write,nth=2,status=", statuses[i].name);
		post_list();
		expect_second(statuses[i].status, statuses[i].name);
		end(rule, 1, statuses[i].name);
		stop();
	}
}

/* The same for a list that is built by several calls. */
static void check_built(void)
{
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_RC,
					   .sq_sig_all = 1,
					   .comp_mask = IBV_QP_INIT_ATTR_PD |
							IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					   .pd = world.pd,
					   .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE};
	struct ibv_qp_ex *ex;
	int rule;

	world.attr_a.dest_qp_num = 0;
	make();
	init.cap = world.init.cap;
	init.send_cq = world.cq;
	init.recv_cq = world.cq;
	must(ibv_destroy_qp(world.a) == 0, "ibv_destroy_qp");
	world.a = ibv_create_qp_ex(world.context, &init);
	must(world.a, "ibv_create_qp_ex");
	world.attr_b.dest_qp_num = world.a->qp_num;
	connect_one(world.a, &world.attr_a);
	connect_one(world.b, &world.attr_b);
	ex = ibv_qp_to_qp_ex(world.a);
	rule = add_of(world.a, "op=write,nth=2,status=", "rem_access_err");
	ibv_wr_start(ex);
	for (int i = 0; i < REQUESTS; i++) {
		ex->wr_id = (uint64_t)i;
		ibv_wr_rdma_write(ex, world.to->rkey, (uintptr_t)memory[1]);
		ibv_wr_set_sge(ex, world.from->lkey, (uintptr_t)memory[0], 8);
	}
	must(ibv_wr_complete(ex) == 0, "ibv_wr_complete");
	expect_second(IBV_WC_REM_ACCESS_ERR, "ibv_wr_complete");
	end(rule, 1, "ibv_wr_complete");
	stop();
}

static void check_datagram(void)
{
	struct ibv_qp_attr attr = {.port_num = 1, .qkey = QKEY};
	struct ibv_send_wr wr, *bad;
	int rule;

	world.init.qp_type = IBV_QPT_UD;
	make();
	world.init.qp_type = IBV_QPT_RC;
	must(move(world.a, &attr, IBV_QPS_INIT, INIT_UD) == 0, "INIT");
	must(move(world.a, &attr, IBV_QPS_RTR, IBV_QP_STATE) == 0, "RTR");
	must(move(world.a, &attr, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0, "RTS");
	rule = add_of(world.a, "op=send,times=1,status=", "loc_qp_op_err");
	wr = request(IBV_WR_SEND);
	wr.wr.ud.ah = ibv_create_ah(world.pd, &world.attr_a.ah_attr);
	wr.wr.ud.remote_qpn = world.b->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	must(wr.wr.ud.ah && ibv_post_send(world.a, &wr, &bad) == 0, "ibv_post_send");
	must(next_completion().status == IBV_WC_LOC_QP_OP_ERR, "a datagram");
	end(rule, 1, "a datagram");
	stop();
	must(ibv_destroy_ah(wr.wr.ud.ah) == 0, "ibv_destroy_ah");
}

/* A receive request without a key fails when the message comes, and so does the message. */
static void check_receive(void)
{
	bool remote = false, local = false;
	int rule;

	start_anew();
	rule = add_of(world.b, "op=recv,status=", "loc_prot_err");
	receive(BYTES);
	must(post(request(IBV_WR_SEND)) == 0, "ibv_post_send");
	for (int i = 0; i < 2; i++) {
		const struct ibv_wc wc = next_completion();

		remote |= wc.status == IBV_WC_REM_OP_ERR && wc.qp_num == world.a->qp_num;
		local |= wc.status == IBV_WC_LOC_PROT_ERR && wc.qp_num == world.b->qp_num;
	}
	must(remote && local, "a receive request");
	end(rule, 1, "a receive request");
	stop();
}

/* A call of each way to fail: NULL, an errno value, -1; by the library's table and the context's;
 * and of rdma_cm. */
static void check_calls(void)
{
	struct ibv_cq_init_attr_ex cq_ex = {.cqe = 1};
	struct rdma_cm_id *id;
	__be16 pkey;
	int rule = add("call=ibv_alloc_pd,errno=ENOMEM,nth=2");
	struct ibv_pd *first = ibv_alloc_pd(world.context);

	errno = 0;
	must(first && !ibv_alloc_pd(world.context) && errno == ENOMEM, "ibv_alloc_pd");
	end(rule, 1, "ibv_alloc_pd");
	rule = add("call=ibv_dealloc_pd,errno=EBUSY,times=1");
	must(ibv_dealloc_pd(first) == EBUSY && ibv_dealloc_pd(first) == 0, "ibv_dealloc_pd");
	end(rule, 1, "ibv_dealloc_pd");
	rule = add("call=ibv_query_pkey,errno=EIO");
	must(ibv_query_pkey(world.context, 1, 0, &pkey) == -1, "ibv_query_pkey");
	end(rule, 1, "ibv_query_pkey");
	must(ibv_query_pkey(world.context, 1, 0, &pkey) == 0, "the end of a rule");
	rule = add("call=ibv_create_cq_ex,errno=ENOMEM");
	must(!ibv_create_cq_ex(world.context, &cq_ex), "ibv_create_cq_ex");
	end(rule, 1, "ibv_create_cq_ex");
	start_anew();
	rule = add("call=ibv_req_notify_cq,errno=EINVAL");
	must(ibv_req_notify_cq(world.cq, 0) == EINVAL, "ibv_req_notify_cq");
	end(rule, 1, "ibv_req_notify_cq");
	rule = add("call=ibv_post_send,errno=ENOMEM");
	must(post(request(IBV_WR_SEND)) == ENOMEM, "ibv_post_send");
	end(rule, 1, "ibv_post_send");
	stop();
	rule = add("call=rdma_create_id,errno=EMFILE");
	must(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == -1 && errno == EMFILE,
	     "rdma_create_id");
	end(rule, 1, "rdma_create_id");
	rule = add("call=rdma_bind_addr,errno=EADDRINUSE");
	must(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == 0 &&
		     rdma_bind_addr(id, (struct sockaddr *)&(
						struct sockaddr_storage){.ss_family = AF_INET}) ==
			     -1 &&
		     errno == EADDRINUSE,
	     "rdma_bind_addr");
	end(rule, 1, "rdma_bind_addr");
	must(rdma_destroy_id(id) == 0, "rdma_destroy_id");
}

static void expect_event(enum ibv_event_type type, const char *what)
{
	struct pollfd fd = {.fd = world.context->async_fd, .events = POLLIN};
	struct ibv_async_event event;

	must(poll(&fd, 1, WAIT_MS) == 1, what);
	must(ibv_get_async_event(world.context, &event) == 0 && event.event_type == type, what);
	must(type != IBV_EVENT_QP_FATAL || event.element.qp == world.a, what);
	ibv_ack_async_event(&event);
}

static void check_events(void)
{
	int rule = add("event=gid_change,after=1ms");

	expect_event(IBV_EVENT_GID_CHANGE, "gid_change");
	end(rule, 1, "gid_change");
	start_anew();
	rule = add_of(world.a, "event=", "qp_fatal");
	expect_event(IBV_EVENT_QP_FATAL, "qp_fatal");
	must(post(request(IBV_WR_SEND)) == 0, "ibv_post_send");
	must(next_completion().status == IBV_WC_WR_FLUSH_ERR, "a queue pair in the error state");
	end(rule, 1, "qp_fatal");
	stop();
}

int main(void)
{
	if (uroce_injected(1) == -ENOSYS) {
		must(uroce_inject("op=any,status=rem_op_err") == -ENOSYS, "without --inject");
		puts("inject: no rules without --inject");
		return 0;
	}
	zoo_set_up();
	must(uroce_inject("op=write,status=no_such") == -EINVAL, "a bad rule");
	must(uroce_injected(99) == -ENOENT && uroce_inject_end(99) == -ENOENT, "no such rule");
	check_statuses();
	check_built();
	check_datagram();
	check_receive();
	check_calls();
	check_events();
	puts("inject: each fault came, and was counted");
	return 0;
}
