/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/xrc.c: which processes share an XRC domain, who is asked for a stand-in, and
 * what is left when a process ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device/xrc_share.h"
#include "isolated.h"
#include "server.h"
#include "share/blocks.h"
#include "share/message.h"
#include "test.h"
#include "xrc.h"

#define PROCESSES 4
#define ISOLATED  3
#define FILE_A	  77u
#define FILE_B	  78u

/* An owner without a port, and the sockets of its processes. */
static struct server *server;
static int sockets[PROCESSES];
/* Messages sent, and how many of the next ones find a full socket. */
static unsigned int sends, full;
static int full_socket; /* -1: none */

int __real_message_send(int fd, const struct share_message *message, const int *fds, int count);
int __wrap_message_send(int fd, const struct share_message *message, const int *fds, int count);

int __wrap_message_send(int fd, const struct share_message *message, const int *fds, int count)
{
	if (TEST_FILE_RUNS()) {
		sends++;
		if (fd == full_socket)
			return -EAGAIN;
		if (full > 0) {
			full--;
			return -EAGAIN;
		}
	}
	return __real_message_send(fd, message, fds, count);
}

static uint32_t number_of(uint16_t process, uint32_t n)
{
	return ((uint32_t)(process + 1) << BLOCK_SHIFT) + n;
}

