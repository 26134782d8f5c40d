/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the user of a process. With user namespaces one user may have many user ids. */
#include "share/user.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Set in a user_t that stands for a namespace; the other bits are the namespace's inode number. */
#define OF_NAMESPACE (UINT64_C(1) << 63)

static ino_t inode_of(int fd)
{
	struct stat file;

	return fstat(fd, &file) == 0 ? file.st_ino : 0;
}

static ino_t own_namespace(void)
{
	struct stat file;

	return stat("/proc/self/ns/user", &file) == 0 ? file.st_ino : 0;
}

/* Return the user who made a namespace. If that is the superuser, who may run a container
 * engine, return the namespace itself. */
static user_t namespace_user(int fd)
{
	uid_t uid;

	if (ioctl(fd, NS_GET_OWNER_UID, &uid) == 0 && uid != 0)
		return user_of_uid(uid);
	return OF_NAMESPACE | inode_of(fd);
}

/* Go from a process's namespace up to the one right below ours, and return that one. Closes the
 * descriptor, unless it is the result. */
static int topmost(int fd, ino_t own)
{
	for (;;) {
		const int parent = ioctl(fd, NS_GET_PARENT);

		if (parent < 0)
			return fd;
		if (inode_of(parent) == own) {
			close(parent);
			return fd;
		}
		close(fd);
		fd = parent;
	}
}

int user_pidfd(int socket, const struct ucred *peer)
{
	socklen_t len = sizeof(int);
	int fd;

	if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) == 0)
		return fd;
	/* Linux before 6.5 does not know the option. */
	if (errno != ENOPROTOOPT)
		return -errno;
	fd = (int)syscall(SYS_pidfd_open, peer->pid, 0);
	return fd < 0 ? -errno : fd;
}

bool user_has_ended(int pidfd)
{
	struct pollfd process = {.fd = pidfd, .events = POLLIN};
	int rc;

	/* poll fails if a handler ran meanwhile. DPDK's net_tap has a signal for each packet. */
	do
		rc = poll(&process, 1, 0);
	while (rc < 0 && errno == EINTR);
	return rc != 0;
}

/* Open the user namespace of a process. Return -1 if it is unknown, or is ours. */
static int user_namespace(const struct ucred *peer, ino_t own)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", peer->pid);
	fd = peer->pid != 0 && own != 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0 && inode_of(fd) == own) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Return true if the process has ended. Its number may then belong to another process, so
 * nothing can be looked up by it. */
static bool has_ended(int socket, const struct ucred *peer)
{
	bool ended;
	int pidfd;

	if (peer->pid == 0)
		return false;
	pidfd = user_pidfd(socket, peer);
	if (pidfd < 0)
		return true;
	ended = user_has_ended(pidfd);
	close(pidfd);
	return ended;
}

user_t user_of(int socket)
{
	const ino_t own = own_namespace();
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);
	user_t user;
	int fd;

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
		return USER_UNKNOWN;
	fd = user_namespace(&peer, own);
	if (has_ended(socket, &peer)) {
		if (fd >= 0)
			close(fd);
		return USER_UNKNOWN;
	}
	if (fd < 0)
		return user_of_uid(peer.uid);
	fd = topmost(fd, own);
	user = namespace_user(fd);
	close(fd);
	return user;
}
