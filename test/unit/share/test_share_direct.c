/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of share/direct.h: packets arrive whole and in order, whatever the other side writes, and
 * whenever it is killed. */
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

#include "share/direct.h"
#include "test.h"

#define PASSED	   100000
#define KILLS	   200
#define LONG_BYTES (DIRECT_SHORT_BYTES + 1)

/* Both ends of a direct channel. Side 0 sends and side 1 receives. */
struct ends {
	struct direct_memory *memory;
	struct direct_tx tx, back;
	struct direct_rx rx, front;
};

static void ends_init(struct ends *ends)
{
	void *memory = mmap(NULL, sizeof(*ends->memory), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	ends->memory = memory;
	direct_init(&ends->tx, &ends->front, ends->memory, 0);
	direct_init(&ends->back, &ends->rx, ends->memory, 1);
}

static void ends_fini(struct ends *ends)
{
	munmap(ends->memory, sizeof(*ends->memory));
}

/* Put packets of this length, whose bytes are numbers from this one on. Return how many had room.
 */
static uint32_t put_some(struct ends *ends, uint32_t first, uint32_t n, uint32_t len)
{
	uint8_t frame[DIRECT_BUFFER_BYTES];
	uint32_t put = 0;

	for (; put < n; put++) {
		memset(frame, (int)(first + put), len);
		if (!direct_copy(&ends->tx, frame, len))
			break;
	}
	direct_show(&ends->tx);
	return put;
}

/* The receiver takes up to `n`, and gives them back; how many. */
static uint32_t take_and_give_back(struct ends *ends, uint32_t n)
{
	struct share_packet packets[DIRECT_SLOTS];
	uint32_t first;

	n = direct_take(&ends->rx, packets, n, &first);
	for (uint32_t i = 0; i < n; i++)
		direct_done(&ends->rx, first + i);
	direct_give_back(&ends->rx);
	return n;
}

/* Return the byte of the packet at an index, of which it consists. */
static uint8_t byte_of(const struct ends *ends, uint32_t index, const struct share_packet *packet)
{
	const uint8_t *frame = direct_frame(&ends->rx, index, packet);

	assert_non_null(frame);
	for (uint32_t i = 1; i < packet->len; i++)
		assert_int_equal(frame[i], frame[0]);
	return frame[0];
}

/* test/programs/isolated/hostile_peer.py uses these offsets: change both together. */
TEST(direct__has_the_layout_that_hostile_programs_use)
{
	assert_int_equal(offsetof(struct direct_side, sleeps), 64);
	assert_int_equal(offsetof(struct direct_memory, rings), 256);
	assert_int_equal(offsetof(struct direct_ring, slots), 128);
	assert_int_equal(offsetof(struct direct_slot, frame), 8);
	assert_int_equal(
		sizeof(struct direct_memory),
		256 + 2 * (128 + DIRECT_SLOTS * (DIRECT_SLOT_BYTES + DIRECT_BUFFER_BYTES)));
}

TEST(direct_copy__short_and_long_packets)
{
	static const uint32_t lengths[] = {1, DIRECT_SHORT_BYTES, LONG_BYTES, DIRECT_BUFFER_BYTES};
	struct share_packet packet;
	struct ends ends;
	uint32_t index;

	ends_init(&ends);
	for (uint32_t i = 0; i < 3 * DIRECT_SLOTS; i++) {
		const uint32_t len = lengths[i % RTE_DIM(lengths)];

		assert_false(direct_waits(&ends.rx) || direct_has_next(&ends.rx));
		assert_int_equal(put_some(&ends, i, 1, len), 1);
		assert_true(direct_waits(&ends.rx) && direct_has_next(&ends.rx));
		assert_int_equal(direct_take(&ends.rx, &packet, 1, &index), 1);
		assert_int_equal(index, i);
		assert_int_equal(packet.len, len);
		assert_int_equal(byte_of(&ends, index, &packet), i & 0xff);
		direct_done(&ends.rx, index);
		direct_give_back(&ends.rx);
		direct_look(&ends.tx);
		assert_int_equal(direct_used(&ends.tx), 0);
	}
	ends_fini(&ends);
}

/* A packet that the receiver still reads keeps those behind it, too. */
TEST(direct_give_back__what_is_done_in_a_row)
{
	struct share_packet packets[4];
	struct ends ends;
	uint32_t first;

	ends_init(&ends);
	assert_int_equal(put_some(&ends, 100, 4, LONG_BYTES), 4);
	assert_int_equal(direct_take(&ends.rx, packets, 4, &first), 4);
	direct_done(&ends.rx, first + 1);
	direct_give_back(&ends.rx);
	direct_look(&ends.tx);
	assert_int_equal(direct_used(&ends.tx), 4);
	direct_done(&ends.rx, first);
	direct_give_back(&ends.rx);
	direct_look(&ends.tx);
	assert_int_equal(direct_used(&ends.tx), 2);
	assert_int_equal(byte_of(&ends, first + 2, &packets[2]), 102);
	ends_fini(&ends);
}

TEST(direct_copy__has_no_more_than_the_ring)
{
	struct ends ends;

	ends_init(&ends);
	assert_int_equal(put_some(&ends, 0, DIRECT_SLOTS + 1, LONG_BYTES), DIRECT_SLOTS);
	assert_int_equal(take_and_give_back(&ends, 3), 3);
	/* The sender has not looked. */
	assert_int_equal(put_some(&ends, 0, 1, LONG_BYTES), 0);
	direct_look(&ends.tx);
	assert_int_equal(put_some(&ends, 0, 4, 8), 3);
	ends_fini(&ends);
}

TEST(direct_tell_taken__what_the_receiver_has_given_back)
{
	struct ends ends;
	uint32_t given, taken;

	ends_init(&ends);
	put_some(&ends, 0, 3, LONG_BYTES);
	assert_true(direct_tell_taken(&ends.tx, &given, &taken));
	assert_int_equal(given - taken, 3);
	take_and_give_back(&ends, 2);
	assert_true(direct_tell_taken(&ends.tx, &given, &taken));
	assert_int_equal(given - taken, 1);
	/* An index that cannot be. */
	ends.tx.ring->cons = ends.tx.own + 1;
	assert_false(direct_tell_taken(&ends.tx, &given, &taken));
	ends_fini(&ends);
}

/* Nothing is put any more: the sender could overwrite what the receiver reads. */
TEST(direct_look__does_not_believe_the_receiver)
{
	static const uint32_t lies[] = {5, 1, (uint32_t)-1, 0x80000000, DIRECT_SLOTS};
	struct ends ends;

	for (size_t i = 0; i < RTE_DIM(lies); i++) {
		ends_init(&ends);
		assert_int_equal(put_some(&ends, 0, 4, LONG_BYTES), 4);
		ends.tx.ring->cons = 2;
		direct_look(&ends.tx);
		assert_int_equal(direct_used(&ends.tx), 2);
		ends.tx.ring->cons = lies[i];
		direct_look(&ends.tx);
		assert_true(ends.tx.broken);
		ends.tx.ring->cons = 4;
		direct_look(&ends.tx);
		assert_int_equal(put_some(&ends, 0, 1, LONG_BYTES), 0);
		assert_null(direct_place(&ends.tx));
		ends_fini(&ends);
	}
}

/* Words in all slots, also where packets are that have not been given back. */
TEST(direct_take__does_not_believe_the_sender)
{
	struct share_packet packets[DIRECT_SLOTS];
	struct ends ends;
	uint32_t first;

	for (uint32_t lie = 0; lie < 2; lie++) {
		ends_init(&ends);
		assert_int_equal(put_some(&ends, 0, 4, LONG_BYTES), 4);
		assert_int_equal(direct_take(&ends.rx, packets, DIRECT_SLOTS, &first), 4);
		direct_done(&ends.rx, first);
		direct_give_back(&ends.rx);
		for (uint32_t i = 4; i < DIRECT_SLOTS + 4; i++)
			ends.tx.ring->slots[i % DIRECT_SLOTS].word =
				share_pack(&(struct share_packet){
					.flags = direct_round(i + lie * DIRECT_SLOTS)});
		/* The ring holds at most this many words besides the three that we hold. */
		assert_int_equal(direct_take(&ends.rx, packets, DIRECT_SLOTS, &first),
				 lie ? 0 : DIRECT_SLOTS - 3);
		direct_end(&ends.rx);
		for (uint32_t at = 1; at != ends.rx.seen; at++)
			direct_done(&ends.rx, at);
		direct_give_back(&ends.rx);
		assert_true(direct_is_over(&ends.rx));
		ends_fini(&ends);
	}
}

TEST(direct_frame__refuses_what_is_longer_than_its_place)
{
	struct share_packet packet = {.len = DIRECT_BUFFER_BYTES};
	struct ends ends;

	ends_init(&ends);
	assert_non_null(direct_frame(&ends.rx, 0, &packet));
	packet.len = DIRECT_BUFFER_BYTES + 1;
	assert_null(direct_frame(&ends.rx, 0, &packet));
	packet.flags = SHARE_FLAG_SHORT;
	packet.len = DIRECT_SHORT_BYTES;
	assert_non_null(direct_frame(&ends.rx, 0, &packet));
	packet.len = DIRECT_SHORT_BYTES + 1;
	assert_null(direct_frame(&ends.rx, 0, &packet));
	ends_fini(&ends);
}

TEST(direct_take__tells_each_round_from_the_one_before)
{
	struct ends ends;

	ends_init(&ends);
	for (uint32_t round = 0; round < 5; round++) {
		assert_int_equal(take_and_give_back(&ends, DIRECT_SLOTS), 0);
		assert_int_equal(put_some(&ends, 0, 10, LONG_BYTES), 10);
		assert_int_equal(take_and_give_back(&ends, DIRECT_SLOTS), 10);
		assert_int_equal(put_some(&ends, 10, DIRECT_SLOTS - 10, 8), DIRECT_SLOTS - 10);
		assert_int_equal(take_and_give_back(&ends, DIRECT_SLOTS), DIRECT_SLOTS - 10);
		direct_look(&ends.tx);
	}
	ends_fini(&ends);
}

/* Move both sides to an index, with the words that the ring then holds. */
static void go_on_from(struct ends *ends, uint32_t index)
{
	ends->tx.own = ends->tx.seen = index;
	ends->rx.own = ends->rx.seen = ends->tx.ring->cons = index;
	for (uint32_t i = 1; i <= DIRECT_SLOTS; i++)
		ends->tx.ring->slots[(index - i) % DIRECT_SLOTS].word =
			share_pack(&(struct share_packet){.flags = direct_round(index - i)});
}

TEST(direct_take__goes_on_where_indices_begin_anew)
{
	struct ends ends;

	ends_init(&ends);
	go_on_from(&ends, UINT32_MAX - DIRECT_SLOTS - 5);
	for (uint32_t round = 0; round < 4; round++) {
		assert_int_equal(take_and_give_back(&ends, DIRECT_SLOTS), 0);
		assert_int_equal(put_some(&ends, 0, DIRECT_SLOTS - 3, 8), DIRECT_SLOTS - 3);
		assert_true(direct_waits(&ends.rx));
		assert_int_equal(take_and_give_back(&ends, DIRECT_SLOTS), DIRECT_SLOTS - 3);
		direct_look(&ends.tx);
		assert_int_equal(direct_used(&ends.tx), 0);
	}
	assert_false(ends.tx.broken);
	put_some(&ends, 0, 2, 8);
	direct_end(&ends.rx);
	assert_int_equal(take_and_give_back(&ends, DIRECT_SLOTS), 2);
	assert_true(direct_is_over(&ends.rx));
	ends_fini(&ends);
}

/* Round after round, so that indices of the ring and of what is put together differ. */
TEST(direct_show__puts_what_was_placed)
{
	struct share_packet packets[4];
	struct ends ends;
	uint32_t first;

	ends_init(&ends);
	for (uint32_t round = 0; round < DIRECT_SLOTS; round++) {
		memset(direct_place(&ends.tx), 10, DIRECT_SHORT_BYTES);
		direct_placed(&ends.tx, DIRECT_SHORT_BYTES, SHARE_FLAG_SHORT);
		memset(direct_buffer(&ends.tx, 0), 11, 1000);
		direct_placed(&ends.tx, 1000, 0);
		memset(direct_place(&ends.tx), 12, 7);
		direct_placed(&ends.tx, 7, SHARE_FLAG_SHORT);
		assert_false(direct_waits(&ends.rx));
		assert_int_equal(direct_take(&ends.rx, packets, 4, &first), 0);
		direct_show(&ends.tx);
		/* What was shown is not shown again. */
		direct_show(&ends.tx);
		assert_true(direct_waits(&ends.rx));
		assert_int_equal(direct_take(&ends.rx, packets, 4, &first), 3);
		assert_int_equal(packets[1].len, 1000);
		for (uint8_t i = 0; i < 3; i++) {
			assert_int_equal(byte_of(&ends, first + i, &packets[i]), 10 + i);
			direct_done(&ends.rx, first + i);
		}
		direct_give_back(&ends.rx);
		direct_look(&ends.tx);
		assert_int_equal(direct_used(&ends.tx), 0);
	}
	ends_fini(&ends);
}

TEST(direct_place__has_no_more_than_the_ring)
{
	struct ends ends;

	ends_init(&ends);
	for (uint32_t i = 0; i < DIRECT_STAGED_MAX; i++) {
		assert_non_null(direct_place(&ends.tx));
		direct_placed(&ends.tx, 8, SHARE_FLAG_SHORT);
	}
	assert_null(direct_place(&ends.tx));
	assert_false(direct_has_place(&ends.tx));
	direct_show(&ends.tx);
	assert_int_equal(put_some(&ends, 0, DIRECT_SLOTS, 8), DIRECT_SLOTS - DIRECT_STAGED_MAX);
	assert_null(direct_place(&ends.tx));
	assert_int_equal(take_and_give_back(&ends, 1), 1);
	direct_look(&ends.tx);
	assert_non_null(direct_place(&ends.tx));
	direct_placed(&ends.tx, 8, SHARE_FLAG_SHORT);
	assert_null(direct_place(&ends.tx));
	ends_fini(&ends);
}

TEST(direct_is_over__when_all_is_taken_and_given_back)
{
	struct share_packet packets[DIRECT_SLOTS];
	struct ends ends;
	uint32_t first;

	ends_init(&ends);
	assert_false(direct_is_over(&ends.rx));
	put_some(&ends, 0, 2, 8);
	direct_end(&ends.rx);
	put_some(&ends, 2, 2, 8);
	assert_int_equal(direct_take(&ends.rx, packets, DIRECT_SLOTS, &first), 2);
	assert_false(direct_is_over(&ends.rx));
	direct_done(&ends.rx, first);
	direct_done(&ends.rx, first + 1);
	assert_false(direct_is_over(&ends.rx));
	direct_give_back(&ends.rx);
	assert_true(direct_is_over(&ends.rx));
	ends_fini(&ends);
}

/* The sender takes a packet back that direct_end saw. */
TEST(direct_is_over__does_not_wait_for_what_was_taken_back)
{
	struct ends ends;

	ends_init(&ends);
	put_some(&ends, 0, 2, 8);
	direct_end(&ends.rx);
	ends.tx.ring->slots[1].word = 0;
	/* There is one packet that can still be taken. */
	assert_false(direct_is_over(&ends.rx));
	assert_int_equal(take_and_give_back(&ends, DIRECT_SLOTS), 1);
	assert_true(direct_is_over(&ends.rx));
	ends_fini(&ends);
}

/* The sender writes the receiver's index, and a word where the receiver does not read yet. */
TEST(direct_waits__does_not_believe_the_sender)
{
	struct ends ends;

	ends_init(&ends);
	ends.tx.ring->cons = 1;
	ends.tx.ring->slots[1].word = share_pack(&(struct share_packet){.flags = direct_round(1)});
	assert_false(direct_waits(&ends.rx));
	assert_int_equal(take_and_give_back(&ends, DIRECT_SLOTS), 0);
	/* A packet that has not been given back counts, whatever the index says. */
	put_some(&ends, 0, 1, 8);
	assert_true(direct_waits(&ends.rx));
	assert_int_equal(take_and_give_back(&ends, 1), 1);
	assert_true(direct_waits(&ends.rx));
	assert_int_equal(take_and_give_back(&ends, 1), 1);
	assert_false(direct_waits(&ends.rx));
	ends_fini(&ends);
}

/* Sends numbers, for ever or up to `last`, some beside the word and some in the buffer. */
static void send_numbers(struct ends *ends, uint64_t last)
{
	for (uint64_t number = 1; number <= last;) {
		uint64_t frame[LONG_BYTES / sizeof(number) + 1] = {0};

		frame[0] = frame[LONG_BYTES / sizeof(number) - 1] = number;
		direct_look(&ends->tx);
		if (!direct_copy(&ends->tx, (const uint8_t *)frame,
				 number % 2 ? LONG_BYTES : sizeof(number)))
			sched_yield();
		else
			number++;
		if (number % 3 == 0)
			direct_show(&ends->tx);
	}
	direct_show(&ends->tx);
}

static void *sender_main(void *arg)
{
	send_numbers(arg, PASSED);
	return NULL;
}

static void expect_number(const struct ends *ends, uint32_t index,
			  const struct share_packet *packet, uint64_t expected)
{
	const uint8_t *frame = direct_frame(&ends->rx, index, packet);
	uint64_t number;

	assert_non_null(frame);
	memcpy(&number, frame, sizeof(number));
	assert_int_equal(number, expected);
	if (packet->len == sizeof(number))
		return;
	assert_int_equal(packet->len, LONG_BYTES);
	memcpy(&number, frame + (LONG_BYTES / sizeof(number) - 1) * sizeof(number), sizeof(number));
	assert_int_equal(number, expected);
}

/* Receive numbers; a packet stays unchanged until it is given back. */
static uint64_t receive_numbers(struct ends *ends, uint64_t expected)
{
	struct share_packet packets[7];
	uint32_t first;
	const uint32_t n = direct_take(&ends->rx, packets, 7, &first);

	for (uint32_t i = n; i > 0; i--) {
		expect_number(ends, first + i - 1, &packets[i - 1], expected + i - 1);
		direct_done(&ends->rx, first + i - 1);
	}
	direct_give_back(&ends->rx);
	return expected + n;
}

TEST(direct__keeps_packets_between_threads)
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

/* The receiver takes what the sender has put, all of it complete, and is done with the channel. */
TEST(direct__survives_kills_of_the_sender)
{
	unsigned int seed = 1;

	for (int kill_no = 0; kill_no < KILLS; kill_no++) {
		uint64_t expected = 1;
		struct ends ends;
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
		direct_end(&ends.rx);
		while (!direct_is_over(&ends.rx)) {
			const uint64_t before = expected;

			expected = receive_numbers(&ends, expected);
			assert_int_not_equal(before, expected);
		}
		assert_false(direct_waits(&ends.rx));
		ends_fini(&ends);
	}
}

/* The index that the receiver leaves is one that the sender can believe. */
TEST(direct__survives_kills_of_the_receiver)
{
	unsigned int seed = 1;

	for (int kill_no = 0; kill_no < KILLS; kill_no++) {
		uint32_t last, given, taken;
		struct ends ends;
		pid_t pid;

		ends_init(&ends);
		pid = fork();
		assert_true(pid >= 0);
		while (pid == 0)
			take_and_give_back(&ends, 7);
		/* These are more than the ring has room for, so the receiver takes some. */
		last = DIRECT_SLOTS + 1 + (uint32_t)rand_r(&seed) % 2000;
		while (!ends.tx.broken && ends.tx.own < last) {
			direct_look(&ends.tx);
			if (put_some(&ends, 0, 1, LONG_BYTES) == 0)
				sched_yield();
		}
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		direct_look(&ends.tx);
		assert_false(ends.tx.broken);
		assert_true(direct_tell_taken(&ends.tx, &given, &taken));
		assert_in_range(taken, 1, given);
		ends_fini(&ends);
	}
}
