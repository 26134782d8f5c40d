/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs with mistakes that do no harm here: uroce-run --check finds them. Each ends what it has
 * created, except where that is its mistake. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "zoo_world.h"

static void region_left(void)
{
	struct ibv_mr *region = ibv_reg_mr(world.pd, memory[0], BYTES, ALL);

	must(region, "ibv_reg_mr");
	if (!wrong)
		must(ibv_dereg_mr(region) == 0, "ibv_dereg_mr");
	if (wrong)
		must(ibv_close_device(world.context) == 0, "ibv_close_device");
	else
		zoo_tear_down();
}

static void queue_pairs_left(void)
{
	connect_both();
	if (!wrong)
		zoo_tear_down();
}

/* Regions that no peer may write: only then a change is the program's. */
static void connect_local(void)
{
	must(ibv_dereg_mr(world.from) == 0 && ibv_dereg_mr(world.to) == 0, "ibv_dereg_mr");
	world.from = ibv_reg_mr(world.pd, memory[0], BYTES, IBV_ACCESS_LOCAL_WRITE);
	world.to = ibv_reg_mr(world.pd, memory[1], BYTES, IBV_ACCESS_LOCAL_WRITE);
	must(world.from && world.to, "ibv_reg_mr");
	connect_both();
}

static void send_buffer_changed(void)
{
	connect_local();
	receive(BYTES);
	must(post(request(IBV_WR_SEND)) == 0, "ibv_post_send");
	if (wrong)
		memory[0][17]++;
	await(2);
	memory[0][17]++;
	zoo_tear_down();
}

/* The request that is not signaled is complete when the next one's completion is polled. */
static void unsignaled_buffer_changed(void)
{
	struct ibv_send_wr wr;

	world.init.sq_sig_all = 0;
	connect_local();
	receive(BYTES);
	receive(BYTES);
	must(post(request(IBV_WR_SEND)) == 0, "ibv_post_send");
	await(1);
	if (wrong)
		memory[0][0]++;
	wr = request(IBV_WR_SEND);
	wr.send_flags = IBV_SEND_SIGNALED;
	must(post(wr) == 0, "ibv_post_send");
	await(2);
	memory[0][0]++;
	zoo_tear_down();
}

static void receive_buffer_changed(void)
{
	struct ibv_send_wr wr;

	connect_local();
	memory[1][100]++;
	receive(BYTES);
	if (wrong)
		memory[1][100]++;
	wr = request(IBV_WR_SEND);
	wr.sg_list->length = 64;
	run(wr, 2);
	memory[1][100]++;
	zoo_tear_down();
}

static void message_overwritten(void)
{
	connect_local();
	receive(BYTES);
	if (!wrong)
		run(request(IBV_WR_SEND), 2);
	receive(BYTES);
	must(post(request(IBV_WR_SEND)) == 0, "ibv_post_send");
	if (wrong)
		must(post(request(IBV_WR_SEND)) == 0, "ibv_post_send");
	if (wrong)
		sleep(1);
	await(wrong ? 4 : 2);
	zoo_tear_down();
}

static void region_ended_in_use(void)
{
	connect_local();
	receive(BYTES);
	if (!wrong)
		run(request(IBV_WR_SEND), 2);
	must(ibv_dereg_mr(world.to) == 0, "ibv_dereg_mr");
	world.to = NULL;
	zoo_tear_down();
}

/* Nothing is ever complete for the program: on an adapter no room of the queue is free again. */
static void never_signaled(void)
{
	struct ibv_mw_bind bind = {.bind_info = {.mr = world.from,
						 .addr = (uintptr_t)memory[0],
						 .length = BYTES,
						 .mw_access_flags = IBV_ACCESS_REMOTE_READ}};
	struct ibv_mw *mw = ibv_alloc_mw(world.pd, IBV_MW_TYPE_1);

	world.init.sq_sig_all = 0;
	connect_both();
	must(mw && ibv_bind_mw(world.a, mw, &bind) == 0, "ibv_bind_mw");
	for (int i = 1; i < 17; i++) {
		struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE);

		wr.send_flags = i == 15 && !wrong ? IBV_SEND_SIGNALED : 0;
		while (post(wr) == ENOMEM)
			await(0);
	}
	await(!wrong);
	must(ibv_dealloc_mw(mw) == 0, "ibv_dealloc_mw");
	zoo_tear_down();
}

