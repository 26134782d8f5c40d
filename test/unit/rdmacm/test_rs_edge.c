/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of rsockets' calls where something else happens at the same time: a signal, a fork, a
 * cancelled thread, a number that is used again, or a process without descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"
#include "rs.h"
#include "rs_datagram.h"
#include "test.h"

#define PORT	  7178
#define SECONDS	  10 /* a call that takes longer never ends */
#define LINGER_NS UINT64_C(1000000000)

static int listener, client, server;

static int set_up(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons(PORT),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	if (live_set_up(state) != 0)
		return -1;
	listener = rsocket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(rbind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(rlisten(listener, 4), 0);
	client = rsocket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(rconnect(client, (struct sockaddr *)&at, sizeof(at)), 0);
	server = raccept(listener, NULL, NULL);
	assert_true(server >= 0);
	return 0;
}

static int tear_down(void **state)
{
	if (client >= 0)
		assert_int_equal(rclose(client), 0);
	assert_int_equal(rclose(server), 0);
	assert_int_equal(rclose(listener), 0);
	return live_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

/* The service's thread may have an event of a datagram rsocket whose number is a stream's now. */
TEST(rs_datagram_serve__number_is_a_streams_now)
{
	struct rsocket *s = rs_table_get(client);

	rs_datagram_serve(s);
	rs_listen_serve(s);
	rs_table_put(s);
}

/* One descriptor is free, and a datagram rsocket needs more. */
TEST(rsocket__without_descriptors_leaves_the_programs)
{
	const int next = dup(0);
	struct rlimit before, few;

	assert_true(next > 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	for (rlim_t more = 0; more < 3; more++) {
		few.rlim_cur = (rlim_t)next + more;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		assert_int_equal(rsocket(AF_INET, SOCK_DGRAM, 0), -1);
		assert_int_equal(errno, EMFILE);
		assert_true(fcntl(0, F_GETFD) >= 0);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(rsetsockopt__listener_that_was_shut_down)
{
	const int tos = 0x20;

	assert_int_equal(rshutdown(listener, SHUT_RDWR), 0);
	assert_int_equal(rsetsockopt(listener, IPPROTO_IP, IP_TOS, &tos, sizeof(tos)), -1);
	assert_int_equal(errno, EINVAL);
}

TEST(raccept__timeout)
{
	const struct timeval time = {.tv_usec = 20000};

	alarm(SECONDS);
	assert_int_equal(rsetsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)), 0);
	assert_int_equal(raccept(listener, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);
	alarm(0);
}

/* Tell the ids of the device that it is lost, as an engine does; or only forget it. */
static void set_lost(bool lost)
{
	struct cm_device *const *devices;
	uint64_t now_ns;

	MUST(devices_get(&devices) > 0);
	(void)cm_calls()->agent_enter(devices[0]->agent, &now_ns);
	if (lost)
		device_event_lost(devices[0]->agent, now_ns);
	else
		devices[0]->lost = false;
	cm_calls()->agent_leave(devices[0]->agent);
}

/* Lose the device as soon as a thread sleeps in a call on the rsocket. */
static void *lose_when_it_sleeps(void *arg)
{
	struct rsocket *s = arg;
	bool sleeps = false;

	while (!sleeps) {
		pthread_mutex_lock(&s->lock);
		sleeps = !LIST_EMPTY(&s->wakers);
		pthread_mutex_unlock(&s->lock);
	}
	set_lost(true);
	return NULL;
}

TEST(raccept__device_is_lost)
{
	struct pollfd poll = {.fd = listener, .events = POLLIN | POLLOUT};
	struct rsocket *s = rs_table_get(listener);
	pthread_t thread;

	alarm(SECONDS);
	assert_int_equal(pthread_create(&thread, NULL, lose_when_it_sleeps, s), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(raccept(listener, NULL, NULL), -1);
		assert_int_equal(errno, ENETDOWN);
	}
	assert_int_equal(rpoll(&poll, 1, -1), 1);
	assert_int_equal(poll.revents, POLLIN | POLLERR);
	assert_int_equal(pthread_join(thread, NULL), 0);
	rs_table_put(s);
	set_lost(false);
	alarm(0);
}

/* A thread of the parent may have held the lock, and the child has no such thread. */
TEST(rclose__in_a_child)
{
	struct rsocket *s = rs_table_get(client);
	int status;
	pid_t child;

	pthread_mutex_lock(&s->lock);
	child = fork();
	if (child == 0) {
		alarm(SECONDS);
		_exit(rclose(client) == 0 ? 0 : 1);
	}
	pthread_mutex_unlock(&s->lock);
	rs_table_put(s);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(rsend(client, "x", 1, 0), 1);
}

static void wake_up(int number)
{
	(void)number;
}

static void send_signals(long every_us)
{
	const struct itimerval timer = {.it_interval.tv_usec = every_us,
					.it_value.tv_usec = every_us};
	const struct sigaction action = {.sa_handler = wake_up};

	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

/* Signals do not take what is in flight. Without a free send request the wait takes all its time.
 */
TEST(rclose__lingers_through_signals)
{
	const struct linger linger = {.l_onoff = 1, .l_linger = 1};
	struct rsocket *s = rs_table_get(client);
	uint64_t began_ns;

	assert_int_equal(rsetsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	/* The first grant may be in flight. */
	for (rs_wait_progress(s); s->out.control < RS_CONTROL_SLOTS; rs_wait_progress(s))
		usleep(1000);
	s->out.control = 0;
	began_ns = rs_wait_now_ns();
	send_signals(10000);
	assert_int_equal(rclose(client), 0);
	send_signals(0);
	client = -1;
	assert_true(rs_wait_now_ns() - began_ns >= LINGER_NS);
	rs_table_put(s);
}

/* The call looks at descriptors, which would end the thread. */
static void *ask_when_cancelled(void *arg)
{
	int error, before;
	socklen_t len = sizeof(error);

	(void)pthread_cancel(pthread_self());
	(void)rgetsockopt(*(int *)arg, SOL_SOCKET, SO_ERROR, &error, &len);
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	MUST(before == PTHREAD_CANCEL_ENABLE);
	return arg;
}

TEST(rgetsockopt__cancelled_thread_leaves_no_lock)
{
	struct rsocket *s = rs_table_get(client);
	pthread_t thread;
	void *result;

	s->looked_ns = 0;
	assert_int_equal(pthread_create(&thread, NULL, ask_when_cancelled, &client), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, &client);
	assert_int_equal(pthread_mutex_trylock(&s->lock), 0);
	pthread_mutex_unlock(&s->lock);
	assert_int_equal(s->refs, 2);
	rs_table_put(s);
}

static void *receive(void *arg)
{
	char byte;

	MUST(rrecv(*(int *)arg, &byte, 1, 0) <= 0);
	return arg;
}

/* The descriptor's number may be used again while the other thread still returns from its call. */
TEST(rclose__ends_the_calls_of_other_threads)
{
	const struct linger linger = {.l_onoff = 1};
	const int closed = client;
	struct rsocket *s = rs_table_get(client);
	pthread_t threads[8];
	bool sleeps = false;

	/* Without SO_LINGER rclose would wait, and so give the threads the time to return. */
	assert_int_equal(rsetsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, receive, &client), 0);
	while (!sleeps) {
		usleep(1000);
		pthread_mutex_lock(&s->lock);
		sleeps = !LIST_EMPTY(&s->wakers);
		pthread_mutex_unlock(&s->lock);
	}
	rs_table_put(s);
	alarm(SECONDS);
	assert_int_equal(rclose(closed), 0);
	assert_int_equal(fcntl(closed, F_GETFD), -1);
	assert_int_equal(errno, EBADF);
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	alarm(0);
	client = -1;
}
