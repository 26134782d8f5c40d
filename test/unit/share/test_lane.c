/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of share/lane.h: what is lent comes back once, whatever the other side writes, and whenever
 * it is killed. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "share/lane.h"

#define BUFFERS (2 * LANE_WORDS)
#define PASSED	100000
#define KILLS	200

/* Both ends of a lane, of which side 0 sends and side 1 receives, and buffers that hold a number
 * each. */
struct ends {
	void *memory;
	uint64_t *buffers; /* shared, by number */
	struct lane_tx tx, back;
	struct lane_rx rx, front;
};

static void *map(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static void ends_init(struct ends *ends)
{
	ends->memory = map(lane_bytes());
	ends->buffers = map(BUFFERS * sizeof(ends->buffers[0]));
	lane_init(&ends->tx, &ends->front, ends->memory, 0);
	lane_init(&ends->back, &ends->rx, ends->memory, 1);
}

static void ends_fini(struct ends *ends)
{
	munmap(ends->memory, lane_bytes());
	munmap(ends->buffers, BUFFERS * sizeof(ends->buffers[0]));
}

static uint64_t word_of(uint32_t buffer)
{
	return share_pack(&(struct share_packet){.buffer = buffer, .len = 64});
}

static uint32_t put_some(struct ends *ends, uint32_t first, uint32_t n)
{
	uint64_t words[LANE_WORDS + 1];

	for (uint32_t i = 0; i < n; i++)
		words[i] = word_of(first + i);
	return lane_put(&ends->tx, words, n);
}

static void lane_collect__gives_what_is_done_in_a_row(void **state)
{
	uint32_t buffers[LANE_WORDS], first;
	uint64_t words[4];
	struct ends ends;

	(void)state;
	ends_init(&ends);
	assert_int_equal(put_some(&ends, 100, 4), 4);
	assert_true(lane_waits(&ends.rx));
	assert_int_equal(lane_take(&ends.rx, words, 4, &first), 4);
	assert_int_equal(share_unpack(words[2]).buffer, 102);
	assert_int_equal(lane_collect(&ends.tx, buffers), 0);
	/* The first is still needed. */
	lane_done(&ends.rx, first + 1);
	lane_give_back(&ends.rx);
	assert_int_equal(lane_collect(&ends.tx, buffers), 0);
	lane_done(&ends.rx, first);
	lane_give_back(&ends.rx);
	assert_int_equal(lane_collect(&ends.tx, buffers), 2);
	assert_int_equal(buffers[0], 100);
	assert_int_equal(buffers[1], 101);
	assert_int_equal(lane_collect(&ends.tx, buffers), 0);
	assert_int_equal(lane_reclaim(&ends.tx, buffers), 2);
	assert_int_equal(buffers[0], 102);
	ends_fini(&ends);
}

static void lane_put__waits_for_what_is_not_collected(void **state)
{
	uint32_t buffers[LANE_WORDS], first;
	uint64_t words[LANE_WORDS];
	struct ends ends;

	(void)state;
	ends_init(&ends);
	assert_int_equal(put_some(&ends, 0, LANE_WORDS + 1), LANE_WORDS);
	assert_int_equal(lane_take(&ends.rx, words, LANE_WORDS, &first), LANE_WORDS);
	for (uint32_t i = 0; i < 3; i++)
		lane_done(&ends.rx, first + i);
	lane_give_back(&ends.rx);
	assert_int_equal(put_some(&ends, 0, 1), 0);
	assert_int_equal(lane_collect(&ends.tx, buffers), 3);
	assert_int_equal(put_some(&ends, 0, 4), 3);
	ends_fini(&ends);
}

/* Only what was put is ever collected, and once. */
static void lane_collect__does_not_believe_the_receiver(void **state)
{
	static const uint32_t lies[] = {5, (uint32_t)-1, 0x80000000, LANE_WORDS};
	uint32_t buffers[LANE_WORDS], *cons;
	struct ends ends;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(lies); i++) {
		ends_init(&ends);
		assert_int_equal(put_some(&ends, 0, 4), 4);
		cons = &ends.tx.ring.memory->cons;
		*cons = 2;
		assert_int_equal(lane_collect(&ends.tx, buffers), 2);
		*cons = lies[i];
		assert_int_equal(lane_collect(&ends.tx, buffers), 0);
		assert_true(ends.tx.ring.broken);
		*cons = 4;
		assert_int_equal(lane_collect(&ends.tx, buffers), 0);
		assert_int_equal(put_some(&ends, 0, 1), 0);
		ends_fini(&ends);
	}
	/* Back to what it said before. */
	ends_init(&ends);
	assert_int_equal(put_some(&ends, 0, 4), 4);
	ends.tx.ring.memory->cons = 3;
	assert_int_equal(lane_collect(&ends.tx, buffers), 3);
	ends.tx.ring.memory->cons = 1;
	assert_int_equal(lane_collect(&ends.tx, buffers), 0);
	assert_int_equal(lane_reclaim(&ends.tx, buffers), 1);
	ends_fini(&ends);
}

