/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of share/ring.h and the words of share/layout.h. */
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "share/layout.h"
#include "test.h"

#define SIZE   8
#define PASSED 200000
#define KILLS  200

/* Both sides of one ring. */
struct pair {
	struct share_ring put, take;
};

static void pair_init(struct pair *pair, uint32_t size)
{
	void *memory = mmap(NULL, share_ring_bytes(size), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	share_ring_init(&pair->put, memory, size);
	share_ring_init(&pair->take, memory, size);
}

static void pair_fini(struct pair *pair)
{
	munmap(pair->put.memory, share_ring_bytes(pair->put.size));
}

TEST(share_ring_put__takes_what_there_is_room_for)
{
	const uint64_t in[SIZE + 2] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
	uint64_t out[SIZE + 2];
	struct pair pair;

	pair_init(&pair, SIZE);
	assert_int_equal(share_ring_take(&pair.take, out, 1), 0);
	assert_int_equal(share_ring_put(&pair.put, in, 5), 5);
	assert_int_equal(share_ring_put(&pair.put, in + 5, 5), 3);
	assert_int_equal(share_ring_put(&pair.put, in, 1), 0);
	assert_int_equal(share_ring_peek(&pair.take, out, 3), 3);
	assert_int_equal(share_ring_room(&pair.put), 0);
	share_ring_skip(&pair.take, 2);
	assert_int_equal(share_ring_room(&pair.put), 2);
	assert_int_equal(share_ring_put(&pair.put, in + 8, 2), 2);
	assert_int_equal(share_ring_take(&pair.take, out, SIZE + 2), SIZE);
	for (uint64_t i = 0; i < SIZE; i++)
		assert_int_equal(out[i], i + 3);
	pair_fini(&pair);
}

/* A process may write what it wants into its memory. */
TEST(share_ring__does_not_believe_the_other_side)
{
	uint64_t words[SIZE] = {0};
	struct pair pair;

	pair_init(&pair, SIZE);
	pair.put.memory->prod = SIZE + 1;
	assert_int_equal(share_ring_take(&pair.take, words, SIZE), 0);
	assert_true(pair.take.broken);
	pair.put.memory->prod = 1;
	assert_int_equal(share_ring_take(&pair.take, words, SIZE), 0);
	pair_fini(&pair);
	pair_init(&pair, SIZE);
	assert_int_equal(share_ring_put(&pair.put, words, SIZE), SIZE);
	pair.put.memory->cons = (uint32_t)-1;
	assert_int_equal(share_ring_put(&pair.put, words, 1), 0);
	assert_true(pair.put.broken);
	pair_fini(&pair);
}

static void *producer_main(void *arg)
{
	struct share_ring *ring = arg;

	for (uint64_t i = 1; i <= PASSED;) {
		if (share_ring_put(ring, &i, 1) == 1)
			i++;
		else
			sched_yield();
	}
	return NULL;
}

TEST(share_ring__keeps_order_between_threads)
{
	uint64_t words[3], expected = 1;
	pthread_t thread;
	struct pair pair;

	pair_init(&pair, SIZE);
	assert_int_equal(pthread_create(&thread, NULL, producer_main, &pair.put), 0);
	while (expected <= PASSED) {
		const uint32_t n = share_ring_take(&pair.take, words, 3);

		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(words[i], expected++);
		if (n == 0)
			sched_yield();
	}
	pthread_join(thread, NULL);
	pair_fini(&pair);
}

/* Whatever a killed process was doing: what is seen of it is whole and in order. */
TEST(share_ring__survives_kills_of_who_puts)
{
	unsigned int seed = 1;

	for (int kill_no = 0; kill_no < KILLS; kill_no++) {
		uint64_t words[4], expected = 1;
		struct pair pair;
		uint32_t n;
		pid_t pid;

		pair_init(&pair, SIZE);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			_exit(producer_main(&pair.put) != NULL);
		for (int spins = rand_r(&seed) % 2000; spins > 0; spins--) {
			n = share_ring_take(&pair.take, words, 4);
			for (uint32_t i = 0; i < n; i++)
				assert_int_equal(words[i], expected++);
		}
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		while ((n = share_ring_take(&pair.take, words, 4)) > 0) {
			for (uint32_t i = 0; i < n; i++)
				assert_int_equal(words[i], expected++);
		}
		assert_false(pair.take.broken);
		pair_fini(&pair);
	}
}

TEST(share_pack__keeps_every_field)
{
	const struct share_packet in = {
		.buffer = 0xfffffe, .flags = 0xa5, .offset = 0xfedc, .len = 0xba98};
	const struct share_packet out = share_unpack(share_pack(&in));

	assert_int_equal(out.buffer, in.buffer);
	assert_int_equal(out.flags, in.flags);
	assert_int_equal(out.offset, in.offset);
	assert_int_equal(out.len, in.len);
}

TEST(share_ring_offset__keeps_rings_apart)
{
	for (int kind = 0; kind < SHARE_RINGS; kind++) {
		const size_t begin = share_ring_offset((enum share_ring_kind)kind);

		assert_int_equal(begin % RTE_CACHE_LINE_SIZE, 0);
		assert_true(begin >= sizeof(struct share_page));
		assert_int_equal(
			begin + share_ring_bytes(share_ring_words((enum share_ring_kind)kind)),
			share_ring_offset((enum share_ring_kind)(kind + 1)));
	}
	/* A side that returns buffers never waits. */
	assert_true(share_ring_words(SHARE_RING_RETURN) >= SHARE_HELD_MAX);
}
