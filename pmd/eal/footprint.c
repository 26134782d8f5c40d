/* SPDX-License-Identifier: BSD-3-Clause */
/* Saves and restores the state that EAL's start would change in a program that does not know of
 * EAL. */
#include "eal/footprint.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_common.h>

#include "eal/privilege.h"

static int compare_fds(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int fd_list_append(struct fd_list *list, size_t *room, int fd)
{
	if (list->count == *room) {
		const size_t more = *room ? 2 * *room : 64;
		int *fds = realloc(list->fds, more * sizeof(*fds));

		if (!fds)
			return -ENOMEM;
		list->fds = fds;
		*room = more;
	}
	list->fds[list->count++] = fd;
	return 0;
}

int fd_list_read(struct fd_list *list)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	size_t room = 0;
	int rc = 0;

	memset(list, 0, sizeof(*list));
	if (!dir)
		return -errno;
	while (rc == 0 && (entry = readdir(dir)) != NULL) {
		char *end;
		const long fd = strtol(entry->d_name, &end, 10);

		if (end != entry->d_name && *end == '\0' && fd != dirfd(dir))
			rc = fd_list_append(list, &room, (int)fd);
	}
	closedir(dir);
	if (rc != 0)
		fd_list_free(list);
	else if (list->count > 0)
		qsort(list->fds, list->count, sizeof(*list->fds), compare_fds);
	return rc;
}

void fd_list_free(struct fd_list *list)
{
	free(list->fds);
	memset(list, 0, sizeof(*list));
}

void fd_list_new(const struct fd_list *before, void (*each)(int fd, void *arg), void *arg)
{
	struct fd_list now;

	if (fd_list_read(&now) != 0)
		return;
	for (size_t i = 0; i < now.count; i++) {
		if (before->count == 0 || !bsearch(&now.fds[i], before->fds, before->count,
						   sizeof(*before->fds), compare_fds))
			each(now.fds[i], arg);
	}
	fd_list_free(&now);
}

int footprint_save(struct footprint *footprint)
{
	sigset_t all;
	int rc;

	memset(footprint, 0, sizeof(*footprint));
	rc = pthread_getaffinity_np(pthread_self(), sizeof(footprint->affinity),
				    &footprint->affinity);
	if (rc != 0)
		return -rc;
	rc = fd_list_read(&footprint->fds);
	if (rc != 0)
		return rc;
	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, NULL, &footprint->actions[sig]);
	privilege_fill_mask(&all);
	rc = pthread_sigmask(SIG_SETMASK, &all, &footprint->mask);
	if (rc != 0)
		fd_list_free(&footprint->fds);
	return -rc;
}

static void set_cloexec(int fd)
{
	const int flags = fcntl(fd, F_GETFD);

	if (flags >= 0)
		fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

/* Read the name that the kernel shows for a descriptor. False if there is none. */
static bool read_name(int fd, char *name, size_t size)
{
	char path[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = readlink(path, name, size - 1);
	if (len < 0)
		return false;
	name[len] = '\0';
	return true;
}

/* Return true for EAL's files of huge pages: "rtemap_0" and the like, in any directory. */
static bool is_huge_file(const char *name)
{
	const char *base = strrchr(name, '/');
	const char *map = base ? strstr(base, "map_") : NULL;
	size_t digits;

	if (!map)
		return false;
	map += strlen("map_");
	digits = strspn(map, "0123456789");
	return digits > 0 && (map[digits] == '\0' || strcmp(map + digits, " (deleted)") == 0);
}

/* Return true for the kinds of files that EAL and drivers open. A program hardly passes such files
 * on to programs that it executes. */
static bool is_dpdks_file(const char *name)
{
	static const char *const begins[] = {
		"anon_inode:[eventpoll]",
		"anon_inode:[eventfd]",
		"anon_inode:[timerfd]",
		"anon_inode:[vfio-device]",
		"/memfd:seg_",	 /* EAL's huge pages */
		"/memfd:nohuge", /* its memory without huge pages */
		"/memfd:memif_region",
		"/dev/vfio/",
		"/dev/uio",
		"/dev/net/tun",
		"/dev/vhost-net",
		"/sys/bus/pci/",
		"/sys/class/uio/",
	};

	for (size_t i = 0; i < RTE_DIM(begins); i++) {
		if (strncmp(name, begins[i], strlen(begins[i])) == 0)
			return true;
	}
	/* EAL's directory of files that are shared with other DPDK processes, wherever it is. */
	return strstr(name, "/dpdk/") || is_huge_file(name);
}

/* Return true for sockets of the kinds that drivers open: packet and netlink sockets, and those in
 * EAL's directory. footprint_seal handles others. */
static bool is_dpdks_socket(int fd)
{
	struct sockaddr_un addr = {.sun_family = AF_UNSPEC};
	socklen_t len = sizeof(addr);
	int domain;
	socklen_t domain_len = sizeof(domain);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_len) != 0)
		return false;
	if (domain == AF_PACKET || domain == AF_NETLINK)
		return true;
	return domain == AF_UNIX && getsockname(fd, (struct sockaddr *)&addr, &len) == 0 &&
	       len > offsetof(struct sockaddr_un, sun_path) &&
	       memmem(addr.sun_path, sizeof(addr.sun_path), "/dpdk/", 6);
}

