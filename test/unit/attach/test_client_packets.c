/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/attach/client_direct.c: packets through a direct channel. */
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

static struct share_client client;
static struct port port;
static uint8_t arena[BUFFERS * BUFFER_BYTES];
static struct rte_mbuf mbufs[BUFFERS];
static uint32_t cache[BUFFERS];

/* The other process, and the owner's ends of the rings of packets. */
static struct direct_memory *memory;
static struct direct_tx peer_tx;
static struct direct_rx peer_rx;
static int wake_fd;
static struct share_ring owner_rx, owner_tx;

static struct direct_memory *offer(uint16_t peer)
{
	const struct share_offer direct = {
		.peer = peer, .qpn_first = QPN + peer * BLOCK_QPNS, .engines = 1, .served = 1};

	return client_rig_offer(&client, direct, peer == 0 ? &wake_fd : NULL);
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
	assert_int_equal(client_register_ops(), 0);
	client.pool = client_new_pool(&pool_kind, &client, BUFFERS, BUFFER_BYTES);
	memory = offer(0);
	direct_init(&peer_tx, &peer_rx, memory, 1);
	return 0;
}

static int tear_down(TEST_STATE)
{
	memset((void *)client.page->directs, 0, sizeof(client.page->directs));
	client_directs_look(&client);
	for (int i = 0; i < SHARE_DIRECTS_MAX; i++)
		assert_null(client.directs[i]);
	munmap(memory, sizeof(*memory));
	munmap(client.page, client.page_bytes);
	free(client.pool);
	close(wake_fd);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* Send packets of a length in buffers from this one on. */
static void put(uint32_t buffer, uint16_t len, uint16_t n)
{
	struct client_direct *direct = client_direct_of(&client, QPN);
	struct rte_mbuf *packets[BUFFERS];

	assert_non_null(direct);
	for (uint32_t i = 0; i < n; i++) {
		packets[i] = client_mbuf(&client, buffer + i);
		packets[i]->data_off = HEADROOM;
		packets[i]->data_len = packets[i]->pkt_len = len;
		memset(rte_pktmbuf_mtod(packets[i], void *), (int)(buffer + i) & 0xff, len);
	}
	client_direct_send(&client, direct, packets, n);
}

/* The other process takes packets and gives them back. */
static void peer_takes(uint32_t n)
{
	struct share_packet packet;
	uint32_t index;

	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(direct_take(&peer_rx, &packet, 1, &index), 1);
		direct_done(&peer_rx, index);
	}
	direct_give_back(&peer_rx);
}

TEST(client_direct_send__copies_packets_and_keeps_their_buffers)
{
	struct share_packet packets[2];
	uint32_t index;

	put(7, SHORT, 1);
	assert_int_equal(client.cache_count, 1);
	put(8, LONG, 1);
	assert_int_equal(client.cache_count, 2);
	assert_int_equal(cache[1], 8);
	assert_int_equal(direct_take(&peer_rx, packets, 2, &index), 2);
	assert_true(packets[0].flags & SHARE_FLAG_SHORT);
	assert_int_equal(packets[0].len, SHORT);
	assert_int_equal(direct_frame(&peer_rx, index, &packets[0])[SHORT - 1], 7);
	assert_false(packets[1].flags & SHARE_FLAG_SHORT);
	assert_int_equal(packets[1].len, LONG);
	assert_int_equal(direct_frame(&peer_rx, index + 1, &packets[1])[LONG - 1], 8);
}

/* No packet overtakes those that were sent through the owner before. */
TEST(client_direct_send__waits_until_the_owner_has_taken_all)
{
	uint64_t word = 1;

	assert_int_equal(share_ring_put(&client.rings[SHARE_RING_TX], &word, 1), 1);
	put(0, SHORT, 1);
	assert_int_equal(port.tx_held, 1);
	assert_true(client_waits(&client, QPN));
	client_send_held(&client);
	assert_int_equal(port.tx_held, 1);
	assert_int_equal(share_ring_take(&owner_tx, &word, 1), 1);
	client_send_held(&client);
	assert_int_equal(port.tx_held, 0);
	assert_false(client_waits(&client, QPN));
	peer_takes(1);
}

/* A process that takes nothing: packets wait, and then they are dropped. */
TEST(client_direct_send__into_a_full_channel)
{
	struct client_direct *direct = client_direct_of(&client, QPN);
	struct port_taken taken = {0};
	bool known;

	for (uint32_t sent = 0; sent < DIRECT_SLOTS; sent += 64)
		put(sent, LONG, 64);
	assert_int_equal(client.cache_count, DIRECT_SLOTS);
	put(DIRECT_SLOTS, LONG, 2);
	assert_int_equal(port.tx_held, 2);
	assert_int_equal(client.cache_count, DIRECT_SLOTS);
	client_send_held(&client);
	direct->held.since_ns -= HELD_NS;
	client_send_held(&client);
	assert_int_equal(port.tx_held, 0);
	assert_int_equal(port.tx_refused.packets, 2);
	assert_true(client_direct_taken(direct, &taken, &known));
	assert_true(known);
	assert_int_equal(taken.dropped, 2);
	assert_int_equal(taken.given - taken.taken, DIRECT_SLOTS);
	assert_int_equal(client.cache_count, DIRECT_SLOTS + 2);
	/* There is room for one, and the process is alive: the other one waits. */
	peer_takes(1);
	put(DIRECT_SLOTS + 2, LONG, 2);
	assert_int_equal(port.tx_held, 1);
	/* The other process ends. */
	client.page->directs[0] = 0;
	client_directs_look(&client);
	assert_int_equal(port.tx_held, 0);
	assert_int_equal(client.cache_count, DIRECT_SLOTS + 4);
	assert_null(client_direct_of(&client, QPN));
}

