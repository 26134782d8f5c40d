/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/impair/impair_path.c: what happens to numbered packets, by the seed and the time. */
#include <errno.h>
#include <string.h>

#include <rte_mbuf.h>

#include "eal/runtime.h"
#include "frames.h"
#include "impair/impair_path.h"
#include "psock/udp_frame.h"
#include "test.h"
#include "wire/headers.h"

#define MBUFS	 4096
#define ROOM	 1024
#define PACKETS	 100000
#define ARRIVALS (2 * PACKETS)

static struct rte_mempool *pool;
static struct impair_config config;
static struct impair_counts counts;
static struct impair_path path;
static uint32_t arrived[ARRIVALS], arrived_count;
static uint8_t frame[FRAME_MAX];
static uint32_t frame_len;
static struct udp_frame headers;

static int group_set_up(TEST_STATE)
{
	const struct runtime_config runtime = {.memory_bytes = 16 << 20};

	if (runtime_start(&runtime) != 0)
		return -1;
	pool = rte_pktmbuf_pool_create("test", MBUFS, 0, 0, ROOM, 0);
	return pool ? 0 : -1;
}

TEST_GROUP(group_set_up, NULL);

static void begin(const char *args)
{
	const struct frame send = {.psn = 1, .len = 64};
	char error[256];

	assert_int_equal(impair_config_read(args, &config, error, sizeof(error)), 0);
	memset(&counts, 0, sizeof(counts));
	assert_int_equal(impair_path_init(&path, &config, 0, &counts), 0);
	frame_len = frame_make(&send, frame);
	assert_true(udp_frame_find(frame, frame_len, &headers));
	arrived_count = 0;
}

static int end(TEST_STATE)
{
	impair_path_fini(&path);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
	return 0;
}

TEST_FIXTURE(NULL, end);

static struct bth *bth_of(const struct rte_mbuf *mbuf)
{
	return rte_pktmbuf_mtod_offset(mbuf, struct bth *, headers.len);
}

/* Put packet `number`, which carries the number in place of its PSN. */
static void put(uint32_t number, bool has_icrc, uint64_t now_ns)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);

	assert_non_null(mbuf);
	memcpy(rte_pktmbuf_append(mbuf, (uint16_t)frame_len), frame, frame_len);
	wire_put24(bth_of(mbuf)->psn, number);
	impair_path_put(&path, mbuf, pool, has_icrc, now_ns);
}

static void get(uint64_t now_ns)
{
	struct rte_mbuf *mbufs[7];
	uint16_t got;

	while ((got = impair_path_get(&path, mbufs, 7, now_ns)) > 0) {
		for (uint16_t i = 0; i < got; i++) {
			assert_in_range(arrived_count, 0, ARRIVALS - 1);
			arrived[arrived_count++] = wire_get24(bth_of(mbufs[i])->psn);
		}
		rte_pktmbuf_free_bulk(mbufs, got);
	}
}

/* Send packets, a microsecond apart. */
static void send_all(uint32_t packets)
{
	for (uint32_t i = 0; i < packets; i++) {
		put(i, true, i * UINT64_C(1000));
		get(i * UINT64_C(1000));
	}
}

TEST(impair_path_put__without_damage_passes_all)
{
	begin("seed=1");
	send_all(100);
	assert_int_equal(arrived_count, 100);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(arrived[i], i);
	assert_int_equal(impair_path_due_ns(&path), IMPAIR_NEVER);
}

TEST(impair_path_put__loses_the_fraction)
{
	begin("loss=0.01");
	send_all(PACKETS);
	assert_in_range(counts.of[IMPAIR_LOST], 900, 1100);
	assert_int_equal(arrived_count, PACKETS - counts.of[IMPAIR_LOST]);
}

static uint32_t lose(const char *args, uint32_t *which)
{
	begin(args);
	send_all(10000);
	memcpy(which, arrived, arrived_count * sizeof(which[0]));
	impair_path_fini(&path);
	return arrived_count;
}

