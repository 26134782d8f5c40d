/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of any verb from any thread at any time: all threads use, change and query the same shared
 * objects at once, while others are created and destroyed. Run them under the thread sanitizer too.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"
#include "live.h"
#include "test.h"

TEST_GROUP(crowd_open, crowd_close);

#define ROUNDS	  300
#define OWN_BYTES 65536
#define GROUPS	  3
#define OTHER_CQE 8000

static struct ibv_ah_attr to_ourselves(void)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 1};

	ibv_query_gid(crowd.context, 1, 0, &attr.grh.dgid);
	return attr;
}

static bool work_is_made(void)
{
	return __atomic_load_n(&crowd.running, __ATOMIC_ACQUIRE) > 0;
}

static unsigned int in_flight(void)
{
	return __atomic_load_n(&crowd.posted, __ATOMIC_ACQUIRE) -
	       __atomic_load_n(&crowd.completed, __ATOMIC_ACQUIRE);
}

/* Room in the queues of A, whoever else posts. */
static bool may_post(void)
{
	if (in_flight() < CROWD_WR / 2)
		return true;
	sched_yield();
	return false;
}

static void post_one(enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = {.addr = (uintptr_t)crowd.bytes, .length = 64, .lkey = crowd.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad_receive;

	/* Receive into the other half: other threads' messages may overlap there. */
	sge.addr += CROWD_BYTES / 2;
	wr.wr.rdma.remote_addr = (uintptr_t)crowd.bytes;
	wr.wr.rdma.rkey = crowd.mr->rkey;
	if (opcode == IBV_WR_SEND) {
		sge.length = 0;
		MUST(ibv_post_srq_recv(crowd.srq, &receive, &bad_receive) == 0);
	}
	__atomic_add_fetch(&crowd.posted, 1 + (opcode == IBV_WR_SEND), __ATOMIC_ACQ_REL);
	MUST(ibv_post_send(crowd.a, &wr, &bad) == 0);
}

static void post(const void *number)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						     IBV_WR_RDMA_READ};

	(void)number;
	for (int i = 0; i < 20 * ROUNDS; i++) {
		while (!may_post())
			;
		post_one(opcodes[i % 3]);
	}
}

/* The same by calls: between start and complete the queue is this thread's. */
static void build(const void *number)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(crowd.a);

	(void)number;
	MUST(ex);
	for (int i = 0; i < 20 * ROUNDS; i++) {
		while (!may_post())
			;
		ibv_wr_start(ex);
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(ex, crowd.mr->rkey, (uintptr_t)crowd.bytes);
		ibv_wr_set_inline_data(ex, "uroce", 5);
		if (i % 4 == 0) {
			ibv_wr_abort(ex);
			continue;
		}
		__atomic_add_fetch(&crowd.posted, 1, __ATOMIC_ACQ_REL);
		MUST(ibv_wr_complete(ex) == 0);
	}
}

static void poll_shared(const void *number)
{
	struct ibv_wc wc[4];

	(void)number;
	while (work_is_made() || in_flight() > 0) {
		const int n = ibv_poll_cq(crowd.cq, 4, wc);

		MUST(n >= 0);
		for (int i = 0; i < n; i++)
			MUST(wc[i].status == IBV_WC_SUCCESS);
		__atomic_add_fetch(&crowd.completed, (unsigned int)n, __ATOMIC_ACQ_REL);
	}
}

/* Arms, sleeps a while, reads events and acknowledges them. */
static void wait_for_events(const void *number)
{
	struct pollfd polled = {.fd = crowd.channel->fd, .events = POLLIN};

	(void)number;
	while (work_is_made()) {
		struct ibv_cq *cq;
		void *context;

		MUST(ibv_req_notify_cq(crowd.cq, 0) == 0);
		MUST(ibv_req_notify_cq(ibv_cq_ex_to_cq(crowd.cq_ex), 1) == 0);
		if (poll(&polled, 1, 1) <= 0)
			continue;
		/* The event may have gone to another thread. */
		if (ibv_get_cq_event(crowd.channel, &cq, &context) == 0)
			ibv_ack_cq_events(cq, 1);
		else
			MUST(errno == EAGAIN);
	}
}

