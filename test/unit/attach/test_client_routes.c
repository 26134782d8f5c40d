/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/attach/client_direct.c: which channel a packet takes if the other process's device
 * has several engines. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client.h"
#include "client_rig.h"
#include "port/port.h"
#include "test.h"

#define OTHERS_FIRST (3u << BLOCK_SHIFT) /* a multiple of 2 and 3 */
#define PEERS	     4

static struct share_client client;
static struct port port;
static struct direct_memory *directs[PEERS]; /* by the slot of the other engine */

static int set_up(TEST_STATE)
{
	client_rig_make(&client, &port);
	return client_register_ops();
}

static void end(uint16_t peer)
{
	client.page->directs[peer] = 0;
	client_directs_look(&client);
	if (directs[peer])
		munmap(directs[peer], sizeof(*directs[peer]));
	directs[peer] = NULL;
}

static int tear_down(TEST_STATE)
{
	for (uint16_t i = 0; i < PEERS; i++)
		end(i);
	for (int i = 0; i < SHARE_DIRECTS_MAX; i++)
		assert_null(client.directs[i]);
	munmap(client.page, client.page_bytes);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static void offer(uint16_t peer, uint32_t qpn_first, uint16_t engines, uint32_t served)
{
	const struct share_offer direct = {
		.peer = peer, .qpn_first = qpn_first, .engines = engines, .served = served};

	directs[peer] = client_rig_offer(&client, direct, NULL);
}

/* Return the slot that a packet to a queue pair goes to; -1: through the owner. */
static int way(uint32_t qpn)
{
	const struct client_direct *direct = client_direct_of(&client, qpn);

	return direct ? direct->offer.peer : -1;
}

TEST(client_direct_of__one_engine_has_all)
{
	offer(0, OTHERS_FIRST, 1, 0x1);
	assert_int_equal(way(OTHERS_FIRST), 0);
	assert_int_equal(way(OTHERS_FIRST + 1), 0);
	assert_int_equal(way(OTHERS_FIRST + BLOCK_QPNS), -1);
	assert_int_equal(way(0), -1);
}

TEST(client_direct_of__the_engine_of_the_queue_pair)
{
	offer(1, OTHERS_FIRST, 2, 0x1);
	assert_int_equal(way(OTHERS_FIRST), 1);
	/* The other engine has no channel yet. */
	assert_int_equal(way(OTHERS_FIRST + 1), -1);
	offer(2, OTHERS_FIRST, 2, 0x2);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(way(OTHERS_FIRST + i), 1 + i % 2);
	assert_int_equal(way(OTHERS_FIRST + BLOCK_QPNS - 1), 2);
	/* Another process. */
	offer(3, OTHERS_FIRST + BLOCK_QPNS, 1, 0x1);
	assert_int_equal(way(OTHERS_FIRST + BLOCK_QPNS), 3);
	assert_int_equal(way(OTHERS_FIRST + BLOCK_QPNS + 1), 3);
}

/* The first engine receives for one that has no slot. */
TEST(client_direct_of__a_channel_for_several_engines)
{
	offer(0, OTHERS_FIRST, 3, 0x5);
	offer(1, OTHERS_FIRST, 3, 0x2);
	for (uint32_t i = 0; i < 9; i++)
		assert_int_equal(way(OTHERS_FIRST + i), i % 3 == 1 ? 1 : 0);
}

/* The owner made the channel before the device had engines. It stays the way of all packets: none
 * shall overtake others. */
TEST(client_direct_of__an_early_channel_has_all)
{
	offer(0, OTHERS_FIRST, 1, 0x1);
	offer(1, OTHERS_FIRST, 2, 0x2);
	assert_int_equal(way(OTHERS_FIRST), 0);
	assert_int_equal(way(OTHERS_FIRST + 1), 0);
}

TEST(client_directs_look__the_channels_to_other_engines_stay)
{
	offer(0, OTHERS_FIRST, 2, 0x1);
	offer(1, OTHERS_FIRST, 2, 0x2);
	assert_int_equal(way(OTHERS_FIRST), 0);
	end(0);
	assert_int_equal(way(OTHERS_FIRST), -1);
	assert_int_equal(way(OTHERS_FIRST + 1), 1);
	end(1);
	assert_int_equal(way(OTHERS_FIRST + 1), -1);
}

TEST(client_directs_offer__ignores_an_impossible_number_of_engines)
{
	offer(0, OTHERS_FIRST, 0, 0x1);
	assert_int_equal(way(OTHERS_FIRST), -1);
	offer(1, OTHERS_FIRST, SHARE_ENGINES_MAX + 1, 0x1);
	assert_int_equal(way(OTHERS_FIRST), -1);
	offer(2, OTHERS_FIRST, SHARE_ENGINES_MAX, 1u << (SHARE_ENGINES_MAX - 1));
	assert_int_equal(
		way(OTHERS_FIRST / SHARE_ENGINES_MAX * SHARE_ENGINES_MAX + SHARE_ENGINES_MAX - 1),
		2);
}

/* The process had no room for the descriptors when the offer came. */
TEST(client_directs_look__gives_up_an_offer_without_descriptors)
{
	const struct share_message message = {.offer = {.number = 1,
							.qpn_first = OTHERS_FIRST,
							.qpn_count = BLOCK_QPNS,
							.engines = 1,
							.trusted = true}};
	const int none[SHARE_DIRECT_FDS] = {-1, -1};

	client.page->directs[0] = message.offer.number;
	client_directs_offer(&client, &message, none);
	client_directs_look(&client);
	assert_int_equal(client.offer_count, 0);
	assert_int_equal(way(OTHERS_FIRST), -1);
	offer(0, OTHERS_FIRST, 1, 0x1);
	assert_int_equal(way(OTHERS_FIRST), 0);
}
