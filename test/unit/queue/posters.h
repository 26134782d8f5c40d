/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that post to one queue at the same time. Each request has an id: its thread in the upper
 * half, and its number among that thread's requests in the lower half. */
#ifndef TEST_QUEUE_POSTERS_H
#define TEST_QUEUE_POSTERS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "test.h"

#define POSTERS	       2
#define POSTS	       100000u /* of each thread; even */
#define POSTS_OF_ALL   (POSTERS * POSTS)
#define POSTER_ID(n)   ((uint64_t)(n) << 32)
#define POSTER_OF(id)  ((id) >> 32)
#define POSTED_NTH(id) ((uint32_t)(id))

struct posters {
	void (*post)(void *queue, uint64_t id); /* posts POSTS requests; `id` is the first one's */
	void *queue;
	pthread_barrier_t start;
	uint32_t begun; /* threads */
	pthread_t threads[POSTERS];
	uint32_t next[POSTERS]; /* the number of each thread's next request in the queue */
};

static inline void *posters_run(void *arg)
{
	struct posters *posters = arg;
	const uint32_t n = __atomic_fetch_add(&posters->begun, 1, __ATOMIC_RELAXED);

	pthread_barrier_wait(&posters->start);
	posters->post(posters->queue, POSTER_ID(n));
	return NULL;
}

static inline void posters_start(struct posters *posters)
{
	assert_int_equal(pthread_barrier_init(&posters->start, NULL, POSTERS), 0);
	for (size_t i = 0; i < POSTERS; i++)
		assert_int_equal(pthread_create(&posters->threads[i], NULL, posters_run, posters),
				 0);
}

/* Check that the request at the queue's head is the next one of its thread. */
static inline void posters_expect(struct posters *posters, uint64_t id)
{
	assert_in_range(POSTER_OF(id), 0, POSTERS - 1);
	assert_int_equal(POSTED_NTH(id), posters->next[POSTER_OF(id)]++);
}

static inline void posters_join(struct posters *posters)
{
	for (size_t i = 0; i < POSTERS; i++)
		assert_int_equal(pthread_join(posters->threads[i], NULL), 0);
	pthread_barrier_destroy(&posters->start);
}

#endif
