/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rspreload's epoll instances: rsockets of one process, on a device without a wire. */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "epolls.h"
#include "fds.h"
#include "live.h"
#include "test.h"

#define PORT	   7178
#define SOON_NS	   INT64_C(20000000)	/* for events that must not come */
#define ALWAYS_NS  INT64_C(20000000000) /* for events that must come */
#define BLOCK	   65536
#define EVENTS_MAX 8
#define PAUSE_US   20000 /* time in which a thread falls asleep, as a rule */

static int epoll, listener, client, server, doorbell;
static struct epoll_event got[EVENTS_MAX];

static int make_listener(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons(PORT),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int s = rsocket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(rbind(s, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(rlisten(s, 4), 0);
	assert_true(fds_add(s));
	return s;
}

static int make_client(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons(PORT),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int s = rsocket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(rconnect(s, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_true(fds_add(s));
	return s;
}

static int set_up(void **state)
{
	if (live_set_up(state) != 0)
		return -1;
	epoll = epoll_create1(0);
	doorbell = eventfd(0, EFD_NONBLOCK);
	listener = make_listener();
	client = make_client();
	server = raccept(listener, NULL, NULL);
	assert_true(fds_add(server));
	return 0;
}

/* Close an rsocket as close(2) of librspreload.so does. */
static void end(int *fd)
{
	int rsocket;

	if (*fd < 0)
		return;
	if (fds_remove(*fd, &rsocket))
		epolls_forget(rsocket);
	assert_int_equal(rclose(rsocket), 0);
	*fd = -1;
}

static int tear_down(void **state)
{
	end(&client);
	end(&server);
	end(&listener);
	epolls_close(epoll);
	close(epoll);
	close(doorbell);
	return live_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

static int control(int op, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.fd = fd};

	return epolls_ctl(epoll, op, fd, &event);
}

static void add(int fd, uint32_t events)
{
	assert_int_equal(control(EPOLL_CTL_ADD, fd, events), 0);
}

static void nothing_comes(void)
{
	assert_int_equal(epolls_wait(epoll, got, EVENTS_MAX, SOON_NS), 0);
}

/* Wait for one event. */
static void comes(int fd, uint32_t events)
{
	assert_int_equal(epolls_wait(epoll, got, EVENTS_MAX, ALWAYS_NS), 1);
	assert_int_equal(got[0].data.fd, fd);
	assert_int_equal(got[0].events, events);
}

static void say(int from, const char *text, size_t len)
{
	assert_int_equal(rsend(from, text, len, 0), len);
}

static ssize_t hear(int at, size_t most)
{
	static char room[BLOCK];

	return epolls_has_read(at, rrecv(at, room, most, MSG_DONTWAIT));
}

static void fill(int from)
{
	static const char block[BLOCK];
	ssize_t rc;

	do
		rc = epolls_has_sent(from, BLOCK, rsend(from, block, BLOCK, MSG_DONTWAIT));
	while (rc > 0);
	assert_int_equal(errno, EAGAIN);
}

/* Read all that was sent, until the peer can send again. */
static void drain(int at, int from)
{
	struct pollfd fd = {.fd = from, .events = POLLOUT};

	do
		hear(at, BLOCK);
	while (rpoll(&fd, 1, 0) == 0);
}

TEST(epolls_wait__tells_again_while_there_is_data)
{
	add(server, EPOLLIN);
	nothing_comes();
	say(client, "ab", 2);
	comes(server, EPOLLIN);
	comes(server, EPOLLIN);
	assert_int_equal(hear(server, 1), 1);
	comes(server, EPOLLIN);
	assert_int_equal(hear(server, 1), 1);
	nothing_comes();
}

TEST(epolls_wait__edge_is_told_once)
{
	add(server, EPOLLIN | EPOLLET);
	say(client, "ab", 2);
	comes(server, EPOLLIN);
	nothing_comes();
	/* A program reads until nothing is left. */
	assert_int_equal(hear(server, 8), 2);
	assert_int_equal(hear(server, 8), -1);
	nothing_comes();
	say(client, "c", 1);
	comes(server, EPOLLIN);
}

/* The data that comes behind the last read is told even though no wait has seen the buffer empty.
 */
TEST(epolls_wait__edge_after_a_read_without_a_wait)
{
	add(server, EPOLLIN | EPOLLET);
	say(client, "a", 1);
	comes(server, EPOLLIN);
	assert_int_equal(hear(server, 1), 1);
	say(client, "b", 1);
	comes(server, EPOLLIN);
}

TEST(epolls_wait__edge_of_room_after_a_full_buffer)
{
	add(client, EPOLLOUT | EPOLLET);
	comes(client, EPOLLOUT);
	nothing_comes();
	fill(client);
	nothing_comes();
	drain(server, client);
	comes(client, EPOLLOUT);
	nothing_comes();
}

TEST(epolls_wait__edge_of_the_end_is_told_once)
{
	uint32_t told = 0;

	add(server, EPOLLIN | EPOLLRDHUP | EPOLLET);
	end(&client);
	/* The hang-up may come later than the end of the data. */
	while (!(told & EPOLLHUP)) {
		assert_int_equal(epolls_wait(epoll, got, EVENTS_MAX, ALWAYS_NS), 1);
		assert_int_equal(told & got[0].events, 0);
		told |= got[0].events;
	}
	assert_int_equal(told, EPOLLIN | EPOLLRDHUP | EPOLLHUP);
	nothing_comes();
	/* A read is an edge. */
	assert_int_equal(hear(server, 1), 0);
	comes(server, EPOLLIN);
	nothing_comes();
}

TEST(epolls_wait__one_shot_is_off_until_it_is_set_again)
{
	add(server, EPOLLIN | EPOLLONESHOT);
	say(client, "a", 1);
	comes(server, EPOLLIN);
	nothing_comes();
	assert_int_equal(control(EPOLL_CTL_MOD, server, EPOLLIN | EPOLLONESHOT), 0);
	comes(server, EPOLLIN);
	nothing_comes();
}

TEST(epolls_wait__mod_sets_an_edge_again)
{
	add(server, EPOLLIN | EPOLLET);
	say(client, "a", 1);
	comes(server, EPOLLIN);
	assert_int_equal(control(EPOLL_CTL_MOD, server, EPOLLIN | EPOLLET), 0);
	comes(server, EPOLLIN);
	assert_int_equal(control(EPOLL_CTL_MOD, server, EPOLLOUT), 0);
	comes(server, EPOLLOUT);
}

/* If the array has room for one event, both kinds of descriptors get their turn. */
TEST(epolls_wait__rsockets_and_others_take_turns)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = doorbell};
	unsigned int rsockets = 0, others = 0;

	add(server, EPOLLIN);
	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, doorbell, &event), 0);
	eventfd_write(doorbell, 1);
	comes(doorbell, EPOLLIN);
	say(client, "a", 1);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(epolls_wait(epoll, got, 1, ALWAYS_NS), 1);
		rsockets += got[0].data.fd == server;
		others += got[0].data.fd == doorbell;
	}
	assert_true(rsockets > 0 && others > 0);
	assert_int_equal(rsockets + others, 100);
}

