/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rings between processes and the inbox between engines, as they are, in a weak memory model.
 * What is asked: who takes a packet sees its bytes, nobody overwrites what is still read, and
 * nobody sleeps while a packet waits. Each scenario also runs without one of the orders, which it
 * must notice.
 */
#include <string.h>

#include <rte_mbuf.h>
#include <rte_spinlock.h>

#include "test.h"
#include "weak.h"

#include "memif/end.h"
#include "port/inbox.h"
#include "ring.h"
#include "share/direct.h"
#include "share/ring.h"

/* A short packet is copied into its slot: its first word counts. */
static void *copy_shared(void *to, const void *from, size_t len)
{
	uint64_t first;

	memcpy(&first, from, sizeof(first));
	memcpy(to, from, len);
	weak_store(to, sizeof(first), first, __ATOMIC_RELAXED);
	return to;
}

#define memcpy(to, from, len) copy_shared(to, from, len)
#include "../../../pmd/share/direct.c"
#undef memcpy

static uint64_t bytes[2]; /* of packets: what the sender stores, and the receiver loads */
static const char *fault;
static bool sleeps, woken;
static uint32_t asleep;

static void store_bytes(size_t packet, uint64_t value)
{
	__atomic_store_n(&bytes[packet], value, __ATOMIC_RELAXED);
}

static uint64_t load_bytes(size_t packet)
{
	return __atomic_load_n(&bytes[packet], __ATOMIC_RELAXED);
}

static void expect(bool right, const char *what)
{
	if (!right && !fault)
		fault = what;
}

static const char *judge(void)
{
	return fault;
}

static void reset(void)
{
	memset(bytes, 0, sizeof(bytes));
	fault = NULL;
	sleeps = woken = false;
	asleep = 0;
}

/* It is right as it is, and not without any one of these orders. */
static void expect_needed(const struct weak_scenario *scenario, const enum weak_without *needed,
			  size_t count)
{
	const char *found = weak_run(scenario, WEAK_COMPLETE);

	if (found)
		fail_msg("%s", found);
	for (size_t i = 0; i < count; i++)
		assert_non_null(weak_run(scenario, needed[i]));
}

static const enum weak_without both[] = {WEAK_NO_RELEASE, WEAK_NO_ACQUIRE};
static const enum weak_without fence[] = {WEAK_NO_FENCE};

/* ---- the ring of an attached process (share/ring.h), with room for one word ---- */

static union {
	struct share_ring_memory memory;
	uint8_t room[512];
} shared __attribute__((aligned(RTE_CACHE_LINE_SIZE)));
static struct share_ring put_side, take_side;

static void reset_shared(void)
{
	reset();
	memset(&shared, 0, sizeof(shared));
	share_ring_init(&put_side, &shared, 1);
	share_ring_init(&take_side, &shared, 1);
}

static void put_words(void)
{
	for (uint64_t i = 1; i <= 2; i++) {
		if (share_ring_room(&put_side) == 0)
			return;
		/* Both packets use one buffer. */
		store_bytes(0, i);
		share_ring_put(&put_side, &i, 1);
	}
}

static void take_words(void)
{
	uint64_t word;

	for (uint64_t i = 1; i <= 2; i++) {
		if (share_ring_peek(&take_side, &word, 1) == 0)
			return;
		expect(word == i, "another word");
		expect(load_bytes(0) == i, "a packet without its bytes, or with the next one's");
		share_ring_skip(&take_side, 1);
	}
}

TEST(share_ring__shows_words_with_their_packets)
{
	const struct weak_scenario scenario = {2, {put_words, take_words}, reset_shared, judge};

	expect_needed(&scenario, both, 2);
}

/* As client_tx_burst and serve_arm do. */
static void put_and_wake(void)
{
	const uint64_t word = 1;

	share_ring_put(&put_side, &word, 1);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	woken = __atomic_load_n(&asleep, __ATOMIC_RELAXED) != 0;
}

