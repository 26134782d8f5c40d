/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of share/lane.h: packets arrive whole and in order, whatever the other side writes, and
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

#include "share/lane.h"
#include "test.h"

#define PASSED	   100000
#define KILLS	   200
#define LONG_BYTES (LANE_SHORT_BYTES + 1)

/* Both ends of a lane. Side 0 sends and side 1 receives. */
struct ends {
	struct lane_memory *memory;
	struct lane_tx tx, back;
	struct lane_rx rx, front;
};

static void ends_init(struct ends *ends)
{
	void *memory = mmap(NULL, sizeof(*ends->memory), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	ends->memory = memory;
	lane_init(&ends->tx, &ends->front, ends->memory, 0);
	lane_init(&ends->back, &ends->rx, ends->memory, 1);
}

static void ends_fini(struct ends *ends)
{
	munmap(ends->memory, sizeof(*ends->memory));
}

/* Put packets of this length, whose bytes are numbers from this one on. Return how many had room.
 */
static uint32_t put_some(struct ends *ends, uint32_t first, uint32_t n, uint32_t len)
{
	uint8_t frame[LANE_BUFFER_BYTES];
	uint32_t put = 0;

	for (; put < n; put++) {
		memset(frame, (int)(first + put), len);
		if (!lane_copy(&ends->tx, frame, len))
			break;
	}
	lane_show(&ends->tx);
	return put;
}

/* The receiver takes up to `n`, and gives them back; how many. */
static uint32_t take_and_give_back(struct ends *ends, uint32_t n)
{
	struct share_packet packets[LANE_SLOTS];
	uint32_t first;

	n = lane_take(&ends->rx, packets, n, &first);
	for (uint32_t i = 0; i < n; i++)
		lane_done(&ends->rx, first + i);
	lane_give_back(&ends->rx);
	return n;
}

/* Return the byte of the packet at an index, of which it consists. */
static uint8_t byte_of(const struct ends *ends, uint32_t index, const struct share_packet *packet)
{
	const uint8_t *frame = lane_frame(&ends->rx, index, packet);

	assert_non_null(frame);
	for (uint32_t i = 1; i < packet->len; i++)
		assert_int_equal(frame[i], frame[0]);
	return frame[0];
}

TEST(lane_copy__short_and_long_packets)
{
	static const uint32_t lengths[] = {1, LANE_SHORT_BYTES, LONG_BYTES, LANE_BUFFER_BYTES};
	struct share_packet packet;
	struct ends ends;
	uint32_t index;

	ends_init(&ends);
	for (uint32_t i = 0; i < 3 * LANE_SLOTS; i++) {
		const uint32_t len = lengths[i % RTE_DIM(lengths)];

		assert_false(lane_waits(&ends.rx) || lane_has_next(&ends.rx));
		assert_int_equal(put_some(&ends, i, 1, len), 1);
		assert_true(lane_waits(&ends.rx) && lane_has_next(&ends.rx));
		assert_int_equal(lane_take(&ends.rx, &packet, 1, &index), 1);
		assert_int_equal(index, i);
		assert_int_equal(packet.len, len);
		assert_int_equal(byte_of(&ends, index, &packet), i & 0xff);
		lane_done(&ends.rx, index);
		lane_give_back(&ends.rx);
		lane_look(&ends.tx);
		assert_int_equal(lane_used(&ends.tx), 0);
	}
	ends_fini(&ends);
}

/* A packet that the receiver still reads keeps those behind it, too. */
TEST(lane_give_back__what_is_done_in_a_row)
{
	struct share_packet packets[4];
	struct ends ends;
	uint32_t first;

	ends_init(&ends);
	assert_int_equal(put_some(&ends, 100, 4, LONG_BYTES), 4);
	assert_int_equal(lane_take(&ends.rx, packets, 4, &first), 4);
	lane_done(&ends.rx, first + 1);
	lane_give_back(&ends.rx);
	lane_look(&ends.tx);
	assert_int_equal(lane_used(&ends.tx), 4);
	lane_done(&ends.rx, first);
	lane_give_back(&ends.rx);
	lane_look(&ends.tx);
	assert_int_equal(lane_used(&ends.tx), 2);
	assert_int_equal(byte_of(&ends, first + 2, &packets[2]), 102);
	ends_fini(&ends);
}

TEST(lane_copy__has_no_more_than_the_ring)
{
	struct ends ends;

	ends_init(&ends);
	assert_int_equal(put_some(&ends, 0, LANE_SLOTS + 1, LONG_BYTES), LANE_SLOTS);
	assert_int_equal(take_and_give_back(&ends, 3), 3);
	/* The sender has not looked. */
	assert_int_equal(put_some(&ends, 0, 1, LONG_BYTES), 0);
	lane_look(&ends.tx);
	assert_int_equal(put_some(&ends, 0, 4, 8), 3);
	ends_fini(&ends);
}

TEST(lane_tell_taken__what_the_receiver_has_given_back)
{
	struct ends ends;
	uint32_t given, taken;

	ends_init(&ends);
	put_some(&ends, 0, 3, LONG_BYTES);
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

/* Nothing is put any more: the sender could overwrite what the receiver reads. */
TEST(lane_look__does_not_believe_the_receiver)
{
	static const uint32_t lies[] = {5, 1, (uint32_t)-1, 0x80000000, LANE_SLOTS};
	struct ends ends;

	for (size_t i = 0; i < RTE_DIM(lies); i++) {
		ends_init(&ends);
		assert_int_equal(put_some(&ends, 0, 4, LONG_BYTES), 4);
		ends.tx.ring->cons = 2;
		lane_look(&ends.tx);
		assert_int_equal(lane_used(&ends.tx), 2);
		ends.tx.ring->cons = lies[i];
		lane_look(&ends.tx);
		assert_true(ends.tx.broken);
		ends.tx.ring->cons = 4;
		lane_look(&ends.tx);
		assert_int_equal(put_some(&ends, 0, 1, LONG_BYTES), 0);
		assert_null(lane_place(&ends.tx));
		ends_fini(&ends);
	}
}

/* Words in all slots, also where packets are that have not been given back. */
TEST(lane_take__does_not_believe_the_sender)
{
	struct share_packet packets[LANE_SLOTS];
	struct ends ends;
	uint32_t first;

	for (uint32_t lie = 0; lie < 2; lie++) {
		ends_init(&ends);
		assert_int_equal(put_some(&ends, 0, 4, LONG_BYTES), 4);
		assert_int_equal(lane_take(&ends.rx, packets, LANE_SLOTS, &first), 4);
		lane_done(&ends.rx, first);
		lane_give_back(&ends.rx);
		for (uint32_t i = 4; i < LANE_SLOTS + 4; i++)
			ends.tx.ring->slots[i % LANE_SLOTS].word = share_pack(
				&(struct share_packet){.flags = lane_round(i + lie * LANE_SLOTS)});
		/* The ring holds at most this many words besides the three that we hold. */
		assert_int_equal(lane_take(&ends.rx, packets, LANE_SLOTS, &first),
				 lie ? 0 : LANE_SLOTS - 3);
		lane_end(&ends.rx);
		for (uint32_t at = 1; at != ends.rx.seen; at++)
			lane_done(&ends.rx, at);
		lane_give_back(&ends.rx);
		assert_true(lane_is_over(&ends.rx));
		ends_fini(&ends);
	}
}

TEST(lane_frame__refuses_what_is_longer_than_its_place)
{
	struct share_packet packet = {.len = LANE_BUFFER_BYTES};
	struct ends ends;

	ends_init(&ends);
	assert_non_null(lane_frame(&ends.rx, 0, &packet));
	packet.len = LANE_BUFFER_BYTES + 1;
	assert_null(lane_frame(&ends.rx, 0, &packet));
	packet.flags = SHARE_FLAG_SHORT;
	packet.len = LANE_SHORT_BYTES;
	assert_non_null(lane_frame(&ends.rx, 0, &packet));
	packet.len = LANE_SHORT_BYTES + 1;
	assert_null(lane_frame(&ends.rx, 0, &packet));
	ends_fini(&ends);
}

TEST(lane_take__tells_each_round_from_the_one_before)
{
	struct ends ends;

	ends_init(&ends);
	for (uint32_t round = 0; round < 5; round++) {
		assert_int_equal(take_and_give_back(&ends, LANE_SLOTS), 0);
		assert_int_equal(put_some(&ends, 0, 10, LONG_BYTES), 10);
		assert_int_equal(take_and_give_back(&ends, LANE_SLOTS), 10);
		assert_int_equal(put_some(&ends, 10, LANE_SLOTS - 10, 8), LANE_SLOTS - 10);
		assert_int_equal(take_and_give_back(&ends, LANE_SLOTS), LANE_SLOTS - 10);
		lane_look(&ends.tx);
	}
	ends_fini(&ends);
}

/* Move both sides to an index, with the words that the ring then holds. */
static void go_on_from(struct ends *ends, uint32_t index)
{
	ends->tx.own = ends->tx.seen = index;
	ends->rx.own = ends->rx.seen = ends->tx.ring->cons = index;
	for (uint32_t i = 1; i <= LANE_SLOTS; i++)
		ends->tx.ring->slots[(index - i) % LANE_SLOTS].word =
			share_pack(&(struct share_packet){.flags = lane_round(index - i)});
}

TEST(lane_take__goes_on_where_indices_begin_anew)
{
	struct ends ends;

	ends_init(&ends);
	go_on_from(&ends, UINT32_MAX - LANE_SLOTS - 5);
	for (uint32_t round = 0; round < 4; round++) {
		assert_int_equal(take_and_give_back(&ends, LANE_SLOTS), 0);
		assert_int_equal(put_some(&ends, 0, LANE_SLOTS - 3, 8), LANE_SLOTS - 3);
		assert_true(lane_waits(&ends.rx));
		assert_int_equal(take_and_give_back(&ends, LANE_SLOTS), LANE_SLOTS - 3);
		lane_look(&ends.tx);
		assert_int_equal(lane_used(&ends.tx), 0);
	}
	assert_false(ends.tx.broken);
	put_some(&ends, 0, 2, 8);
	lane_end(&ends.rx);
	assert_int_equal(take_and_give_back(&ends, LANE_SLOTS), 2);
	assert_true(lane_is_over(&ends.rx));
	ends_fini(&ends);
}

/* Round after round, so that indices of the ring and of what is put together differ. */
TEST(lane_show__puts_what_was_placed)
{
	struct share_packet packets[4];
	struct ends ends;
	uint32_t first;

	ends_init(&ends);
	for (uint32_t round = 0; round < LANE_SLOTS; round++) {
		memset(lane_place(&ends.tx), 10, LANE_SHORT_BYTES);
		lane_placed(&ends.tx, LANE_SHORT_BYTES, SHARE_FLAG_SHORT);
		memset(lane_buffer(&ends.tx, 0), 11, 1000);
		lane_placed(&ends.tx, 1000, 0);
		memset(lane_place(&ends.tx), 12, 7);
		lane_placed(&ends.tx, 7, SHARE_FLAG_SHORT);
		assert_false(lane_waits(&ends.rx));
		assert_int_equal(lane_take(&ends.rx, packets, 4, &first), 0);
		lane_show(&ends.tx);
		/* What was shown is not shown again. */
		lane_show(&ends.tx);
		assert_true(lane_waits(&ends.rx));
		assert_int_equal(lane_take(&ends.rx, packets, 4, &first), 3);
		assert_int_equal(packets[1].len, 1000);
		for (uint8_t i = 0; i < 3; i++) {
			assert_int_equal(byte_of(&ends, first + i, &packets[i]), 10 + i);
			lane_done(&ends.rx, first + i);
		}
		lane_give_back(&ends.rx);
		lane_look(&ends.tx);
		assert_int_equal(lane_used(&ends.tx), 0);
	}
	ends_fini(&ends);
}

TEST(lane_place__has_no_more_than_the_ring)
{
	struct ends ends;

	ends_init(&ends);
	for (uint32_t i = 0; i < LANE_STAGED_MAX; i++) {
		assert_non_null(lane_place(&ends.tx));
		lane_placed(&ends.tx, 8, SHARE_FLAG_SHORT);
	}
	assert_null(lane_place(&ends.tx));
	assert_false(lane_has_place(&ends.tx));
	lane_show(&ends.tx);
	assert_int_equal(put_some(&ends, 0, LANE_SLOTS, 8), LANE_SLOTS - LANE_STAGED_MAX);
	assert_null(lane_place(&ends.tx));
	assert_int_equal(take_and_give_back(&ends, 1), 1);
	lane_look(&ends.tx);
	assert_non_null(lane_place(&ends.tx));
	lane_placed(&ends.tx, 8, SHARE_FLAG_SHORT);
	assert_null(lane_place(&ends.tx));
	ends_fini(&ends);
}

TEST(lane_is_over__when_all_is_taken_and_given_back)
{
	struct share_packet packets[LANE_SLOTS];
	struct ends ends;
	uint32_t first;

	ends_init(&ends);
	assert_false(lane_is_over(&ends.rx));
	put_some(&ends, 0, 2, 8);
	lane_end(&ends.rx);
	put_some(&ends, 2, 2, 8);
	assert_int_equal(lane_take(&ends.rx, packets, LANE_SLOTS, &first), 2);
	assert_false(lane_is_over(&ends.rx));
	lane_done(&ends.rx, first);
	lane_done(&ends.rx, first + 1);
	assert_false(lane_is_over(&ends.rx));
	lane_give_back(&ends.rx);
	assert_true(lane_is_over(&ends.rx));
	ends_fini(&ends);
}

/* Sends numbers, for ever or up to `last`, some beside the word and some in the buffer. */
static void send_numbers(struct ends *ends, uint64_t last)
{
	for (uint64_t number = 1; number <= last;) {
		uint64_t frame[LONG_BYTES / sizeof(number) + 1] = {0};

		frame[0] = frame[LONG_BYTES / sizeof(number) - 1] = number;
		lane_look(&ends->tx);
		if (!lane_copy(&ends->tx, (const uint8_t *)frame,
			       number % 2 ? LONG_BYTES : sizeof(number)))
			sched_yield();
		else
			number++;
		if (number % 3 == 0)
			lane_show(&ends->tx);
	}
	lane_show(&ends->tx);
}

static void *sender_main(void *arg)
{
	send_numbers(arg, PASSED);
	return NULL;
}

static void expect_number(const struct ends *ends, uint32_t index,
			  const struct share_packet *packet, uint64_t expected)
{
	const uint8_t *frame = lane_frame(&ends->rx, index, packet);
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
	const uint32_t n = lane_take(&ends->rx, packets, 7, &first);

	for (uint32_t i = n; i > 0; i--) {
		expect_number(ends, first + i - 1, &packets[i - 1], expected + i - 1);
		lane_done(&ends->rx, first + i - 1);
	}
	lane_give_back(&ends->rx);
	return expected + n;
}

TEST(lane__keeps_packets_between_threads)
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

/* The receiver takes what the sender has put, all of it complete, and is done with the lane. */
TEST(lane__survives_kills_of_the_sender)
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
		lane_end(&ends.rx);
		while (!lane_is_over(&ends.rx)) {
			const uint64_t before = expected;

			expected = receive_numbers(&ends, expected);
			assert_int_not_equal(before, expected);
		}
		assert_false(lane_waits(&ends.rx));
		ends_fini(&ends);
	}
}
