/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong programs that wait for ever: they end after some seconds. */
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "zoo_world.h"

#define SECONDS 4

static void end(int signal)
{
	(void)signal;
	_exit(0);
}

/* What follows waits for ever in the wrong program. */
static void end_soon(void)
{
	signal(SIGALRM, end);
	alarm(wrong ? SECONDS : 0);
}

/* Poll for so many completions. */
static void poll_for(int count)
{
	end_soon();
	await(count);
}

static void no_receive_for_ever(void)
{
	connect_both();
	if (!wrong)
		receive(BYTES);
	must(post(request(IBV_WR_SEND)) == 0, "ibv_post_send");
	poll_for(2);
}

static void nobody_there_for_ever(void)
{
	world.attr_a.timeout = 0;
	if (wrong)
		world.attr_a.dest_qp_num = 0xfffff0;
	connect_both();
	must(post(request(IBV_WR_RDMA_WRITE)) == 0, "ibv_post_send");
	poll_for(1);
}

static void drained(void)
{
	connect_both();
	if (wrong)
		must(move(world.a, &world.attr_a, IBV_QPS_SQD, IBV_QP_STATE) == 0, "SQD");
	must(post(request(IBV_WR_RDMA_WRITE)) == 0, "ibv_post_send");
	poll_for(1);
}

static void slow_rate(void)
{
	struct ibv_qp_rate_limit_attr attr = {.rate_limit = wrong ? 1 : 1000000};

	connect_both();
	must(ibv_modify_qp_rate_limit(world.a, &attr) == 0, "ibv_modify_qp_rate_limit");
	must(post(request(IBV_WR_RDMA_WRITE)) == 0, "ibv_post_send");
	must(post(request(IBV_WR_RDMA_WRITE)) == 0, "ibv_post_send");
	poll_for(2);
}

static void nothing_signaled(void)
{
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE);

	world.init.sq_sig_all = 0;
	connect_both();
	for (int i = 0; i < 16; i++) {
		wr.send_flags = i == 15 && !wrong ? IBV_SEND_SIGNALED : 0;
		must(post(wr) == 0, "ibv_post_send");
	}
	poll_for(1);
}

static struct ibv_comp_channel *make_channel(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(world.context);

	must(channel, "ibv_create_comp_channel");
	world.channel = channel;
	connect_both();
	return channel;
}

static void take_event(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	void *context;

	must(ibv_get_cq_event(channel, &cq, &context) == 0, "ibv_get_cq_event");
}

static void never_armed(void)
{
	struct ibv_comp_channel *channel = make_channel();

	if (!wrong)
		must(ibv_req_notify_cq(world.cq, 0) == 0, "ibv_req_notify_cq");
	must(post(request(IBV_WR_RDMA_WRITE)) == 0, "ibv_post_send");
	end_soon();
	take_event(channel);
	ibv_ack_cq_events(world.cq, 1);
}

/* The first event announces both completions, and the program polls for one. */
static void polled_too_few(void)
{
	struct ibv_comp_channel *channel = make_channel();
	struct ibv_wc wc;

	must(post(request(IBV_WR_RDMA_WRITE)) == 0, "ibv_post_send");
	must(post(request(IBV_WR_RDMA_WRITE)) == 0, "ibv_post_send");
	usleep(100000);
	must(ibv_req_notify_cq(world.cq, 0) == 0, "ibv_req_notify_cq");
	take_event(channel);
	ibv_ack_cq_events(world.cq, 1);
	must(ibv_poll_cq(world.cq, 1, &wc) == 1, "ibv_poll_cq");
	must(ibv_req_notify_cq(world.cq, 0) == 0, "ibv_req_notify_cq");
	end_soon();
	if (wrong)
		take_event(channel);
	else
		await(1);
}

static void not_acknowledged(void)
{
	struct ibv_comp_channel *channel = make_channel();

	must(ibv_req_notify_cq(world.cq, 0) == 0, "ibv_req_notify_cq");
	must(post(request(IBV_WR_RDMA_WRITE)) == 0, "ibv_post_send");
	take_event(channel);
	if (!wrong)
		ibv_ack_cq_events(world.cq, 1);
	must(ibv_destroy_qp(world.a) == 0 && ibv_destroy_qp(world.b) == 0, "ibv_destroy_qp");
	end_soon();
	must(ibv_destroy_cq(world.cq) == 0, "ibv_destroy_cq");
}

const struct zoo_case zoo_silent[] = {
	CASE(no_receive_for_ever), CASE(nobody_there_for_ever), CASE(drained),
	CASE(slow_rate),	   CASE(nothing_signaled),	CASE(never_armed),
	CASE(polled_too_few),	   CASE(not_acknowledged),	{0},
};
