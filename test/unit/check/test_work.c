/* SPDX-License-Identifier: BSD-3-Clause */
/* Which changes of buffers are the program's. */
#include <string.h>

#include "base/guard.h"
#include "check/work.h"
#include "test.h"

#define KEY    7
#define REMOTE 8
#define LARGE  9
#define BYTES  256
#define IOVA   0x1000

static const char device;
static uint8_t memory[2][BYTES];
static struct work_queue queue;

static void add_region(uint32_t key, const uint8_t *at, uint64_t iova, unsigned int access)
{
	const struct work_region region = {.device = &device,
					   .key = key,
					   .access = access,
					   .is_readable = true,
					   .addr = (uintptr_t)at,
					   .iova = iova,
					   .length = BYTES};

	work_add_region(&region);
}

static int set_up(TEST_STATE)
{
	assert_int_equal(guard_install(), 0);
	memset(memory, 0, sizeof(memory));
	work_init(&queue);
	add_region(KEY, memory[0], IOVA, IBV_ACCESS_LOCAL_WRITE);
	return 0;
}

static int tear_down(TEST_STATE)
{
	work_lose(&queue);
	work_remove_region(&device, KEY);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static struct work *add(enum work_use use, uint64_t addr, uint32_t length, uint32_t key)
{
	const struct ibv_sge list[] = {{.addr = addr, .length = length, .lkey = key}};
	const struct work work = {.use = use, .signaled = true, .num_sge = 1};

	struct work *last = NULL, *each;

	work_add(&queue, &device, &work, list);
	STAILQ_FOREACH (each, &queue.posted, link)
		last = each;
	return last;
}

TEST(work_changed__names_the_first_byte)
{
	struct work *work = add(WORK_READS, IOVA + 8, 100, KEY);

	assert_int_equal(work_changed(work, 0), -1);
	memory[0][7] = 1;
	memory[0][108] = 1;
	assert_int_equal(work_changed(work, 0), -1);
	memory[0][8 + 99] = 1;
	assert_int_equal(work_changed(work, 0), 99);
	memory[0][8 + 17] = 1;
	assert_int_equal(work_changed(work, 0), 17);
}

TEST(work_changed__the_device_has_written_the_beginning)
{
	struct work *work = add(WORK_WRITES, IOVA, 100, KEY);

	memory[0][49] = 1;
	assert_int_equal(work_changed(work, 50), -1);
	memory[0][50] = 1;
	assert_int_equal(work_changed(work, 50), 50);
	assert_int_equal(work_changed(work, 100), -1);
}

/* The buffers of the second entry follow those of the first one. */
TEST(work_changed__looks_at_the_whole_list)
{
	const struct ibv_sge list[] = {{.addr = IOVA, .length = 10, .lkey = KEY},
				       {.addr = IOVA + 100, .length = 10, .lkey = KEY}};
	const struct work work = {.use = WORK_READS, .num_sge = 2};

	work_add(&queue, &device, &work, list);
	memory[0][10] = 1;
	assert_int_equal(work_changed(STAILQ_FIRST(&queue.posted), 0), -1);
	memory[0][103] = 1;
	assert_int_equal(work_changed(STAILQ_FIRST(&queue.posted), 0), 13);
}

TEST(work_changed__another_request_may_have_written_it)
{
	struct work *sends = add(WORK_READS, IOVA, 100, KEY);

	add(WORK_WRITES, IOVA + 50, 10, KEY);
	memory[0][50] = 1;
	assert_int_equal(work_changed(sends, 0), -1);
}

TEST(work_changed__another_request_has_written_it_and_is_done)
{
	struct work_queue other;
	struct work *sends = add(WORK_READS, IOVA, 100, KEY);
	const struct ibv_sge list[] = {{.addr = IOVA + 50, .length = 10, .lkey = KEY}};
	const struct work work = {.use = WORK_WRITES, .num_sge = 1};

	work_init(&other);
	work_add(&other, &device, &work, list);
	memory[0][50] = 1;
	work_drop(&other);
	assert_int_equal(work_changed(sends, 0), -1);
	/* The next one is not touched by it. */
	sends = add(WORK_READS, IOVA, 100, KEY);
	memory[0][51] = 1;
	assert_int_equal(work_changed(sends, 0), 51);
}

TEST(work_changed__a_peer_may_have_written_it)
{
	struct work *sends;

	add_region(REMOTE, memory[0], 0, IBV_ACCESS_REMOTE_WRITE);
	sends = add(WORK_READS, IOVA, 100, KEY);
	memory[0][0] = 1;
	assert_int_equal(work_changed(sends, 0), -1);
	work_remove_region(&device, REMOTE);
	assert_int_equal(work_changed(sends, 0), -1);
}

/* An entry without bytes opens nothing, and is not missed in the end. */
TEST(work_changed__empty_entries_are_no_openings)
{
	const struct ibv_sge list[] = {{.addr = IOVA, .length = 10, .lkey = KEY},
				       {.addr = IOVA, .length = 0, .lkey = KEY}};
	const struct work work = {.use = WORK_WRITES, .num_sge = 2};

	work_add(&queue, &device, &work, list);
	memory[0][3] = 1;
	assert_int_equal(work_changed(STAILQ_FIRST(&queue.posted), 0), 3);
}

/* It does not matter who writes behind the bytes that are compared. */
TEST(work_changed__only_the_kept_bytes_count)
{
	static uint8_t large[WORK_KEPT_MAX + BYTES];
	const struct work_region region = {.device = &device,
					   .key = LARGE,
					   .is_readable = true,
					   .addr = (uintptr_t)large,
					   .length = sizeof(large)};
	struct work_queue other;
	struct work *sends;
	const struct ibv_sge behind[] = {{.addr = WORK_KEPT_MAX, .length = BYTES, .lkey = LARGE}};
	const struct ibv_sge last[] = {{.addr = WORK_KEPT_MAX - 1, .length = 1, .lkey = LARGE}};
	const struct work work = {.use = WORK_WRITES, .num_sge = 1};

	work_init(&other);
	work_add_region(&region);
	work_add(&other, &device, &work, behind);
	sends = add(WORK_READS, 0, sizeof(large), LARGE);
	large[5] = 1;
	assert_int_equal(work_changed(sends, 0), 5);
	work_add(&other, &device, &work, behind);
	assert_int_equal(work_changed(sends, 0), 5);
	work_add(&other, &device, &work, last);
	work_lose(&other);
	assert_int_equal(work_changed(sends, 0), -1);
	work_remove_region(&device, LARGE);
}

TEST(work_changed__unknown_memory_is_not_looked_at)
{
	assert_int_equal(add(WORK_READS, IOVA, 100, KEY + 1)->kept, 0);
	assert_int_equal(add(WORK_READS, IOVA + BYTES - 10, 100, KEY)->kept, 0);
	assert_int_equal(add(WORK_READS, IOVA - 1, 10, KEY)->kept, 0);
	assert_int_equal(add(WORK_IGNORES, IOVA, 100, KEY)->kept, 0);
}

TEST(work_add__counts_what_is_signaled)
{
	const struct work silent = {.use = WORK_IGNORES};

	work_add(&queue, &device, &silent, NULL);
	work_add(&queue, &device, &silent, NULL);
	assert_int_equal(queue.unsignaled, 2);
	add(WORK_IGNORES, 0, 0, 0);
	assert_int_equal(queue.unsignaled, 0);
	assert_int_equal(queue.signaled, 1);
	work_drop(&queue);
	assert_int_equal(queue.signaled, 1);
	work_lose(&queue);
	assert_int_equal(queue.signaled, 0);
}

/* When the device has done a request is not known. */
TEST(work_add__a_lost_queue_writes_for_ever)
{
	struct work_queue other;
	struct work *sends;
	const struct ibv_sge lost[] = {{.addr = 10, .length = 10, .lkey = LARGE}};
	const struct ibv_sge kept[] = {{.addr = 100, .length = 10, .lkey = LARGE}};
	const struct work work = {.use = WORK_WRITES, .num_sge = 1};

	add_region(LARGE, memory[1], 0, IBV_ACCESS_LOCAL_WRITE);
	sends = add(WORK_READS, 0, 30, LARGE);
	work_init(&other);
	work_add(&other, &device, &work, kept);
	work_keep_open(&other);
	work_lose(&other);
	assert_int_equal(add(WORK_READS, 105, 30, LARGE)->kept, 0);
	memory[1][10] = 1;
	assert_int_equal(work_changed(sends, 0), 10);
	assert_true(other.is_lost);
	work_add(&other, &device, &work, lost);
	assert_true(STAILQ_EMPTY(&other.posted));
	assert_int_equal(work_changed(sends, 0), -1);
	work_remove_region(&device, LARGE);
}

TEST(work_uses__only_the_region_of_an_entry)
{
	const struct work *work = add(WORK_READS, IOVA, 100, KEY);

	assert_true(work_uses(work, KEY));
	assert_false(work_uses(work, REMOTE));
	assert_false(work_uses(add(WORK_READS, IOVA, 0, KEY), KEY));
}
