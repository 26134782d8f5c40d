/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/sgl.c. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fixture.h"
#include "transport/sgl.h"
#include "test.h"

static struct fixture fixture;
static struct region writable;
static struct region readable;
static struct sgl sgl;
static struct packet_frag frags[PACKET_FRAGS_MAX];
static uint32_t count;

static int set_up(TEST_STATE)
{
	fixture_set_up(&fixture, 256, 4);
	region_set_up(&writable, fixture.pd, 400, IBV_ACCESS_LOCAL_WRITE, 1);
	region_set_up(&readable, fixture.pd, 400, 0, 2);
	return 0;
}

static int tear_down(TEST_STATE)
{
	region_tear_down(&writable);
	region_tear_down(&readable);
	fixture_tear_down(&fixture);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static void expect_frag(uint32_t i, const uint8_t *addr, uint32_t len)
{
	assert_true(i < count);
	assert_ptr_equal(frags[i].addr, addr);
	assert_int_equal(frags[i].len, len);
	assert_int_equal(frags[i].kind, FRAG_COPY);
}

TEST(sgl_seek__finds_the_entry_of_every_byte)
{
	const struct ibv_sge sge[] = {
		{.length = 3}, {.length = 0}, {.length = 2}, {.length = 0}, {.length = 1}};
	static const struct {
		uint32_t index, offset;
	} places[] = {{0, 0}, {0, 1}, {0, 2}, {2, 0}, {2, 1}, {4, 0}};

	for (uint64_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		sgl_seek(&sgl, sge, 5, i);
		assert_int_equal(sgl.index, places[i].index);
		assert_int_equal(sgl.offset, places[i].offset);
	}
}

TEST(sgl_seek__beyond_four_gigabytes)
{
	const struct ibv_sge sge[] = {
		{.length = UINT32_MAX}, {.length = UINT32_MAX}, {.length = 9}};

	sgl_seek(&sgl, sge, 3, 2ull * UINT32_MAX + 4);
	assert_int_equal(sgl.index, 2);
	assert_int_equal(sgl.offset, 4);
}

TEST(sgl_gather__walks_the_entries_from_where_it_stands)
{
	const struct ibv_sge sge[] = {region_sge(&readable, 10, 5), region_sge(&readable, 0, 0),
				      region_sge(&writable, 7, 4), region_sge(&readable, 100, 50)};

	sgl_seek(&sgl, sge, 4, 0);
	assert_int_equal(sgl_gather(&sgl, fixture.pd, 3, frags, &count), MR_OK);
	assert_int_equal(count, 1);
	expect_frag(0, readable.bytes + 10, 3);
	assert_int_equal(sgl_gather(&sgl, fixture.pd, 7, frags, &count), MR_OK);
	assert_int_equal(count, 3);
	expect_frag(0, readable.bytes + 13, 2);
	expect_frag(1, writable.bytes + 7, 4);
	expect_frag(2, readable.bytes + 100, 1);
	assert_int_equal(sgl_gather(&sgl, fixture.pd, 49, frags, &count), MR_OK);
	assert_int_equal(count, 1);
	expect_frag(0, readable.bytes + 101, 49);
}

TEST(sgl_gather__of_nothing_checks_nothing)
{
	const struct ibv_sge sge = {.addr = 1, .length = 8, .lkey = FIXTURE_NOBODY};

	sgl_seek(&sgl, &sge, 1, 0);
	assert_int_equal(sgl_gather(&sgl, fixture.pd, 0, frags, &count), MR_OK);
	assert_int_equal(count, 0);
	sgl_seek(&sgl, NULL, 0, 0);
	assert_int_equal(sgl_gather(&sgl, fixture.pd, 0, frags, &count), MR_OK);
	assert_int_equal(count, 0);
}

TEST(sgl_gather__takes_as_many_entries_as_a_packet_has_fragments)
{
	struct ibv_sge sge[PACKET_FRAGS_MAX + 1];

	for (uint32_t i = 0; i <= PACKET_FRAGS_MAX; i++)
		sge[i] = region_sge(&readable, i * 2, 1);
	sgl_seek(&sgl, sge, PACKET_FRAGS_MAX, 0);
	assert_int_equal(sgl_gather(&sgl, fixture.pd, PACKET_FRAGS_MAX, frags, &count), MR_OK);
	assert_int_equal(count, PACKET_FRAGS_MAX);
	for (uint32_t i = 0; i < PACKET_FRAGS_MAX; i++)
		expect_frag(i, readable.bytes + (size_t)i * 2, 1);
	sgl_seek(&sgl, sge, PACKET_FRAGS_MAX + 1, 0);
	assert_int_not_equal(sgl_gather(&sgl, fixture.pd, PACKET_FRAGS_MAX + 1, frags, &count),
			     MR_OK);
}

TEST(sgl_gather__a_list_that_is_too_short_is_refused)
{
	const struct ibv_sge sge = region_sge(&readable, 0, 10);

	sgl_seek(&sgl, &sge, 1, 0);
	assert_int_equal(sgl_gather(&sgl, fixture.pd, 11, frags, &count), MR_OUT_OF_RANGE);
}

TEST(sgl_gather__every_entry_is_checked)
{
	struct ibv_sge sge[] = {region_sge(&readable, 0, 4), region_sge(&readable, 8, 4)};

	sge[1].lkey = FIXTURE_NOBODY;
	sgl_seek(&sgl, sge, 2, 0);
	assert_int_equal(sgl_gather(&sgl, fixture.pd, 4, frags, &count), MR_OK);
	assert_int_equal(sgl_gather(&sgl, fixture.pd, 1, frags, &count), MR_BAD_KEY);
	/* One byte beyond the region. */
	sge[1] = region_sge(&readable, readable.length - 3, 4);
	sgl_seek(&sgl, sge, 2, 0);
	assert_int_equal(sgl_gather(&sgl, fixture.pd, 8, frags, &count), MR_OUT_OF_RANGE);
	sgl_seek(&sgl, sge, 2, 0);
	assert_int_equal(sgl_gather(&sgl, fixture.other_pd, 8, frags, &count), MR_WRONG_PD);
}

TEST(sgl_gather__a_bad_entry_leaves_the_place)
{
	struct ibv_sge sge[] = {region_sge(&readable, 0, 8), region_sge(&readable, 8, 8)};

	sge[1].lkey = FIXTURE_NOBODY;
	sgl_seek(&sgl, sge, 2, 3);
	assert_int_equal(sgl_gather(&sgl, fixture.pd, 6, frags, &count), MR_BAD_KEY);
	assert_int_equal(sgl_gather(&sgl, fixture.pd, 5, frags, &count), MR_OK);
	expect_frag(0, readable.bytes + 3, 5);
}

TEST(sgl_scatter__stores_over_the_entries)
{
	const struct ibv_sge sge[] = {region_sge(&writable, 300, 3), region_sge(&writable, 0, 0),
				      region_sge(&writable, 20, 60)};
	uint8_t bytes[40];

	memset(bytes, 0xee, sizeof(bytes));
	bytes[0] = 1;
	bytes[3] = 2;
	bytes[39] = 3;
	sgl_seek(&sgl, sge, 3, 0);
	assert_int_equal(sgl_scatter(&sgl, fixture.pd, bytes, sizeof(bytes)), MR_OK);
	assert_memory_equal(writable.bytes + 300, bytes, 3);
	assert_memory_equal(writable.bytes + 20, bytes + 3, 37);
	assert_int_equal(sgl_scatter(&sgl, fixture.pd, bytes, 2), MR_OK);
	assert_memory_equal(writable.bytes + 57, bytes, 2);
	region_expect_pattern(&writable, 0, 20, 1);
	region_expect_pattern(&writable, 59, 241, 1);
	region_expect_pattern(&writable, 303, 97, 1);
}

TEST(sgl_scatter__stores_no_byte_if_a_later_entry_is_bad)
{
	struct ibv_sge sge[] = {region_sge(&writable, 0, 8), region_sge(&readable, 0, 8)};
	uint8_t bytes[16] = {0};

	sgl_seek(&sgl, sge, 2, 0);
	assert_int_equal(sgl_scatter(&sgl, fixture.pd, bytes, 9), MR_NO_ACCESS);
	sge[1].lkey = FIXTURE_NOBODY;
	sgl_seek(&sgl, sge, 2, 0);
	assert_int_equal(sgl_scatter(&sgl, fixture.pd, bytes, 9), MR_BAD_KEY);
	sge[1] = region_sge(&writable, writable.length, 8);
	sgl_seek(&sgl, sge, 2, 0);
	assert_int_equal(sgl_scatter(&sgl, fixture.pd, bytes, 9), MR_OUT_OF_RANGE);
	region_expect_pattern(&writable, 0, writable.length, 1);
	region_expect_pattern(&readable, 0, readable.length, 2);
}

TEST(sgl_scatter__memory_that_is_gone_is_a_fault)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory =
		mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint8_t bytes[16] = {0};
	struct ibv_sge sge[2];
	struct mr *mr;

	assert_int_equal(mr_register(fixture.pd, memory, page, 0, IBV_ACCESS_LOCAL_WRITE, &mr), 0);
	sge[0] = region_sge(&writable, 0, 8);
	sge[1] = (struct ibv_sge){.addr = 0, .length = 8, .lkey = mr->key};
	sgl_seek(&sgl, sge, 2, 0);
	assert_int_equal(sgl_scatter(&sgl, fixture.pd, bytes, 16), MR_OK);
	assert_int_equal(sgl.stored, 16);
	munmap(memory, page);
	sgl_seek(&sgl, sge, 2, 0);
	assert_int_equal(sgl_scatter(&sgl, fixture.pd, bytes, 16), MR_FAULT);
	mr_deregister(mr);
}