/* A search among descriptors for a set that watches a pipe of this name. */
struct pipe_search {
	const char *name;
	bool found;
};

static void match_watcher(int fd, void *arg)
{
	struct pipe_search *search = arg;
	char path[64], line[128], name[64];
	int watched;
	FILE *info;

	if (search->found || !read_name(fd, name, sizeof(name)) ||
	    strcmp(name, "anon_inode:[eventpoll]") != 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = fopen(path, "re");
	while (info && !search->found && fgets(line, sizeof(line), info))
		search->found = sscanf(line, "tfd: %d", &watched) == 1 &&
				read_name(watched, name, sizeof(name)) &&
				strcmp(name, search->name) == 0;
	if (info)
		fclose(info);
}

/* Make DPDK's descriptors close-on-exec. A pipe is DPDK's if a new epoll set watches it: it belongs
 * to EAL's interrupt thread. */
static void seal_dpdks(int fd, void *arg)
{
	const struct footprint *footprint = arg;
	char name[256];
	struct pipe_search search = {.name = name};

	if (!read_name(fd, name, sizeof(name)))
		return;
	if (strncmp(name, "pipe:", 5) == 0)
		fd_list_new(&footprint->fds, match_watcher, &search);
	if (search.found || is_dpdks_file(name) || is_dpdks_socket(fd))
		set_cloexec(fd);
}

/* The argument of seal_ours: `is_ours` tells which descriptors a port's driver has opened. */
struct seal {
	bool (*is_ours)(const void *arg, int fd);
	const void *arg;
};

static void seal_ours(int fd, void *arg)
{
	const struct seal *seal = arg;

	if (seal->is_ours(seal->arg, fd))
		set_cloexec(fd);
}

void footprint_seal(const struct footprint *footprint, bool (*is_ours)(const void *arg, int fd),
		    const void *arg)
{
	struct seal seal = {.is_ours = is_ours, .arg = arg};

	fd_list_new(&footprint->fds, seal_ours, &seal);
}

/* Return true if a handler is in a DPDK library. Other new handlers were set meanwhile by the
 * program's other threads. */
static bool is_dpdks_handler(const struct sigaction *action)
{
	const void *handler;
	const char *name;
	Dl_info found;

	/* ISO C has no conversion of a function's address to an object's. */
	memcpy(&handler, &action->sa_handler, sizeof(handler));
	if (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN ||
	    dladdr(handler, &found) == 0 || !found.dli_fname)
		return false;
	name = strrchr(found.dli_fname, '/');
	return strncmp(name ? name + 1 : found.dli_fname, "librte_", strlen("librte_")) == 0;
}

/* Return true if a driver needs the signal's handler. A driver that learns of packets by a signal
 * (net_tap) takes an unused real-time signal; without the handler that signal would kill the
 * process. */
static bool is_needed(int sig, const struct sigaction *saved)
{
	return sig >= SIGRTMIN && sig <= SIGRTMAX && saved->sa_handler == SIG_DFL;
}

static void restore_action(int sig, const struct sigaction *saved)
{
	struct sigaction now;

	if (sigaction(sig, NULL, &now) != 0 || !is_dpdks_handler(&now))
		return;
	if (!is_needed(sig, saved)) {
		sigaction(sig, saved, NULL);
		return;
	}
	/* The handler interrupts the program's threads: restart their system calls, and use their
	 * alternate stack if they have one. */
	now.sa_flags |= SA_RESTART | SA_ONSTACK;
	sigaction(sig, &now, NULL);
}

void footprint_restore(struct footprint *footprint)
{
	fd_list_new(&footprint->fds, seal_dpdks, footprint);
	fd_list_free(&footprint->fds);
	for (int sig = 1; sig < NSIG; sig++)
		restore_action(sig, &footprint->actions[sig]);
	pthread_setaffinity_np(pthread_self(), sizeof(footprint->affinity), &footprint->affinity);
	/* Restore the mask last: pending signals are then delivered in the restored state. */
	pthread_sigmask(SIG_SETMASK, &footprint->mask, NULL);
}
