/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/include/port/inbox.h. */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

#include "port/inbox.h"
#include "test.h"

#define SENDERS 3
#define PACKETS 30000u /* of each sender */

static struct inbox inbox;
static struct rte_mbuf packets[SENDERS][PACKETS];

static int set_up(TEST_STATE)
{
	memset(&inbox, 0, sizeof(inbox));
	memset(packets, 0, sizeof(packets));
	return 0;
}

TEST_FIXTURE(set_up, NULL);

TEST(inbox_take__oldest_first_and_no_more_than_asked)
{
	struct rte_mbuf *taken[8];

	assert_int_equal(inbox_take(&inbox, taken, 8), 0);
	assert_false(inbox_has_more(&inbox));
	for (int i = 0; i < 5; i++)
		inbox_put(&inbox, &packets[0][i]);
	assert_int_equal(inbox_take(&inbox, taken, 0), 0);
	assert_int_equal(inbox_take(&inbox, taken, 2), 2);
	assert_true(inbox_has_more(&inbox));
	/* Those that came later stay behind those that were there. */
	inbox_put(&inbox, &packets[0][5]);
	assert_int_equal(inbox_take(&inbox, taken + 2, 6), 4);
	for (int i = 0; i < 6; i++) {
		assert_ptr_equal(taken[i], &packets[0][i]);
		/* A packet that is sent on must not look like one with offloads. */
		assert_int_equal(taken[i]->tx_offload, 0);
	}
	assert_false(inbox_has_more(&inbox));
	assert_int_equal(inbox_take(&inbox, taken, 8), 0);
}

static void *put_many(void *arg)
{
	struct rte_mbuf *own = arg;

	for (uint32_t i = 0; i < PACKETS; i++)
		inbox_put(&inbox, &own[i]);
	return NULL;
}

TEST(inbox_put__threads_lose_nothing_and_keep_their_order)
{
	struct rte_mbuf *next[SENDERS];
	pthread_t threads[SENDERS];
	uint32_t total = 0;

	for (int i = 0; i < SENDERS; i++) {
		next[i] = packets[i];
		assert_int_equal(pthread_create(&threads[i], NULL, put_many, packets[i]), 0);
	}
	while (total < SENDERS * PACKETS) {
		struct rte_mbuf *taken[32];
		const uint16_t n = inbox_take(&inbox, taken, 32);

		for (uint16_t i = 0; i < n; i++) {
			const ptrdiff_t sender = (taken[i] - packets[0]) / PACKETS;

			assert_in_range(sender, 0, SENDERS - 1);
			assert_ptr_equal(taken[i], next[sender]);
			next[sender]++;
		}
		total += n;
		if (n == 0)
			sched_yield();
	}
	for (int i = 0; i < SENDERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_false(inbox_has_more(&inbox));
}
