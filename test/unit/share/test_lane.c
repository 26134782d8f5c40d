/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of share/lane.h: what is lent comes back once, whatever the other side writes, and whenever
 * it is killed. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "share/lane.h"
#include "test.h"

#define BUFFERS (2 * LANE_WORDS)
#define PASSED	100000
#define KILLS	200

/* Both ends of a lane, and buffers that hold a number each. Side 0 sends and side 1 receives. */
struct ends {
	struct lane_memory *memory;
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
	ends->memory = map(sizeof(*ends->memory));
	ends->buffers = map(BUFFERS * sizeof(ends->buffers[0]));
	lane_init(&ends->tx, &ends->front, ends->memory, 0);
	lane_init(&ends->back, &ends->rx, ends->memory, 1);
}

static void ends_fini(struct ends *ends)
{
	munmap(ends->memory, sizeof(*ends->memory));
	munmap(ends->buffers, BUFFERS * sizeof(ends->buffers[0]));
}

#define LONG_BYTES (LANE_SHORT_BYTES + 1)

/* A packet that is lent with its buffer, or, of at most LANE_SHORT_BYTES, goes without. */
static bool put_one(struct ends *ends, uint32_t buffer, uint16_t len, const void *frame)
{
	const struct share_packet packet = {.buffer = buffer, .len = len};
	const uint8_t *frames[] = {frame};

	return lane_put(&ends->tx, &packet, frames, 1) == 1;
}

static uint32_t put_some(struct ends *ends, uint32_t first, uint32_t n)
{
	struct share_packet packets[LANE_WORDS + 1];
	const uint8_t *frames[LANE_WORDS + 1] = {NULL};

	for (uint32_t i = 0; i < n; i++)
		packets[i] = (struct share_packet){.buffer = first + i, .len = LONG_BYTES};
	return lane_put(&ends->tx, packets, frames, n);
}

/* The receiver takes up to `n`, and gives them back; how many. */
static uint32_t take_and_give_back(struct ends *ends, uint32_t n)
{
	struct share_packet packets[LANE_WORDS];
	uint32_t first;

	n = lane_take(&ends->rx, packets, n, &first);
	for (uint32_t i = 0; i < n; i++)
		lane_done(&ends->rx, first + i);
	lane_give_back(&ends->rx);
	return n;
}

