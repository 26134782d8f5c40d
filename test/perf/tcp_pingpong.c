/* SPDX-License-Identifier: BSD-3-Clause */
/* A TCP ping-pong: the latency without RDMA. tcp_pingpong [-b] [-n COUNT] PORT [SERVER] prints p50
 * and p99 of half a round trip in us. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_BYTES 64

static int fail(const char *what)
{
	fprintf(stderr, "tcp_pingpong: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Return 0 at the end of the connection. */
static bool receive(int fd, char *message, int flags)
{
	size_t have = 0;

	while (have < MESSAGE_BYTES) {
		const ssize_t n = recv(fd, message + have, MESSAGE_BYTES - have, flags);

		if (n == 0)
			return false;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			fail("recv");
		if (n > 0)
			have += (size_t)n;
	}
	return true;
}

static int connect_or_accept(const struct sockaddr_in *addr, bool server)
{
	const int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), peer;

	if (fd < 0)
		fail("socket");
	if (server) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) != 0 ||
		    listen(fd, 1) != 0)
			fail("listen");
		peer = accept(fd, NULL, NULL);
		if (peer < 0)
			fail("accept");
		close(fd);
		fd = peer;
	} else {
		int tries = 100;

		while (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) != 0) {
			if (--tries == 0)
				fail("connect");
			usleep(50000);
		}
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static void ping(int fd, int count, int flags)
{
	double *us = calloc((size_t)count, sizeof(*us));
	char message[MESSAGE_BYTES] = {0};

	if (us == NULL)
		fail("calloc");
	for (int i = 0; i < count; i++) {
		struct timespec begin, end;

		clock_gettime(CLOCK_MONOTONIC, &begin);
		if (send(fd, message, sizeof(message), 0) != (ssize_t)sizeof(message))
			fail("send");
		if (!receive(fd, message, flags))
			fail("peer closed");
		clock_gettime(CLOCK_MONOTONIC, &end);
		us[i] = ((double)(end.tv_sec - begin.tv_sec) * 1e6 +
			 (double)(end.tv_nsec - begin.tv_nsec) / 1e3) /
			2;
	}
	qsort(us, (size_t)count, sizeof(*us), compare);
	printf("%.2f %.2f\n", us[count / 2], us[(size_t)count * 99 / 100]);
	free(us);
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = {.sin_family = AF_INET};
	char message[MESSAGE_BYTES];
	int count = 100000, flags = MSG_DONTWAIT, option, fd;

	while ((option = getopt(argc, argv, "bn:")) != -1) {
		if (option == 'b')
			flags = 0;
		else if (option == 'n')
			count = atoi(optarg);
		else
			return 2;
	}
	if (optind >= argc || count <= 0) {
		fprintf(stderr, "usage: tcp_pingpong [-b] [-n COUNT] PORT [SERVER]\n");
		return 2;
	}
	addr.sin_port = htons((uint16_t)atoi(argv[optind]));
	if (optind + 1 < argc && inet_pton(AF_INET, argv[optind + 1], &addr.sin_addr) != 1)
		return 2;
	fd = connect_or_accept(&addr, optind + 1 >= argc);
	if (optind + 1 < argc) {
		ping(fd, count, flags);
	} else {
		while (receive(fd, message, flags)) {
			if (send(fd, message, sizeof(message), 0) < 0)
				break;
		}
	}
	close(fd);
	return 0;
}
