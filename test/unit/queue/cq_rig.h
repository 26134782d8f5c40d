/* SPDX-License-Identifier: BSD-3-Clause */
/* A channel, and completions that are numbered, for the tests of lib/queue/cq.c. */
#ifndef TEST_CQ_RIG_H
#define TEST_CQ_RIG_H

#include <fcntl.h>
#include <sched.h>
#include <stdint.h>

#include "queue/cq.h"
#include "queues.h"
#include "test.h"

static inline int push(struct cq *cq, uint64_t wr_id)
{
	const struct ibv_wc wc = {.wr_id = wr_id, .status = IBV_WC_SUCCESS};

	return cq_push(cq, &wc, false);
}

static inline void assert_polled(struct cq *cq, uint64_t first, int count)
{
	for (int i = 0; i < count; i++) {
		struct ibv_wc wc;

		assert_int_equal(cq_poll(cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, first + (uint64_t)i);
	}
}

static struct channel channel;

static inline int set_up_channel(TEST_STATE)
{
	if (channel_init(&channel) != 0)
		return -1;
	return fcntl(channel.fd, F_SETFL, O_NONBLOCK);
}

static inline int tear_down_channel(TEST_STATE)
{
	channel_fini(&channel);
	return 0;
}

/* Return how many events wait, all of them of `user`. */
static inline int events(const void *user)
{
	void *object;
	int code, n = 0;

	for (; channel_read(&channel, &object, &code) == 0; n++)
		assert_ptr_equal(object, user);
	return n;
}

/* Arm for solicited completions, and return how many events that raises. Disarm. */
static inline int events_of_arming(struct cq *cq)
{
	int raised;

	cq_arm(cq, true);
	raised = events(cq->user);
	cq->armed = CQ_NOT_ARMED;
	return raised;
}

#define STRESS_COMPLETIONS 100000

static inline void *push_many(void *arg)
{
	struct cq *cq = arg;

	for (uint64_t i = 0; i < STRESS_COMPLETIONS; i++) {
		while (push(cq, i) != 0)
			sched_yield();
	}
	return NULL;
}

#endif
