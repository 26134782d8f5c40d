/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends and receives messages and descriptors through a SOCK_SEQPACKET socket. */
#include "share/message.h"

#include <errno.h>
#include <string.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Room for descriptors and for the sender's credentials, with the alignment of their header. */
union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(SHARE_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

int share_socket_path(const char *path, uint32_t number, struct sockaddr_un *address)
{
	char suffix[16] = "";
	int len;

	if (number > 0)
		snprintf(suffix, sizeof(suffix), ".%u", number);
	address->sun_family = AF_UNIX;
	len = snprintf(address->sun_path, sizeof(address->sun_path), "%s%s", path, suffix);
	return len < (int)sizeof(address->sun_path) ? 0 : -ENAMETOOLONG;
}

int message_send(int fd, const struct share_message *message, const int *fds, int count)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)message, .iov_len = sizeof(*message)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	union control control;

	if (count > 0) {
		struct cmsghdr *header;

		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
		header = CMSG_FIRSTHDR(&msg);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
		memcpy(CMSG_DATA(header), fds, (size_t)count * sizeof(int));
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Store the received descriptors in `fds` as far as it has room, and close the others. */
static void take_fds(struct msghdr *msg, int *fds)
{
	for (struct cmsghdr *header = CMSG_FIRSTHDR(msg); header;
	     header = CMSG_NXTHDR(msg, header)) {
		const int count = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		for (int i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(header) + (size_t)i * sizeof(int), sizeof(fd));
			if (fds && i < SHARE_FDS)
				fds[i] = fd;
			else
				close(fd);
		}
	}
}

/* Return the sender's process id, which the kernel adds if the receiver asks for it (SO_PASSCRED);
 * 0 if there is none. */
static pid_t find_sender(struct msghdr *msg)
{
	struct ucred sender = {0};

	for (struct cmsghdr *header = CMSG_FIRSTHDR(msg); header;
	     header = CMSG_NXTHDR(msg, header)) {
		if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_CREDENTIALS &&
		    header->cmsg_len == CMSG_LEN(sizeof(sender)))
			memcpy(&sender, CMSG_DATA(header), sizeof(sender));
	}
	return sender.pid;
}

int message_receive(int fd, struct share_message *message, int *fds)
{
	return message_receive_from(fd, message, fds, NULL);
}

int message_receive_from(int fd, struct share_message *message, int *fds, pid_t *sender)
{
	struct iovec iov = {.iov_base = message, .iov_len = sizeof(*message)};
	union control control;
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t len;
	bool cut;

	for (int i = 0; fds && i < SHARE_FDS; i++)
		fds[i] = -1;
	len = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (len < 0)
		return errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -errno;
	/* This process has no room for the descriptors, or there are too many. */
	cut = msg.msg_flags & MSG_CTRUNC;
	take_fds(&msg, cut ? NULL : fds);
	if (sender)
		*sender = find_sender(&msg);
	if (len == 0)
		return -ECONNRESET;
	if (len != sizeof(*message) || (msg.msg_flags & MSG_TRUNC) ||
	    message->version != SHARE_VERSION)
		return -EPROTO;
	return cut ? -EMFILE : 0;
}
