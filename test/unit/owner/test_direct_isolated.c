/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/direct.c: which isolated processes are offered a direct channel, and when it
 * ends. */
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "direct.h"
#include "isolated.h"
#include "memif/doorbell.h"
#include "memif/socket.h"
#include "server.h"
#include "share/blocks.h"
#include "share/message.h"
#include "test.h"

#define PROCESSES (SHARE_DIRECTS_MAX + 3)
#define PACKETS	  64 /* after as many in both directions there surely is one */
#define END_MS	  10000

/* An owner without a port, and the sockets of its isolated processes. */
struct rig {
	struct server server;
	int sockets[PROCESSES];
};

static int setup(void **state)
{
	struct rig *rig = aligned_alloc(_Alignof(struct rig), sizeof(*rig));
	int pair[2];

	assert_non_null(rig);
	memset(rig, 0, sizeof(*rig));
	rig->server.epoll_fd = -1;
	LIST_INIT(&rig->server.directs.list);
	for (int i = 0; i < PROCESSES; i++) {
		struct slot *slot = &rig->server.slots.all[i];

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
		slot->state = SLOT_LIVE;
		slot->socket = pair[0];
		slot->qpn_first = (uint32_t)(i + 1) << BLOCK_SHIFT;
		slot->qpn_count = BLOCK_QPNS;
		rig->sockets[i] = pair[1];
		assert_int_equal(isolated_create(slot), 0);
	}
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	for (uint16_t i = 0; i < PROCESSES; i++) {
		directs_close(&rig->server, i);
		isolated_destroy(&rig->server, &rig->server.slots.all[i]);
		close(rig->sockets[i]);
		close(rig->server.slots.all[i].socket);
	}
	assert_int_equal(rig->server.directs.isolated_count, 0);
	free(rig);
	return 0;
}

TEST_FIXTURE(setup, teardown);

/* Return the end of the doorbells that was offered to a process, or -1. */
static int take_offer(struct rig *rig, int process, struct share_offer *offer)
{
	struct share_message message;
	int fds[SHARE_FDS];

	if (message_receive(rig->sockets[process], &message, fds) != 0)
		return -1;
	assert_int_equal(message.type, SHARE_DIRECT);
	*offer = message.offer;
	assert_true(fds[SHARE_DIRECT_FD_MEMORY] >= 0 && fds[SHARE_DIRECT_FD_DOORBELL] >= 0);
	assert_int_equal(fds[SHARE_DIRECT_FDS], -1);
	assert_true(memif_socket_is_sealed(fds[SHARE_DIRECT_FD_MEMORY]));
	close(fds[SHARE_DIRECT_FD_MEMORY]);
	return fds[SHARE_DIRECT_FD_DOORBELL];
}

static void talk(struct rig *rig, uint16_t a, uint16_t b)
{
	for (int i = 0; i < PACKETS; i++) {
		directs_note(&rig->server, a, b);
		directs_note(&rig->server, b, a);
	}
}

static bool is_shut(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLRDHUP};

	return poll(&pfd, 1, 0) == 1;
}

