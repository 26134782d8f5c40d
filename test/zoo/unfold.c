/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that count on what the specification leaves open, and their right twins:
 *
 *   unfold NAME     the wrong one of this name; unless the choices are unusual it succeeds
 *   unfold          all right ones
 *   unfold last_byte, unfold last_byte right
 *                   two processes, for a device with a network (uroce-run --local)
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zoo_world.h"

#define WAIT_US 10000 /* longer than requests take */
#define ROUNDS	40
#define SENDS	2000
#define HUNG_MS 2000

bool wrong;

/* A second pair of queue pairs, which completes in a queue of its own or in the first one's. */
static struct ibv_cq *cq2;
static struct ibv_qp *a2, *b2;

void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "unfold: %s\n", what);
	exit(1);
}

static void connect_second(struct ibv_cq *cq)
{
	struct ibv_qp_attr a = world.attr_a, b = world.attr_b;

	world.init.send_cq = world.init.recv_cq = cq;
	a2 = ibv_create_qp(world.pd, &world.init);
	b2 = ibv_create_qp(world.pd, &world.init);
	must(a2 && b2, "ibv_create_qp");
	a.dest_qp_num = b2->qp_num;
	b.dest_qp_num = a2->qp_num;
	connect_one(a2, &a);
	connect_one(b2, &b);
}

static void post_to(struct ibv_qp *qp)
{
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE), *bad;

	must(ibv_post_send(qp, &wr, &bad) == 0, "ibv_post_send");
}

static void await_of(struct ibv_cq *cq, int count)
{
	struct ibv_wc wc;

	while (count > 0) {
		const int n = ibv_poll_cq(cq, 1, &wc);

		must(n >= 0 && (n == 0 || wc.status == IBV_WC_SUCCESS), "a completion");
		count -= n;
	}
}

/* A poll need not return all that is there. */
static void polls_once(void)
{
	struct ibv_wc wc[4];

	connect_both();
	for (int round = 0; round < 8; round++) {
		for (int i = 0; i < 4; i++)
			post_to(world.a);
		usleep(WAIT_US);
		if (wrong)
			must(ibv_poll_cq(world.cq, 4, wc) == 4, "a poll returned fewer than 4");
		else
			await(4);
	}
}

/* Completions of different queue pairs come in any order. */
static void by_order(void)
{
	struct ibv_wc wc;

	connect_both();
	connect_second(world.cq);
	for (int round = 0; round < 8; round++) {
		post_to(world.a);
		usleep(WAIT_US);
		post_to(a2);
		usleep(WAIT_US);
		for (int i = 0; i < 2; i++) {
			while (ibv_poll_cq(world.cq, 1, &wc) == 0)
				;
			must(!wrong || wc.qp_num == (i == 0 ? world.a : a2)->qp_num,
			     "the first completion is of the second queue pair");
		}
	}
}

/* A later completion in another queue does not say that an earlier one is there. */
static void other_queue(void)
{
	struct ibv_wc wc;

	connect_both();
	cq2 = ibv_create_cq(world.context, 16, NULL, NULL, 0);
	must(cq2, "ibv_create_cq");
	connect_second(cq2);
	for (int round = 0; round < ROUNDS; round++) {
		post_to(world.a);
		usleep(WAIT_US / 10);
		post_to(a2);
		await_of(cq2, 1);
		if (wrong)
			must(ibv_poll_cq(world.cq, 1, &wc) == 1, "the older one is not there");
		else
			await(1);
	}
}

