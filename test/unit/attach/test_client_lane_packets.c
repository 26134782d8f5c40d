/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/attach/client_lane.c: packets through a lane. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client.h"
#include "client_rig.h"
#include "port/port.h"
#include "test.h"

#define QPN	     (3u << BLOCK_SHIFT) /* of the other process */
#define BUFFERS	     512u
#define BUFFER_BYTES 512u
#define SHORT	     60u
#define LONG	     300u
#define HEADROOM     RTE_PKTMBUF_HEADROOM
#define NEVER	     UINT64_MAX

static struct share_client client;
static struct port port;
static uint8_t arena[BUFFERS * BUFFER_BYTES];
static struct rte_mbuf mbufs[BUFFERS];
static uint32_t cache[BUFFERS];

/* The other process, and the owner's ends of the rings of packets. */
static struct lane_memory *memory;
static struct lane_tx peer_tx;
static struct lane_rx peer_rx;
static int wake_fd;
static struct share_ring owner_rx, owner_tx;

static struct lane_memory *offer(uint16_t peer)
{
	const struct share_offer lane = {
		.peer = peer, .qpn_first = QPN + peer * BLOCK_QPNS, .engines = 1, .served = 1};

	return client_rig_offer(&client, lane, peer == 0 ? &wake_fd : NULL);
}

static void map_ring(struct share_ring *ring, enum share_ring_kind kind)
{
	share_ring_init(ring, (uint8_t *)client.page + share_ring_offset(kind),
			share_ring_words(kind));
}

static int keep_all(struct rte_mempool *pool, void *const *objects, unsigned int n)
{
	(void)pool;
	for (unsigned int i = 0; i < n; i++)
		client_keep(&client, (uint32_t)((const struct rte_mbuf *)objects[i] - mbufs));
	return 0;
}

static const struct client_pool_kind pool_kind = {.enqueue = keep_all};

static int set_up(TEST_STATE)
{
	client_rig_make(&client, &port);
	map_ring(&owner_tx, SHARE_RING_TX);
	map_ring(&owner_rx, SHARE_RING_RX);
	memset(mbufs, 0, sizeof(mbufs));
	client.arena = arena;
	client.mbufs = mbufs;
	client.buffers = BUFFERS;
	client.buffer_bytes = client.buffer_stride = BUFFER_BYTES;
	client.cache = cache;
	client.cache_max = BUFFERS;
	client.transmit_timeout_tsc = NEVER;
	assert_int_equal(client_register_ops(), 0);
	client.pool = client_new_pool(&pool_kind, &client, BUFFERS, BUFFER_BYTES);
	memory = offer(0);
	lane_init(&peer_tx, &peer_rx, memory, 1);
	return 0;
}

static int tear_down(TEST_STATE)
{
	memset((void *)client.page->lanes, 0, sizeof(client.page->lanes));
	client_lanes_look(&client);
	for (int i = 0; i < SHARE_LANES_MAX; i++)
		assert_null(client.lanes[i]);
	munmap(memory, sizeof(*memory));
	munmap(client.page, client.page_bytes);
	free(client.pool);
	close(wake_fd);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* Send packets of a length in buffers from this one on. Return how many were taken. */
static uint16_t put(uint32_t buffer, uint16_t len, uint16_t n)
{
	struct client_lane *lane = client_lane_of(&client, QPN);
	struct rte_mbuf *packets[BUFFERS];

	assert_non_null(lane);
	for (uint32_t i = 0; i < n; i++) {
		packets[i] = client_mbuf(&client, buffer + i);
		packets[i]->data_off = HEADROOM;
		packets[i]->data_len = len;
		memset(rte_pktmbuf_mtod(packets[i], void *), (int)(buffer + i) & 0xff, len);
	}
	return client_lane_put(&client, lane, packets, n);
}

/* The other process takes packets and gives them back. */
static void peer_takes(uint32_t n)
{
	struct share_packet packet;
	uint32_t index;

	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(lane_take(&peer_rx, &packet, 1, &index), 1);
		lane_done(&peer_rx, index);
	}
	lane_give_back(&peer_rx);
}

