/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the user of a process. In containers and user namespaces one user may have many user ids.
 */
#include "share/user.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Linux 6.11 */
#ifndef PIDFD_GET_PID_NAMESPACE
#define PIDFD_GET_PID_NAMESPACE	 _IO(0xFF, 5)
#define PIDFD_GET_USER_NAMESPACE _IO(0xFF, 9)
#endif

/* Set in a user_t that stands for a namespace; the other bits are the namespace's inode number. */
#define OF_NAMESPACE (UINT64_C(1) << 63)

/* More than the lines of /proc/PID/status up to the last that is read, and than the other files. */
#define FILE_MAX 4096

struct process {
	struct ucred peer;
	int pidfd;
};

static ino_t inode_of(int fd)
{
	struct stat file;

	return fstat(fd, &file) == 0 ? file.st_ino : 0;
}

static ino_t inode_of_path(const char *path)
{
	struct stat file;

	return stat(path, &file) == 0 ? file.st_ino : 0;
}

/* Go from a process's namespace up to the one right below ours, and return that one. A PID
 * namespace that is not below ours is returned as it is. Closes the descriptor, unless it is the
 * result. */
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

/* Open a namespace of a process. -1: this process may not. Linux knows a process without a number
 * in our PID namespace by its pidfd only. */
static int open_namespace(const struct process *process, const char *name, unsigned long request)
{
	char path[64];

	if (process->peer.pid == 0)
		return ioctl(process->pidfd, request, 0);
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", process->peer.pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Read the beginning of a file of a process. Return false if there is none. */
static bool read_file(const char *process, const char *name, char text[FILE_MAX])
{
	char path[64];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/%s", process, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, text, FILE_MAX - 1);
	close(fd);
	text[len > 0 ? len : 0] = '\0';
	return len > 0;
}

static bool read_file_of(const struct process *process, const char *name, char text[FILE_MAX])
{
	char number[16];

	snprintf(number, sizeof(number), "%d", process->peer.pid);
	return process->peer.pid != 0 && read_file(number, name, text);
}

/* Return true if all user ids of a process are those with which it has connected. Any user may have
 * connected and then execute a program that changes its user id. */
static bool is_still_peer(const char *status, uid_t peer)
{
	const char *line = strstr(status, "\nUid:");
	unsigned int real, effective, saved, file;

	return line && sscanf(line, "\nUid: %u %u %u %u", &real, &effective, &saved, &file) == 4 &&
	       real == peer && effective == peer && saved == peer && file == peer;
}

/* Return true if a process in our user namespace has the capability of the superuser. */
static bool is_superuser(const struct process *process)
{
	char status[FILE_MAX];
	const char *line = NULL;

	if (read_file_of(process, "status", status) && is_still_peer(status, process->peer.uid))
		line = strstr(status, "\nCapEff:");
	return line && (strtoull(line + strlen("\nCapEff:"), NULL, 16) >> CAP_SYS_ADMIN & 1) != 0;
}

/* Return true if the owner of a namespace is our user namespace: it was made with privilege over
 * the latter. */
static bool is_ours(int namespace_fd, ino_t own_user)
{
	const int owner = ioctl(namespace_fd, NS_GET_USERNS);
	bool ours;

	if (owner < 0)
		return false;
	ours = inode_of(owner) == own_user;
	close(owner);
	return ours;
}

/* Return the container of a process: a PID namespace that is not ours, and that a container engine
 * of the superuser has made. 0: there is none. */
static user_t container_of_process(const struct process *process, ino_t own_user)
{
	const ino_t own = inode_of_path("/proc/self/ns/pid");
	int fd = open_namespace(process, "pid", PIDFD_GET_PID_NAMESPACE);
	user_t container = 0;

	if (fd >= 0 && inode_of(fd) != own) {
		fd = topmost(fd, own);
		if (is_ours(fd, own_user))
			container = OF_NAMESPACE | inode_of(fd);
	}
	if (fd >= 0)
		close(fd);
	return container;
}

/* Return the user who made a user namespace. A namespace that the superuser's container engine has
 * made stands for itself. A process with user id 0 and no capability can make namespaces too, but
 * in those all have this user id. */
static user_t namespace_user(int fd, uid_t peer)
{
	uid_t uid;

	if (ioctl(fd, NS_GET_OWNER_UID, &uid) == 0 && (uid != 0 || peer == 0))
		return user_of_uid(uid);
	return OF_NAMESPACE | inode_of(fd);
}

/* Find the user of a process by its namespaces. Closes the descriptor of its user namespace. */
static user_t user_by_namespaces(const struct process *process, int fd, ino_t own)
{
	const bool inside = inode_of(fd) == own;
	user_t user = inside && is_superuser(process) ? USER_ROOT : 0;

	if (user == 0)
		user = container_of_process(process, own);
	if (user == 0 && !inside) {
		fd = topmost(fd, own);
		user = namespace_user(fd, process->peer.uid);
	}
	close(fd);
	return user != 0 ? user : user_of_uid(process->peer.uid);
}

/* Return true if a process is in our user namespace and PID namespace, as far as files tell that
 * everybody may read. */
static bool is_beside_us(const struct process *process)
{
	char own[FILE_MAX], map[FILE_MAX], status[FILE_MAX];
	const char *line, *end;

	if (!read_file("self", "uid_map", own) || !read_file_of(process, "uid_map", map) ||
	    strcmp(own, map) != 0 || !read_file_of(process, "status", status))
		return false;
	/* Its numbers in all PID namespaces from ours down. */
	line = strstr(status, "\nNSpid:\t");
	if (!line)
		return false;
	line += strlen("\nNSpid:\t");
	end = line + strcspn(line, "\n");
	return strcspn(line, "\t") >= (size_t)(end - line);
}

/* Return the user in whose slice systemd runs a process, or USER_UNKNOWN. */
static user_t user_by_slice(const struct process *process)
{
	static const char slice[] = "0::/user.slice/user-";
	char cgroups[FILE_MAX], *end;
	const char *line;
	unsigned long uid;

	if (!read_file_of(process, "cgroup", cgroups))
		return USER_UNKNOWN;
	line = strstr(cgroups, slice);
	if (!line || (line != cgroups && line[-1] != '\n'))
		return USER_UNKNOWN;
	uid = strtoul(line + strlen(slice), &end, 10);
	return strncmp(end, ".slice/", 7) == 0 && uid <= UINT32_MAX ? user_of_uid((uid_t)uid)
								    : USER_UNKNOWN;
}

/* Find the user of a process whose namespaces this process may not look at. */
static user_t user_by_files(const struct process *process)
{
	if (!is_beside_us(process))
		return user_by_slice(process);
	return is_superuser(process) ? USER_ROOT : user_of_uid(process->peer.uid);
}

user_t user_of(int socket)
{
	const ino_t own = inode_of_path("/proc/self/ns/user");
	struct process process = {.pidfd = -1};
	socklen_t len = sizeof(process.peer);
	user_t user;
	int fd;

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &process.peer, &len) != 0)
		return USER_UNKNOWN;
	process.pidfd = user_pidfd(socket, &process.peer);
	if (process.pidfd < 0)
		return USER_UNKNOWN;
	fd = own != 0 ? open_namespace(&process, "user", PIDFD_GET_USER_NAMESPACE) : -1;
	user = fd >= 0 ? user_by_namespaces(&process, fd, own) : user_by_files(&process);
	/* Its number may belong to another process by now: nothing that was found by it counts. */
	if (user_has_ended(process.pidfd))
		user = USER_UNKNOWN;
	close(process.pidfd);
	return user;
}