TEST(impair_path_put__repeats_itself_by_its_seed)
{
	static uint32_t first[10000], second[10000];
	const uint32_t n = lose("loss=0.1,seed=5", first);

	assert_int_equal(lose("loss=0.1,seed=5", second), n);
	assert_memory_equal(first, second, n * sizeof(first[0]));
	/* Another kind of damage does not change which packets are lost. */
	assert_int_equal(lose("loss=0.1,ce=0.5,corrupt=0,seed=5", second), n);
	assert_memory_equal(first, second, n * sizeof(first[0]));
	lose("loss=0.1,seed=6", second);
	assert_memory_not_equal(first, second, 1000);
	begin("seed=1");
}

/* The share of lost packets and the mean length of bursts are those that were asked for. */
TEST(impair_path_put__loses_in_bursts)
{
	uint32_t bursts = 0, longest = 0;

	begin("loss=0.05,burst=10");
	send_all(PACKETS);
	for (uint32_t i = 1; i < arrived_count; i++) {
		const uint32_t gap = arrived[i] - arrived[i - 1] - 1;

		bursts += gap > 0;
		longest = RTE_MAX(longest, gap);
	}
	assert_in_range(counts.of[IMPAIR_LOST], PACKETS * 4 / 100, PACKETS * 6 / 100);
	assert_in_range(counts.of[IMPAIR_LOST] / bursts, 8, 12);
	assert_in_range(longest, 30, 300);
}

TEST(impair_path_put__duplicates)
{
	uint32_t twice = 0;

	begin("dup=0.1");
	send_all(PACKETS);
	for (uint32_t i = 1; i < arrived_count; i++) {
		assert_true(arrived[i] == arrived[i - 1] || arrived[i] == arrived[i - 1] + 1);
		twice += arrived[i] == arrived[i - 1];
	}
	assert_in_range(twice, PACKETS * 9 / 100, PACKETS * 11 / 100);
	assert_int_equal(counts.of[IMPAIR_DUPLICATED], twice);
	assert_int_equal(arrived_count, PACKETS + twice);
}

/* All packets arrive, and each late one comes at most `depth` packets late. */
TEST(impair_path_put__reorders_by_a_bounded_distance)
{
	static bool seen[PACKETS];
	uint32_t late = 0, highest = 0;
	uint32_t furthest = 0;

	memset(seen, 0, sizeof(seen));
	begin("reorder=0.01,depth=200,hold=1s");
	send_all(PACKETS);
	get(UINT64_MAX);
	assert_int_equal(arrived_count, PACKETS);
	for (uint32_t i = 0; i < arrived_count; i++) {
		assert_false(seen[arrived[i]]);
		seen[arrived[i]] = true;
		if (arrived[i] < highest) {
			late++;
			furthest = RTE_MAX(furthest, highest - arrived[i]);
		}
		highest = RTE_MAX(highest, arrived[i]);
	}
	assert_in_range(late, PACKETS * 8 / 1000, PACKETS * 12 / 1000);
	/* A late packet is overtaken by 200 packets that are in order, and by other late ones
	 * between them. */
	assert_in_range(furthest, 150, 210);
	assert_in_range(counts.of[IMPAIR_REORDERED], late, late + 20);
}

/* The last packet of a message has none behind it. */
TEST(impair_path_due_ns__ends_the_wait_of_a_reordered_packet)
{
	begin("reorder=1,hold=50us");
	put(0, true, 1000);
	get(1000);
	assert_int_equal(arrived_count, 0);
	assert_int_equal(impair_path_due_ns(&path), 51000);
	get(50999);
	assert_int_equal(arrived_count, 0);
	get(51000);
	assert_int_equal(arrived_count, 1);
}

/* The packets before it filled the burst, and nobody else polls before it is due. */
TEST(impair_path_due_ns__is_now_for_an_overtaken_packet)
{
	struct rte_mbuf *mbuf;

	begin("reorder=1,depth=1,hold=50us");
	put(0, true, 1000);
	config.reorder = 0;
	put(1, true, 1000);
	assert_int_equal(impair_path_get(&path, &mbuf, 1, 1000), 1);
	assert_int_equal(wire_get24(bth_of(mbuf)->psn), 1);
	rte_pktmbuf_free(mbuf);
	assert_true(impair_path_due_ns(&path) <= 1000);
	get(1000);
	assert_int_equal(arrived_count, 1);
	assert_int_equal(impair_path_due_ns(&path), IMPAIR_NEVER);
}