TEST(put__copies_packets_and_keeps_their_buffers)
{
	struct share_packet packets[2];
	uint32_t index;

	assert_int_equal(put(7, SHORT, 1), 1);
	assert_int_equal(client.cache_count, 1);
	assert_int_equal(put(8, LONG, 1), 1);
	assert_int_equal(client.cache_count, 2);
	assert_int_equal(cache[1], 8);
	assert_int_equal(lane_take(&peer_rx, packets, 2, &index), 2);
	assert_true(packets[0].flags & SHARE_FLAG_SHORT);
	assert_int_equal(packets[0].len, SHORT);
	assert_int_equal(lane_frame(&peer_rx, index, &packets[0])[SHORT - 1], 7);
	assert_false(packets[1].flags & SHARE_FLAG_SHORT);
	assert_int_equal(packets[1].len, LONG);
	assert_int_equal(lane_frame(&peer_rx, index + 1, &packets[1])[LONG - 1], 8);
}

/* No packet overtakes those that were sent through the owner before. */
TEST(put__waits_until_the_owner_has_taken_all)
{
	uint64_t word = 1;

	assert_int_equal(share_ring_put(&client.rings[SHARE_RING_TX], &word, 1), 1);
	assert_int_equal(put(0, SHORT, 1), 0);
	assert_int_equal(share_ring_take(&owner_tx, &word, 1), 1);
	assert_int_equal(put(0, SHORT, 1), 1);
}

/* A process that takes nothing: packets wait, and then they are dropped. */
TEST(put__into_a_full_lane)
{
	for (uint32_t sent = 0; sent < LANE_SLOTS; sent += 64)
		assert_int_equal(put(sent, LONG, 64), 64);
	assert_int_equal(client.cache_count, LANE_SLOTS);
	assert_int_equal(put(LANE_SLOTS, LONG, 2), 0);
	assert_int_equal(client.cache_count, LANE_SLOTS);
	client.transmit_timeout_tsc = 0;
	assert_int_equal(put(LANE_SLOTS, LONG, 2), 2);
	assert_int_equal(client_lane_of(&client, QPN)->dropped, 2);
	assert_int_equal(client.cache_count, LANE_SLOTS + 2);
	/* There is room for one: the other one is dropped. */
	peer_takes(1);
	assert_int_equal(put(LANE_SLOTS + 2, LONG, 2), 2);
	assert_int_equal(client_lane_of(&client, QPN)->dropped, 3);
	assert_int_equal(client.cache_count, LANE_SLOTS + 4);
	/* The other process ends. */
	client.page->lanes[0] = 0;
	client_lanes_look(&client);
	assert_null(client_lane_of(&client, QPN));
}

TEST(put__wakes_a_process_that_sleeps)
{
	uint64_t rung;

	assert_int_equal(put(0, SHORT, 1), 1);
	client_lanes_wake(&client);
	assert_int_equal(eventfd_read(wake_fd, &rung), -1);
	memory->sides[1].sleeps = 1;
	client_lanes_wake(&client);
	assert_int_equal(eventfd_read(wake_fd, &rung), -1);
	assert_int_equal(put(1, SHORT, 1), 1);
	client_lanes_wake(&client);
	assert_int_equal(eventfd_read(wake_fd, &rung), 0);
	assert_int_equal(memory->sides[1].sleeps, 0);
}

/* The other process sends a packet that begins with this byte, and says that it has this length. */
static void peer_puts(uint8_t byte, uint16_t len, uint8_t flags)
{
	*(flags & SHARE_FLAG_SHORT ? lane_place(&peer_tx) : lane_buffer(&peer_tx, 0)) = byte;
	lane_placed(&peer_tx, len, flags);
	lane_show(&peer_tx);
}

static void assert_given_back(uint32_t n)
{
	uint32_t given, taken;

	assert_true(lane_tell_taken(&peer_tx, &given, &taken));
	assert_int_equal(taken, n);
}

/* Words that describe no packet inside a buffer are refused, and the packets beside them are not.
 */
