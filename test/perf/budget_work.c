/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fixed work of which budget.py counts the instructions. Two processes of an uroced take turns: one
 * posts and polls while the other one waits at a socket, and then the other way round. So neither
 * polls in vain, and the counts are the same each time. Both run under callgrind, which counts in
 * count_post and count_poll, and writes what it has counted at the end of each mark_...:
 *
 *     uroce-run --local --progress inline -- valgrind --tool=callgrind ... budget_work
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "must.h"
#include "raise_qp.h"

#define LIST	32
#define ROUNDS	5  /* lists that are counted together */
#define REPEATS 15 /* budget.py takes the least: an engine also looks after its port at times */
#define WARM	50
#define POLLS	2 /* in a turn: one receives, and the next one acknowledges */
#define LONG	65536
#define RIGHTS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

struct name {
	union ibv_gid gid;
	uint64_t addr;
	uint32_t qpn, rkey;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static struct name ours, theirs;
static uint8_t memory[LONG];
static int other; /* a socket to the other process */

/* A list of requests. */
struct work {
	enum ibv_wr_opcode opcode;
	uint32_t bytes;
	bool one_by_one;
	bool signals;  /* each of them, not only the last */
	bool receives; /* the other side has a completion for each */
	void (*mark)(void);
};

static void open_device(void)
{
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 2 * LIST, .max_sge = 1}};
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 2 * LIST, .max_send_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_device **list = ibv_get_device_list(NULL);

	MUST(list && list[0]);
	context = ibv_open_device(list[0]);
	MUST(context && ibv_query_gid(context, 1, 0, &ours.gid) == 0);
	pd = ibv_alloc_pd(context);
	MUST(pd);
	cq = ibv_create_cq(context, 4 * LIST, NULL, NULL, 0);
	srq = ibv_create_srq(pd, &srq_init);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), RIGHTS);
	MUST(cq && srq && mr);
	init.send_cq = init.recv_cq = cq;
	init.srq = srq;
	qp = ibv_create_qp(pd, &init);
	MUST(qp);
	ours.qpn = qp->qp_num;
	ours.addr = (uintptr_t)memory;
	ours.rkey = mr->rkey;
}

static void join(void)
{
	struct ibv_qp_attr attr;

	MUST(send(other, &ours, sizeof(ours), 0) == sizeof(ours));
	MUST(recv(other, &theirs, sizeof(theirs), MSG_WAITALL) == sizeof(theirs));
	attr = raise_attr(&theirs.gid, theirs.qpn, 0);
	attr.qp_access_flags = RIGHTS;
	attr.path_mtu = IBV_MTU_4096;
	attr.max_rd_atomic = attr.max_dest_rd_atomic = 16;
	MUST(raise_qp(qp, &attr) == 0);
}

/* Let the other process have its turn: tell it a number, and return its answer. */
static uint32_t pass(uint32_t number)
{
	MUST(send(other, &number, sizeof(number), 0) == sizeof(number));
	MUST(recv(other, &number, sizeof(number), MSG_WAITALL) == sizeof(number));
	return number;
}

static __attribute__((noinline)) unsigned int count_poll(void)
{
	struct ibv_wc wcs[LIST];
	unsigned int got = 0;

	for (int i = 0; i < POLLS; i++) {
		const int n = ibv_poll_cq(cq, LIST, wcs);

		MUST(n >= 0);
		for (int k = 0; k < n; k++)
			MUST(wcs[k].status == IBV_WC_SUCCESS);
		got += (unsigned int)n;
	}
	return got;
}

static __attribute__((noinline)) void count_post_receives(void)
{
	struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	for (unsigned int i = 0; i < LIST; i++)
		MUST(ibv_post_srq_recv(srq, &wr, &bad) == 0);
}

static __attribute__((noinline)) void count_post(struct ibv_send_wr *wrs, unsigned int lists)
{
	struct ibv_send_wr *bad;

	for (unsigned int i = 0; i < lists; i++)
		MUST(ibv_post_send(qp, &wrs[i], &bad) == 0);
}

