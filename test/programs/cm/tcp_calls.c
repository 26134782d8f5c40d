/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A TCP program, whose calls must do the same whether its streams are the kernel's or those of
 * librspreload.so:
 *
 *   tcp_calls ADDRESS PORT
 *
 * It is compiled with _FORTIFY_SOURCE, so that it calls the C library's functions that check the
 * length of a buffer.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "must.h"

#define SECONDS	  60   /* a program that takes longer hangs */
#define NO_NUMBER 4000 /* a descriptor that is not open */

static struct sockaddr_in address;
static int active, passive;

/* The compiler does not know these values, so it makes the C library check them. */
static volatile nfds_t one = 1;
static volatile size_t bytes = 4;

static void connect_both(void)
{
	const int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	int count;

	MUST(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
	MUST(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0);
	MUST(listen(listener, 1) == 0);
	active = socket(AF_INET, SOCK_STREAM, 0);
	MUST(connect(active, (struct sockaddr *)&address, sizeof(address)) == 0);
	passive = accept(listener, NULL, NULL);
	MUST(passive >= 0);
	MUST(ioctl(listener, FIONREAD, &count) == -1 && errno == EINVAL);
	MUST(close(listener) == 0);
}

/* Send four bytes, and wait for them. */
static void send_some(void)
{
	struct pollfd fds[2] = {{.fd = passive, .events = POLLIN}};
	const struct timespec long_time = {.tv_sec = SECONDS};

	MUST(send(active, "abcd", 4, 0) == 4);
	MUST(ppoll(fds, one, &long_time, NULL) == 1);
	MUST(fds[0].revents == POLLIN);
}

static void check_poll(void)
{
	struct pollfd fds[2] = {{.fd = passive, .events = POLLIN | POLLOUT}};
	const struct timespec no_time = {0};

	/* An accepted stream may send once it has received. */
	send_some();
	MUST(poll(fds, one, 0) == 1);
	MUST(fds[0].revents == (POLLIN | POLLOUT));
	MUST(ppoll(fds, one, &no_time, NULL) == 1);
	MUST(fds[0].revents == (POLLIN | POLLOUT));
}

static void check_read(void)
{
	char text[16];

	MUST(read(passive, text, bytes) == 4);
	send_some();
	MUST(recv(passive, text, bytes, 0) == 4);
	send_some();
	MUST(recvfrom(passive, text, bytes, 0, NULL, NULL) == 4);
	MUST(memcmp(text, "abcd", 4) == 0);
}

static void check_truncated(void)
{
	char text[16] = "....";
	int count = -1;

	MUST(ioctl(passive, FIONREAD, &count) == 0 && count == 0);
	send_some();
	MUST(ioctl(passive, FIONREAD, &count) == 0 && count == 4);
	MUST(recv(passive, text, 3, MSG_TRUNC) == 3);
	MUST(memcmp(text, "....", 4) == 0);
	MUST(recv(passive, text, sizeof(text), 0) == 1 && text[0] == 'd');
}

static void check_send(void)
{
	static struct iovec many[IOV_MAX + 1];
	struct msghdr msg = {.msg_iov = many, .msg_iovlen = IOV_MAX + 1};
	char text[4];

	MUST(writev(active, many, IOV_MAX + 1) == -1 && errno == EINVAL);
	MUST(readv(active, many, IOV_MAX + 1) == -1 && errno == EINVAL);
	MUST(sendmsg(active, &msg, 0) == -1 && errno == EMSGSIZE);
	MUST(sendto(active, "x", 1, 0, (struct sockaddr *)&address, sizeof(address)) == 1);
	MUST(recv(passive, text, sizeof(text), 0) == 1);
}

static void check_option(int level, int name, int initial)
{
	int value = -1, other = initial + 1;
	socklen_t len = sizeof(value);

	MUST(getsockopt(active, level, name, &value, &len) == 0);
	MUST(value == initial);
	MUST(setsockopt(active, level, name, &other, sizeof(other)) == 0);
	MUST(getsockopt(active, level, name, &value, &len) == 0);
	MUST(value == other);
}

static void check_options(void)
{
	check_option(SOL_SOCKET, SO_REUSEPORT, 0);
	check_option(SOL_SOCKET, SO_BROADCAST, 0);
	check_option(SOL_SOCKET, SO_PRIORITY, 0);
	check_option(IPPROTO_TCP, TCP_CORK, 0);
	check_option(IPPROTO_TCP, TCP_USER_TIMEOUT, 0);
}

/* A call that fails leaves the second descriptor as it is. */
static void check_duplicates(void)
{
	int other;

	MUST(dup2(NO_NUMBER, passive) == -1 && errno == EBADF);
	MUST(dup3(active, passive, O_APPEND) == -1 && errno == EINVAL);
	send_some();
	check_read();
	other = dup(passive);
	MUST(other >= 0);
	MUST(dup2(other, passive) == passive);
	MUST(dup3(passive, other, O_CLOEXEC) == other);
	MUST(fcntl(other, F_GETFD) == FD_CLOEXEC);
	MUST(close(other) == 0);
	send_some();
	check_read();
	other = open("/dev/null", O_RDONLY | O_CLOEXEC);
	MUST(dup2(passive, other) == other);
	MUST(close(passive) == 0);
	passive = other;
	send_some();
	check_read();
}

int main(int argc, char **argv)
{
	alarm(SECONDS);
	MUST(argc == 3);
	address.sin_family = AF_INET;
	address.sin_port = htons((uint16_t)atoi(argv[2]));
	MUST(inet_pton(AF_INET, argv[1], &address.sin_addr) == 1);
	connect_both();
	check_poll();
	check_read();
	check_truncated();
	check_send();
	check_options();
	check_duplicates();
	MUST(close(active) == 0);
	MUST(read(passive, argv[0], bytes) == 0);
	MUST(close(passive) == 0);
	puts("as by TCP");
	return 0;
}