TEST(directs_note__connects_two_that_talk)
{
	struct rig *rig = *state;
	struct memif_doorbell_cost cost = {0};
	struct share_offer offers[2];
	int fds[2];

	talk(rig, 0, 1);
	for (int i = 0; i < 2; i++) {
		fds[i] = take_offer(rig, i, &offers[i]);
		assert_true(fds[i] >= 0);
		assert_int_equal(offers[i].peer, !i);
		assert_int_equal(offers[i].qpn_first, (uint32_t)(!i + 1) << BLOCK_SHIFT);
		assert_int_equal(offers[i].qpn_count, BLOCK_QPNS);
		assert_int_equal(offers[i].engines, 1);
		assert_int_equal(offers[i].served, 0x1);
		assert_false(offers[i].trusted);
	}
	assert_int_equal(offers[0].side + offers[1].side, 1);
	assert_int_equal(offers[0].number, offers[1].number);
	/* They are the two ends of one pair of doorbells, which were rung once. */
	for (int i = 0; i < 2; i++) {
		assert_true(memif_doorbell_clear(fds[i]));
		assert_false(memif_doorbell_clear(fds[i]));
		memif_doorbell_ring(fds[!i], &cost);
		assert_true(memif_doorbell_clear(fds[i]));
	}
	assert_int_equal(rig->server.totals.direct_channels, 1);
	/* Once, also if one of the two has given it up. */
	shutdown(fds[0], SHUT_RDWR);
	talk(rig, 0, 1);
	talk(rig, 0, 1);
	assert_int_equal(take_offer(rig, 0, &offers[0]), -1);
	assert_int_equal(rig->server.totals.direct_channels, 1);
	close(fds[0]);
	close(fds[1]);
}

/* The owner keeps a descriptor of side 0's end alone, so side 0 sees when side 1 closes its end. */
TEST(directs_note__keeps_no_end_of_side_1)
{
	struct rig *rig = *state;
	struct share_offer offer;
	struct pollfd end = {0};
	int fds[2] = {-1, -1};

	talk(rig, 0, 1);
	for (int i = 0; i < 2; i++) {
		const int fd = take_offer(rig, i, &offer);

		assert_true(fd >= 0);
		fds[offer.side] = fd;
	}
	end.fd = fds[0];
	assert_int_equal(poll(&end, 1, 0), 0);
	close(fds[1]);
	/* A thread of the owner closes what it does not keep. */
	assert_int_equal(poll(&end, 1, END_MS), 1);
	assert_true(end.revents & POLLHUP);
	close(fds[0]);
}

/* A process alone cannot use up what others may have. */
TEST(directs_note__not_for_one_that_gets_no_answer)
{
	struct rig *rig = *state;

	for (int i = 0; i < 10 * PACKETS; i++)
		directs_note(&rig->server, 0, 1);
	assert_int_equal(rig->server.totals.direct_channels, 0);
}

TEST(directs_note__not_for_trusted_processes_and_not_past_a_capture)
{
	struct rig *rig = *state;
	struct slot *slot = &rig->server.slots.all[1];

	isolated_destroy(&rig->server, slot);
	slot->isolated = NULL;
	talk(rig, 0, 1);
	assert_int_equal(rig->server.totals.direct_channels, 0);
	assert_int_equal(isolated_create(slot), 0);
	rig->server.directs.passes_all = true;
	talk(rig, 0, 1);
	assert_int_equal(rig->server.totals.direct_channels, 0);
	rig->server.directs.passes_all = false;
	slot->state = SLOT_DRAINING;
	talk(rig, 0, 1);
	assert_int_equal(rig->server.totals.direct_channels, 0);
	slot->state = SLOT_LIVE;
	talk(rig, 0, 1);
	assert_int_equal(rig->server.totals.direct_channels, 1);
}

/* Its packets must pass through the owner, which keeps the rate. */
TEST(directs_note__not_for_a_tenant_with_a_rate)
{
	struct rig *rig = *state;

	rig->server.slots.all[0].tenant = 1;
	rig->server.tenants.all[1].limits.rate = TENANTS_RATE_MIN;
	talk(rig, 0, 1);
	talk(rig, 2, 0);
	assert_int_equal(rig->server.totals.direct_channels, 0);
	talk(rig, 1, 2);
	assert_int_equal(rig->server.totals.direct_channels, 1);
}

