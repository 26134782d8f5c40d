/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/control.c and pause.c: what isolated processes may ask for, and when they are
 * heard. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "attach_rig.h"
#include "control.h"
#include "event.h"
#include "isolated.h"
#include "listen.h"
#include "memif/doorbell.h"
#include "memif/protocol.h"
#include "memif/socket.h"
#include "open_fds.h"
#include "owner/arbiter.h"
#include "report/layout.h"
#include "report/set.h"
#include "pause.h"
#include "server.h"
#include "share/message.h"
#include "slot.h"
#include "test.h"

#define USER	    54321
#define NETWORKS    4
#define MEMBERSHIPS 512 /* of a user */

static struct server server; /* without a port */
static struct report_set reports;
static bool stuck;
static int own; /* our end of the socket that was attached last */

bool __real_memif_socket_is_stuck(void);
bool __wrap_memif_socket_is_stuck(void);
int __real_memif_socket_receive(int fd, void *data, size_t size, int *passed_fd);
int __wrap_memif_socket_receive(int fd, void *data, size_t size, int *passed_fd);

bool __wrap_memif_socket_is_stuck(void)
{
	return TEST_FILE_RUNS() ? stuck : __real_memif_socket_is_stuck();
}

/* Return the error of a sender that has too many descriptors in closing. */
int __wrap_memif_socket_receive(int fd, void *data, size_t size, int *passed_fd)
{
	*passed_fd = -1;
	return stuck ? -EBUSY : __real_memif_socket_receive(fd, data, size, passed_fd);
}

static int setup(TEST_STATE)
{
	memset(&server, 0, sizeof(server));
	LIST_INIT(&server.groups);
	LIST_INIT(&server.directs.list);
	pending_client_init(&server);
	server.pending_clients.trusted.fd = server.pending_clients.isolated.fd =
		server.pending_clients.spare_fd = -1;
	report_set_init(&reports);
	server.status.reports = &reports;
	server.arena.fd = server.wake_fd = server.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	assert_true(server.epoll_fd >= 0);
	blocks_init(&server.slots.blocks);
	assert_int_equal(arbiter_create(&server.gsi.arbiter), 0);
	assert_int_equal(ownership_init(&server.arena.ownership, 1, 256, SERVE_SLOTS_MAX, 0), 0);
	server.slots.max = SERVE_SLOTS_MAX;
	groups_init(&server.uplink.link.groups);
	pthread_mutex_init(&server.uplink.link.addresses_lock, NULL);
	stuck = false;
	return 0;
}

static int teardown(TEST_STATE)
{
	struct link *link = &server.uplink.link;
	uint8_t frame[GROUPS_FRAME_MAX];
	struct server_group *group;
	size_t len;

	while ((group = LIST_FIRST(&server.groups)) != NULL) {
		while (groups_leave(&link->groups, group->gid, 0, link->port.mac, &link->addresses,
				    frame, &len))
			;
		LIST_REMOVE(group, link);
		free(group);
	}
	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++)
		slot_end(&server, i);
	ownership_fini(&server.arena.ownership);
	arbiter_destroy(server.gsi.arbiter);
	close(server.epoll_fd);
	close(own);
	return 0;
}

static unsigned int threads; /* before the first test */

static int group_setup(TEST_STATE)
{
	threads = threads_count();
	return 0;
}

TEST_GROUP(group_setup, NULL);
TEST_FIXTURE(setup, teardown);

/* An isolated process of a user attaches. Returns its slot. */
static uint16_t attach(uid_t uid)
{
	struct share_message message;

	own = attach_rig(&server, uid, &message);
	return message.welcome.slot;
}

static void add_networks(void)
{
	for (int i = 0; i < NETWORKS; i++) {
		struct address address = {.vlan = i, .gid = {0xfe, 0x80, [15] = 1}};

		assert_int_equal(addresses_add(&server.uplink.link.addresses, &address), 0);
	}
}

/* Return the answer to a request to join the n-th group. */
static int join(uint16_t slot, unsigned int n)
{
	struct share_message message = {
		.type = SHARE_JOIN,
		.version = SHARE_VERSION,
		.gid = {0xff, 0x02, [14] = (uint8_t)(n >> 8), [15] = (uint8_t)n}};

	assert_int_equal(message_send(own, &message, NULL, 0), 0);
	control_event(&server, EVENT_SOCKET, slot);
	assert_int_equal(message_receive(own, &message, NULL), 0);
	return message.result;
}

