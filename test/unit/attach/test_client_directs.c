/* SPDX-License-Identifier: BSD-3-Clause */
/* How direct channels of isolated processes begin, wake who sleeps, and end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "direct_pair.h"
#include "lingering.h"
#include "memif/doorbell.h"
#include "memif/socket.h"
#include "wire/qpn_block.h"

#define SLOW	    80 /* closes: more than this process has threads for */
#define PATIENCE_MS 10000

TEST_FIXTURE(pair_set_up, pair_tear_down);

static bool is_woken(const struct pair_side *side)
{
	struct pollfd wake = {.fd = port_wake_fd(&side->link.port), .events = POLLIN};

	return poll(&wake, 1, 0) == 1;
}

/* A direct channel that is made while the process sleeps wakes it, too. */
TEST(client_direct__wakes_who_is_armed)
{
	struct port *port = &pair_sides[1].link.port;
	int kept;

	assert_false(port_arm(port));
	assert_false(is_woken(&pair_sides[1]));
	kept = pair_offer();
	/* The port looks once at the new ring. */
	assert_true(is_woken(&pair_sides[1]));
	assert_false(port_arm(port));
	assert_false(is_woken(&pair_sides[1]));
	assert_true(pair_try_send(&pair_sides[0], 1));
	assert_true(is_woken(&pair_sides[1]));
	assert_true(port_arm(port));
	assert_false(is_woken(&pair_sides[1]));
	pair_expect_one(&pair_sides[1], 1);
	port_disarm(port);
	assert_true(pair_try_send(&pair_sides[0], 2));
	assert_false(is_woken(&pair_sides[1]));
	pair_expect_one(&pair_sides[1], 2);
	/* Nobody can keep it awake by ending the direct channel. */
	shutdown(kept, SHUT_RDWR);
	close(kept);
	pair_run();
	assert_int_equal(pair_count_channels(&pair_sides[1]), 0);
	assert_false(port_arm(port));
	assert_false(is_woken(&pair_sides[1]));
}

/* Nor by a word in its memory, and an index that is not its own. */
TEST(client_direct__is_not_kept_awake_by_an_index)
{
	struct port *port = &pair_sides[1].link.port;
	const int kept = pair_offer();
	struct direct_ring *ring = &pair_channel(&pair_sides[1])->memory->rings[0];

	(void)port_arm(port);
	ring->cons = 1;
	ring->slots[1].word = share_pack(&(struct share_packet){.flags = direct_round(1)});
	for (int i = 0; i < ROUNDS; i++) {
		uint8_t numbers[BURST];

		assert_int_equal(pair_receive(&pair_sides[1], numbers), 0);
		assert_false(port_arm(port));
	}
	port_disarm(port);
	close(kept);
}

/* Send to a process that sleeps, with doorbells that are full. */
static void send_to_sleeper(struct pair_side *from, struct pair_side *to, uint8_t number)
{
	const struct client_direct *direct = pair_channel(from);

	/* Arming takes the rings that came before. */
	(void)port_arm(&to->link.port);
	assert_false(port_arm(&to->link.port));
	while (send(direct->doorbell_fd, "", 1, MSG_DONTWAIT) == 1)
		;
	assert_int_equal(errno, EAGAIN);
	assert_true(pair_try_send(from, number));
	/* The sender has tried to ring: it clears the flag before. */
	assert_int_equal(direct->memory->sides[!direct->offer.side].sleeps, 0);
	assert_int_equal(pair_owner_pass(from), 0);
	pair_expect_one(to, number);
}

/* The other process does not read its doorbell, and always asks to be woken. Both ends of the
 * doorbells are blocking, as it can make them. */
TEST(client_direct__never_waits_for_the_other)
{
	const int kept = pair_offer();

	for (int i = 0; i < SIDES; i++) {
		const int fd = pair_channel(&pair_sides[i])->doorbell_fd;

		assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0);
	}
	for (uint8_t i = 0; i < 2 * SIDES; i++)
		send_to_sleeper(&pair_sides[i % SIDES], &pair_sides[!(i % SIDES)], i);
	close(kept);
}