static void lane_take__does_not_believe_the_sender(void **state)
{
	static const uint32_t lies[] = {3, LANE_WORDS + 3, LANE_WORDS + 2, (uint32_t)-1,
					0x80000000};
	uint64_t words[LANE_WORDS];
	struct ends ends;
	uint32_t first;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(lies); i++) {
		ends_init(&ends);
		assert_int_equal(put_some(&ends, 0, 4), 4);
		assert_int_equal(lane_take(&ends.rx, words, LANE_WORDS, &first), 4);
		lane_done(&ends.rx, first);
		lane_give_back(&ends.rx);
		ends.rx.ring.memory->prod = lies[i];
		/* At most what the ring holds beside what we have. */
		assert_in_range(lane_take(&ends.rx, words, LANE_WORDS, &first), 0, LANE_WORDS - 3);
		assert_int_equal(ends.rx.ring.broken, lies[i] != LANE_WORDS + 1);
		lane_end(&ends.rx);
		for (uint32_t at = 1; at < 4; at++)
			lane_done(&ends.rx, at);
		lane_give_back(&ends.rx);
		assert_true(lane_is_over(&ends.rx));
		ends_fini(&ends);
	}
}

static void lane_is_over__when_all_is_taken_and_given_back(void **state)
{
	uint64_t words[LANE_WORDS];
	struct ends ends;
	uint32_t first;

	(void)state;
	ends_init(&ends);
	assert_false(lane_is_over(&ends.rx));
	put_some(&ends, 0, 2);
	lane_end(&ends.rx);
	put_some(&ends, 2, 2);
	assert_int_equal(lane_take(&ends.rx, words, LANE_WORDS, &first), 2);
	assert_false(lane_is_over(&ends.rx));
	lane_done(&ends.rx, first);
	lane_done(&ends.rx, first + 1);
	assert_false(lane_is_over(&ends.rx));
	lane_give_back(&ends.rx);
	assert_true(lane_is_over(&ends.rx));
	ends_fini(&ends);
}

/* Sends numbers for ever, or as many as PASSED; a buffer is written only while it is ours. */
static void send_numbers(struct ends *ends, uint64_t last)
{
	uint32_t free_buffers[BUFFERS], free_count = 0;

	while (free_count < BUFFERS) {
		free_buffers[free_count] = free_count;
		free_count++;
	}
	for (uint64_t number = 1; number <= last;) {
		uint32_t buffer;
		uint64_t word;

		free_count += lane_collect(&ends->tx, free_buffers + free_count);
		if (free_count == 0 || ends->tx.ring.own - ends->tx.collected == LANE_WORDS) {
			sched_yield();
			continue;
		}
		buffer = free_buffers[--free_count];
		ends->buffers[buffer] = number;
		word = word_of(buffer);
		if (lane_put(&ends->tx, &word, 1) == 1)
			number++;
		else
			free_count++;
	}
}

static void *sender_main(void *arg)
{
	send_numbers(arg, PASSED);
	return NULL;
}

/* What is borrowed stays as it is until it is given back. */
static uint64_t receive_numbers(struct ends *ends, uint64_t expected)
{
	uint64_t words[7];
	uint32_t first;
	const uint32_t n = lane_take(&ends->rx, words, 7, &first);

	for (uint32_t i = n; i > 0; i--) {
		assert_int_equal(ends->buffers[share_unpack(words[i - 1]).buffer],
				 expected + i - 1);
		lane_done(&ends->rx, first + i - 1);
	}
	lane_give_back(&ends->rx);
	return expected + n;
}