/* Each group costs a part of a socket in each network. */
TEST(control_event__limits_a_users_groups_by_networks)
{
	unsigned int count = 0;
	uint16_t slot;

	add_networks();
	slot = attach(USER);
	while (join(slot, count) == 0)
		count++;
	assert_int_equal(count, MEMBERSHIPS / NETWORKS);
	assert_int_equal(join(slot, count), -ENOMEM);
	/* The process is a member of that group already. */
	assert_int_equal(join(slot, 0), 0);
}

/* Return true if the owner is notified about a slot's socket. */
static bool is_heard(uint16_t slot)
{
	struct epoll_event events[16];
	const int count = epoll_wait(server.epoll_fd, events, 16, 0);

	for (int i = 0; i < count; i++) {
		if (events[i].data.u64 == ((uint64_t)EVENT_SOCKET << 32 | slot))
			return true;
	}
	return false;
}

TEST(pause_charge_slot__pauses_a_client_that_used_its_part)
{
	const struct share_message message = {.type = SHARE_STATUS, .version = SHARE_VERSION};
	const uint16_t slot = attach(USER);

	assert_int_equal(message_send(own, &message, NULL, 0), 0);
	assert_true(is_heard(slot));
	/* No other client waits, so the charge costs this one no pause. */
	server.clock_ns = event_now_ns();
	pause_charge_slot(&server, slot, 2 * BUDGET_BURST_NS);
	assert_true(is_heard(slot));
	server.worked_ns = server.clock_ns;
	pause_charge_slot(&server, slot, BUDGET_BURST_NS - 1);
	assert_true(is_heard(slot));
	pause_charge_slot(&server, slot, UINT64_C(3600000000000));
	assert_false(is_heard(slot));
	pause_check(&server);
	assert_false(is_heard(slot));
	assert_int_equal(server.paused, 1);
	assert_int_equal(pause_longest_ms(&server, 1000), 1);
	server.worked_ns = server.clock_ns - UINT64_C(1000000000);
	assert_in_range(pause_longest_ms(&server, 1000), 10, 100);
	memset(&server.slots.all[slot].budget, 0, sizeof(struct budget));
	pause_check(&server);
	assert_true(is_heard(slot));
	assert_int_equal(server.paused, 0);
}

/* A process asks, and is killed before it is answered. That breaks no rule. */
TEST(control_event__of_one_that_has_gone_is_no_refusal)
{
	const struct share_message message = {.type = SHARE_STATUS, .version = SHARE_VERSION};
	const uint16_t slot = attach(USER);

	assert_int_equal(message_send(own, &message, NULL, 0), 0);
	close(own);
	control_event(&server, EVENT_SOCKET, slot);
	assert_int_equal(server.totals.refused, 0);
	assert_int_not_equal(server.slots.all[slot].state, SLOT_LIVE);
}

/* A process asks for a memif connection. Returns the answer, and its descriptors. */
static int ask_for_memif(uint16_t slot, int fds[SHARE_FDS])
{
	struct share_message message = {
		.type = SHARE_MEMIF, .version = SHARE_VERSION, .number = 77};

	assert_int_equal(message_send(own, &message, NULL, 0), 0);
	control_event(&server, EVENT_SOCKET, slot);
	assert_int_equal(server.slots.all[slot].state, SLOT_LIVE);
	assert_int_equal(message_receive(own, &message, fds), 0);
	assert_int_equal(message.type, SHARE_MEMIF);
	assert_int_equal(message.number, 77);
	return message.result;
}

/* Return true if the other end of a socket is closed, perhaps by a thread that is about to do so.
 */
static bool is_left(int fd)
{
	struct pollfd pfd = {.fd = fd};

	return poll(&pfd, 1, -1) == 1 && (pfd.revents & POLLHUP);
}

static void close_memif(const int *fds)
{
	close(fds[SHARE_MEMIF_FD_SOCKET]);
	close(fds[SHARE_MEMIF_FD_DOORBELL]);
}

