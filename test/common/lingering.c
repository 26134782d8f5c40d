/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets whose last close takes as long as somebody listens. */
#include "lingering.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

#define BACKLOG 600 /* as many as a test needs */

int lingering_listen(struct sockaddr_in *address)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), bytes = 4096;
	socklen_t len = sizeof(*address);

	*address = (struct sockaddr_in){.sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 ||
	    listen(fd, BACKLOG) != 0)
		skip();
	assert_int_equal(getsockname(fd, (struct sockaddr *)address, &len), 0);
	return fd;
}

int lingering_socket(const struct sockaddr_in *address)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), bytes = 4096;
	const struct linger linger = {.l_onoff = 1, .l_linger = 65535};
	static const char data[4096];

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)address, sizeof(*address)), 0);
	while (send(fd, data, sizeof(data), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	return fd;
}

void lingering_send(int socket, const struct sockaddr_in *address)
{
	const int fd = lingering_socket(address);
	struct iovec iov = {.iov_base = (char[]){'a'}, .iov_len = 1};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.header = {.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS,
				.cmsg_len = CMSG_LEN(sizeof(int))}};
	const struct msghdr msg = {.msg_iov = &iov,
				   .msg_iovlen = 1,
				   .msg_control = &control,
				   .msg_controllen = sizeof(control)};

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	assert_int_equal(sendmsg(socket, &msg, 0), 1);
	close(fd);
}

int lingering_queue(const struct sockaddr_in *address)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	lingering_send(pair[1], address);
	close(pair[1]);
	return pair[0];
}
