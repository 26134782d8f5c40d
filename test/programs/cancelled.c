/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cancelled SOCKET: a thread that is cancelled already posts and polls. No verb of these has a
 * point at which a thread can be cancelled, so the thread does all its work, and the engine is free
 * for other threads afterwards. cancelled -s SOCKET is the other side, which sleeps meanwhile, so
 * that it must be woken again and again.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "meet.h"
#include "must.h"

#define ROUNDS	 60
#define PAUSE_NS 5000000 /* both helpers sleep after it */
#define NAP_US	 20000
#define SECONDS	 60

static struct meet meet;

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

/* Post a request for the whole region, wait until it has completed, and wait some more. */
static bool move(enum ibv_wr_opcode opcode)
{
	struct ibv_wc wc;
	int n;

	meet_post(&meet, opcode);
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
		if (meet.memory[at] != with)
			return false;
	}
	return true;
}

static void *work(void *arg)
{
	bool good = pthread_cancel(pthread_self()) == 0;

	while (good && rounds < ROUNDS) {
		memset(meet.memory, (int)rounds + 1, MEET_BYTES);
		good = move(IBV_WR_RDMA_WRITE);
		memset(meet.memory, 0, MEET_BYTES);
		good = good && move(IBV_WR_RDMA_READ) && is_filled(rounds + 1);
		rounds += good;
	}
	pthread_testcancel();
	return arg;
}

static void call(const char *path)
{
	pthread_t thread;
	void *result;

	meet_call(&meet, path);
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