/* The owner makes the sockets. Neither has a copy of the end that the other one reads. */
TEST(isolated_plug__gives_a_process_its_ends)
{
	const uint16_t slot = attach(USER);
	struct memif_message hello,
		init = {.type = MEMIF_INIT,
			.init = {.version = MEMIF_VERSION, .mode = MEMIF_MODE_ETHERNET}};
	int first[SHARE_FDS], second[SHARE_FDS];

	assert_int_equal(ask_for_memif(slot, first), 0);
	assert_true(first[SHARE_MEMIF_FD_SOCKET] >= 0 && first[SHARE_MEMIF_FD_DOORBELL] >= 0);
	assert_int_equal(first[SHARE_MEMIF_FDS], -1);
	assert_int_equal(recv(first[SHARE_MEMIF_FD_SOCKET], &hello, sizeof(hello), 0),
			 sizeof(hello));
	assert_int_equal(hello.type, MEMIF_HELLO);
	assert_true(memif_doorbell_clear(first[SHARE_MEMIF_FD_DOORBELL]));
	/* The next connection replaces this one, which a message has come over. */
	assert_int_equal(send(first[SHARE_MEMIF_FD_SOCKET], &init, sizeof(init), 0), sizeof(init));
	control_event(&server, EVENT_MEMIF, slot);
	assert_int_equal(ask_for_memif(slot, second), 0);
	assert_true(is_left(first[SHARE_MEMIF_FD_SOCKET]));
	assert_true(is_left(first[SHARE_MEMIF_FD_DOORBELL]));
	close_memif(first);
	close_memif(second);
	assert_true(is_left(isolated_socket(&server.slots.all[slot])));
}

/* Descriptors that a process has not received count against the owner. */
TEST(isolated_plug__gives_one_unused_connection_at_a_time)
{
	const uint16_t slot = attach(USER);
	int first[SHARE_FDS], second[SHARE_FDS];

	assert_int_equal(ask_for_memif(slot, first), 0);
	assert_int_equal(ask_for_memif(slot, second), -EBUSY);
	assert_int_equal(second[0], -1);
	close_memif(first);
}

/* The process could have a copy of it, and keep the owner from reading it. */
TEST(isolated_plug__takes_no_socket_of_a_process)
{
	const struct share_message message = {.type = SHARE_MEMIF, .version = SHARE_VERSION};
	const uint16_t slot = attach(USER);
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	assert_int_equal(message_send(own, &message, &ends[0], 1), 0);
	control_event(&server, EVENT_SOCKET, slot);
	assert_int_not_equal(server.slots.all[slot].state, SLOT_LIVE);
	assert_int_equal(server.totals.refused, 1);
	close(ends[0]);
	close(ends[1]);
}

/* Descriptors are being closed, and the next connection would add some. */
TEST(isolated_plug__refuses_while_descriptors_cannot_be_closed)
{
	const uint16_t slot = attach(USER);
	struct share_message message = {.type = SHARE_MEMIF, .version = SHARE_VERSION};
	int fds[SHARE_FDS];

	stuck = true;
	assert_int_equal(isolated_plug(&server, slot, &message), 0);
	assert_int_equal(message_receive(own, &message, fds), 0);
	assert_int_equal(message.result, -EBUSY);
	assert_int_equal(fds[0], -1);
	assert_int_equal(isolated_socket(&server.slots.all[slot]), -1);
	stuck = false;
	assert_int_equal(ask_for_memif(slot, fds), 0);
	close_memif(fds);
}

/* The others' descriptors are being closed: that is no fault of this one's. */
TEST(control_event__tries_again_when_descriptors_can_be_closed)
{
	const struct share_message message = {.type = SHARE_LEAVE, .version = SHARE_VERSION};
	const uint16_t slot = attach(USER);

	assert_int_equal(message_send(own, &message, NULL, 0), 0);
	stuck = true;
	control_event(&server, EVENT_SOCKET, slot);
	assert_int_equal(server.slots.all[slot].state, SLOT_LIVE);
	assert_false(is_heard(slot));
	pause_check(&server);
	assert_false(is_heard(slot));
	stuck = false;
	pause_check(&server);
	assert_true(is_heard(slot));
	control_event(&server, EVENT_SOCKET, slot);
	assert_int_equal(server.slots.all[slot].state, SLOT_LIVE);
	assert_false(is_heard(slot));
}

