/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/attach/client_long.c: long packets are built in buffers that a lane lends. */
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/meter.h"
#include "client.h"
#include "client_rig.h"
#include "port/port.h"
#include "test.h"

#define BLOCK(n)     ((uint32_t)(3 + (n)) << BLOCK_SHIFT) /* queue pairs of another process */
#define PEERS	     2
#define BUFFERS	     8
#define BUFFER_BYTES 2048u
#define LONG	     1000u
#define HEADROOM     RTE_PKTMBUF_HEADROOM

static struct share_client client;
static struct port port;
static uint8_t arena[BUFFERS * BUFFER_BYTES];
static uint32_t cache[BUFFERS];
static struct share_ring owner; /* the owner's end of the ring of empty buffers */

/* The other process. */
static struct peer {
	struct lane_memory *memory;
	struct lane_tx tx;
	struct lane_rx rx;
	int wake_fd;
} peers[PEERS];

static void open_lane(uint16_t number)
{
	struct peer *peer = &peers[number];
	const struct share_offer lane = {
		.peer = number, .qpn_first = BLOCK(number), .engines = 1, .served = 1};

	peer->memory = client_rig_offer(&client, lane, &peer->wake_fd);
	lane_init(&peer->tx, &peer->rx, peer->memory, 1);
}

static void close_lane(uint16_t number)
{
	struct peer *peer = &peers[number];

	client.page->lanes[number] = 0;
	client_lanes_look(&client);
	if (peer->memory) {
		munmap(peer->memory, sizeof(*peer->memory));
		close(peer->wake_fd);
	}
	peer->memory = NULL;
}

static int set_up(TEST_STATE)
{
	client_rig_make(&client, &port);
	share_ring_init(&owner, (uint8_t *)client.page + share_ring_offset(SHARE_RING_FREE),
			share_ring_words(SHARE_RING_FREE));
	client.arena = arena;
	client.buffers = BUFFERS;
	client.buffer_bytes = client.buffer_stride = BUFFER_BYTES;
	client.spares_icrc = true;
	client.cache = cache;
	client.cache_mask = BUFFERS - 1;
	client.cache_max = 4;
	for (uint32_t i = 0; i < 4; i++)
		client_keep(&client, i);
	assert_int_equal(client_register_ops(), 0);
	store_force(STORE_PAST);
	open_lane(0);
	return 0;
}