static int setup(TEST_STATE)
{
	server = aligned_alloc(_Alignof(struct server), sizeof(*server));
	assert_non_null(server);
	memset(server, 0, sizeof(*server));
	server->epoll_fd = -1;
	sends = full = 0;
	full_socket = -1;
	xrc_init(&server->xrc);
	blocks_init(&server->slots.blocks);
	for (uint16_t i = 0; i < PROCESSES; i++) {
		struct slot *slot = &server->slots.all[i];
		int pair[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
		slot->state = SLOT_LIVE;
		slot->socket = pair[0];
		sockets[i] = pair[1];
		server->slots.blocks.slots[blocks_index(number_of(i, 0))] = i;
	}
	assert_int_equal(isolated_create(&server->slots.all[ISOLATED]), 0);
	return 0;
}

static int teardown(TEST_STATE)
{
	for (uint16_t i = 0; i < PROCESSES; i++) {
		xrc_end(server, i);
		close(sockets[i]);
		close(server->slots.all[i].socket);
	}
	isolated_destroy(server, &server->slots.all[ISOLATED]);
	assert_int_equal(server->xrc.records, 0);
	free(server);
	return 0;
}

TEST_FIXTURE(setup, teardown);

/* Ask, and return the result. */
static int ask(uint16_t process, const struct xrc_note *note)
{
	bool answered;
	const int rc = xrc_hear(server, process, note, &answered);

	assert_true(answered);
	return rc;
}

static void tell(uint16_t process, const struct xrc_note *note)
{
	bool answered;

	assert_int_equal(xrc_hear(server, process, note, &answered), 0);
	assert_false(answered);
}

static int open_domain(uint16_t process, uint64_t ino, uint32_t flags)
{
	return ask(process,
		   &(struct xrc_note){.type = XRC_OPEN, .dev = 1, .ino = ino, .flags = flags});
}

static void close_domain(uint16_t process, uint64_t ino)
{
	tell(process, &(struct xrc_note){.type = XRC_CLOSE, .dev = 1, .ino = ino});
}

static int add_target(uint16_t process, uint64_t ino, uint32_t qpn)
{
	return ask(process,
		   &(struct xrc_note){.type = XRC_TARGET, .dev = 1, .ino = ino, .target = qpn});
}

static int find(uint16_t process, uint64_t ino, uint32_t qpn)
{
	return ask(process,
		   &(struct xrc_note){.type = XRC_FIND, .dev = 1, .ino = ino, .target = qpn});
}

/* Take the oldest note that was sent to a process. */
static struct xrc_note heard(uint16_t process, enum xrc_note_type type)
{
	struct share_message message;

	assert_int_equal(message_receive(sockets[process], &message, NULL), 0);
	assert_int_equal(message.type, SHARE_XRC);
	assert_int_equal(message.xrc.type, type);
	return message.xrc;
}

static void heard_nothing(void)
{
	struct share_message message;

	for (uint16_t i = 0; i < PROCESSES; i++)
		assert_int_equal(message_receive(sockets[i], &message, NULL), -EAGAIN);
}

static void ask_link(uint16_t process, uint32_t target, uint32_t alias, uint32_t srqn)
{
	tell(process, &(struct xrc_note){.type = XRC_LINK,
					 .target = target,
					 .alias = alias,
					 .srqn = srqn,
					 .dev = 9,
					 .ino = 9});
}

/* Process 0 has a target, and process 1 a queue; the link of alias 20 joins them. */
static void join(void)
{
	struct xrc_note note;

	assert_int_equal(open_domain(0, FILE_A, XRC_FLAG_CREATE), 0);
	assert_int_equal(open_domain(1, FILE_A, 0), 0);
	assert_int_equal(add_target(0, FILE_A, number_of(0, 10)), 0);
	ask_link(0, number_of(0, 10), number_of(0, 20), number_of(1, 5));
	note = heard(1, XRC_LINK);
	assert_int_equal(note.dev, 1);
	assert_int_equal(note.ino, FILE_A);
	assert_int_equal(note.alias, number_of(0, 20));
	tell(1, &(struct xrc_note){.type = XRC_LINKED,
				   .alias = number_of(0, 20),
				   .stand_in = number_of(1, 30)});
	note = heard(0, XRC_LINKED);
	assert_int_equal(note.result, 0);
	assert_int_equal(note.stand_in, number_of(1, 30));
	heard_nothing();
}

/* Process 0 has a further target, and asks for its link to process 1: of alias 100 + n. */
static void ask_further_link(uint32_t n)
{
	assert_int_equal(add_target(0, FILE_A, number_of(0, 6000 + n)), 0);
	ask_link(0, number_of(0, 6000 + n), number_of(0, 100 + n), number_of(1, 5));
}

TEST(xrc_hear__a_domain_is_of_all_trusted_processes)
{
	assert_int_equal(open_domain(0, FILE_A, 0), -EAGAIN);
	assert_int_equal(open_domain(0, FILE_A, XRC_FLAG_CREATE | XRC_FLAG_EXCLUSIVE), 0);
	assert_int_equal(open_domain(1, FILE_A, XRC_FLAG_CREATE | XRC_FLAG_EXCLUSIVE), -EINVAL);
	assert_int_equal(open_domain(1, FILE_A, 0), 0);
	assert_int_equal(open_domain(1, FILE_B, 0), -EAGAIN);
	assert_int_equal(open_domain(ISOLATED, FILE_A, XRC_FLAG_CREATE), -EOPNOTSUPP);
	/* It exists as long as one process has it open. */
	close_domain(0, FILE_A);
	assert_int_equal(open_domain(2, FILE_A, 0), 0);
	close_domain(1, FILE_A);
	close_domain(2, FILE_A);
	assert_int_equal(open_domain(2, FILE_A, 0), -EAGAIN);
}

TEST(xrc_hear__a_process_may_open_so_many)
{
	unsigned int opens = 0;

	while (open_domain(0, opens % 100, XRC_FLAG_CREATE) == 0)
		opens++;
	assert_int_equal(opens, 4096);
	assert_int_equal(open_domain(0, 1, 0), -ENOMEM);
	assert_int_equal(open_domain(1, 1, 0), 0);
	close_domain(0, 1);
	assert_int_equal(open_domain(0, 1, 0), 0);
	assert_int_equal(open_domain(0, 1, 0), -ENOMEM);
	xrc_end(server, 0);
	assert_int_equal(open_domain(0, 1, 0), 0);
	close_domain(0, 1);
	/* It has none of these. */
	close_domain(0, 1);
	close_domain(0, 2);
	assert_int_equal(open_domain(0, 1, 0), 0);
}

TEST(xrc_hear__a_target_is_found_in_its_domain_only)
{
	assert_int_equal(open_domain(0, FILE_A, XRC_FLAG_CREATE), 0);
	assert_int_equal(open_domain(1, FILE_A, 0), 0);
	assert_int_equal(open_domain(1, FILE_B, XRC_FLAG_CREATE), 0);
	assert_int_equal(add_target(0, FILE_A, number_of(1, 10)), -EINVAL);
	assert_int_equal(add_target(0, FILE_B, number_of(0, 10)), -EINVAL);
	assert_int_equal(add_target(0, FILE_A, number_of(0, 10)), 0);
	assert_int_equal(add_target(0, FILE_A, number_of(0, 10)), -EINVAL);
	assert_int_equal(find(1, FILE_A, number_of(0, 10)), 0);
	assert_int_equal(find(1, FILE_A, number_of(0, 11)), -EINVAL);
	assert_int_equal(find(1, FILE_B, number_of(0, 10)), -EINVAL);
	assert_int_equal(find(2, FILE_A, number_of(0, 10)), -EINVAL);
	/* Another process cannot end it. */
	tell(1, &(struct xrc_note){.type = XRC_TARGET_END, .target = number_of(0, 10)});
	assert_int_equal(find(1, FILE_A, number_of(0, 10)), 0);
	tell(0, &(struct xrc_note){.type = XRC_TARGET_END, .target = number_of(0, 10)});
	assert_int_equal(find(1, FILE_A, number_of(0, 10)), -EINVAL);
}

TEST(xrc_hear__a_link_joins_two_processes_of_the_domain)
{
	join();
	/* The numbers of others, of no process, of a process without the domain, and of itself. */
	ask_link(0, number_of(0, 10), number_of(1, 21), number_of(1, 5));
	assert_int_equal(heard(0, XRC_LINKED).result, -ENOENT);
	ask_link(0, number_of(0, 11), number_of(0, 21), number_of(1, 5));
	assert_int_equal(heard(0, XRC_LINKED).result, -ENOENT);
	ask_link(1, number_of(0, 10), number_of(1, 21), number_of(1, 5));
	assert_int_equal(heard(1, XRC_LINKED).result, -ENOENT);
	ask_link(0, number_of(0, 10), number_of(0, 21), number_of(2, 5));
	assert_int_equal(heard(0, XRC_LINKED).result, -ENOENT);
	ask_link(0, number_of(0, 10), number_of(0, 21), number_of(0, 5));
	assert_int_equal(heard(0, XRC_LINKED).result, -ENOENT);
	ask_link(0, number_of(0, 10), number_of(0, 21), number_of(PROCESSES, 5));
	assert_int_equal(heard(0, XRC_LINKED).result, -ENOENT);
	/* It has this link already. */
	ask_link(0, number_of(0, 10), number_of(0, 21), number_of(1, 6));
	assert_int_equal(heard(0, XRC_LINKED).result, -ENOENT);
	heard_nothing();
}

TEST(xrc_hear__a_stand_in_has_a_number_of_its_process)
{
	assert_int_equal(open_domain(0, FILE_A, XRC_FLAG_CREATE), 0);
	assert_int_equal(open_domain(1, FILE_A, 0), 0);
	assert_int_equal(open_domain(2, FILE_A, 0), 0);
	assert_int_equal(add_target(0, FILE_A, number_of(0, 10)), 0);
	ask_link(0, number_of(0, 10), number_of(0, 20), number_of(1, 5));
	heard(1, XRC_LINK);
	tell(2, &(struct xrc_note){.type = XRC_LINKED,
				   .alias = number_of(0, 20),
				   .stand_in = number_of(2, 1)});
	heard_nothing();
	tell(1, &(struct xrc_note){.type = XRC_LINKED,
				   .alias = number_of(0, 20),
				   .stand_in = number_of(2, 1)});
	assert_int_equal(heard(0, XRC_LINKED).result, -EINVAL);
}

TEST(xrc_hear__both_sides_end_a_link)
{
	join();
	tell(2, &(struct xrc_note){.type = XRC_UNLINK, .alias = number_of(0, 20)});
	tell(2, &(struct xrc_note){.type = XRC_LOST, .alias = number_of(0, 20)});
	tell(1, &(struct xrc_note){.type = XRC_UNLINK, .alias = number_of(0, 20)});
	tell(0, &(struct xrc_note){.type = XRC_LOST, .alias = number_of(0, 20)});
	heard_nothing();
	tell(1, &(struct xrc_note){.type = XRC_LOST, .alias = number_of(0, 20)});
	assert_int_equal(heard(0, XRC_LOST).alias, number_of(0, 20));
	ask_link(0, number_of(0, 10), number_of(0, 20), number_of(1, 5));
	heard(1, XRC_LINK);
	tell(0, &(struct xrc_note){.type = XRC_UNLINK, .alias = number_of(0, 20)});
	assert_int_equal(heard(1, XRC_UNLINK).alias, number_of(0, 20));
	heard_nothing();
}

TEST(xrc_hear__a_process_that_closes_the_domain_is_lost)
{
	join();
	close_domain(1, FILE_A);
	assert_int_equal(heard(0, XRC_LOST).alias, number_of(0, 20));
	tell(0, &(struct xrc_note){.type = XRC_TARGET_END, .target = number_of(0, 10)});
	heard_nothing();
}

TEST(xrc_end__tells_the_other_side)
{
	join();
	server->slots.all[1].state = SLOT_DRAINING;
	xrc_end(server, 1);
	assert_int_equal(heard(0, XRC_LOST).alias, number_of(0, 20));
	heard_nothing();
	xrc_end(server, 0);
	assert_int_equal(server->xrc.records, 0);
}

TEST(xrc_end__ends_the_stand_ins_of_its_targets)
{
	join();
	xrc_end(server, 0);
	assert_int_equal(heard(1, XRC_UNLINK).alias, number_of(0, 20));
	heard_nothing();
	assert_int_equal(find(1, FILE_A, number_of(0, 10)), -EINVAL);
	assert_int_equal(open_domain(2, FILE_A, 0), 0);
}

/* A process that has stopped does not read its socket. */
TEST(xrc_send_waiting__keeps_the_order_behind_a_full_socket)
{
	unsigned int sent = 0;

	join();
	for (; server->xrc.processes[1].queue.count == 0; sent++) {
		assert_true(sent < 5000);
		ask_further_link(sent);
	}
	ask_further_link(sent++);
	for (unsigned int i = 0; i < sent; i++) {
		assert_int_equal(heard(1, XRC_LINK).alias, number_of(0, 100 + i));
		xrc_send_waiting(server);
	}
	heard_nothing();
	assert_int_equal(server->xrc.processes[1].queue.count, 0);
}

/* The process reads its socket meanwhile. */
TEST(xrc_send_waiting__tries_the_first_note_only)
{
	join();
	full = 1;
	ask_further_link(0);
	tell(0, &(struct xrc_note){.type = XRC_UNLINK, .alias = number_of(0, 100)});
	full = 1;
	sends = 0;
	xrc_send_waiting(server);
	assert_int_equal(sends, 1);
	heard_nothing();
	xrc_send_waiting(server);
	assert_int_equal(heard(1, XRC_LINK).alias, number_of(0, 100));
	assert_int_equal(heard(1, XRC_UNLINK).alias, number_of(0, 100));
}

/* A process that has stopped does not hold the notes of others back. */
TEST(xrc_send_waiting__is_for_each_process)
{
	join();
	full_socket = server->slots.all[1].socket;
	ask_further_link(0);
	full = 1;
	tell(1, &(struct xrc_note){.type = XRC_LOST, .alias = number_of(0, 20)});
	heard_nothing();
	xrc_send_waiting(server);
	heard(0, XRC_LOST);
	heard_nothing();
	full_socket = -1;
	xrc_send_waiting(server);
	assert_int_equal(heard(1, XRC_LINK).alias, number_of(0, 100));
}

TEST(xrc_hear__an_isolated_process_has_no_part)
{
	bool answered;

	for (uint32_t type = 0; type <= XRC_LOST + 1; type++) {
		const struct xrc_note note = {.type = type,
					      .dev = 1,
					      .ino = FILE_A,
					      .flags = XRC_FLAG_CREATE,
					      .target = number_of(ISOLATED, 1),
					      .alias = number_of(ISOLATED, 2),
					      .srqn = number_of(0, 1)};
		const int rc = xrc_hear(server, ISOLATED, &note, &answered);

		assert_int_equal(rc, answered ? -EOPNOTSUPP : -EPROTO);
	}
	assert_int_equal(server->xrc.records, 0);
	heard_nothing();
}

/* A process that asks on and on and reads no answer is ended before it uses much memory. */
TEST(xrc_hear__a_process_that_reads_nothing_is_ended)
{
	const struct xrc_note note = {.type = XRC_LINK, .alias = number_of(0, 20)};
	uint32_t asked = 0;
	bool answered;
	int rc;

	do
		rc = xrc_hear(server, 0, &note, &answered);
	while (rc == 0 && ++asked < 100000);
	assert_int_equal(rc, -ENOBUFS);
	assert_in_range(server->xrc.records, 1, 10000);
}

/* Another process answers each of its links: those answers wait for it, too. */
TEST(xrc_hear__a_process_that_reads_no_answer_is_ended)
{
	struct xrc_note link = {.type = XRC_LINK,
				.target = number_of(0, 10),
				.alias = number_of(0, 21),
				.srqn = number_of(1, 5)};
	uint32_t links = 0;
	bool answered;

	join();
	tell(0, &(struct xrc_note){.type = XRC_UNLINK, .alias = number_of(0, 20)});
	heard(1, XRC_UNLINK);
	while (xrc_hear(server, 0, &link, &answered) == 0 && ++links < 10000) {
		struct share_message message;

		while (message_receive(sockets[1], &message, NULL) == 0) {
		}
		tell(1, &(struct xrc_note){.type = XRC_LINKED,
					   .alias = link.alias,
					   .stand_in = number_of(1, 30)});
		tell(0, &(struct xrc_note){.type = XRC_UNLINK, .alias = link.alias});
	}
	assert_in_range(links, 1, 9999);
}

TEST(xrc_hear__a_link_is_answered_once)
{
	join();
	tell(1, &(struct xrc_note){.type = XRC_LINKED,
				   .alias = number_of(0, 20),
				   .stand_in = number_of(1, 31)});
	heard_nothing();
}

/* A process that has stopped gets no new links, but it learns of the end of those that it has. */
TEST(xrc_hear__a_process_that_has_stopped_gets_no_more_links)
{
	struct xrc_note note;
	uint32_t links = 0;
	bool refused = false;

	join();
	while (!refused && links < 5000) {
		struct share_message message;

		ask_further_link(links++);
		refused = message_receive(sockets[0], &message, NULL) == 0;
		if (refused)
			assert_int_equal(message.xrc.result, -EBUSY);
	}
	assert_true(refused);
	tell(0, &(struct xrc_note){.type = XRC_UNLINK, .alias = number_of(0, 20)});
	for (uint32_t i = 0; i < links - 1; i++) {
		/* Each call tries all notes that wait. */
		if (i % 8 == 0)
			xrc_send_waiting(server);
		heard(1, XRC_LINK);
	}
	xrc_send_waiting(server);
	note = heard(1, XRC_UNLINK);
	assert_int_equal(note.alias, number_of(0, 20));
	heard_nothing();
}

static uint64_t dice(uint64_t *seed, uint64_t sides)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (*seed >> 33) % sides;
}