/* The owner shuts the doorbells down when it stops serving one of the two. */
TEST(client_direct__ends_with_the_socket)
{
	const int kept = pair_offer();

	assert_true(pair_try_send(&pair_sides[0], 1));
	assert_int_equal(shutdown(kept, SHUT_RDWR), 0);
	close(kept);
	/* The engine receives what is left before it handles a connection's end. */
	pair_expect_one(&pair_sides[1], 1);
	pair_run();
	for (int i = 0; i < SIDES; i++) {
		assert_int_equal(pair_count_channels(&pair_sides[i]), 0);
		assert_true(pair_try_send(&pair_sides[i], 2));
		assert_int_equal(pair_owner_pass(&pair_sides[i]), 1);
		pair_expect_one(&pair_sides[!i], 2);
	}
}

TEST(client_direct__last_packets_are_received_when_the_other_ends)
{
	const int kept = pair_offer();

	assert_true(pair_try_send(&pair_sides[0], 1));
	port_close(&pair_sides[0].link.port);
	port_destroy(&pair_sides[0].link.port);
	pair_expect_one(&pair_sides[1], 1);
	pair_run();
	assert_int_equal(pair_count_channels(&pair_sides[1]), 0);
	close(kept);
}

/* Offer a channel with a process that the test plays. Returns the other end of the doorbells. */
static int offer_one(struct pair_side *side, uint16_t at)
{
	int doorbell[2];

	assert_int_equal(memif_doorbell_make(doorbell), 0);
	pair_offer_to(side, at, 9 << BLOCK_SHIFT, pair_make_memory(), doorbell[0]);
	pair_run();
	return doorbell[1];
}

/* An index that cannot be: the other process has taken more than it was sent. */
TEST(client_direct__gives_up_what_breaks_a_rule)
{
	const int kept = pair_offer();
	struct client_direct *direct = pair_channel(&pair_sides[0]);
	uint8_t numbers[BURST];

	assert_true(pair_try_send(&pair_sides[0], 1));
	pair_expect_one(&pair_sides[1], 1);
	direct->memory->rings[0].cons = 2 * RING;
	for (uint32_t i = 0; i < RING; i++)
		assert_true(pair_try_send(&pair_sides[0], 2));
	pair_run();
	/* The other one ends the channel when it has taken the packets that are still there. */
	while (pair_receive(&pair_sides[1], numbers) > 0)
		;
	pair_run();
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(pair_count_channels(&pair_sides[i]), 0);
	assert_true(pair_try_send(&pair_sides[0], 3));
	assert_int_equal(pair_owner_pass(&pair_sides[0]), 1);
	close(kept);
}

/* Until the other process is ready, and if it never is, packets go through the owner. */
TEST(client_direct__works_without_an_answer)
{
	const int fd = offer_one(&pair_sides[0], 0);
	struct pair_wish wish = pair_wish_from(&pair_sides[0]);

	wish.dest_qpn = (9 << BLOCK_SHIFT) + 1;
	assert_true(pair_try_wish(&pair_sides[0], &wish, 1));
	assert_int_equal(pair_owner_pass(&pair_sides[0]), 1);
	close(fd);
}

static bool is_shut(int fd)
{
	struct pollfd end = {.fd = fd, .events = POLLRDHUP};

	return poll(&end, 1, -1) == 1;
}

/* The memory's description is the other process's, too: it can take our mark from it. */
TEST(client_directs_offer__needs_no_mark_of_the_memory)
{
	const int others_fd = pair_make_memory(), memory_fd = dup(others_fd);
	int doorbell[2];

	assert_int_equal(memif_doorbell_make(doorbell), 0);
	pair_offer_to(&pair_sides[0], 0, 9 << BLOCK_SHIFT, memory_fd, doorbell[0]);
	assert_int_equal(fcntl(others_fd, F_SETSIG, 0), 0);
	pair_run();
	assert_int_equal(pair_count_channels(&pair_sides[0]), 1);
	assert_int_equal(fcntl(memory_fd, F_GETFD), -1);
	close(others_fd);
	close(doorbell[1]);
}