TEST(sgl__a_null_region_stands_among_others)
{
	struct ibv_sge sge[] = {
		region_sge(&writable, 0, 3), {.addr = 0, .length = 5}, region_sge(&writable, 3, 3)};
	const uint8_t bytes[11] = {[0 ... 10] = 0xee};
	struct mr *null;

	assert_int_equal(mr_create_null(fixture.pd, &null), 0);
	sge[1].lkey = null->key;
	sgl_seek(&sgl, sge, 3, 0);
	assert_int_equal(sgl_gather(&sgl, fixture.pd, 11, frags, &count), MR_OK);
	assert_int_equal(count, 3);
	expect_frag(0, writable.bytes, 3);
	assert_int_equal(frags[1].kind, FRAG_ZERO);
	assert_null(frags[1].addr);
	assert_int_equal(frags[1].len, 5);
	expect_frag(2, writable.bytes + 3, 3);
	sgl_seek(&sgl, sge, 3, 0);
	assert_int_equal(sgl_scatter(&sgl, fixture.pd, bytes, 11), MR_OK);
	assert_int_equal(sgl.stored, 6);
	assert_memory_equal(writable.bytes, bytes, 6);
	region_expect_pattern(&writable, 6, writable.length - 6, 1);
	mr_deregister(null);
}