static void post(const struct work *work)
{
	struct ibv_sge sge = {(uintptr_t)memory, work->bytes, mr->lkey};
	struct ibv_send_wr wrs[LIST];

	memset(wrs, 0, sizeof(wrs));
	for (unsigned int i = 0; i < LIST; i++) {
		struct ibv_send_wr *wr = &wrs[i];

		wr->next = !work->one_by_one && i + 1 < LIST ? wr + 1 : NULL;
		wr->sg_list = &sge;
		wr->num_sge = 1;
		wr->opcode = work->opcode;
		wr->send_flags = work->signals || i + 1 == LIST ? IBV_SEND_SIGNALED : 0;
		if (work->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			wr->wr.atomic.remote_addr = theirs.addr;
			wr->wr.atomic.rkey = theirs.rkey;
			wr->wr.atomic.compare_add = 1;
		} else {
			wr->wr.rdma.remote_addr = theirs.addr;
			wr->wr.rdma.rkey = theirs.rkey;
		}
	}
	count_post(wrs, work->one_by_one ? LIST : 1);
}

static uint32_t at_most(uint32_t n, uint32_t most)
{
	MUST(n <= most);
	return n;
}

/* Complete a list. The other side's receives come before it, if there are any. */
static void run(const struct work *work)
{
	uint32_t here = work->signals ? LIST : 1, there = work->receives ? LIST : 0;

	if (work->receives)
		pass(1);
	post(work);
	while (here > 0 || there > 0) {
		there -= at_most(pass(2), there);
		here -= at_most(count_poll(), here);
	}
}

/* The side that answers: 0 ends, 1 asks for receives, 2 is a turn; others are marks. */
#define MARK_FIRST 3

/* Callgrind writes what it has counted when one of these returns. */
#define MARK(name)                                                       \
	static __attribute__((noinline, noclone)) void mark_##name(void) \
	{                                                                \
		/* No two of them are the same code. */                  \
		__asm__ volatile("# " #name ::: "memory");               \
	}
MARK(warm)
MARK(write_list)
MARK(write_one_by_one)
MARK(send_srq)
MARK(read)
MARK(atomic)
MARK(write_long)
MARK(poll_empty)

static const struct work works[] = {
	{IBV_WR_RDMA_WRITE, 8, .mark = mark_write_list},
	{IBV_WR_RDMA_WRITE, 8, .one_by_one = true, .signals = true, .mark = mark_write_one_by_one},
	{IBV_WR_SEND, 8, .signals = true, .receives = true, .mark = mark_send_srq},
	{IBV_WR_RDMA_READ, 8, .signals = true, .mark = mark_read},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, 8, .signals = true, .mark = mark_atomic},
	{IBV_WR_RDMA_WRITE, LONG, .mark = mark_write_long},
};
#define WORKS (sizeof(works) / sizeof(works[0]))

static void ask(void)
{
	for (uint32_t i = 0; i < WORKS; i++) {
		for (unsigned int k = 0; k < WARM; k++)
			run(&works[i]);
		mark_warm();
		pass(MARK_FIRST + WORKS);
		for (unsigned int k = 0; k < REPEATS; k++) {
			for (unsigned int round = 0; round < ROUNDS; round++)
				run(&works[i]);
			works[i].mark();
			pass(MARK_FIRST + i);
		}
	}
	for (unsigned int k = 0; k < REPEATS; k++) {
		for (unsigned int round = 0; round < ROUNDS; round++)
			count_poll();
		mark_poll_empty();
	}
	pass(0);
}

static void answer(void)
{
	uint32_t number, reply;

	do {
		MUST(recv(other, &number, sizeof(number), MSG_WAITALL) == sizeof(number));
		reply = 0;
		if (number == 1)
			count_post_receives();
		else if (number == 2)
			reply = count_poll();
		else if (number == MARK_FIRST + WORKS)
			mark_warm();
		else if (number >= MARK_FIRST)
			works[number - MARK_FIRST].mark();
		MUST(send(other, &reply, sizeof(reply), 0) == sizeof(reply));
	} while (number != 0);
}

int main(void)
{
	int ends[2], status;
	pid_t child;

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	child = fork();
	MUST(child >= 0);
	other = ends[child == 0];
	close(ends[child != 0]);
	open_device();
	join();
	pass(0); /* both are up */
	if (child == 0) {
		answer();
		return 0;
	}
	ask();
	MUST(waitpid(child, &status, 0) == child && status == 0);
	return 0;
}