/* Whatever processes say, no record stays of those that have ended, which the teardown checks. */
TEST(xrc_hear__any_content)
{
	uint64_t seed = 1;
	bool answered;

	for (unsigned int i = 0; i < 50000; i++) {
		const uint16_t process = (uint16_t)dice(&seed, PROCESSES);
		const struct xrc_note note = {
			.type = (uint32_t)dice(&seed, XRC_LOST + 3),
			.result = (int32_t)dice(&seed, 3) - 1,
			.dev = 1,
			.ino = dice(&seed, 3),
			.flags = (uint32_t)dice(&seed, 8),
			.target = number_of((uint16_t)dice(&seed, PROCESSES),
					    (uint32_t)dice(&seed, 4)),
			.alias = number_of((uint16_t)dice(&seed, PROCESSES),
					   (uint32_t)dice(&seed, 8)),
			.stand_in = number_of((uint16_t)dice(&seed, PROCESSES + 1), 1),
			.srqn = number_of((uint16_t)dice(&seed, PROCESSES + 1), 2),
			.mtu = (uint8_t)dice(&seed, 256),
		};
		struct share_message message;

		(void)xrc_hear(server, process, &note, &answered);
		if (dice(&seed, 16) == 0)
			xrc_end(server, process);
		if (dice(&seed, 4) > 0)
			(void)message_receive(sockets[dice(&seed, PROCESSES)], &message, NULL);
		xrc_send_waiting(server);
		assert_in_range(server->xrc.records, 0, 10000);
	}
}