static void read_async_events(const void *number)
{
	struct pollfd polled = {.fd = crowd.context->async_fd, .events = POLLIN};

	(void)number;
	while (work_is_made()) {
		struct ibv_async_event event;

		if (poll(&polled, 1, 1) <= 0)
			continue;
		if (ibv_get_async_event(crowd.context, &event) == 0)
			ibv_ack_async_event(&event);
		else
			MUST(errno == EAGAIN);
	}
}

/* A queue pair of the thread's own sends to itself, beside those of the others. */
static void own_rc(unsigned int round)
{
	struct lane lane;
	struct ibv_sge sge = {.addr = (uintptr_t)crowd.bytes + CROWD_BYTES / 4,
			      .lkey = crowd.mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp_init_attr init;

	MUST(lane_open(&lane, crowd.context));
	for (int i = 0; i < 4; i++)
		MUST(lane_send(&lane, wr, &sge));
	if (round % 3 == 0)
		MUST(ibv_modify_qp(lane.a, &attr, IBV_QP_STATE) == 0);
	MUST(ibv_query_qp(lane.a, &attr, IBV_QP_STATE, &init) == 0);
	MUST(ibv_query_qp(lane.b, &attr, IBV_QP_STATE, &init) == 0);
	/* Every other time with work in the air. */
	if (round % 2 == 0)
		MUST(lane_wait(&lane, 4) >= 0);
	MUST(lane_close(&lane));
}

static void own_ud(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = ibv_cq_ex_to_cq(crowd.cq_ex),
		.recv_cq = ibv_cq_ex_to_cq(crowd.cq_ex),
		.srq = crowd.srq,
		.cap = {.max_send_wr = 4, .max_send_sge = 1, .max_inline_data = 8},
		.qp_type = type,
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp *qp = ibv_create_qp(crowd.pd, &init);
	const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	MUST(qp);
	MUST(ibv_modify_qp(qp, &attr,
			   mask | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) == 0);
	MUST(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0);
	MUST(attr.qp_state == IBV_QPS_INIT);
	MUST(ibv_destroy_qp(qp) == 0);
}

/* Everybody asks for A and B, and changes what of them may be changed at work. */
static void change_shared(unsigned int round)
{
	struct ibv_qp_attr attr = {.min_rnr_timer = (uint8_t)(1 + round % 8)};
	struct ibv_qp_rate_limit_attr rate = {.rate_limit = round % 2 ? 0 : 50000000};
	struct ibv_qp_init_attr init;

	MUST(ibv_modify_qp(crowd.b, &attr, IBV_QP_MIN_RNR_TIMER) == 0);
	MUST(ibv_query_qp(crowd.b, &attr, IBV_QP_MIN_RNR_TIMER, &init) == 0);
	MUST(attr.qp_state == IBV_QPS_RTS && attr.min_rnr_timer >= 1);
	MUST(ibv_modify_qp_rate_limit(crowd.a, &rate) == 0);
	MUST(ibv_query_qp(crowd.a, &attr, IBV_QP_RATE_LIMIT, &init) == 0);
}

static void make_queue_pairs(const void *number)
{
	(void)number;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		own_rc(i);
		own_ud(IBV_QPT_UD);
		own_ud(IBV_QPT_UC);
		change_shared(i);
	}
}

/* A queue pair takes its completion queue to another engine, while threads sleep on the channel. */
static void move_cq(struct ibv_cq *cq, unsigned int round)
{
	const int vector = (int)(round % (unsigned int)crowd.context->num_comp_vectors);
	struct ibv_qp_init_attr init = {
		.send_cq = ibv_create_cq(crowd.context, 16, NULL, NULL, vector),
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(crowd.pd, &init);

	MUST(init.send_cq && qp);
	MUST(ibv_req_notify_cq(cq, 0) == 0);
	MUST(ibv_destroy_qp(qp) == 0);
	MUST(ibv_destroy_cq(init.send_cq) == 0);
}

static void own_cq(unsigned int round)
{
	struct ibv_cq_init_attr_ex init = {.cqe = 16,
					   .channel = crowd.channel,
					   .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
	struct ibv_cq *cq = ibv_create_cq(crowd.context, 16, NULL, crowd.channel, 0);
	struct ibv_cq_ex *ex = ibv_create_cq_ex(crowd.context, &init);
	struct ibv_poll_cq_attr nothing = {.comp_mask = 0};

	MUST(cq && ex);
	MUST(ibv_resize_cq(cq, 100) == 0);
	MUST(ibv_req_notify_cq(cq, 0) == 0);
	move_cq(cq, round);
	MUST(ibv_start_poll(ex, &nothing) == ENOENT);
	MUST(ibv_destroy_cq(cq) == 0);
	MUST(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)) == 0);
}

