/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/share/message.c. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "share/message.h"
#include "test.h"

static int ends[2];

static int set_up(TEST_STATE)
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
}

static int tear_down(TEST_STATE)
{
	close(ends[0]);
	close(ends[1]);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* hostile.py, hostile_peer.py, mads.py and fuzz_uroced.py in test/programs/isolated use these
 * offsets: change both together. */
TEST(message__has_the_layout_that_hostile_programs_use)
{
	assert_int_equal(offsetof(struct share_message, welcome.qpn_first), 24);
	assert_int_equal(offsetof(struct share_message, welcome.id_value), 36);
	assert_int_equal(offsetof(struct share_message, welcome.mac), 56);
	assert_int_equal(sizeof(struct share_message) - offsetof(struct share_message, claim), 40);
	assert_int_equal(sizeof(struct share_message) - offsetof(struct share_message, engine), 88);
	assert_int_equal(sizeof(struct share_message) - offsetof(struct share_message, token), 204);
	assert_int_equal(sizeof(struct share_message) - offsetof(struct share_message, offer), 184);
	assert_int_equal(offsetof(struct share_offer, side), 6);
	assert_int_equal(offsetof(struct share_engine, number), 0);
	assert_int_equal(offsetof(struct share_engine, count), 4);
	assert_int_equal(offsetof(struct share_engine, generation), 8);
	assert_int_equal(offsetof(struct share_engine, slot), 12);
	assert_int_equal(sizeof(struct address), 28);
	assert_int_equal(offsetof(struct share_message, from) -
				 offsetof(struct share_message, addresses),
			 ADDRESSES_MAX * sizeof(struct address) + 12);
}

TEST(message_receive__what_was_sent_with_its_descriptors)
{
	struct share_message out = {.type = SHARE_WELCOME, .version = SHARE_VERSION, .number = 7},
			     in;
	int tubes[2], fds[SHARE_FDS];

	assert_int_equal(pipe(tubes), 0);
	out.welcome.buffers = 53248;
	assert_int_equal(message_send(ends[0], &out, tubes, 2), 0);
	assert_int_equal(message_receive(ends[1], &in, fds), 0);
	assert_memory_equal(&in, &out, sizeof(in));
	assert_true(fds[0] >= 0 && fds[1] >= 0);
	assert_int_equal(fds[2], -1);
	assert_int_equal(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(read(tubes[0], &in, 1), 1);
	for (int i = 0; i < 2; i++) {
		close(fds[i]);
		close(tubes[i]);
	}
}

/* A client cannot make the owner collect descriptors. */
TEST(message_receive__closes_descriptors_that_are_not_wanted)
{
	const struct share_message out = {.type = SHARE_HELLO, .version = SHARE_VERSION};
	struct share_message in;
	int tubes[2];
	char byte;

	assert_int_equal(pipe(tubes), 0);
	assert_int_equal(message_send(ends[0], &out, &tubes[1], 1), 0);
	close(tubes[1]);
	assert_int_equal(message_receive(ends[1], &in, NULL), 0);
	/* No writer is left. */
	assert_int_equal(read(tubes[0], &byte, 1), 0);
	close(tubes[0]);
}

/* This process may open one descriptor more, and two come: it keeps neither. */
TEST(message_receive__tells_that_there_is_no_room_for_descriptors)
{
	const struct share_message out = {.type = SHARE_WELCOME, .version = SHARE_VERSION};
	struct share_message in;
	struct rlimit before, low;
	int tubes[2], fds[SHARE_FDS], next, rc;
	char byte;

	assert_int_equal(pipe(tubes), 0);
	assert_int_equal(message_send(ends[0], &out, (int[]){tubes[1], tubes[1]}, 2), 0);
	close(tubes[1]);
	next = dup(tubes[0]);
	assert_true(next >= 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = (struct rlimit){.rlim_cur = (rlim_t)next + 1, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	rc = message_receive(ends[1], &in, fds);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(rc, -EMFILE);
	assert_int_equal(fds[0], -1);
	/* No writer is left. */
	assert_int_equal(read(tubes[0], &byte, 1), 0);
	close(tubes[0]);
}

TEST(message_receive__takes_nothing_else)
{
	struct share_message message = {.type = SHARE_HELLO, .version = SHARE_VERSION + 1};

	assert_int_equal(message_receive(ends[1], &message, NULL), -EAGAIN);
	assert_int_equal(send(ends[0], &message, 20, 0), 20);
	assert_int_equal(message_receive(ends[1], &message, NULL), -EPROTO);
	message.version = SHARE_VERSION + 1;
	assert_int_equal(message_send(ends[0], &message, NULL, 0), 0);
	assert_int_equal(message_receive(ends[1], &message, NULL), -EPROTO);
	shutdown(ends[0], SHUT_RDWR);
	assert_int_equal(message_receive(ends[1], &message, NULL), -ECONNRESET);
	assert_int_equal(message_send(ends[1], &message, NULL, 0), -EPIPE);
}
