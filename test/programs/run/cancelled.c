/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cancelled SOCKET: a thread that is cancelled already posts and polls, from and to an on-demand
 * region whose pages are absent again and again. Neither verb has a point at which a thread can be
 * cancelled, so the thread does all its work, and the engine is free for other threads afterwards.
 * cancelled -s SOCKET is the other side, which sleeps meanwhile, so that it must be woken.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "meet.h"
#include "must.h"

#define ROUNDS	 60
#define PAUSE_NS 5000000 /* both helpers sleep after it */
#define NAP_US	 20000
#define SECONDS	 60

static struct meet meet;
static struct ibv_mr *absent; /* MEET_BYTES of on-demand memory */

/* What the thread has done. It cannot print: it would end there. */
static uint32_t rounds;
static enum ibv_wc_status status;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Wait without a call in which a thread can be cancelled. */
static void pause_here(void)
{
	const uint64_t end_ns = now_ns() + PAUSE_NS;

	while (now_ns() < end_ns)
		;
}

/* Move the whole on-demand region to or from the peer's memory, and wait some more. */
static bool move(enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = {(uintptr_t)absent->addr, MEET_BYTES, absent->lkey};
	struct ibv_send_wr wr = {.opcode = opcode,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .wr.rdma = {meet.peer_addr, meet.peer_rkey}},
			   *bad;
	struct ibv_wc wc;
	int n;

	if (ibv_post_send(meet.qp, &wr, &bad) != 0)
		return false;
	do
		n = ibv_poll_cq(meet.cq, 1, &wc);
	while (n == 0);
	status = wc.status;
	pause_here();
	return n == 1 && status == IBV_WC_SUCCESS;
}

static bool is_filled(uint32_t with)
{
	for (uint32_t at = 0; at < MEET_BYTES; at++) {
		if (((const uint8_t *)absent->addr)[at] != with)
			return false;
	}
	return true;
}

static void *work(void *arg)
{
	bool good = pthread_cancel(pthread_self()) == 0;

	while (good && rounds < ROUNDS) {
		memset(absent->addr, (int)rounds + 1, MEET_BYTES);
		good = move(IBV_WR_RDMA_WRITE);
		/* Now it is all zero, without a page. */
		madvise(absent->addr, MEET_BYTES, MADV_DONTNEED);
		good = good && move(IBV_WR_RDMA_READ) && is_filled(rounds + 1);
		rounds += good;
	}
	pthread_testcancel();
	return arg;
}

static struct ibv_mr *make_absent(void)
{
	void *memory =
		mmap(NULL, MEET_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(memory != MAP_FAILED);
	return ibv_reg_mr(meet.pd, memory, MEET_BYTES,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
}

static void call(const char *path)
{
	pthread_t thread;
	void *result;

	meet_call(&meet, path);
	absent = make_absent();
	MUST(absent != NULL);
	MUST(pthread_create(&thread, NULL, work, NULL) == 0);
	MUST(pthread_join(thread, &result) == 0);
	if (rounds != ROUNDS)
		fprintf(stderr, "the thread ended in round %u: %s\n", rounds,
			ibv_wc_status_str(status));
	MUST(rounds == ROUNDS && result == PTHREAD_CANCELED);
	meet_post(&meet, IBV_WR_SEND);
	meet_wait(&meet);
	meet_wait(&meet);
	printf("%d rounds by a cancelled thread\n", ROUNDS);
}

static void serve(const char *path)
{
	struct ibv_wc wc;
	int n;

	meet_serve(&meet, path);
	while ((n = ibv_poll_cq(meet.cq, 1, &wc)) == 0)
		usleep(NAP_US);
	MUST(n == 1 && wc.status == IBV_WC_SUCCESS);
	meet_post(&meet, IBV_WR_SEND);
	meet_wait(&meet);
}

int main(int argc, char **argv)
{
	alarm(SECONDS);
	if (argc == 3 && strcmp(argv[1], "-s") == 0)
		serve(argv[2]);
	else if (argc == 2)
		call(argv[1]);
	else
		return 2;
	return 0;
}