TEST(lane_collect__gives_what_is_done_in_a_row)
{
	uint32_t buffers[LANE_WORDS], first;
	struct share_packet packets[4];
	struct ends ends;

	ends_init(&ends);
	assert_int_equal(put_some(&ends, 100, 4), 4);
	assert_true(lane_waits(&ends.rx));
	assert_int_equal(lane_take(&ends.rx, packets, 4, &first), 4);
	assert_int_equal(packets[2].buffer, 102);
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

TEST(lane_put__waits_for_what_is_not_collected)
{
	uint32_t buffers[LANE_WORDS], first;
	struct share_packet packets[LANE_WORDS];
	struct ends ends;

	ends_init(&ends);
	assert_int_equal(put_some(&ends, 0, LANE_WORDS + 1), LANE_WORDS);
	assert_int_equal(lane_take(&ends.rx, packets, LANE_WORDS, &first), LANE_WORDS);
	for (uint32_t i = 0; i < 3; i++)
		lane_done(&ends.rx, first + i);
	lane_give_back(&ends.rx);
	assert_int_equal(put_some(&ends, 0, 1), 0);
	assert_int_equal(lane_collect(&ends.tx, buffers), 3);
	assert_int_equal(put_some(&ends, 0, 4), 3);
	ends_fini(&ends);
}

/* The sender collects only what it has put, and each buffer once. */
TEST(lane_tell_taken__what_the_receiver_has_given_back)
{
	struct ends ends;
	uint32_t given, taken;

	ends_init(&ends);
	put_some(&ends, 0, 3);
	assert_true(lane_tell_taken(&ends.tx, &given, &taken));
	assert_int_equal(given - taken, 3);
	take_and_give_back(&ends, 2);
	assert_true(lane_tell_taken(&ends.tx, &given, &taken));
	assert_int_equal(given - taken, 1);
	/* An index that cannot be. */
	ends.tx.ring->cons = ends.tx.own + 1;
	assert_false(lane_tell_taken(&ends.tx, &given, &taken));
	ends_fini(&ends);
}

TEST(lane_collect__does_not_believe_the_receiver)
{
	static const uint32_t lies[] = {5, (uint32_t)-1, 0x80000000, LANE_WORDS};
	uint32_t buffers[LANE_WORDS], *cons;
	struct ends ends;

	for (size_t i = 0; i < RTE_DIM(lies); i++) {
		ends_init(&ends);
		assert_int_equal(put_some(&ends, 0, 4), 4);
		cons = &ends.tx.ring->cons;
		*cons = 2;
		assert_int_equal(lane_collect(&ends.tx, buffers), 2);
		*cons = lies[i];
		assert_int_equal(lane_collect(&ends.tx, buffers), 0);
		assert_true(ends.tx.broken);
		*cons = 4;
		assert_int_equal(lane_collect(&ends.tx, buffers), 0);
		assert_int_equal(put_some(&ends, 0, 1), 0);
		ends_fini(&ends);
	}
	/* Back to what it said before. */
	ends_init(&ends);
	assert_int_equal(put_some(&ends, 0, 4), 4);
	ends.tx.ring->cons = 3;
	assert_int_equal(lane_collect(&ends.tx, buffers), 3);
	ends.tx.ring->cons = 1;
	assert_int_equal(lane_collect(&ends.tx, buffers), 0);
	assert_int_equal(lane_reclaim(&ends.tx, buffers), 1);
	ends_fini(&ends);
}

/* Words in all slots, also where packets are that have not been given back. */
TEST(lane_take__does_not_believe_the_sender)
{
	struct share_packet packets[LANE_WORDS];
	struct ends ends;
	uint32_t first;

	for (uint32_t lie = 0; lie < 2; lie++) {
		ends_init(&ends);
		assert_int_equal(put_some(&ends, 0, 4), 4);
		assert_int_equal(lane_take(&ends.rx, packets, LANE_WORDS, &first), 4);
		lane_done(&ends.rx, first);
		lane_give_back(&ends.rx);
		for (uint32_t i = 4; i < LANE_WORDS + 4; i++)
			ends.tx.ring->slots[i % LANE_WORDS].word = share_pack(
				&(struct share_packet){.flags = lane_round(i + lie * LANE_WORDS)});
		/* The ring holds at most this many words besides the three that we hold. */
		assert_int_equal(lane_take(&ends.rx, packets, LANE_WORDS, &first),
				 lie ? 0 : LANE_WORDS - 3);
		lane_end(&ends.rx);
		for (uint32_t at = 1; at != ends.rx.seen; at++)
			lane_done(&ends.rx, at);
		lane_give_back(&ends.rx);
		assert_true(lane_is_over(&ends.rx));
		ends_fini(&ends);
	}
}

TEST(lane_take__tells_each_round_from_the_one_before)
{
	uint32_t buffers[LANE_WORDS];
	struct ends ends;

	ends_init(&ends);
	for (uint32_t round = 0; round < 5; round++) {
		assert_int_equal(take_and_give_back(&ends, LANE_WORDS), 0);
		assert_int_equal(put_some(&ends, 0, 10), 10);
		assert_int_equal(take_and_give_back(&ends, LANE_WORDS), 10);
		assert_int_equal(put_some(&ends, 10, LANE_WORDS - 10), LANE_WORDS - 10);
		assert_int_equal(take_and_give_back(&ends, LANE_WORDS), LANE_WORDS - 10);
		assert_int_equal(lane_collect(&ends.tx, buffers), LANE_WORDS);
	}
	ends_fini(&ends);
}

/* Move both sides to an index, with the words that the ring then holds. */
static void go_on_from(struct ends *ends, uint32_t index)
{
	ends->tx.own = ends->tx.collected = ends->tx.ring->prod = index;
	ends->rx.own = ends->rx.seen = ends->tx.ring->cons = index;
	for (uint32_t i = 1; i <= LANE_WORDS; i++)
		ends->tx.ring->slots[(index - i) % LANE_WORDS].word =
			share_pack(&(struct share_packet){.flags = lane_round(index - i)});
}

TEST(lane_take__goes_on_where_indices_begin_anew)
{
	uint32_t buffers[LANE_WORDS];
	struct ends ends;

	ends_init(&ends);
	go_on_from(&ends, UINT32_MAX - LANE_WORDS - 5);
	for (uint32_t round = 0; round < 4; round++) {
		assert_int_equal(take_and_give_back(&ends, LANE_WORDS), 0);
		assert_int_equal(put_some(&ends, 0, LANE_WORDS - 3), LANE_WORDS - 3);
		assert_true(lane_waits(&ends.rx));
		assert_int_equal(take_and_give_back(&ends, LANE_WORDS), LANE_WORDS - 3);
		assert_int_equal(lane_collect(&ends.tx, buffers), LANE_WORDS - 3);
	}
	assert_false(ends.tx.broken);
	put_some(&ends, 0, 2);
	lane_end(&ends.rx);
	assert_int_equal(take_and_give_back(&ends, LANE_WORDS), 2);
	assert_true(lane_is_over(&ends.rx));
	ends_fini(&ends);
}

/* The sender keeps the buffer of a short packet: the packet is copied next to its word. */
TEST(lane_put__copies_what_is_short)
{
	uint8_t frame[LANE_SHORT_BYTES];
	uint32_t buffers[LANE_WORDS], first;
	struct share_packet packets[4];
	struct ends ends;

	memset(frame, 7, sizeof(frame));
	ends_init(&ends);
	assert_true(put_one(&ends, 5, sizeof(frame), frame));
	memset(frame, 8, sizeof(frame));
	assert_int_equal(ends.tx.lent, 0);
	assert_int_equal(put_some(&ends, 6, 1), 1);
	assert_int_equal(ends.tx.lent, 1);
	assert_int_equal(lane_take(&ends.rx, packets, 4, &first), 2);
	assert_true(packets[0].flags & SHARE_FLAG_SHORT);
	assert_int_equal(packets[0].len, sizeof(frame));
	for (size_t i = 0; i < sizeof(frame); i++)
		assert_int_equal(lane_frame(&ends.rx, first)[i], 7);
	assert_false(packets[1].flags & SHARE_FLAG_SHORT);
	lane_done(&ends.rx, first);
	lane_done(&ends.rx, first + 1);
	lane_give_back(&ends.rx);
	assert_int_equal(lane_collect(&ends.tx, buffers), 1);
	assert_int_equal(buffers[0], 6);
	assert_int_equal(ends.tx.lent, 0);
	assert_int_equal(lane_used(&ends.tx), 0);
	ends_fini(&ends);
}

/* Packets of a byte each, which tells them apart. */
static void place_some(struct ends *ends, uint8_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *place = lane_place(&ends->tx);

		assert_non_null(place);
		memset(place, first + (int)i, LANE_SHORT_BYTES);
		lane_placed(&ends->tx, LANE_SHORT_BYTES - i);
	}
}