static void lane__keeps_what_is_lent_between_threads(void **state)
{
	uint64_t expected = 1;
	pthread_t thread;
	struct ends ends;

	(void)state;
	ends_init(&ends);
	assert_int_equal(pthread_create(&thread, NULL, sender_main, &ends), 0);
	while (expected <= PASSED) {
		const uint64_t before = expected;

		expected = receive_numbers(&ends, expected);
		if (expected == before)
			sched_yield();
	}
	pthread_join(thread, NULL);
	ends_fini(&ends);
}

/* What the ring holds is what may still be read; all of it is whole, and nothing is in it twice. */
static void lane__survives_kills_of_the_sender(void **state)
{
	unsigned int seed = 1;

	(void)state;
	for (int kill_no = 0; kill_no < KILLS; kill_no++) {
		bool held[BUFFERS] = {false};
		uint64_t expected = 1, words[LANE_WORDS];
		struct ends ends;
		uint32_t first, n;
		pid_t pid;

		ends_init(&ends);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			send_numbers(&ends, UINT64_MAX);
		for (int spins = rand_r(&seed) % 2000; spins > 0; spins--)
			expected = receive_numbers(&ends, expected);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		lane_end(&ends.rx);
		n = lane_take(&ends.rx, words, LANE_WORDS, &first);
		for (uint32_t i = 0; i < n; i++) {
			const uint32_t buffer = share_unpack(words[i]).buffer;

			assert_true(buffer < BUFFERS);
			assert_false(held[buffer]);
			held[buffer] = true;
			assert_int_equal(ends.buffers[buffer], expected + i);
			lane_done(&ends.rx, first + i);
		}
		lane_give_back(&ends.rx);
		assert_true(lane_is_over(&ends.rx));
		assert_false(ends.rx.ring.broken);
		ends_fini(&ends);
	}
}

static void receive_for_ever(struct ends *ends)
{
	for (uint64_t expected = 1;;)
		expected = receive_numbers(ends, expected);
}

/* The sender has them all again, each once. */
static void lane__survives_kills_of_the_receiver(void **state)
{
	unsigned int seed = 1;

	(void)state;
	for (int kill_no = 0; kill_no < KILLS; kill_no++) {
		uint32_t buffers[LANE_WORDS];
		bool lent[LANE_WORDS] = {false};
		uint64_t number = 1;
		struct ends ends;
		uint32_t n;
		pid_t pid;

		ends_init(&ends);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			receive_for_ever(&ends);
		for (int spins = rand_r(&seed) % 2000; spins > 0; spins--) {
			/* Numbers of buffers here go round: as many are free as there are in the
			 * ring. */
			const uint32_t buffer = (uint32_t)(number % LANE_WORDS);

			for (n = lane_collect(&ends.tx, buffers); n > 0; n--) {
				assert_true(lent[buffers[n - 1]]);
				lent[buffers[n - 1]] = false;
			}
			if (lent[buffer])
				continue;
			ends.buffers[buffer] = number;
			assert_int_equal(put_some(&ends, buffer, 1), 1);
			lent[buffer] = true;
			number++;
		}
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		for (n = lane_reclaim(&ends.tx, buffers); n > 0; n--) {
			assert_true(lent[buffers[n - 1]]);
			lent[buffers[n - 1]] = false;
		}
		for (uint32_t i = 0; i < LANE_WORDS; i++)
			assert_false(lent[i]);
		ends_fini(&ends);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lane_collect__gives_what_is_done_in_a_row),
		cmocka_unit_test(lane_put__waits_for_what_is_not_collected),
		cmocka_unit_test(lane_collect__does_not_believe_the_receiver),
		cmocka_unit_test(lane_take__does_not_believe_the_sender),
		cmocka_unit_test(lane_is_over__when_all_is_taken_and_given_back),
		cmocka_unit_test(lane__keeps_what_is_lent_between_threads),
		cmocka_unit_test(lane__survives_kills_of_the_sender),
		cmocka_unit_test(lane__survives_kills_of_the_receiver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