TEST(take__refuses_what_is_outside_of_its_place)
{
	struct rte_mbuf *got[8];

	peer_puts(5, SHORT, SHARE_FLAG_SHORT);
	peer_puts(6, LANE_SHORT_BYTES + 1, SHARE_FLAG_SHORT);
	peer_puts(7, LANE_BUFFER_BYTES + 1, 0);
	peer_puts(8, LANE_BUFFER_BYTES, 0);
	assert_int_equal(client_lanes_take(&client, got, RTE_DIM(got)), 2);
	assert_int_equal(got[0]->data_len, SHORT);
	assert_int_equal(got[0]->pkt_len, SHORT);
	assert_int_equal(*rte_pktmbuf_mtod(got[0], uint8_t *), 5);
	assert_int_equal(got[1]->data_len, LANE_BUFFER_BYTES);
	assert_int_equal(*rte_pktmbuf_mtod(got[1], uint8_t *), 8);
	assert_int_equal(got[1]->port, PORT_PASSED_ON);
	assert_given_back(0);
	rte_pktmbuf_free(got[0]);
	assert_given_back(3);
	rte_pktmbuf_free(got[1]);
	assert_given_back(4);
	assert_int_equal(client.cache_count, 0);
}

TEST(take__only_what_was_refused_is_given_back_at_once)
{
	struct rte_mbuf *got[1];

	peer_puts(5, LANE_BUFFER_BYTES + 1, 0);
	assert_int_equal(client_lanes_take(&client, got, 1), 0);
	assert_given_back(1);
}

/* Packets that the other process sent through the owner before are received first. */
TEST(take__waits_for_the_packets_of_the_owner)
{
	struct rte_mbuf *got[1];
	uint64_t word = 1;

	client.spares_icrc = true;
	assert_int_equal(share_ring_put(&owner_rx, &word, 1), 1);
	assert_int_equal(client_lanes_take(&client, got, 1), 0);
	peer_puts(5, LONG, 0);
	assert_int_equal(client_lanes_take(&client, got, 1), 0);
	assert_int_equal(share_ring_take(&client.rings[SHARE_RING_RX], &word, 1), 1);
	assert_int_equal(client_lanes_take(&client, got, 1), 1);
	assert_int_equal(got[0]->port, PORT_HANDED_OVER);
	rte_pktmbuf_free(got[0]);
	/* From then on the owner's packets are no older. */
	assert_int_equal(share_ring_put(&owner_rx, &word, 1), 1);
	peer_puts(5, LONG, 0);
	assert_int_equal(client_lanes_take(&client, got, 1), 1);
	rte_pktmbuf_free(got[0]);
}

TEST(wait__before_sleeping)
{
	struct rte_mbuf *got[1];

	memory->sides[0].sleeps = 0;
	client_lanes_say_asleep(&client);
	assert_int_equal(memory->sides[0].sleeps, 1);
	assert_false(client_lanes_wait(&client));
	peer_puts(5, LONG, 0);
	assert_true(client_lanes_wait(&client));
	assert_int_equal(client_lanes_take(&client, got, 1), 1);
	rte_pktmbuf_free(got[0]);
	assert_false(client_lanes_wait(&client));
}

/* A process has few lanes: an offer waits until one ends. */
TEST(offer__waits_for_a_free_lane)
{
	struct lane_memory *maps[SHARE_LANES_MAX + 1] = {memory};

	for (uint16_t i = 1; i <= SHARE_LANES_MAX; i++)
		maps[i] = offer(i);
	assert_non_null(client_lane_of(&client, QPN + (SHARE_LANES_MAX - 1) * BLOCK_QPNS));
	assert_null(client_lane_of(&client, QPN + SHARE_LANES_MAX * BLOCK_QPNS));
	client.page->lanes[1] = 0;
	client_lanes_look(&client);
	client_lanes_look(&client);
	assert_null(client_lane_of(&client, QPN + BLOCK_QPNS));
	assert_non_null(client_lane_of(&client, QPN + SHARE_LANES_MAX * BLOCK_QPNS));
	for (uint16_t i = 1; i <= SHARE_LANES_MAX; i++)
		munmap(maps[i], sizeof(*maps[i]));
}