TEST(sgl_scatter_ooo__only_into_one_entry_of_a_relaxed_region)
{
	const uint8_t bytes[16] = "fifteen letters";
	struct region relaxed;
	struct ibv_sge sge[3];
	const uint8_t *at;

	region_set_up(&relaxed, fixture.pd, 400,
		      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING, 3);
	sge[0] = region_sge(&relaxed, 100, 20);
	sge[1] = region_sge(&relaxed, 200, 20);
	sge[2] = region_sge(&writable, 0, 20);
	sgl_seek(&sgl, sge, 3, 4);
	at = sgl_scatter_ooo(&sgl, fixture.pd, bytes, 16);
	assert_ptr_equal(at, relaxed.bytes + 104);
	assert_memory_equal(at, bytes, 16);
	assert_int_equal(sgl.stored, 16);
	sgl_seek(&sgl, sge, 3, 4);
	assert_true(sgl_leads_to(&sgl, fixture.pd, 16, at));
	sgl_seek(&sgl, sge, 3, 3);
	assert_false(sgl_leads_to(&sgl, fixture.pd, 16, at));
	/* Over two entries, and into a strict region. */
	sgl_seek(&sgl, sge, 3, 10);
	assert_null(sgl_scatter_ooo(&sgl, fixture.pd, bytes, 16));
	assert_int_equal(sgl.stored, 0);
	sgl_seek(&sgl, sge, 3, 40);
	assert_null(sgl_scatter_ooo(&sgl, fixture.pd, bytes, 16));
	region_expect_pattern(&relaxed, 120, 280, 3);
	region_expect_pattern(&writable, 0, 400, 1);
	region_tear_down(&relaxed);
}