/* A paused client that ends leaves nothing in the list of the paused. */
TEST(slot_end__of_a_paused_client)
{
	const uint16_t slot = attach(USER);

	pause_slot(&server, slot);
	assert_int_equal(server.paused, 1);
	slot_end(&server, slot);
	assert_int_equal(server.paused, 0);
	assert_int_equal(server.slots.all[slot].state, SLOT_FREE);
}

/* A message may end another slot of the process that sent it. */
TEST(slot_close__leaves_what_is_charged)
{
	const uint16_t slot = attach(USER);

	memif_socket_charge(user_of_uid(USER + 1));
	slot_close(&server, slot);
	assert_int_equal(memif_socket_charge(USER_TRUSTED), user_of_uid(USER + 1));
}

/* Leave this process no descriptor but the one that is to spare, after the threads that close what
 * the tests before have left. Returns the limit before. */
static struct rlimit take_all_descriptors(void)
{
	struct rlimit before, limit;

	threads_wait(threads);
	server.pending_clients.spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(server.pending_clients.spare_fd >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = (rlim_t)server.pending_clients.spare_fd + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return before;
}

/* Open a listener at an address that the kernel chooses. */
static void open_listener(struct listener *listener)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	listener->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(
		bind(listener->fd, (struct sockaddr *)&address, sizeof(address.sun_family)), 0);
	assert_int_equal(listen(listener->fd, 1), 0);
}

static int connect_to(const struct listener *listener)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;
	socklen_t len = sizeof(address);

	assert_int_equal(getsockname(listener->fd, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, len), 0);
	return fd;
}

TEST(listen_accept__tells_who_is_turned_away)
{
	struct share_message message = {.type = SHARE_HELLO, .version = SHARE_VERSION};
	struct listener *listener = &server.pending_clients.trusted;
	struct rlimit before;

	open_listener(listener);
	own = connect_to(listener);
	/* The process sends faster than the owner reads. */
	assert_int_equal(message_send(own, &message, NULL, 0), 0);
	before = take_all_descriptors();
	assert_int_equal(listen_accept(&server, listener), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(message_receive(own, &message, NULL), 0);
	assert_int_equal(message.type, SHARE_WELCOME);
	assert_int_equal(message.result, -EMFILE);
	assert_true(server.pending_clients.spare_fd >= 0);
	close(server.pending_clients.spare_fd);
	close(listener->fd);
}

/* A client that has connected to the trusted socket sends its first message. */
static void say_first(const void *bytes, size_t len, const int *fd)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(event_watch(&server, pair[0], EVENT_HELLO, (uint32_t)pair[0]), 0);
	own = pair[1];
	if (fd)
		assert_int_equal(message_send(own, bytes, fd, 1), 0);
	else if (len > 0)
		assert_int_equal(send(own, bytes, len, 0), len);
	else
		assert_int_equal(shutdown(own, SHUT_WR), 0);
	control_event(&server, EVENT_HELLO, (uint32_t)pair[0]);
}

/* Return the owner's answer, after which it has closed the socket. */
static int hear_refusal(void)
{
	struct share_message answer;

	assert_int_equal(message_receive(own, &answer, NULL), 0);
	assert_int_equal(answer.type, SHARE_WELCOME);
	assert_int_equal(recv(own, &answer, 1, 0), 0);
	close(own);
	own = -1;
	return answer.result;
}

