/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving from who may send anything: descriptors of files whose file system is a process of the
 * sender's, which never answers, are neither asked for anything nor closed by the caller's thread.
 */
#include "memif/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#define CLOSE_MAX 32 /* threads that close at one time; the rest stays open */

/* Room for one descriptor: the kernel drops what has no room, and waits for nobody. */
union control {
	struct cmsghdr header;
	char room[CMSG_LEN(sizeof(int))];
};

int memif_socket_send(int fd, const void *data, size_t len)
{
	return send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

static int take_fd(struct msghdr *msg)
{
	const struct cmsghdr *header = CMSG_FIRSTHDR(msg);
	int fd;

	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
	    header->cmsg_len != CMSG_LEN(sizeof(fd)))
		return -1;
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

int memif_socket_receive(int fd, void *data, size_t size, int *passed_fd)
{
	struct iovec iov = {.iov_base = data, .iov_len = size};
	union control control;
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control.room)};
	ssize_t len;

	*passed_fd = -1;
	len = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
	if (len < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	*passed_fd = take_fd(&msg);
	return (int)len;
}

bool memif_socket_is_eventfd(int fd)
{
	/* Names of files begin with a slash. */
	static const char wanted[] = "anon_inode:[eventfd]";
	char link[64], target[sizeof(wanted)];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return readlink(link, target, sizeof(target)) == (ssize_t)strlen(wanted) &&
	       memcmp(target, wanted, strlen(wanted)) == 0;
}

bool memif_socket_is_sealed(int fd)
{
	/* Only files in memory know of seals. */
	const int seals = fcntl(fd, F_GET_SEALS);
	struct statfs file_system;

	/* A huge page that nobody has reserved would be a fault. */
	return seals >= 0 && (seals & F_SEAL_SHRINK) && fstatfs(fd, &file_system) == 0 &&
	       file_system.f_type == TMPFS_MAGIC;
}

static uint32_t closing; /* atomic; how many wait, or stay open */

static void *close_it(void *arg)
{
	close((int)(intptr_t)arg);
	__atomic_fetch_sub(&closing, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void close_in_thread(int fd)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;

	if (__atomic_add_fetch(&closing, 1, __ATOMIC_RELAXED) > CLOSE_MAX)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* Where it cannot be had, the descriptor stays, and counts. */
	pthread_create(&thread, &attr, close_it, (void *)(intptr_t)fd);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

bool memif_socket_is_stuck(void)
{
	return __atomic_load_n(&closing, __ATOMIC_RELAXED) >= CLOSE_MAX;
}

void memif_socket_discard(int fd)
{
	if (fd < 0)
		return;
	if (fcntl(fd, F_GET_SEALS) >= 0 || memif_socket_is_eventfd(fd))
		close(fd);
	else
		close_in_thread(fd);
}