static void next_event(void)
{
	struct pollfd fd = {.fd = world.channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	must(poll(&fd, 1, HUNG_MS) == 1, "no event came");
	must(ibv_get_cq_event(world.channel, &cq, &context) == 0, "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
}

static void use_channel(void)
{
	world.channel = ibv_create_comp_channel(world.context);
	must(world.channel, "ibv_create_comp_channel");
	connect_both();
}

/* Take so many completions as the manual page does: arm, poll, and only then sleep. */
static void sleep_for(int count)
{
	struct ibv_wc wc;

	while (count > 0) {
		int n;

		next_event();
		must(ibv_req_notify_cq(world.cq, 0) == 0, "ibv_req_notify_cq");
		while (count > 0 && (n = ibv_poll_cq(world.cq, 1, &wc)) > 0)
			count -= n;
	}
}

/* An event may come without a completion. */
static void event_is_completion(void)
{
	struct ibv_wc wc;

	use_channel();
	must(ibv_req_notify_cq(world.cq, 0) == 0, "ibv_req_notify_cq");
	for (int round = 0; round < ROUNDS; round++) {
		post_to(world.a);
		if (!wrong) {
			sleep_for(1);
			continue;
		}
		next_event();
		must(ibv_poll_cq(world.cq, 1, &wc) == 1, "an event without a completion");
		must(ibv_req_notify_cq(world.cq, 0) == 0, "ibv_req_notify_cq");
	}
}

/* One event may tell of several completions. */
static void event_for_each(void)
{
	struct ibv_wc wc;

	use_channel();
	must(ibv_req_notify_cq(world.cq, 0) == 0, "ibv_req_notify_cq");
	for (int round = 0; round < ROUNDS; round++) {
		post_to(world.a);
		usleep(WAIT_US / 20);
		post_to(world.a);
		usleep(WAIT_US / 20);
		if (!wrong) {
			sleep_for(2);
			continue;
		}
		for (int i = 0; i < 2; i++) {
			next_event();
			(void)ibv_poll_cq(world.cq, 1, &wc);
			must(ibv_req_notify_cq(world.cq, 0) == 0, "ibv_req_notify_cq");
		}
	}
}

/* A receiver may say that it is not ready, though a request is posted. */
static void no_retries(void)
{
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad;
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send;

	world.attr_a.rnr_retry = wrong ? 0 : 7;
	connect_both();
	for (int i = 0; i < 8; i++)
		must(ibv_post_recv(world.b, &wr, &bad) == 0, "ibv_post_recv");
	for (int i = 0; i < SENDS; i++) {
		must(ibv_post_send(world.a, &send, &bad_send) == 0, "ibv_post_send");
		await_of(world.cq, 2);
		must(ibv_post_recv(world.b, &wr, &bad) == 0, "ibv_post_recv");
	}
}

#define LONG_BYTES (64 << 10)

static uint8_t data[LONG_BYTES] __attribute__((aligned(4096)));

/* What one process tells the other. */
struct end {
	uint32_t qpn, rkey;
	uint64_t addr;
};

/* Connect `a` to the other process's. */
static struct end meet(int in, int out, struct ibv_mr *mr)
{
	struct end mine = {.rkey = mr->rkey, .addr = (uintptr_t)data}, peer;

	make();
	mine.qpn = world.a->qp_num;
	must(write(out, &mine, sizeof(mine)) == sizeof(mine), "write");
	must(read(in, &peer, sizeof(peer)) == sizeof(peer), "read");
	world.attr_a.dest_qp_num = peer.qpn;
	world.attr_a.sq_psn = world.attr_a.rq_psn = 0;
	connect_one(world.a, &world.attr_a);
	must(write(out, "", 1) == 1 && read(in, &mine, 1) == 1, "the other process ended");
	return peer;
}

/* The bytes of a WRITE come in any order into a region with relaxed ordering: only a completion
 * says that all are there. */
static void last_byte(int in, int out, bool sends)
{
	struct ibv_mr *mr;
	struct end peer;
	char go;

	zoo_set_up();
	mr = ibv_reg_mr(world.pd, data, LONG_BYTES, ALL | IBV_ACCESS_RELAXED_ORDERING);
	must(mr, "ibv_reg_mr");
	peer = meet(in, out, mr);
	for (int round = 1; round <= ROUNDS; round++) {
		struct ibv_sge sge = {(uintptr_t)data, LONG_BYTES, mr->lkey};
		struct ibv_send_wr wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
					 .wr.rdma = {peer.addr, peer.rkey}},
				   *bad;
		struct ibv_recv_wr any = {.wr_id = 1}, *bad_any;

		if (sends) {
			memset(data, round, LONG_BYTES);
			must(read(in, &go, 1) == 1, "the receiver ended");
			must(ibv_post_send(world.a, &wr, &bad) == 0, "ibv_post_send");
			await(1);
			continue;
		}
		must(ibv_post_recv(world.a, &any, &bad_any) == 0, "ibv_post_recv");
		must(write(out, "", 1) == 1, "write");
		if (wrong) {
			while (__atomic_load_n(&data[LONG_BYTES - 1], __ATOMIC_ACQUIRE) != round)
				;
		} else {
			await(1);
		}
		for (int i = 0; i < LONG_BYTES; i++)
			must(data[i] == round, "the last byte is there, and another is not");
		if (wrong)
			await(1);
	}
}

/* The child sends. Return the exit status. */
static int two_processes(void)
{
	int there[2], back[2], status;
	pid_t child;

	must(pipe(there) == 0 && pipe(back) == 0, "pipe");
	child = fork();
	if (child == 0) {
		close(there[1]);
		close(back[0]);
		last_byte(there[0], back[1], true);
		return 0;
	}
	close(there[0]);
	close(back[1]);
	last_byte(back[0], there[1], false);
	must(waitpid(child, &status, 0) == child && status == 0, "the sender fails");
	return 0;
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"polls_once", polls_once},	    {"by_order", by_order},
	{"other_queue", other_queue},	    {"event_is_completion", event_is_completion},
	{"event_for_each", event_for_each}, {"no_retries", no_retries},
};

static void run_case(void (*function)(void))
{
	memset(&world, 0, sizeof(world));
	a2 = b2 = NULL;
	cq2 = NULL;
	zoo_set_up();
	function();
	if (a2)
		must(ibv_destroy_qp(a2) == 0 && ibv_destroy_qp(b2) == 0, "ibv_destroy_qp");
	must(!cq2 || ibv_destroy_cq(cq2) == 0, "ibv_destroy_cq");
	zoo_tear_down();
}

int main(int argc, char **argv)
{
	wrong = argc == 2;
	if (argc > 1 && strcmp(argv[1], "last_byte") == 0)
		return two_processes();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!wrong || strcmp(cases[i].name, argv[1]) == 0)
			run_case(cases[i].run);
	}
	return 0;
}