TEST(control_event__refuses_a_client_that_says_no_hello)
{
	const struct share_message other = {.type = SHARE_HELLO, .version = SHARE_VERSION + 1},
				   join = {.type = SHARE_JOIN, .version = SHARE_VERSION};
	struct share_message hello[2] = {{.type = SHARE_HELLO, .version = SHARE_VERSION}};
	const size_t lens[] = {1, sizeof(hello[0]) - 1, sizeof(hello[0]) + 1};
	const unsigned int before = fds_count();

	for (size_t i = 0; i < RTE_DIM(lens); i++) {
		say_first(hello, lens[i], NULL);
		assert_int_equal(hear_refusal(), -EPROTO);
	}
	say_first(&other, sizeof(other), NULL);
	assert_int_equal(hear_refusal(), -EPROTO);
	/* The descriptor that comes with it is closed. */
	say_first(&join, sizeof(join), &server.epoll_fd);
	assert_int_equal(hear_refusal(), -EPROTO);
	assert_int_equal(server.totals.refused, RTE_DIM(lens) + 2);
	/* The engine of a process that has no slot. */
	hello[0].engine = (struct share_engine){.number = 1, .count = 2, .slot = SERVE_SLOTS_MAX};
	say_first(hello, sizeof(hello[0]), NULL);
	assert_int_equal(hear_refusal(), -EINVAL);
	assert_int_equal(server.slots.live_count, 0);
	/* Those of the test before may be closed meanwhile. */
	assert_in_range(fds_count(), 0, before);
}

/* The client must not hear that the owner is of another version. */
TEST(control_event__tells_a_client_that_descriptors_have_run_out)
{
	const struct share_message hello = {.type = SHARE_HELLO, .version = SHARE_VERSION};
	struct rlimit before;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	own = pair[1];
	assert_int_equal(message_send(own, &hello, &server.epoll_fd, 1), 0);
	before = take_all_descriptors();
	control_event(&server, EVENT_HELLO, (uint32_t)pair[0]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	close(server.pending_clients.spare_fd);
	assert_int_equal(hear_refusal(), -EMFILE);
}

TEST(control_event__of_a_client_that_goes_is_no_refusal)
{
	const unsigned int before = fds_count();

	say_first(NULL, 0, NULL);
	close(own);
	own = -1;
	assert_int_equal(server.totals.refused, 0);
	assert_in_range(fds_count(), 0, before);
}

/* Return the owner's end of the untrusted client that has come last. */
static int last_pending(void)
{
	const struct pending_client *last = NULL;

	for (int i = 0; i < SERVER_PENDING_CLIENTS_MAX; i++) {
		const struct pending_client *pending = &server.pending_clients.all[i];

		if (pending->fd >= 0 && (!last || pending->number > last->number))
			last = pending;
	}
	assert_non_null(last);
	return last->fd;
}

/* An untrusted client connects. Returns its end. */
static int come(void)
{
	const int fd = connect_to(&server.pending_clients.isolated);

	control_event(&server, EVENT_LISTEN_ISOLATED, 0);
	return fd;
}

/* Let untrusted clients come. The first one goes at once: the owner then has open what it keeps. */
static void open_isolated(void)
{
	open_listener(&server.pending_clients.isolated);
	close(come());
	control_event(&server, EVENT_PENDING_CLIENT, (uint32_t)last_pending());
}

static void close_isolated(void)
{
	close(server.pending_clients.isolated.fd);
	close(server.pending_clients.spare_fd);
}

/* It sends its first message, perhaps with a descriptor. */
static void come_and_say(const void *bytes, size_t len, const int *fd)
{
	own = come();
	if (fd)
		assert_int_equal(message_send(own, bytes, fd, 1), 0);
	else
		assert_int_equal(send(own, bytes, len, 0), len);
	control_event(&server, EVENT_PENDING_CLIENT, (uint32_t)last_pending());
}

TEST(pending_client_hello__refuses_what_is_no_hello)
{
	const struct share_message other = {.type = SHARE_HELLO, .version = SHARE_VERSION + 1},
				   join = {.type = SHARE_JOIN, .version = SHARE_VERSION};
	struct share_message hello[2] = {{.type = SHARE_HELLO, .version = SHARE_VERSION}};
	const size_t lens[] = {1, sizeof(hello[0]) - 1, sizeof(hello[0]) + 1};
	unsigned int before;

	open_isolated();
	before = fds_count();
	for (size_t i = 0; i < RTE_DIM(lens); i++) {
		come_and_say(hello, lens[i], NULL);
		assert_int_equal(hear_refusal(), -EPROTO);
	}
	come_and_say(&other, sizeof(other), NULL);
	assert_int_equal(hear_refusal(), -EPROTO);
	come_and_say(&join, sizeof(join), &server.epoll_fd);
	assert_int_equal(hear_refusal(), -EPROTO);
	assert_int_equal(server.totals.refused, RTE_DIM(lens) + 2);
	assert_int_equal(server.slots.live_count, 0);
	fds_wait(before);
	close_isolated();
}

TEST(pending_client_hello__tells_a_client_that_descriptors_have_run_out)
{
	const struct share_message hello = {.type = SHARE_HELLO, .version = SHARE_VERSION};
	struct rlimit before;

	open_isolated();
	own = come();
	assert_int_equal(message_send(own, &hello, &server.epoll_fd, 1), 0);
	before = take_all_descriptors();
	control_event(&server, EVENT_PENDING_CLIENT, (uint32_t)last_pending());
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(hear_refusal(), -EMFILE);
	assert_int_equal(server.totals.refused, 1);
	close_isolated();
}

/* Its memory could shrink while the owner reads it, or grow before the owner unmaps it. */
TEST(pending_client_hello__takes_no_report_that_may_change)
{
	const struct share_message hello = {.type = SHARE_HELLO, .version = SHARE_VERSION};
	const int seals[] = {0, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SHRINK | F_SEAL_GROW};

	open_isolated();
	for (size_t i = 0; i < RTE_DIM(seals); i++) {
		const int fd = memfd_create("report", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		struct share_message answer;

		assert_int_equal(ftruncate(fd, sizeof(struct report)), 0);
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals[i]), 0);
		come_and_say(&hello, sizeof(hello), &fd);
		close(fd);
		assert_int_equal(message_receive(own, &answer, NULL), 0);
		assert_int_equal(answer.result, 0);
		assert_int_equal(server.slots.all[answer.welcome.slot].report != NULL,
				 i == RTE_DIM(seals) - 1);
		slot_end(&server, answer.welcome.slot);
		close(own);
	}
	own = -1;
	close_isolated();
}

