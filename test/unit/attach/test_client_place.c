/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/attach/client_place.c: packets are built in a direct channel. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/meter.h"
#include "client.h"
#include "client_rig.h"
#include "port/port.h"
#include "test.h"

#define BLOCK(n) ((uint32_t)(3 + (n)) << BLOCK_SHIFT) /* queue pairs of another process */
#define PEERS	 2
#define LONG	 METER_LONG

static struct share_client client;
static struct port port;

/* The other process. */
static struct peer {
	struct direct_memory *memory;
	struct direct_tx tx;
	struct direct_rx rx;
	int wake_fd;
} peers[PEERS];

static void open_channel(uint16_t number)
{
	struct peer *peer = &peers[number];
	const struct share_offer direct = {
		.peer = number, .qpn_first = BLOCK(number), .engines = 1, .served = 1};

	peer->memory = client_rig_offer(&client, direct, &peer->wake_fd);
	direct_init(&peer->tx, &peer->rx, peer->memory, 1);
}

static void close_channel(uint16_t number)
{
	struct peer *peer = &peers[number];

	client.page->directs[number] = 0;
	client_directs_look(&client);
	if (peer->memory) {
		munmap(peer->memory, sizeof(*peer->memory));
		close(peer->wake_fd);
	}
	peer->memory = NULL;
}

static int set_up(TEST_STATE)
{
	client_rig_make(&client, &port);
	client.spares_icrc = true;
	assert_int_equal(client_register_ops(), 0);
	store_force(STORE_PAST);
	open_channel(0);
	return 0;
}