static void small_completion_queue(void)
{
	world.cqe = wrong ? 4 : 8;
	connect_both();
	for (int i = 0; i < 8; i++)
		receive(BYTES);
	zoo_tear_down();
}

/* Here an event comes at once for a completion that is there already. */
static void armed_too_late(void)
{
	struct ibv_cq *cq;
	void *context;

	world.channel = ibv_create_comp_channel(world.context);
	must(world.channel, "ibv_create_comp_channel");
	connect_both();
	if (!wrong)
		must(ibv_req_notify_cq(world.cq, 0) == 0, "ibv_req_notify_cq");
	must(post(request(IBV_WR_RDMA_WRITE)) == 0, "ibv_post_send");
	if (wrong) {
		sleep(1);
		must(ibv_req_notify_cq(world.cq, 0) == 0, "ibv_req_notify_cq");
	}
	must(ibv_get_cq_event(world.channel, &cq, &context) == 0, "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	must(ibv_req_notify_cq(world.cq, 0) == 0, "ibv_req_notify_cq");
	await(1);
	zoo_tear_down();
}

static void *acknowledge(void *cq)
{
	if (wrong)
		sleep(3);
	ibv_ack_cq_events(cq, 1);
	return NULL;
}

/* The program waits in ibv_destroy_cq until another thread acknowledges. */
static void acknowledged_too_late(void)
{
	struct ibv_cq *cq;
	pthread_t thread;
	void *context;

	world.channel = ibv_create_comp_channel(world.context);
	must(world.channel, "ibv_create_comp_channel");
	connect_both();
	must(ibv_req_notify_cq(world.cq, 0) == 0, "ibv_req_notify_cq");
	must(post(request(IBV_WR_RDMA_WRITE)) == 0, "ibv_post_send");
	must(ibv_get_cq_event(world.channel, &cq, &context) == 0, "ibv_get_cq_event");
	await(1);
	must(pthread_create(&thread, NULL, acknowledge, cq) == 0, "pthread_create");
	if (!wrong)
		must(pthread_join(thread, NULL) == 0, "pthread_join");
	zoo_tear_down();
	if (wrong)
		must(pthread_join(thread, NULL) == 0, "pthread_join");
}

/* After a failure wr_id, status, qp_num and vendor_err alone have a meaning. */
static void opcode_of_failure(void)
{
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE);
	struct ibv_wc wc;
	int n;

	connect_both();
	wr.wr.rdma.rkey = 0;
	must(post(wr) == 0, "ibv_post_send");
	while ((n = ibv_poll_cq(world.cq, 1, &wc)) == 0)
		;
	must(n == 1 && wc.status == IBV_WC_REM_ACCESS_ERR && wc.wr_id == 7 &&
		     wc.qp_num == world.a->qp_num,
	     "ibv_poll_cq");
	if (wrong)
		must(wc.opcode == IBV_WC_RDMA_WRITE, "the opcode of a failure");
	zoo_tear_down();
}

const struct zoo_case zoo_check[] = {
	CASE(region_left),
	CASE(queue_pairs_left),
	CASE(send_buffer_changed),
	CASE(unsignaled_buffer_changed),
	CASE(receive_buffer_changed),
	CASE(message_overwritten),
	CASE(region_ended_in_use),
	CASE(never_signaled),
	CASE(small_completion_queue),
	CASE(armed_too_late),
	CASE(acknowledged_too_late),
	CASE(opcode_of_failure),
	{NULL, NULL},
};