TEST(pending_client_hello__of_one_that_goes_is_no_refusal)
{
	unsigned int before;
	int fd;

	open_isolated();
	before = fds_count();
	own = come();
	fd = last_pending();
	close(own);
	own = -1;
	control_event(&server, EVENT_PENDING_CLIENT, (uint32_t)fd);
	assert_int_equal(server.totals.refused, 0);
	fds_wait(before);
	/* It is nobody's any more. */
	control_event(&server, EVENT_PENDING_CLIENT, (uint32_t)fd);
	assert_int_equal(server.totals.refused, 0);
	close_isolated();
}

/* Clients that connect and say nothing keep no place from the next ones. */
TEST(pending_client_accept__ends_the_one_that_came_first)
{
	int fds[SERVER_PENDING_CLIENTS_MAX + 1];
	uint32_t count = SERVER_PENDING_CLIENTS_MAX;
	char byte;

	open_isolated();
	fds[0] = come();
	if (user_is_limited(server.pending_clients.all[SERVER_PENDING_CLIENTS_MAX - 1].user))
		count = SERVER_PENDING_CLIENTS_USER_MAX;
	for (uint32_t i = 1; i <= count; i++) {
		assert_int_equal(recv(fds[0], &byte, 1, MSG_DONTWAIT), -1);
		fds[i] = come();
	}
	assert_int_equal(recv(fds[0], &byte, 1, 0), 0);
	assert_int_equal(recv(fds[1], &byte, 1, MSG_DONTWAIT), -1);
	pending_client_close_all(&server);
	for (uint32_t i = 0; i <= count; i++) {
		assert_int_equal(recv(fds[i], &byte, 1, 0), 0);
		close(fds[i]);
	}
	own = -1;
	close_isolated();
}

/* The descriptors of its user are being closed. */
TEST(pending_client_hello__waits_until_descriptors_can_be_closed)
{
	const struct share_message hello = {.type = SHARE_HELLO, .version = SHARE_VERSION};
	struct share_message answer;

	open_isolated();
	stuck = true;
	come_and_say(&hello, sizeof(hello), NULL);
	assert_int_equal(message_receive(own, &answer, NULL), -EAGAIN);
	assert_int_equal(server.paused, 1);
	stuck = false;
	pause_check(&server);
	assert_int_equal(server.paused, 0);
	control_event(&server, EVENT_PENDING_CLIENT, (uint32_t)last_pending());
	assert_int_equal(message_receive(own, &answer, NULL), 0);
	assert_int_equal(answer.result, 0);
	close_isolated();
}