TEST(client_directs_wake__a_process_that_sleeps)
{
	uint64_t rung;

	put(0, SHORT, 1);
	client_directs_wake(&client);
	assert_int_equal(eventfd_read(wake_fd, &rung), -1);
	memory->sides[1].sleeps = 1;
	client_directs_wake(&client);
	assert_int_equal(eventfd_read(wake_fd, &rung), -1);
	put(1, SHORT, 1);
	client_directs_wake(&client);
	assert_int_equal(eventfd_read(wake_fd, &rung), 0);
	assert_int_equal(memory->sides[1].sleeps, 0);
}

/* The other process sends a packet that begins with this byte, and says that it has this length. */
static void peer_puts(uint8_t byte, uint16_t len, uint8_t flags)
{
	*(flags & SHARE_FLAG_SHORT ? direct_place(&peer_tx) : direct_buffer(&peer_tx, 0)) = byte;
	direct_placed(&peer_tx, len, flags);
	direct_show(&peer_tx);
}

static void assert_given_back(uint32_t n)
{
	uint32_t given, taken;

	assert_true(direct_tell_taken(&peer_tx, &given, &taken));
	assert_int_equal(taken, n);
}

/* Words that describe no packet inside a buffer are refused, and the packets beside them are not.
 */
TEST(client_directs_take__refuses_what_is_outside_of_its_place)
{
	struct rte_mbuf *got[8];

	peer_puts(5, SHORT, SHARE_FLAG_SHORT);
	peer_puts(6, DIRECT_SHORT_BYTES + 1, SHARE_FLAG_SHORT);
	peer_puts(7, DIRECT_BUFFER_BYTES + 1, 0);
	peer_puts(8, DIRECT_BUFFER_BYTES, 0);
	assert_int_equal(client_directs_take(&client, got, RTE_DIM(got)), 2);
	assert_int_equal(got[0]->data_len, SHORT);
	assert_int_equal(got[0]->pkt_len, SHORT);
	assert_int_equal(*rte_pktmbuf_mtod(got[0], uint8_t *), 5);
	assert_int_equal(got[1]->data_len, DIRECT_BUFFER_BYTES);
	assert_int_equal(*rte_pktmbuf_mtod(got[1], uint8_t *), 8);
	assert_int_equal(got[1]->port, PORT_PASSED_ON);
	assert_int_equal(port.rx_too_long, 2);
	assert_given_back(0);
	rte_pktmbuf_free(got[0]);
	assert_given_back(3);
	rte_pktmbuf_free(got[1]);
	assert_given_back(4);
	assert_int_equal(client.cache_count, 0);
}

TEST(client_directs_take__gives_back_what_it_refused_at_once)
{
	struct rte_mbuf *got[1];

	peer_puts(5, DIRECT_BUFFER_BYTES + 1, 0);
	assert_int_equal(client_directs_take(&client, got, 1), 0);
	assert_given_back(1);
}

/* Packets that the other process sent through the owner before are received first. */
TEST(client_directs_take__waits_for_the_packets_of_the_owner)
{
	struct rte_mbuf *got[1];
	uint64_t word = 1;

	client.spares_icrc = true;
	assert_int_equal(share_ring_put(&owner_rx, &word, 1), 1);
	assert_int_equal(client_directs_take(&client, got, 1), 0);
	peer_puts(5, LONG, 0);
	assert_int_equal(client_directs_take(&client, got, 1), 0);
	assert_int_equal(share_ring_take(&client.rings[SHARE_RING_RX], &word, 1), 1);
	assert_int_equal(client_directs_take(&client, got, 1), 1);
	assert_int_equal(got[0]->port, PORT_HANDED_OVER);
	rte_pktmbuf_free(got[0]);
	/* From then on the owner's packets are no older. */
	assert_int_equal(share_ring_put(&owner_rx, &word, 1), 1);
	peer_puts(5, LONG, 0);
	assert_int_equal(client_directs_take(&client, got, 1), 1);
	rte_pktmbuf_free(got[0]);
}

TEST(client_directs_wait__before_sleeping)
{
	struct rte_mbuf *got[1];

	memory->sides[0].sleeps = 0;
	client_directs_say_asleep(&client, true);
	assert_int_equal(memory->sides[0].sleeps, 1);
	assert_false(client_directs_wait(&client));
	peer_puts(5, LONG, 0);
	assert_true(client_directs_wait(&client));
	assert_int_equal(client_directs_take(&client, got, 1), 1);
	rte_pktmbuf_free(got[0]);
	assert_false(client_directs_wait(&client));
}

/* A process has few direct channels: an offer waits until one ends. */
TEST(client_directs_offer__waits_for_a_free_place)
{
	struct direct_memory *maps[SHARE_DIRECTS_MAX + 1] = {memory};

	for (uint16_t i = 1; i <= SHARE_DIRECTS_MAX; i++)
		maps[i] = offer(i);
	assert_non_null(client_direct_of(&client, QPN + (SHARE_DIRECTS_MAX - 1) * BLOCK_QPNS));
	assert_null(client_direct_of(&client, QPN + SHARE_DIRECTS_MAX * BLOCK_QPNS));
	client.page->directs[1] = 0;
	client_directs_look(&client);
	client_directs_look(&client);
	assert_null(client_direct_of(&client, QPN + BLOCK_QPNS));
	assert_non_null(client_direct_of(&client, QPN + SHARE_DIRECTS_MAX * BLOCK_QPNS));
	for (uint16_t i = 1; i <= SHARE_DIRECTS_MAX; i++)
		munmap(maps[i], sizeof(*maps[i]));
}