/* Round after round, so that indices of the ring and of what is put together differ. */
TEST(lane_show__puts_what_was_placed)
{
	uint32_t buffers[LANE_WORDS], first;
	struct share_packet packets[4];
	struct ends ends;

	ends_init(&ends);
	for (uint32_t round = 0; round < LANE_WORDS; round++) {
		place_some(&ends, 10, 3);
		assert_false(lane_waits(&ends.rx));
		assert_int_equal(lane_take(&ends.rx, packets, 4, &first), 0);
		lane_show(&ends.tx);
		assert_true(lane_waits(&ends.rx));
		assert_int_equal(lane_take(&ends.rx, packets, 4, &first), 3);
		for (uint32_t i = 0; i < 3; i++) {
			assert_true(packets[i].flags & SHARE_FLAG_SHORT);
			assert_int_equal(packets[i].len, LANE_SHORT_BYTES - i);
			assert_int_equal(lane_frame(&ends.rx, first + i)[0], 10 + i);
			assert_int_equal(lane_frame(&ends.rx, first + i)[packets[i].len - 1],
					 10 + i);
			lane_done(&ends.rx, first + i);
		}
		lane_give_back(&ends.rx);
		assert_int_equal(lane_collect(&ends.tx, buffers), 0);
		assert_int_equal(lane_used(&ends.tx), 0);
	}
	ends_fini(&ends);
}

TEST(lane_put__comes_behind_what_was_placed)
{
	struct share_packet packets[4];
	struct ends ends;
	uint32_t first;

	ends_init(&ends);
	place_some(&ends, 20, 2);
	assert_int_equal(put_some(&ends, 5, 1), 1);
	assert_int_equal(lane_take(&ends.rx, packets, 4, &first), 3);
	assert_int_equal(lane_frame(&ends.rx, first + 1)[0], 21);
	assert_int_equal(packets[2].buffer, 5);
	assert_int_equal(ends.tx.lent, 1);
	/* Packets that were shown are not shown again. */
	lane_show(&ends.tx);
	assert_int_equal(lane_take(&ends.rx, packets, 4, &first), 0);
	ends_fini(&ends);
}