static int tear_down(TEST_STATE)
{
	store_force(STORE_WAYS);
	for (uint16_t i = 0; i < PEERS; i++)
		close_channel(i);
	munmap(client.page, client.page_bytes);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* Return the place of a long packet to a peer. */
static uint8_t *place(uint16_t number)
{
	assert_true(client_aim(&client, BLOCK(number)));
	return client_place(&client, LONG);
}

/* Build a packet of these bytes. */
static void build_of(uint16_t number, uint8_t byte, uint32_t len)
{
	uint8_t *at = place(number);

	assert_non_null(at);
	memset(at, byte, len);
	client_placed(&client, len);
}

static void build(uint16_t number, uint8_t byte)
{
	build_of(number, byte, LONG);
}

/* The peer takes a packet. */
static void take_of(uint16_t number, uint8_t byte, uint32_t len)
{
	struct direct_rx *rx = &peers[number].rx;
	struct share_packet packet;
	uint32_t index;

	assert_int_equal(direct_take(rx, &packet, 1, &index), 1);
	assert_int_equal(packet.len, len);
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(direct_frame(rx, index, &packet)[i], byte);
	direct_done(rx, index);
	direct_give_back(rx);
}

static void take(uint16_t number, uint8_t byte)
{
	take_of(number, byte, LONG);
}

static bool has_packets(uint16_t number)
{
	return direct_has_next(&peers[number].rx);
}

TEST(client_aim__only_at_processes_with_a_channel)
{
	assert_true(client_aim(&client, BLOCK(0) + 5));
	assert_false(client_aim(&client, BLOCK(1)));
	open_channel(1);
	assert_true(client_aim(&client, BLOCK(1)));
}

TEST(client_place__the_packet_is_there_when_it_is_pushed)
{
	build(0, 0xa5);
	assert_false(has_packets(0));
	client_push(&client);
	take(0, 0xa5);
	direct_look(&client.directs[0]->tx);
	assert_int_equal(direct_used(&client.directs[0]->tx), 0);
}

/* Only long packets are stored in the way that was measured. */
TEST(client_place__chooses_the_way_to_store)
{
	build(0, 1);
	assert_int_equal(port.place_way, STORE_PAST);
	store_force(STORE_ROUND);
	build(0, 2);
	assert_int_equal(port.place_way, STORE_ROUND);
	assert_true(client_aim(&client, BLOCK(0)));
	assert_non_null(client_place(&client, LONG - 1));
	assert_int_equal(port.place_way, STORE_RECENT);
	client_placed(&client, 5);
	client_push(&client);
	take(0, 1);
	take(0, 2);
	assert_true(has_packets(0));
}

TEST(client_place__what_has_no_place_takes_an_mbuf)
{
	/* The longest packet of a buffer has a place. */
	assert_true(client_aim(&client, BLOCK(0)));
	assert_non_null(client_place(&client, DIRECT_BUFFER_BYTES));
	/* That one cannot be sealed, for example. */
	assert_true(client_aim(&client, BLOCK(0)));
	assert_null(client_place(&client, DIRECT_BUFFER_BYTES + 1));
	assert_null(client.placing);
	for (uint32_t i = 0; i < DIRECT_SLOTS; i++) {
		build(0, 1);
		if (i % 16 == 15)
			client_push(&client);
	}
	assert_null(place(0));
	take(0, 1);
	assert_non_null(place(0));
	/* Packets that were sent through the owner must not be overtaken. */
	open_channel(1);
	client.rings[SHARE_RING_TX].own++;
	assert_null(place(1));
	client.rings[SHARE_RING_TX].own--;
}

TEST(client_place__no_more_than_the_channel_has_room_for)
{
	struct direct_tx *tx;

	assert_non_null(place(0));
	tx = &client.directs[0]->tx;
	tx->broken = true;
	assert_null(place(0));
	tx->broken = false;
	assert_non_null(place(0));
}

/* A short packet and long ones of one channel arrive in the order in which they were placed. */
TEST(client_placed__short_and_long_packets_keep_their_order)
{
	uint8_t *at;

	build(0, 1);
	at = client_offer(&client, BLOCK(0));
	assert_non_null(at);
	memset(at, 7, 64);
	client_placed(&client, 64);
	build(0, 2);
	client_push(&client);
	take(0, 1);
	take_of(0, 7, 64);
	take(0, 2);
}

/* Build a short packet where the channel to a peer offers a place. */
static void offer(uint16_t number, uint8_t byte)
{
	uint8_t *at = client_offer(&client, BLOCK(number));

	assert_non_null(at);
	memset(at, byte, 64);
	client_placed(&client, 64);
}

/* Each packet goes to the process that has its queue pair. */
TEST(client_offer__in_the_channel_of_the_queue_pair)
{
	open_channel(1);
	offer(0, 1);
	offer(0, 2);
	offer(1, 3);
	offer(0, 4);
	client_push(&client);
	take_of(0, 1, 64);
	take_of(0, 2, 64);
	take_of(0, 4, 64);
	take_of(1, 3, 64);
	assert_false(has_packets(0));
	assert_false(has_packets(1));
}

TEST(client_offer__only_where_a_packet_may_be_built)
{
	assert_null(client_offer(&client, BLOCK(1)));
	assert_null(client_offer(&client, 0));
	client.spares_icrc = false;
	assert_null(client_offer(&client, BLOCK(0)));
	client.spares_icrc = true;
	offer(0, 1);
	/* Packets that were sent through the owner must not be overtaken. */
	open_channel(1);
	client.rings[SHARE_RING_TX].own++;
	assert_null(client_offer(&client, BLOCK(1)));
	client.rings[SHARE_RING_TX].own--;
	offer(1, 2);
	/* Nor packets that wait for room. */
	client.directs[0]->held.count++;
	assert_null(client_offer(&client, BLOCK(0)));
	client.directs[0]->held.count--;
	offer(0, 3);
	client_push(&client);
	take_of(0, 1, 64);
	take_of(0, 3, 64);
	take_of(1, 2, 64);
}

TEST(client_offer__not_in_a_channel_that_was_closed)
{
	offer(0, 1);
	client_push(&client);
	/* The packet is still in the channel. */
	client.page->directs[0] = 0;
	client_directs_look(&client);
	assert_null(client_offer(&client, BLOCK(0)));
}

TEST(client_offer__no_more_than_the_channel_has_room_for)
{
	for (uint32_t i = 0; i < DIRECT_SLOTS; i++) {
		offer(0, 1);
		if (i % 16 == 15)
			client_push(&client);
	}
	assert_null(client_offer(&client, BLOCK(0)));
	take_of(0, 1, 64);
	offer(0, 2);
}

/* `push` knows one channel only. */
TEST(client_place__another_channel_puts_the_packets_of_the_one_before)
{
	open_channel(1);
	build(0, 1);
	build(0, 2);
	assert_false(has_packets(0));
	build(1, 3);
	assert_true(has_packets(0));
	assert_false(has_packets(1));
	client_push(&client);
	take(0, 1);
	take(0, 2);
	take(1, 3);
}

TEST(client_push__wakes_a_process_that_sleeps)
{
	uint64_t woken;

	build(0, 1);
	client_push(&client);
	assert_int_equal(read(peers[0].wake_fd, &woken, sizeof(woken)), -1);
	__atomic_store_n(&peers[0].memory->sides[1].sleeps, 1, __ATOMIC_RELAXED);
	build(0, 2);
	client_push(&client);
	assert_int_equal(read(peers[0].wake_fd, &woken, sizeof(woken)), sizeof(woken));
}

TEST(client_push__the_other_process_may_have_ended)
{
	build(0, 1);
	close_channel(0);
	client_push(&client);
	assert_false(client_aim(&client, BLOCK(0)));
}

/* client_expect reads and writes nothing, whatever there is to expect. */
TEST(client_expect__changes_nothing)
{
	struct direct_memory *before = malloc(sizeof(*before));

	assert_non_null(before);
	build(0, 1);
	memcpy(before, peers[0].memory, sizeof(*before));
	for (int way = 0; way < STORE_WAYS; way++) {
		store_force((enum store_way)way);
		for (uint32_t ahead = 0; ahead < 8; ahead++)
			client_expect(&client, ahead, LONG);
	}
	assert_memory_equal(before, peers[0].memory, sizeof(*before));
	free(before);
}