static void make_completion_queues(const void *number)
{
	(void)number;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct ibv_modify_cq_attr attr = {
			.attr_mask = IBV_CQ_ATTR_MODERATE,
			.moderate = {.cq_count = (uint16_t)(i % 3 * 4), .cq_period = 10}};
		struct ibv_poll_cq_attr nothing = {.comp_mask = 0};

		own_cq(i);
		MUST(ibv_resize_cq(crowd.cq, i % 2 ? CROWD_CQE : OTHER_CQE) == 0);
		MUST(ibv_modify_cq(crowd.cq, &attr) == 0);
		/* Take the completions that UD queue pairs leave there. */
		if (ibv_start_poll(crowd.cq_ex, &nothing) == 0)
			ibv_end_poll(crowd.cq_ex);
	}
}

static void own_srqs(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_xrcd_init_attr domain_attr = {.comp_mask = IBV_XRCD_INIT_ATTR_FD |
							      IBV_XRCD_INIT_ATTR_OFLAGS,
						 .fd = crowd.fd,
						 .oflags = O_CREAT};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(crowd.context, &domain_attr);
	struct ibv_srq_init_attr_ex xrc_init = {
		.attr = {.max_wr = 8, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = crowd.pd,
		.xrcd = xrcd,
		.cq = crowd.cq,
	};
	struct ibv_qp_init_attr_ex target_init = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
	struct ibv_qp_open_attr open = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						     IBV_QP_OPEN_ATTR_TYPE,
					.qp_type = IBV_QPT_XRC_RECV,
					.xrcd = xrcd};
	struct ibv_srq *srq = ibv_create_srq(crowd.pd, &init), *xrc;
	struct ibv_srq_attr attr = {.max_wr = 32, .srq_limit = 2};
	struct ibv_qp *target, *again;
	uint32_t number;

	MUST(srq && xrcd);
	MUST(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) == 0);
	MUST(ibv_destroy_srq(srq) == 0);
	xrc = ibv_create_srq_ex(crowd.context, &xrc_init);
	target = ibv_create_qp_ex(crowd.context, &target_init);
	MUST(xrc && target);
	MUST(ibv_get_srq_num(xrc, &number) == 0);
	open.qp_num = target->qp_num;
	again = ibv_open_qp(crowd.context, &open);
	MUST(again);
	MUST(ibv_destroy_qp(target) == 0);
	MUST(ibv_destroy_qp(again) == 0);
	MUST(ibv_destroy_srq(xrc) == 0);
	MUST(ibv_close_xrcd(xrcd) == 0);
}

static void make_shared_receive_queues(const void *number)
{
	(void)number;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct ibv_srq_attr attr = {.max_wr = CROWD_WR << (i % 2), .srq_limit = i % 5};

		own_srqs();
		/* Smaller than what waits in it is refused; nothing else. */
		const int rc = ibv_modify_srq(crowd.srq, &attr, IBV_SRQ_MAX_WR);

		MUST(rc == 0 || rc == EINVAL);
		MUST(ibv_modify_srq(crowd.srq, &attr, IBV_SRQ_LIMIT) == 0);
		MUST(ibv_query_srq(crowd.srq, &attr) == 0);
		MUST(attr.max_wr >= CROWD_WR);
	}
}

static void make_memory(const void *number)
{
	uint8_t *own = calloc(1, OWN_BYTES);

	(void)number;
	MUST(own);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct ibv_alloc_dm_attr dm_attr = {.length = 4096};
		struct ibv_pd *pd = ibv_alloc_pd(crowd.context);
		struct ibv_mr *mr = ibv_reg_mr(crowd.pd, own, OWN_BYTES, CROWD_ACCESS);
		struct ibv_mr *null = ibv_alloc_null_mr(pd);
		struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
		struct ibv_dm *dm = ibv_alloc_dm(crowd.context, &dm_attr);
		struct ibv_td *td = ibv_alloc_td(crowd.context, &(struct ibv_td_init_attr){0});
		struct ibv_parent_domain_init_attr parent_attr = {.pd = pd, .td = td};
		struct ibv_pd *parent = ibv_alloc_parent_domain(crowd.context, &parent_attr);

		MUST(pd && mr && null && mw && dm && td && parent);
		MUST(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0) == 0);
		MUST(ibv_dereg_mr(mr) == 0);
		MUST(ibv_dereg_mr(null) == 0);
		MUST(ibv_dealloc_mw(mw) == 0);
		MUST(ibv_free_dm(dm) == 0);
		MUST(ibv_dealloc_pd(parent) == 0);
		MUST(ibv_dealloc_td(td) == 0);
		MUST(ibv_dealloc_pd(pd) == 0);
	}
	free(own);
}