/* The rsockets get their turn, too. */
TEST(epolls_wait__rsockets_take_turns)
{
	add(server, EPOLLOUT);
	add(client, EPOLLOUT);
	assert_int_equal(epolls_wait(epoll, got, 1, ALWAYS_NS), 1);
	assert_int_equal(epolls_wait(epoll, got + 1, 1, ALWAYS_NS), 1);
	assert_int_not_equal(got[0].data.fd, got[1].data.fd);
}

TEST(epolls_wait__listener_tells_of_a_connection)
{
	int other, accepted;

	add(listener, EPOLLIN | EPOLLET);
	nothing_comes();
	other = make_client();
	comes(listener, EPOLLIN);
	accepted = raccept(listener, NULL, NULL);
	assert_int_equal(epolls_has_read(listener, accepted), accepted);
	assert_true(fds_add(accepted));
	nothing_comes();
	end(&other);
	end(&accepted);
}

static void *wait_for_one(void *arg)
{
	struct epoll_event *event = arg;

	MUST(epolls_wait(epoll, event, 1, ALWAYS_NS) == 1);
	return NULL;
}

/* A thread that sleeps sees what another thread adds, sets again, or makes due by a read. */
TEST(epolls_ctl__wakes_threads_that_sleep)
{
	struct epoll_event event;
	pthread_t thread;

	add(listener, EPOLLIN);
	say(client, "a", 1);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_one, &event), 0);
	usleep(PAUSE_US);
	add(server, EPOLLIN | EPOLLONESHOT);
	pthread_join(thread, NULL);
	assert_int_equal(event.data.fd, server);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_one, &event), 0);
	usleep(PAUSE_US);
	assert_int_equal(control(EPOLL_CTL_MOD, server, EPOLLIN | EPOLLET), 0);
	pthread_join(thread, NULL);
	assert_int_equal(event.data.fd, server);
	say(client, "b", 1);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_one, &event), 0);
	usleep(PAUSE_US);
	assert_int_equal(hear(server, 1), 1);
	pthread_join(thread, NULL);
	assert_int_equal(event.data.fd, server);
}

