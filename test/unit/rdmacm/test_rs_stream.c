/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm's stream rsockets: both sides in one process, on a device without a wire. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "live.h"
#include "test.h"

#define PORT   7176
#define ROUNDS 30
#define LONG   (1 << 20) /* bytes: more than all buffers together */

static int listener, client, server;

static struct sockaddr_in loopback(void)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(PORT),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int listen_at_loopback(void)
{
	struct sockaddr_in at = loopback();
	const int s = rsocket(AF_INET, SOCK_STREAM, 0);

	assert_true(s >= 0);
	assert_int_equal(rbind(s, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(rlisten(s, 4), 0);
	return s;
}

/* The peer is accepted before the program accepts, as with sockets. */
static void connect_both(void)
{
	struct sockaddr_in at = loopback();

	client = rsocket(AF_INET, SOCK_STREAM, 0);
	assert_true(client >= 0);
	assert_int_equal(rconnect(client, (struct sockaddr *)&at, sizeof(at)), 0);
	server = raccept(listener, NULL, NULL);
	assert_true(server >= 0);
}

static int set_up(void **state)
{
	if (live_set_up(state) != 0)
		return -1;
	listener = listen_at_loopback();
	connect_both();
	return 0;
}

static int tear_down(void **state)
{
	if (client >= 0)
		assert_int_equal(rclose(client), 0);
	if (server >= 0)
		assert_int_equal(rclose(server), 0);
	assert_int_equal(rclose(listener), 0);
	return live_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

TEST(rsend__arrives)
{
	char text[16] = {0};

	assert_int_equal(rsend(client, "hello", 5, 0), 5);
	assert_int_equal(rrecv(server, text, 2, MSG_PEEK), 2);
	assert_int_equal(rrecv(server, text, sizeof(text), 0), 5);
	assert_string_equal(text, "hello");
	assert_int_equal(rwrite(server, "back", 4), 4);
	assert_int_equal(rrecv(client, text, 4, MSG_WAITALL), 4);
	assert_memory_equal(text, "back", 4);
}

TEST(rsend__vectors_arrive)
{
	char a[3], b[8];
	struct iovec out[] = {{"one", 3}, {"", 0}, {"two", 3}};
	struct iovec in[] = {{a, sizeof(a)}, {b, sizeof(b)}};
	struct msghdr msg = {.msg_iov = in, .msg_iovlen = 2};

	assert_int_equal(rwritev(client, out, 3), 6);
	assert_int_equal(rrecvmsg(server, &msg, MSG_PEEK), 6);
	assert_int_equal(rreadv(server, in, 2), 6);
	assert_memory_equal(a, "one", 3);
	assert_memory_equal(b, "two", 3);
}

TEST(rsend__long_vectors_are_refused)
{
	static struct iovec many[IOV_MAX + 1];
	const struct msghdr msg = {.msg_iov = many, .msg_iovlen = IOV_MAX + 1};

	assert_int_equal(rwritev(client, many, IOV_MAX + 1), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rreadv(client, many, IOV_MAX + 1), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rsendmsg(client, &msg, 0), -1);
	assert_int_equal(errno, EMSGSIZE);
}

TEST(rsendto__address_of_a_stream_is_ignored)
{
	struct sockaddr_in at = loopback();
	char byte;

	at.sin_port = 0;
	assert_int_equal(rsendto(client, "x", 1, 0, (struct sockaddr *)&at, sizeof(at)), 1);
	assert_int_equal(rrecv(server, &byte, 1, 0), 1);
}

TEST(rrecv__truncated_bytes_are_dropped)
{
	char text[8] = ".......";

	assert_int_equal(rsend(client, "abcdefg", 7, 0), 7);
	assert_int_equal(rrecv(server, text, 1, MSG_PEEK), 1);
	assert_int_equal(rrecv(server, NULL, INT_MAX, MSG_PEEK | MSG_TRUNC), 7);
	assert_int_equal(rrecv(server, text, 3, MSG_TRUNC), 3);
	assert_string_equal(text, "a......");
	assert_int_equal(rrecv(server, text, sizeof(text), 0), 4);
	assert_memory_equal(text, "defg...", 7);
}

static uint8_t sent[LONG], got[LONG];

static void *send_long(void *arg)
{
	const int s = *(int *)arg;

	MUST(rsend(s, sent, LONG, 0) == LONG);
	return NULL;
}

static void send_both_ways(void)
{
	static uint8_t back[LONG];
	pthread_t threads[2];

	for (size_t i = 0; i < LONG; i++)
		sent[i] = (uint8_t)(i * 7 + i / 251);
	assert_int_equal(pthread_create(&threads[0], NULL, send_long, &client), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, send_long, &server), 0);
	assert_int_equal(rrecv(server, got, LONG, MSG_WAITALL), LONG);
	assert_int_equal(rrecv(client, back, LONG, MSG_WAITALL), LONG);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	assert_memory_equal(sent, got, LONG);
	assert_memory_equal(sent, back, LONG);
}

/* One thread sends on an rsocket while another one receives, in both directions. In an earlier
 * version the receiver sometimes took the event for which the sender waited (in one of thirty
 * rounds), and the sender slept for ever. */
TEST(rsend__long_both_ways_by_threads)
{
	for (int i = 0; i < ROUNDS; i++)
		send_both_ways();
}

/* A sender blocks when both buffers are full and the peer does not read. */
TEST(rsend__stops_where_the_peer_does_not_read)
{
	ssize_t all = 0, rc;

	while ((rc = rsend(client, sent, LONG, MSG_DONTWAIT)) > 0)
		all += rc;
	assert_int_equal(rc, -1);
	assert_int_equal(errno, EAGAIN);
	assert_true(all > 0 && all <= 1 << 18);
	assert_int_equal(rrecv(server, got, (size_t)all, MSG_WAITALL), all);
}

TEST(rrecv__nothing_is_there)
{
	const struct timeval time = {.tv_usec = 1000};
	char byte;

	assert_int_equal(rrecv(server, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(rfcntl(server, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(rrecv(server, &byte, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(rfcntl(server, F_GETFL), O_RDWR | O_NONBLOCK);
	assert_int_equal(rfcntl(server, F_SETFL, 0), 0);
	assert_int_equal(rsetsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)), 0);
	assert_int_equal(rrecv(server, &byte, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(rrecv(server, &byte, 1, MSG_OOB), -1);
	assert_int_equal(errno, EOPNOTSUPP);
}

TEST(rrecv__negative_timeout_does_not_wait)
{
	const struct timeval time = {.tv_sec = -1};
	char byte;

	/* Without the limit of this alarm, a call that waits would wait for ever. */
	alarm(60);
	assert_int_equal(rsetsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)), 0);
	assert_int_equal(rrecv(server, &byte, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
	alarm(0);
}

TEST(rshutdown__one_direction_ends)
{
	char text[8];

	assert_int_equal(rsend(client, "last", 4, 0), 4);
	assert_int_equal(rshutdown(client, SHUT_WR), 0);
	assert_int_equal(rsend(client, "more", 4, 0), -1);
	assert_int_equal(errno, EPIPE);
	assert_int_equal(rrecv(server, text, sizeof(text), MSG_WAITALL), 4);
	assert_int_equal(rrecv(server, text, sizeof(text), 0), 0);
	assert_int_equal(rsend(server, "answer", 6, 0), 6);
	assert_int_equal(rrecv(client, text, 6, MSG_WAITALL), 6);
	assert_int_equal(rshutdown(server, SHUT_WR), 0);
	assert_int_equal(rrecv(client, text, sizeof(text), 0), 0);
	assert_int_equal(rsend(client, "more", 4, 0), -1);
	assert_int_equal(errno, EPIPE);
}

TEST(rclose__what_was_sent_arrives)
{
	char text[8];

	assert_int_equal(rsend(client, "last", 4, 0), 4);
	assert_int_equal(rclose(client), 0);
	assert_int_equal(rclose(client), -1);
	assert_int_equal(errno, EBADF);
	client = -1;
	assert_int_equal(rrecv(server, text, 4, MSG_WAITALL), 4);
	assert_int_equal(rrecv(server, text, 1, 0), 0);
	assert_int_equal(rsend(server, "x", 1, 0), -1);
	assert_int_equal(errno, EPIPE);
}

static void *recv_end(void *arg)
{
	char byte;

	MUST(rrecv(*(int *)arg, &byte, 1, 0) <= 0);
	return NULL;
}

/* A thread that sleeps in the rsocket is woken. */
TEST(rclose__ends_calls_of_other_threads)
{
	int s = client;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, recv_end, &s), 0);
	usleep(20000);
	assert_int_equal(rclose(client), 0);
	client = -1;
	pthread_join(thread, NULL);
}

TEST(rpoll__tells_what_is_ready)
{
	struct pollfd fds[] = {{.fd = server, .events = POLLIN | POLLOUT},
			       {.fd = listener, .events = POLLIN},
			       {.fd = -1}};
	char byte;

	/* The accepting side may send only after the peer's RTU or its first data. */
	assert_int_equal(rsend(client, "e", 1, 0), 1);
	assert_int_equal(rrecv(server, &byte, 1, 0), 1);
	assert_int_equal(rpoll(fds, 3, 0), 1);
	assert_int_equal(fds[0].revents, POLLOUT);
	fds[0].events = POLLIN;
	assert_int_equal(rpoll(fds, 3, 5), 0);
	assert_int_equal(rsend(client, "x", 1, 0), 1);
	assert_int_equal(rpoll(fds, 3, 5000), 1);
	assert_int_equal(fds[0].revents, POLLIN);
	assert_int_equal(rclose(client), 0);
	client = -1;
	/* A hang-up is told after the data. */
	assert_int_equal(rpoll(fds, 3, 20), 1);
	assert_int_equal(fds[0].revents, POLLIN);
	assert_int_equal(rrecv(server, &byte, 1, 0), 1);
	assert_int_equal(rpoll(fds, 3, 5000), 1);
	assert_true(fds[0].revents & POLLHUP);
	assert_true(fds[0].revents & POLLIN);
}

static void *send_soon(void *arg)
{
	usleep(20000);
	MUST(rsend(*(int *)arg, "x", 1, 0) == 1);
	return NULL;
}

/* Asleep, with descriptors of the kernel's beside. */
TEST(rselect__wakes_for_data_and_for_pipes)
{
	struct timeval time = {.tv_sec = 10};
	pthread_t thread;
	int ends[2];
	fd_set in;

	assert_int_equal(pipe(ends), 0);
	FD_ZERO(&in);
	FD_SET(server, &in);
	FD_SET(ends[0], &in);
	assert_int_equal(pthread_create(&thread, NULL, send_soon, &client), 0);
	assert_int_equal(rselect(FD_SETSIZE, &in, NULL, NULL, &time), 1);
	assert_true(FD_ISSET(server, &in));
	assert_false(FD_ISSET(ends[0], &in));
	pthread_join(thread, NULL);
	FD_CLR(server, &in);
	FD_SET(ends[0], &in);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(rselect(FD_SETSIZE, &in, NULL, NULL, &time), 1);
	assert_true(FD_ISSET(ends[0], &in));
	close(ends[0]);
	close(ends[1]);
}

TEST(rconnect__without_waiting)
{
	struct sockaddr_in at = loopback();
	const int s = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct pollfd fd = {.fd = s, .events = POLLOUT};
	socklen_t len = sizeof(int);
	int error = -1, child;

	/* In memory, the connection may be complete at once. */
	assert_true(rconnect(s, (struct sockaddr *)&at, sizeof(at)) == 0 || errno == EINPROGRESS);
	assert_int_equal(rpoll(&fd, 1, 5000), 1);
	assert_int_equal(rgetsockopt(s, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	assert_int_equal(error, 0);
	assert_int_equal(rconnect(s, (struct sockaddr *)&at, sizeof(at)), -1);
	assert_int_equal(errno, EISCONN);
	child = raccept(listener, NULL, NULL);
	assert_true(child >= 0);
	assert_int_equal(rclose(s), 0);
	assert_int_equal(rclose(child), 0);
}

TEST(rconnect__nobody_listens)
{
	struct sockaddr_in at = loopback();
	const int s = rsocket(AF_INET, SOCK_STREAM, 0);
	char byte;

	at.sin_port = htons(PORT + 1);
	assert_int_equal(rconnect(s, (struct sockaddr *)&at, sizeof(at)), -1);
	assert_int_equal(errno, ECONNREFUSED);
	assert_int_equal(rsend(s, "x", 1, 0), -1);
	assert_int_equal(rrecv(s, &byte, 1, 0), 0);
	assert_int_equal(rclose(s), 0);
}

TEST(raccept__tells_the_peer)
{
	struct sockaddr_in at = loopback(), from = {0}, own = {0};
	socklen_t len = sizeof(from);
	const int s = rsocket(AF_INET, SOCK_STREAM, 0);
	int child;

	assert_int_equal(rfcntl(listener, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(raccept(listener, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(rconnect(s, (struct sockaddr *)&at, sizeof(at)), 0);
	child = raccept(listener, (struct sockaddr *)&from, &len);
	assert_true(child >= 0);
	assert_int_equal(len, sizeof(from));
	assert_int_equal(rgetsockname(s, (struct sockaddr *)&own, &len), 0);
	assert_int_equal(from.sin_port, own.sin_port);
	assert_int_equal(rgetpeername(s, (struct sockaddr *)&own, &len), 0);
	assert_int_equal(own.sin_port, htons(PORT));
	assert_int_equal(rclose(s), 0);
	assert_int_equal(rclose(child), 0);
}

/* The port is freed even if the service's thread is busy. */
TEST(rclose__frees_a_listeners_port)
{
	struct sockaddr_in at = loopback();

	for (int i = 0; i < 200; i++) {
		const int s = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

		assert_true(rconnect(s, (struct sockaddr *)&at, sizeof(at)) == 0 ||
			    errno == EINPROGRESS);
		assert_int_equal(rclose(listener), 0);
		listener = listen_at_loopback();
		assert_int_equal(rclose(s), 0);
	}
}

TEST(rsocket__wrong_calls)
{
	struct sockaddr_in at = loopback();
	int value = 32, s;
	socklen_t len = sizeof(at);

	assert_int_equal(rsocket(AF_UNIX, SOCK_STREAM, 0), -1);
	assert_int_equal(errno, EAFNOSUPPORT);
	assert_int_equal(rsocket(AF_INET, SOCK_RAW, 0), -1);
	assert_int_equal(errno, ESOCKTNOSUPPORT);
	assert_int_equal(rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), -1);
	assert_int_equal(errno, EPROTONOSUPPORT);
	s = rsocket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
	assert_int_equal(rsend(s, "x", 1, 0), -1);
	assert_int_equal(errno, ENOTCONN);
	assert_int_equal(rrecv(s, &value, 1, 0), -1);
	assert_int_equal(errno, ENOTCONN);
	assert_int_equal(rshutdown(s, SHUT_WR), -1);
	assert_int_equal(errno, ENOTCONN);
	assert_int_equal(rgetpeername(s, (struct sockaddr *)&at, &len), -1);
	assert_int_equal(errno, ENOTCONN);
	assert_int_equal(rconnect(s, (struct sockaddr *)&at, 4), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(raccept(s, NULL, NULL), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rbind(s, (struct sockaddr *)&at, sizeof(at)), -1);
	assert_int_equal(errno, EADDRINUSE);
	assert_int_equal(rclose(s), 0);
	assert_int_equal(rsend(s, "x", 1, 0), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(rlisten(-1, 1), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(rsetsockopt(client, SOL_RDMA, RDMA_SQSIZE, &value, sizeof(value)), -1);
	assert_int_equal(errno, EINVAL);
}

static int get_int(int s, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	assert_int_equal(rgetsockopt(s, level, name, &value, &len), 0);
	assert_int_equal(len, sizeof(value));
	return value;
}

static void set_int(int s, int level, int name, int value)
{
	assert_int_equal(rsetsockopt(s, level, name, &value, sizeof(value)), 0);
}

TEST(rsetsockopt__is_told_by_rgetsockopt)
{
	const int s = rsocket(AF_INET, SOCK_STREAM, 0);
	const struct {
		int level, name, value, told;
	} options[] = {
		{SOL_SOCKET, SO_REUSEADDR, 1, 1},      {SOL_SOCKET, SO_KEEPALIVE, 1, 1},
		{SOL_SOCKET, SO_OOBINLINE, 1, 1},      {SOL_SOCKET, SO_RCVBUF, 10000, 20000},
		{SOL_SOCKET, SO_SNDBUF, 10000, 20000}, {IPPROTO_TCP, TCP_NODELAY, 1, 1},
		{SOL_SOCKET, SO_REUSEPORT, 1, 1},      {IPPROTO_TCP, TCP_CORK, 1, 1},
		{IPPROTO_TCP, TCP_KEEPCNT, 5, 5},      {IPPROTO_TCP, TCP_USER_TIMEOUT, 900, 900},
		{IPPROTO_TCP, TCP_KEEPIDLE, 77, 77},   {IPPROTO_IP, IP_TOS, 0x20, 0x20},
		{SOL_RDMA, RDMA_SQSIZE, 100, 100},     {SOL_RDMA, RDMA_RQSIZE, 1, 16},
		{SOL_RDMA, RDMA_INLINE, 32, 32},       {SOL_RDMA, RDMA_IOMAPSIZE, 300, 256},
	};
	struct linger linger = {.l_onoff = 1, .l_linger = 3};
	socklen_t len = sizeof(linger);

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		set_int(s, options[i].level, options[i].name, options[i].value);
		assert_int_equal(get_int(s, options[i].level, options[i].name), options[i].told);
	}
	assert_int_equal(rsetsockopt(s, SOL_SOCKET, SO_LINGER, &linger, len), 0);
	linger.l_linger = 0;
	assert_int_equal(rgetsockopt(s, SOL_SOCKET, SO_LINGER, &linger, &len), 0);
	assert_int_equal(linger.l_linger, 3);
	assert_int_equal(get_int(s, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
	assert_int_equal(get_int(listener, SOL_SOCKET, SO_ACCEPTCONN), 1);
	assert_int_equal(rsetsockopt(s, SOL_SOCKET, 9999, &linger, len), -1);
	assert_int_equal(errno, ENOPROTOOPT);
	assert_int_equal(rclose(s), 0);
}

TEST(rsetsockopt__without_effect_has_the_defaults_and_limits_of_tcp)
{
	const int negative = -1, count = 128;

	assert_int_equal(get_int(server, IPPROTO_TCP, TCP_KEEPCNT), 9);
	assert_int_equal(get_int(server, IPPROTO_TCP, TCP_KEEPINTVL), 75);
	assert_int_equal(get_int(server, IPPROTO_TCP, TCP_QUICKACK), 1);
	assert_int_equal(
		rsetsockopt(server, IPPROTO_TCP, TCP_USER_TIMEOUT, &negative, sizeof(negative)),
		-1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rsetsockopt(server, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count)), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(get_int(server, IPPROTO_TCP, TCP_KEEPCNT), 9);
}

/* The smallest queues and buffers, and nothing inline. */
TEST(rsend__long_through_small_queues)
{
	struct sockaddr_in at = loopback();
	const int s = rsocket(AF_INET, SOCK_STREAM, 0);
	pthread_t thread;
	int child;

	set_int(s, SOL_RDMA, RDMA_SQSIZE, 1);
	set_int(s, SOL_RDMA, RDMA_RQSIZE, 1);
	set_int(s, SOL_RDMA, RDMA_INLINE, 0);
	set_int(s, SOL_SOCKET, SO_SNDBUF, 1);
	set_int(s, SOL_SOCKET, SO_RCVBUF, 1);
	assert_int_equal(rconnect(s, (struct sockaddr *)&at, sizeof(at)), 0);
	child = raccept(listener, NULL, NULL);
	assert_int_equal(pthread_create(&thread, NULL, send_long, (void *)&s), 0);
	assert_int_equal(rrecv(child, got, LONG, MSG_WAITALL), LONG);
	pthread_join(thread, NULL);
	assert_memory_equal(sent, got, LONG);
	assert_int_equal(pthread_create(&thread, NULL, send_long, (void *)&child), 0);
	assert_int_equal(rrecv(s, got, LONG, MSG_WAITALL), LONG);
	pthread_join(thread, NULL);
	assert_memory_equal(sent, got, LONG);
	assert_int_equal(rclose(s), 0);
	assert_int_equal(rclose(child), 0);
}

/* A connection of which either side maps two buffers for the other one. */
static int connect_mapped(int *child, int inline_bytes)
{
	struct sockaddr_in at = loopback();
	const int s = rsocket(AF_INET, SOCK_STREAM, 0);

	set_int(s, SOL_RDMA, RDMA_IOMAPSIZE, 2);
	set_int(s, SOL_RDMA, RDMA_INLINE, inline_bytes);
	assert_int_equal(rconnect(s, (struct sockaddr *)&at, sizeof(at)), 0);
	*child = raccept(listener, NULL, NULL);
	assert_true(*child >= 0);
	return s;
}

static void write_mapped(int inline_bytes)
{
	static uint8_t window[LONG];
	int child, s = connect_mapped(&child, inline_bytes);
	char byte;

	memset(window, 0, sizeof(window));
	assert_int_equal(riomap(child, window, LONG, PROT_WRITE, 0, 5000), 5000);
	/* Mappings come before the data that follows. */
	assert_int_equal(rsend(child, "m", 1, 0), 1);
	assert_int_equal(rrecv(s, &byte, 1, 0), 1);
	assert_int_equal(riowrite(s, sent, LONG, 5000, 0), LONG);
	assert_int_equal(rsend(s, "w", 1, 0), 1);
	assert_int_equal(rrecv(child, &byte, 1, 0), 1);
	assert_memory_equal(window, sent, LONG);
	/* Offsets before and behind the window are refused. */
	assert_int_equal(riowrite(s, sent, 1, 4999, 0), (size_t)-1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(riowrite(s, sent, 10, 5000 + LONG - 4, 0), 4);
	/* A write that is in flight when its memory is unmapped ends the connection. */
	assert_int_equal(rsend(s, "x", 1, 0), 1);
	assert_int_equal(rrecv(child, &byte, 1, 0), 1);
	assert_int_equal(riounmap(child, window, LONG), 0);
	assert_int_equal(riounmap(child, window, LONG), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rsend(child, "u", 1, 0), 1);
	assert_int_equal(rrecv(s, &byte, 1, 0), 1);
	assert_int_equal(riowrite(s, sent, 1, 5000, 0), (size_t)-1);
	assert_int_equal(rclose(s), 0);
	assert_int_equal(rclose(child), 0);
}

TEST(riowrite__reaches_what_is_mapped)
{
	write_mapped(64);
}

TEST(riowrite__reaches_what_is_mapped_without_inline_data)
{
	write_mapped(0);
}

/* The table has two places, which are used again. */
TEST(riomap__more_than_the_peer_has_places_for)
{
	static uint8_t memory[4][64];
	int child, s = connect_mapped(&child, 64);

	assert_int_equal(riomap(child, memory[0], 64, PROT_WRITE, 0, 0), 0);
	assert_int_equal(riomap(child, memory[1], 64, PROT_WRITE, 0, 64), 64);
	assert_int_equal(riomap(child, memory[2], 64, PROT_WRITE, 0, 128), -1);
	assert_int_equal(errno, ENOMEM);
	assert_true(riomap(child, memory[3], 64, PROT_NONE, 0, -1) == (off_t)(uintptr_t)memory[3]);
	assert_int_equal(riounmap(child, memory[0], 64), 0);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(riomap(child, memory[2], 64, PROT_WRITE, 0, 128), 128);
		assert_int_equal(riounmap(child, memory[2], 64), 0);
		(void)rpoll(&(struct pollfd){.fd = s, .events = POLLIN}, 1, 0);
		(void)rpoll(&(struct pollfd){.fd = child, .events = POLLIN}, 1, 0);
	}
	assert_int_equal(riomap(s, memory[0], 64, PROT_WRITE, 0, 0), -1);
	assert_int_equal(rclose(s), 0);
	assert_int_equal(rclose(child), 0);
}