/* Each thread attaches and detaches another group, two of them the same one in turn. */
static void make_addresses(const void *number)
{
	const size_t mine = *(const size_t *)number;
	union ibv_gid group = {.raw = {0xff, 0x0e, [15] = (uint8_t)(1 + mine % GROUPS)}};
	struct ibv_ah_attr to = to_ourselves();

	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct ibv_device_attr_ex device;
		struct ibv_port_attr port;
		union ibv_gid gid;
		struct ibv_gid_entry entries[4];
		struct ibv_ah *ah = ibv_create_ah(crowd.pd, &to);
		struct ibv_sge sge = {.addr = (uintptr_t) "uroce", .length = 5};
		struct ibv_send_wr wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_INLINE},
				   *bad;
		int rc;

		MUST(ah);
		MUST(ibv_attach_mcast(crowd.ud, &group, 0) == 0);
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = crowd.ud->qp_num;
		wr.wr.ud.remote_qkey = CROWD_QKEY + 1; /* it is dropped: nobody receives */
		/* The other threads' may fill the queue. */
		rc = ibv_post_send(crowd.ud, &wr, &bad);
		MUST(rc == 0 || rc == ENOMEM);
		MUST(ibv_query_device_ex(crowd.context, NULL, &device) == 0);
		MUST(ibv_query_port(crowd.context, 1, &port) == 0);
		MUST(ibv_query_gid(crowd.context, 1, 0, &gid) == 0);
		MUST(ibv_query_gid_table(crowd.context, entries, 4, 0) > 0);
		MUST(ibv_destroy_ah(ah) == 0);
		MUST(ibv_detach_mcast(crowd.ud, &group, 0) == 0);
	}
}

/* Contexts come and go, each with objects of its own. */
static void make_contexts(const void *number)
{
	(void)number;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct ibv_device **list = ibv_get_device_list(NULL);
		struct ibv_context *context = list ? ibv_open_device(list[0]) : NULL;
		struct lane lane;

		MUST(context);
		ibv_free_device_list(list);
		MUST(lane_open(&lane, context));
		MUST(lane_close(&lane));
		MUST(ibv_close_device(context) == 0);
	}
}

/* The work of the threads. Those that make work end by themselves, and the others then end too. */
static const struct job {
	void (*body)(const void *number);
	bool makes;
} jobs[] = {
	{post, true},
	{post, true},
	{build, true},
	{make_queue_pairs, true},
	{make_queue_pairs, true},
	{make_completion_queues, true},
	{make_shared_receive_queues, true},
	{make_shared_receive_queues, true},
	{make_memory, true},
	{make_addresses, true},
	{make_addresses, true},
	{make_addresses, true},
	{make_contexts, true},
	{poll_shared, false},
	{poll_shared, false},
	{wait_for_events, false},
	{wait_for_events, false},
	{read_async_events, false},
	{read_async_events, false},
};
#define JOBS (sizeof(jobs) / sizeof(jobs[0]))

static void *run_job(void *arg)
{
	const size_t number = *(const size_t *)arg;

	jobs[number].body(arg);
	if (jobs[number].makes)
		__atomic_sub_fetch(&crowd.running, 1, __ATOMIC_RELEASE);
	return NULL;
}

TEST(verbs__any_from_any_thread)
{
	pthread_t threads[JOBS];
	size_t numbers[JOBS];

	for (size_t i = 0; i < JOBS; i++)
		crowd.running += jobs[i].makes;
	for (size_t i = 0; i < JOBS; i++) {
		numbers[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, run_job, &numbers[i]), 0);
	}
	for (size_t i = 0; i < JOBS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(crowd.completed, crowd.posted);
}