/* A buffer that was placed is lent in its turn among short packets, and comes back once: collected,
 * or reclaimed although it was never put. */
TEST(lane_place_buffer__lends_in_order)
{
	const struct share_packet lent = {.buffer = 7, .offset = 128, .len = LONG_BYTES};
	uint32_t buffers[LANE_WORDS], first;
	struct share_packet packets[4];
	struct ends ends;

	ends_init(&ends);
	memset(lane_place(&ends.tx), 0x11, 40);
	lane_placed(&ends.tx, 40);
	assert_true(lane_has_place(&ends.tx));
	lane_place_buffer(&ends.tx, &lent);
	memset(lane_place(&ends.tx), 0x22, 50);
	lane_placed(&ends.tx, 50);
	assert_int_equal(lane_take(&ends.rx, packets, 4, &first), 0);
	lane_show(&ends.tx);
	assert_int_equal(ends.tx.lent, 1);
	assert_int_equal(lane_take(&ends.rx, packets, 4, &first), 3);
	assert_int_equal(packets[0].len, 40);
	assert_int_equal(packets[1].buffer, 7);
	assert_int_equal(packets[1].offset, 128);
	assert_int_equal(packets[1].len, LONG_BYTES);
	assert_int_equal(packets[1].flags & SHARE_FLAG_SHORT, 0);
	assert_int_equal(packets[2].len, 50);
	assert_int_equal(lane_frame(&ends.rx, first + 2)[49], 0x22);
	for (uint32_t i = 0; i < 3; i++)
		lane_done(&ends.rx, first + i);
	lane_give_back(&ends.rx);
	assert_int_equal(lane_collect(&ends.tx, buffers), 1);
	assert_int_equal(buffers[0], 7);
	assert_int_equal(ends.tx.lent, 0);
	lane_place_buffer(&ends.tx, &lent);
	assert_int_equal(lane_reclaim(&ends.tx, buffers), 1);
	assert_int_equal(buffers[0], 7);
	lane_show(&ends.tx);
	assert_int_equal(lane_take(&ends.rx, packets, 4, &first), 0);
	assert_int_equal(lane_reclaim(&ends.tx, buffers), 0);
	ends_fini(&ends);
}

TEST(lane_place__has_no_more_than_the_ring)
{
	uint32_t buffers[LANE_WORDS];
	struct ends ends;

	ends_init(&ends);
	place_some(&ends, 0, LANE_STAGED_MAX);
	assert_null(lane_place(&ends.tx));
	lane_show(&ends.tx);
	assert_int_equal(put_some(&ends, 0, LANE_WORDS), LANE_WORDS - LANE_STAGED_MAX);
	assert_null(lane_place(&ends.tx));
	assert_int_equal(take_and_give_back(&ends, 2), 2);
	lane_collect(&ends.tx, buffers);
	place_some(&ends, 0, 2);
	assert_null(lane_place(&ends.tx));
	/* The index is impossible. */
	ends.tx.ring->cons -= 1;
	lane_collect(&ends.tx, buffers);
	lane_show(&ends.tx);
	assert_null(lane_place(&ends.tx));
	ends_fini(&ends);
}

/* A sender killed before it puts its words leaves nothing that anyone waits for. */
TEST(lane_end__of_a_sender_killed_before_its_words)
{
	struct ends ends;

	for (int taken = 0; taken < 2; taken++) {
		ends_init(&ends);
		assert_int_equal(put_some(&ends, 0, 2), 2);
		ends.tx.ring->prod = 5;
		if (taken)
			assert_int_equal(take_and_give_back(&ends, LANE_WORDS), 2);
		lane_end(&ends.rx);
		assert_int_equal(take_and_give_back(&ends, LANE_WORDS), taken ? 0 : 2);
		assert_true(lane_is_over(&ends.rx));
		assert_false(lane_waits(&ends.rx));
		ends_fini(&ends);
	}
}

/* The sender's index is behind its packets, or beyond them. The receiver takes the packets that are
 * there, and stops. */