static void *wait_in_kernel(void *arg)
{
	struct epoll_event *event = arg;

	MUST(epoll_wait(epoll, event, 1, -1) == 1);
	MUST(epolls_sift(epoll, event, 1) == 0);
	MUST(epolls_wait(epoll, event, 1, ALWAYS_NS) == 1);
	return NULL;
}

/* A thread that sleeps in the kernel sees the first rsocket. */
TEST(epolls_ctl__first_rsocket_wakes_threads_in_the_kernel)
{
	struct epoll_event event;
	pthread_t thread;

	assert_false(epolls_has(epoll));
	say(client, "a", 1);
	assert_int_equal(pthread_create(&thread, NULL, wait_in_kernel, &event), 0);
	usleep(PAUSE_US);
	add(server, EPOLLIN);
	assert_true(epolls_has(epoll));
	pthread_join(thread, NULL);
	assert_int_equal(event.data.fd, server);
}

TEST(epolls_ctl__wrong_calls)
{
	assert_int_equal(control(EPOLL_CTL_MOD, server, EPOLLIN), -1);
	assert_int_equal(errno, ENOENT);
	add(server, EPOLLIN);
	assert_int_equal(control(EPOLL_CTL_ADD, server, EPOLLIN), -1);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(control(EPOLL_CTL_DEL, server, 0), 0);
	assert_int_equal(control(EPOLL_CTL_DEL, server, 0), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(control(77, server, 0), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(epolls_ctl(epoll, EPOLL_CTL_ADD, server, NULL), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(epolls_ctl(client, EPOLL_CTL_ADD, server, got), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(epolls_ctl(doorbell, EPOLL_CTL_ADD, server, got), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(epolls_ctl(-1, EPOLL_CTL_ADD, server, got), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(epolls_wait(epoll, got, 0, 0), -1);
	assert_int_equal(errno, EINVAL);
}

/* A closed rsocket is in no instance, and the next one with its number may be added. */
TEST(epolls_forget__closed_rsockets)
{
	const int number = server;

	add(server, EPOLLIN);
	say(client, "a", 1);
	comes(server, EPOLLIN);
	end(&server);
	nothing_comes();
	server = rsocket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(server, number);
	assert_true(fds_add(server));
	add(server, EPOLLOUT);
	comes(server, EPOLLOUT | EPOLLHUP);
}

/* An instance lives as long as one of its numbers. */
TEST(epolls_alias__both_numbers_are_the_instance)
{
	int other;

	add(server, EPOLLIN);
	other = dup(epoll);
	epolls_alias(other, epoll);
	epolls_close(epoll);
	close(epoll);
	epoll = other;
	say(client, "a", 1);
	comes(server, EPOLLIN);
}