static void look_and_sleep(void)
{
	__atomic_store_n(&asleep, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	sleeps = share_ring_count(&take_side) == 0;
}

static const char *judge_sleep(void)
{
	return sleeps && !woken ? "it sleeps, and a word waits" : NULL;
}

TEST(share_ring__wakes_who_sleeps)
{
	const struct weak_scenario scenario = {
		2, {put_and_wake, look_and_sleep}, reset_shared, judge_sleep};

	expect_needed(&scenario, fence, 1);
}

/* ---- the ring of a memif (memif/ring.h), with one descriptor ---- */

static union {
	struct memif_ring_memory memory;
	uint8_t room[1024];
} memif __attribute__((aligned(RTE_CACHE_LINE_SIZE)));
static struct memif_ring send_side, receive_side;

static void reset_memif(void)
{
	reset();
	memset(&memif, 0, sizeof(memif));
	ring_init(&send_side, (uint8_t *)&memif, 1, MEMIF_CLIENT);
	ring_init(&receive_side, (uint8_t *)&memif, 1, MEMIF_SERVER);
}

static void send_packets(void)
{
	for (uint16_t i = 0; i < 2; i++) {
		if (ring_theirs(&send_side) != i)
			return;
		store_bytes(0, i + 1U);
		ring_describe(&send_side, i, 0, i + 1U);
		ring_show(&send_side, (uint16_t)(i + 1));
	}
}

static void receive_packets(void)
{
	for (uint16_t i = 0; i < 2; i++) {
		if (ring_look(&receive_side, receive_side.size) <= 0)
			return;
		expect(ring_read(&receive_side, i).length == i + 1U, "another length");
		expect(load_bytes(0) == i + 1U,
		       "a packet without its bytes, or with the next one's");
		receive_side.own = (uint16_t)(i + 1);
		ring_show(&receive_side, receive_side.own);
	}
}

TEST(memif_ring__shows_descriptors_with_their_packets)
{
	const struct weak_scenario scenario = {
		2, {send_packets, receive_packets}, reset_memif, judge};

	expect_needed(&scenario, both, 2);
}

/* As memif_end_push and memif_arm do. */
static void send_and_ring(void)
{
	ring_show(&send_side, 1);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	woken = ring_wants_doorbell(&send_side);
}

static void listen_and_sleep(void)
{
	ring_listen(&receive_side, true);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	sleeps = !ring_has_news(&receive_side);
}

static void reset_quiet(void)
{
	reset_memif();
	memif.memory.flags = MEMIF_QUIET;
}

TEST(memif_ring__wakes_who_sleeps)
{
	const struct weak_scenario scenario = {
		2, {send_and_ring, listen_and_sleep}, reset_quiet, judge_sleep};

	expect_needed(&scenario, fence, 1);
}

/* ---- a direct channel (share/direct.h) ---- */

static struct direct_memory direct;
static struct direct_tx tx;
static struct direct_rx rx, unused_rx;
static struct direct_tx unused_tx;

static void reset_direct(void)
{
	reset();
	for (int i = 0; i < 2; i++) {
		memset(&direct.rings[0].slots[i], 0, sizeof(direct.rings[0].slots[i]));
		memset(direct.rings[0].buffers[i], 0, sizeof(uint64_t));
	}
	direct.rings[0].cons = 0;
	direct_init(&tx, &unused_rx, &direct, 0);
	direct_init(&unused_tx, &rx, &direct, 1);
}

/* Put a short packet, and one in a buffer. */
static void put_into_direct(void)
{
	const uint64_t frame[DIRECT_SHORT_BYTES / 8] = {7};

	direct_copy(&tx, (const uint8_t *)frame, sizeof(frame));
	weak_store(direct_buffer(&tx, 0), 8, 8, __ATOMIC_RELAXED);
	direct_placed(&tx, 1000, 0);
	direct_show(&tx);
}

static void take_from_direct(void)
{
	struct share_packet packets[2];
	uint32_t first;
	const uint32_t taken = direct_take(&rx, packets, 2, &first);

	for (uint32_t i = 0; i < taken; i++)
		expect(weak_load(direct_frame(&rx, i, &packets[i]), 8, __ATOMIC_RELAXED) == 7 + i,
		       "a packet without its bytes");
}

TEST(direct__shows_packets_with_their_bytes)
{
	const struct weak_scenario scenario = {
		2, {put_into_direct, take_from_direct}, reset_direct, judge};

	expect_needed(&scenario, both, 2);
}

/* The ring is full, and its first packet is in a buffer. */
static void reset_full(void)
{
	const struct share_packet packet = {.len = 1000, .flags = direct_round(0)};
	const uint64_t first = 7;

	reset_direct();
	direct.rings[0].slots[0].word = share_pack(&packet);
	memcpy(direct.rings[0].buffers[0], &first, sizeof(first));
	tx.own = DIRECT_SLOTS;
}

/* The model executes a load before later stores of its thread. So a store says that the packet has
 * been read: the sender must see this store before it overwrites the packet. */
static void read_and_give_back(void)
{
	struct share_packet packet;
	uint32_t first;

	expect(direct_take(&rx, &packet, 1, &first) == 1, "no packet");
	expect(weak_load(direct_frame(&rx, first, &packet), 8, __ATOMIC_RELAXED) == 7,
	       "the next packet's bytes");
	store_bytes(0, 1);
	direct_done(&rx, first);
	direct_give_back(&rx);
}

static void put_again(void)
{
	direct_look(&tx);
	if (!direct_has_place(&tx))
		return;
	expect(load_bytes(0) == 1, "a packet is overwritten before it was read");
	weak_store(direct_buffer(&tx, 0), 8, 8, __ATOMIC_RELAXED);
	direct_placed(&tx, 1000, 0);
	direct_show(&tx);
}

TEST(direct__is_written_again_after_it_was_given_back)
{
	const struct weak_scenario scenario = {
		2, {read_and_give_back, put_again}, reset_full, judge};

	expect_needed(&scenario, both, 2);
}

/* ---- the inbox of an engine (port/inbox.h) ---- */

static struct inbox inbox;
static struct rte_mbuf mbufs[2];

static void reset_inbox(void)
{
	reset();
	memset(&inbox, 0, sizeof(inbox));
	memset(mbufs, 0, sizeof(mbufs));
}

static void put_first(void)
{
	store_bytes(0, 1);
	inbox_put(&inbox, &mbufs[0]);
}

static void put_second(void)
{
	store_bytes(1, 1);
	inbox_put(&inbox, &mbufs[1]);
}

static void take_both(void)
{
	struct rte_mbuf *taken[2];
	const uint16_t n = inbox_take(&inbox, taken, 2);

	for (uint16_t i = 0; i < n; i++)
		expect(load_bytes((size_t)(taken[i] - mbufs)) == 1, "a packet without its bytes");
}

TEST(inbox__shows_packets_with_their_bytes)
{
	const struct weak_scenario scenario = {
		3, {put_first, put_second, take_both}, reset_inbox, judge};

	expect_needed(&scenario, both, 2);
}

/* ---- kicks (engine_push_kick and engine_drain_kicks) ---- */

static uint32_t prod;
static bool kicked;
static bool left, seen;

static void reset_kick(void)
{
	reset();
	prod = 0;
	kicked = true;
	left = seen = false;
}

static void post(void)
{
	__atomic_store_n(&prod, 1, __ATOMIC_RELEASE);
	left = __atomic_exchange_n(&kicked, true, __ATOMIC_SEQ_CST);
}

static void drain_by_exchange(void)
{
	(void)__atomic_exchange_n(&kicked, false, __ATOMIC_SEQ_CST);
	seen = __atomic_load_n(&prod, __ATOMIC_ACQUIRE) == 1;
}

static void drain_by_store(void)
{
	__atomic_store_n(&kicked, false, __ATOMIC_SEQ_CST);
	seen = __atomic_load_n(&prod, __ATOMIC_ACQUIRE) == 1;
}

static const char *judge_kick(void)
{
	return left && !seen ? "a request that nobody runs" : NULL;
}

TEST(kicks__leave_no_request)
{
	const struct weak_scenario scenario = {
		2, {post, drain_by_exchange}, reset_kick, judge_kick};
	const struct weak_scenario before = {2, {post, drain_by_store}, reset_kick, judge_kick};

	expect_needed(&scenario, NULL, 0);
	assert_non_null(weak_run(&before, WEAK_COMPLETE));
}