TEST(impair_path_put__delays)
{
	begin("delay=50us");
	put(0, true, 0);
	put(1, true, 10000);
	assert_int_equal(impair_path_due_ns(&path), 50000);
	get(49999);
	assert_int_equal(arrived_count, 0);
	get(50000);
	assert_int_equal(arrived_count, 1);
	assert_int_equal(impair_path_due_ns(&path), 60000);
	get(60000);
	assert_int_equal(arrived_count, 2);
}

/* Frames of frame_len bytes at 1 Mb/s: each takes 8 us a byte. */
TEST(impair_path_put__has_the_rate)
{
	const uint64_t each_ns = frame_len * UINT64_C(8000);

	begin("rate=1M");
	put(0, true, 0);
	put(1, true, 0);
	assert_int_equal(impair_path_due_ns(&path), each_ns);
	get(2 * each_ns - 1);
	assert_int_equal(arrived_count, 1);
	get(2 * each_ns);
	assert_int_equal(arrived_count, 2);
	/* The line was idle: a packet does not wait for what was sent before. */
	put(2, true, 10 * each_ns);
	assert_int_equal(impair_path_due_ns(&path), 11 * each_ns);
}

TEST(impair_path_put__drops_above_its_limit)
{
	begin("delay=1ms,limit=5");
	for (uint32_t i = 0; i < 8; i++)
		put(i, true, 0);
	assert_int_equal(counts.of[IMPAIR_OVERFLOWED], 3);
	get(1000000);
	assert_int_equal(arrived_count, 5);
	assert_int_equal(arrived[4], 4);
}

TEST(impair_path_put__corrupts_so_that_the_check_notices)
{
	struct rte_mbuf *mbuf;

	begin("corrupt=1");
	for (uint32_t i = 0; i < 1000; i++) {
		mbuf = rte_pktmbuf_alloc(pool);
		memcpy(rte_pktmbuf_append(mbuf, (uint16_t)frame_len), frame, frame_len);
		/* The port has verified it: that does not hold any more. */
		mbuf->port = IMPAIR_VERIFIED;
		impair_path_put(&path, mbuf, pool, true, 0);
		assert_int_equal(impair_path_get(&path, &mbuf, 1, 0), 1);
		assert_int_equal(mbuf->port, 0);
		assert_false(frame_is_right(rte_pktmbuf_mtod(mbuf, uint8_t *), frame_len));
		rte_pktmbuf_free(mbuf);
	}
	assert_int_equal(counts.of[IMPAIR_CORRUPTED], 1000);
}

TEST(impair_path_put__drops_a_corrupt_packet_without_icrc)
{
	begin("corrupt=1");
	put(0, false, 0);
	get(0);
	assert_int_equal(arrived_count, 0);
	assert_int_equal(counts.of[IMPAIR_CORRUPTED], 1);
}

TEST(impair_path_put__marks)
{
	begin("ce=0.1");
	send_all(10000);
	assert_int_equal(arrived_count, 10000);
	assert_in_range(counts.of[IMPAIR_MARKED], 900, 1100);
}

/* ARP must get through. */
TEST(impair_path_put__damages_only_roce)
{
	struct rte_mbuf *mbuf;

	begin("loss=1,delay=1us");
	mbuf = rte_pktmbuf_alloc(pool);
	memset(rte_pktmbuf_append(mbuf, 60), 0, 60);
	impair_path_put(&path, mbuf, pool, true, 0);
	assert_int_equal(impair_path_get(&path, &mbuf, 1, 999), 0);
	assert_int_equal(impair_path_get(&path, &mbuf, 1, 1000), 1);
	rte_pktmbuf_free(mbuf);
}