static int tear_down(TEST_STATE)
{
	store_force(STORE_WAYS);
	for (uint16_t i = 0; i < PEERS; i++)
		close_lane(i);
	munmap(client.page, client.page_bytes);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* Return the place of a long packet to a peer. */
static uint8_t *place(uint16_t number)
{
	assert_true(client_long_aim(&client, BLOCK(number)));
	return client_long_place(&client, LONG);
}

/* Build a long packet of these bytes in the given buffer. */
static void build(uint16_t number, uint32_t buffer, uint8_t byte)
{
	uint8_t *at = place(number);

	assert_ptr_equal(at, arena + buffer * BUFFER_BYTES + HEADROOM);
	memset(at, byte, LONG);
	client_placed(&client, LONG);
}

/* The peer takes a packet. Return its buffer, which it keeps. */
static uint32_t take(uint16_t number, uint8_t byte, uint32_t *index)
{
	struct share_packet packet;

	assert_int_equal(lane_take(&peers[number].rx, &packet, 1, index), 1);
	assert_false(packet.flags & SHARE_FLAG_SHORT);
	assert_int_equal(packet.len, LONG);
	assert_int_equal(packet.offset, HEADROOM);
	for (uint32_t i = 0; i < LONG; i++)
		assert_int_equal(arena[packet.buffer * BUFFER_BYTES + HEADROOM + i], byte);
	return packet.buffer;
}

static bool has_packets(uint16_t number)
{
	return lane_has_some(&peers[number].rx);
}

TEST(client_long_aim__only_at_processes_with_a_lane)
{
	assert_true(client_long_aim(&client, BLOCK(0) + 5));
	assert_false(client_long_aim(&client, BLOCK(1)));
	open_lane(1);
	assert_true(client_long_aim(&client, BLOCK(1)));
}

TEST(client_long_place__the_packet_is_there_when_it_is_pushed)
{
	uint32_t index;

	build(0, 3, 0xa5);
	assert_false(has_packets(0));
	client_push(&client);
	assert_int_equal(take(0, 0xa5, &index), 3);
	assert_int_equal(client.cache_count, 3);
	assert_int_equal(client.lanes[0]->tx.lent, 1);
	/* The buffer comes back when the other process has released it. */
	lane_done(&peers[0].rx, index);
	lane_give_back(&peers[0].rx);
	client_lanes_collect(&client);
	assert_int_equal(client.cache_count, 4);
	assert_int_equal(client.lanes[0]->tx.lent, 0);
}

TEST(client_long_place__the_buffer_used_last_or_the_one_that_is_free_for_longest)
{
	build(0, 3, 1);
	build(0, 2, 2);
	store_force(STORE_ROUND);
	build(0, 0, 3);
	assert_int_equal(port.place_way, STORE_ROUND);
	store_force(STORE_PAST);
	build(0, 1, 4);
	assert_int_equal(port.place_way, STORE_PAST);
	client_push(&client);
	for (uint8_t i = 1; i <= 4; i++) {
		static const uint32_t buffers[] = {3, 2, 0, 1};
		uint32_t index;

		assert_int_equal(take(0, i, &index), buffers[i - 1]);
	}
}

/* To use all buffers in turn, it takes more of them from the owner. */
TEST(client_long_place__takes_empty_buffers_from_the_owner)
{
	const uint64_t word = share_pack(&(struct share_packet){.buffer = 6});

	client.cache_max = BUFFERS;
	assert_int_equal(share_ring_put(&owner, &word, 1), 1);
	build(0, 3, 1);
	assert_int_equal(client.cache_count, 3);
	client_push(&client);
	store_force(STORE_ROUND);
	build(0, 0, 2);
	assert_int_equal(client.cache_count, 3);
	assert_int_equal(*client_cache_at(&client, 2, true), 6);
}

TEST(client_long_place__what_cannot_be_placed_takes_an_mbuf)
{
	/* The longest packet of a buffer has a place. */
	assert_true(client_long_aim(&client, BLOCK(0)));
	assert_non_null(client_long_place(&client, BUFFER_BYTES - HEADROOM));
	assert_null(client_long_place(&client, BUFFER_BYTES - HEADROOM + 1));
	assert_null(client.placing);
	for (uint32_t i = 0; i < 4; i++)
		build(0, 3 - i, 1);
	/* There is no empty buffer. */
	assert_null(place(0));
	client_push(&client);
	assert_null(place(0));
	/* Packets that were sent through the owner must not be overtaken. */
	open_lane(1);
	client_keep(&client, 7);
	client.rings[SHARE_RING_TX].own++;
	assert_null(place(1));
	client.rings[SHARE_RING_TX].own--;
}

TEST(client_long_place__no_more_than_the_lane_has_room_for)
{
	struct lane_tx *tx;

	assert_non_null(place(0));
	tx = &client.lanes[0]->tx;
	tx->broken = true;
	assert_null(place(0));
	tx->broken = false;
	assert_non_null(place(0));
}

/* A short packet and long ones of one lane arrive in the order in which they were placed. */
TEST(client_placed__short_and_long_packets_keep_their_order)
{
	struct share_packet packet;
	uint32_t index;
	uint8_t *at;

	build(0, 3, 1);
	at = client_short_offer(&client);
	assert_non_null(at);
	memset(at, 7, 64);
	client_placed(&client, 64);
	build(0, 2, 2);
	client_push(&client);
	assert_int_equal(take(0, 1, &index), 3);
	assert_int_equal(lane_take(&peers[0].rx, &packet, 1, &index), 1);
	assert_true(packet.flags & SHARE_FLAG_SHORT);
	assert_int_equal(packet.len, 64);
	assert_int_equal(lane_frame(&peers[0].rx, index)[63], 7);
	assert_int_equal(take(0, 2, &index), 2);
}

/* `push` knows one lane only. */
TEST(client_long_place__another_lane_puts_the_packets_of_the_one_before)
{
	uint32_t index;

	open_lane(1);
	build(0, 3, 1);
	build(0, 2, 2);
	assert_false(has_packets(0));
	build(1, 1, 3);
	assert_true(has_packets(0));
	assert_false(has_packets(1));
	client_push(&client);
	assert_int_equal(take(0, 1, &index), 3);
	assert_int_equal(take(0, 2, &index), 2);
	assert_int_equal(take(1, 3, &index), 1);
}

TEST(client_push__wakes_a_process_that_sleeps)
{
	uint64_t woken;

	build(0, 3, 1);
	client_push(&client);
	assert_int_equal(read(peers[0].wake_fd, &woken, sizeof(woken)), -1);
	__atomic_store_n(&peers[0].memory->sides[1].sleeps, 1, __ATOMIC_RELAXED);
	build(0, 2, 2);
	client_push(&client);
	assert_int_equal(read(peers[0].wake_fd, &woken, sizeof(woken)), sizeof(woken));
}

TEST(client_push__the_other_process_may_have_ended)
{
	build(0, 3, 1);
	close_lane(0);
	client_push(&client);
	/* The buffer was not lent yet. */
	assert_int_equal(client.cache_count, 4);
	assert_false(client_long_aim(&client, BLOCK(0)));
}

/* client_long_expect reads and writes nothing, whatever there is to expect. */
TEST(client_long_expect__changes_nothing)
{
	build(0, 3, 1);
	memset(arena, 0x5a, 3 * BUFFER_BYTES);
	for (int way = 0; way < STORE_WAYS; way++) {
		store_force((enum store_way)way);
		for (uint32_t ahead = 0; ahead < BUFFERS; ahead++)
			client_long_expect(&client, ahead, LONG);
	}
	for (uint32_t i = 0; i < 3 * BUFFER_BYTES; i++)
		assert_int_equal(arena[i], 0x5a);
	assert_int_equal(client.cache_count, 3);
}