TEST(directs_note__has_limits)
{
	struct rig *rig = *state;

	for (uint16_t i = 1; i < PROCESSES; i++)
		talk(rig, 0, i);
	assert_int_equal(rig->server.totals.direct_channels, SHARE_DIRECTS_MAX);
	/* A process whose channel with 0 was refused may have channels with other processes. */
	talk(rig, PROCESSES - 2, PROCESSES - 1);
	assert_int_equal(rig->server.totals.direct_channels, SHARE_DIRECTS_MAX + 1);
	rig->server.directs.isolated_count += DIRECTS_ISOLATED_MAX;
	talk(rig, 1, PROCESSES - 1);
	assert_int_equal(rig->server.totals.direct_channels, SHARE_DIRECTS_MAX + 1);
	rig->server.directs.isolated_count -= DIRECTS_ISOLATED_MAX;
	/* The end of a process makes room. */
	directs_close(&rig->server, 1);
	directs_forget(&rig->server, 1);
	talk(rig, 0, PROCESSES - 1);
	assert_int_equal(rig->server.totals.direct_channels, SHARE_DIRECTS_MAX + 2);
}

/* Isolated processes and attached ones take no channels from each other. */
TEST(directs_note__counts_without_those_of_attached_processes)
{
	struct rig *rig = *state;

	rig->server.directs.count = DIRECTS_MAX;
	talk(rig, 0, 1);
	assert_int_equal(rig->server.totals.direct_channels, 1);
	assert_int_equal(rig->server.directs.count, DIRECTS_MAX);
	directs_close(&rig->server, 0);
	assert_int_equal(rig->server.directs.count, DIRECTS_MAX);
	rig->server.directs.count = 0;
}

/* The number of a slot is another process's later, which has not talked to anybody. */
TEST(directs_forget__forgets_who_talked)
{
	struct rig *rig = *state;

	directs_note(&rig->server, 1, 0);
	directs_forget(&rig->server, 1);
	for (int i = 0; i < 10 * PACKETS; i++)
		directs_note(&rig->server, 0, 1);
	assert_int_equal(rig->server.totals.direct_channels, 0);
}

/* Whoever has the ends by then. */
TEST(directs_close__shuts_it_down)
{
	struct rig *rig = *state;

	for (uint16_t leaver = 0; leaver < 2; leaver++) {
		struct share_offer offer;
		int fds[2];

		talk(rig, 0, 1);
		fds[0] = take_offer(rig, 0, &offer);
		fds[1] = take_offer(rig, 1, &offer);
		assert_false(is_shut(fds[0]) || is_shut(fds[1]));
		directs_close(&rig->server, 2);
		assert_false(is_shut(fds[0]) || is_shut(fds[1]));
		directs_close(&rig->server, leaver);
		assert_true(is_shut(fds[0]) && is_shut(fds[1]));
		assert_int_equal(rig->server.directs.isolated_count, 0);
		close(fds[0]);
		close(fds[1]);
	}
}

TEST(directs_note__takes_back_what_one_cannot_be_told)
{
	struct rig *rig = *state;
	struct share_offer offer;
	int fd;

	close(rig->sockets[1]);
	rig->sockets[1] = -1;
	talk(rig, 0, 1);
	fd = take_offer(rig, 0, &offer);
	assert_true(fd >= 0);
	assert_true(is_shut(fd));
	close(fd);
	assert_int_equal(rig->server.totals.direct_channels, 0);
	/* It is not tried again. */
	assert_int_equal(rig->server.directs.isolated_count, 1);
	talk(rig, 0, 1);
	assert_int_equal(rig->server.directs.isolated_count, 1);
}

/* The owner has room for the memory, and not for the doorbells. Later it has. */
TEST(directs_note__tries_again_when_descriptors_had_run_out)
{
	struct rig *rig = *state;
	struct rlimit before, limit;
	int fd;

	fd = dup(0);
	assert_true(fd >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = (rlim_t)fd + 1;
	close(fd);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	talk(rig, 0, 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(rig->server.totals.direct_channels, 0);
	assert_int_equal(rig->server.directs.isolated_count, 0);
	talk(rig, 0, 1);
	assert_int_equal(rig->server.totals.direct_channels, 1);
}