/* The other process sees that there is no channel, and nothing stays open. */
TEST(client_directs_offer__refuses_what_cannot_be_mapped)
{
	int doorbell[2], pipe_fds[2];

	assert_int_equal(memif_doorbell_make(doorbell), 0);
	assert_int_equal(pipe(pipe_fds), 0);
	pair_offer_to(&pair_sides[0], 0, 9 << BLOCK_SHIFT, pipe_fds[0], doorbell[0]);
	assert_int_equal(pair_sides[0].client.offer_count, 0);
	assert_true(is_shut(doorbell[1]));
	assert_int_equal(fcntl(pipe_fds[0], F_GETFD), -1);
	close(pipe_fds[1]);
	close(doorbell[1]);
}

/* The program has closed our descriptors, and has got their numbers for its own. */
TEST(client_offers_drop_locked__leaves_descriptors_of_the_program)
{
	struct share_client *client = &pair_sides[0].client;
	const int memory_fd = pair_make_memory();
	int doorbell[2], ours[2];
	char byte;

	assert_int_equal(memif_doorbell_make(doorbell), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ours), 0);
	pair_offer_to(&pair_sides[0], 0, 9 << BLOCK_SHIFT, memory_fd, doorbell[0]);
	assert_int_equal(client->offer_count, 1);
	assert_int_equal(dup2(ours[0], memory_fd), memory_fd);
	assert_int_equal(dup2(ours[0], doorbell[0]), doorbell[0]);
	pthread_mutex_lock(&client->lock);
	client_offers_drop_locked(client);
	pthread_mutex_unlock(&client->lock);
	assert_int_equal(client->offer_count, 0);
	assert_int_equal(write(memory_fd, "m", 1), 1);
	assert_int_equal(write(doorbell[0], "d", 1), 1);
	assert_int_equal(read(ours[1], &byte, 1), 1);
	for (int i = 0; i < 2; i++)
		close(ours[i]), close(doorbell[i]);
	close(memory_fd);
}

TEST(client_directs_offer__has_a_limit)
{
	int fds[2 * SHARE_DIRECTS_MAX], last;

	for (int i = 0; i < 2 * SHARE_DIRECTS_MAX; i++)
		fds[i] = offer_one(&pair_sides[0], 0);
	assert_int_equal(pair_count_channels(&pair_sides[0]), SHARE_DIRECTS_MAX);
	/* The last ones wait for a place. One more is refused. */
	last = offer_one(&pair_sides[0], 0);
	assert_true(is_shut(last));
	close(last);
	assert_int_equal(pair_sides[0].client.offer_count, SHARE_DIRECTS_MAX);
	shutdown(fds[0], SHUT_RDWR);
	pair_run();
	assert_int_equal(pair_sides[0].client.offer_count, SHARE_DIRECTS_MAX - 1);
	/* An offer that makes no sense. */
	last = offer_one(&pair_sides[1], 2);
	assert_int_equal(pair_sides[1].client.offer_count, 0);
	assert_true(is_shut(last));
	close(last);
	for (int i = 0; i < 2 * SHARE_DIRECTS_MAX; i++)
		close(fds[i]);
}

/* Other processes can make closing slow, but not that of what they have not sent. */
TEST(client_direct__is_not_held_by_what_others_have_sent)
{
	struct sockaddr_in address;
	const int listener = lingering_listen(&address);
	struct pollfd closed = {.events = POLLIN};
	int fds[SLOW], pipes[2];

	for (int i = 0; i < SLOW; i++) {
		fds[i] = offer_one(&pair_sides[0], 0);
		lingering_send(fds[i], &address);
		shutdown(fds[i], SHUT_RDWR);
		pair_run();
		assert_int_equal(pair_count_channels(&pair_sides[0]), 0);
	}
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	memif_socket_discard(pipes[1]);
	closed.fd = pipes[0];
	assert_int_equal(poll(&closed, 1, PATIENCE_MS), 1);
	close(pipes[0]);
	close(listener);
	for (int i = 0; i < SLOW; i++)
		close(fds[i]);
}