TEST(lane_has_some__of_a_sender_that_left_a_wrong_index)
{
	struct ends ends;

	for (uint32_t index = 0; index < 8; index++) {
		ends_init(&ends);
		assert_int_equal(put_some(&ends, 0, 2), 2);
		ends.tx.ring->prod = index;
		assert_int_equal(lane_has_some(&ends.rx), index != 0);
		lane_end(&ends.rx);
		assert_true(lane_has_some(&ends.rx));
		assert_int_equal(take_and_give_back(&ends, LANE_WORDS), 2);
		ends.tx.ring->prod = index + 9;
		assert_false(lane_has_some(&ends.rx));
		assert_true(lane_is_over(&ends.rx));
		ends_fini(&ends);
	}
}

TEST(lane_is_over__when_all_is_taken_and_given_back)
{
	struct share_packet packets[LANE_WORDS];
	struct ends ends;
	uint32_t first;

	ends_init(&ends);
	assert_false(lane_is_over(&ends.rx));
	put_some(&ends, 0, 2);
	lane_end(&ends.rx);
	put_some(&ends, 2, 2);
	assert_int_equal(lane_take(&ends.rx, packets, LANE_WORDS, &first), 2);
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
		/* Alternate between the buffer and the bytes beside the word. */
		const uint16_t len = number % 2 ? LONG_BYTES : sizeof(number);
		uint32_t buffer;

		free_count += lane_collect(&ends->tx, free_buffers + free_count);
		if (free_count == 0 || lane_used(&ends->tx) == LANE_WORDS) {
			sched_yield();
			continue;
		}
		buffer = free_buffers[--free_count];
		ends->buffers[buffer] = number;
		if (!put_one(ends, buffer, len, &number)) {
			free_count++;
			continue;
		}
		if (len == sizeof(number))
			free_buffers[free_count++] = buffer;
		number++;
	}
}

static void *sender_main(void *arg)
{
	send_numbers(arg, PASSED);
	return NULL;
}

static uint64_t number_of(const struct ends *ends, const struct share_packet *packet,
			  uint32_t index)
{
	uint64_t number;

	if (!(packet->flags & SHARE_FLAG_SHORT))
		return ends->buffers[packet->buffer];
	memcpy(&number, lane_frame(&ends->rx, index), sizeof(number));
	return number;
}

/* Receive numbers; a borrowed buffer stays unchanged until it is returned. */
static uint64_t receive_numbers(struct ends *ends, uint64_t expected)
{
	struct share_packet packets[7];
	uint32_t first;
	const uint32_t n = lane_take(&ends->rx, packets, 7, &first);

	for (uint32_t i = n; i > 0; i--) {
		assert_int_equal(number_of(ends, &packets[i - 1], first + i - 1), expected + i - 1);
		lane_done(&ends->rx, first + i - 1);
	}
	lane_give_back(&ends->rx);
	return expected + n;
}

TEST(lane__keeps_what_is_lent_between_threads)
{
	uint64_t expected = 1;
	pthread_t thread;
	struct ends ends;

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

/* The ring holds what the receiver may still read: everything is complete, and nothing is in it
 * twice. */
TEST(lane__survives_kills_of_the_sender)
{
	unsigned int seed = 1;

	for (int kill_no = 0; kill_no < KILLS; kill_no++) {
		bool held[BUFFERS] = {false};
		uint64_t expected = 1;
		struct share_packet packets[LANE_WORDS];
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
		n = lane_take(&ends.rx, packets, LANE_WORDS, &first);
		for (uint32_t i = 0; i < n; i++) {
			const uint32_t buffer = packets[i].buffer;

			assert_int_equal(number_of(&ends, &packets[i], first + i), expected + i);
			if (packets[i].flags & SHARE_FLAG_SHORT) {
				lane_done(&ends.rx, first + i);
				continue;
			}
			assert_true(buffer < BUFFERS);
			assert_false(held[buffer]);
			held[buffer] = true;
			lane_done(&ends.rx, first + i);
		}
		lane_give_back(&ends.rx);
		assert_true(lane_is_over(&ends.rx));
		assert_false(lane_waits(&ends.rx));
		ends_fini(&ends);
	}
}

static void receive_for_ever(struct ends *ends)
{
	for (uint64_t expected = 1;;)
		expected = receive_numbers(ends, expected);
}

/* The sender has them all again, each once. */
TEST(lane__survives_kills_of_the_receiver)
{
	unsigned int seed = 1;

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
