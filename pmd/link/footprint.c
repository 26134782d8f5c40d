/* SPDX-License-Identifier: BSD-3-Clause */
/* Saving and restoring what EAL's start would change in a program that does not know of it. */
#include "link/footprint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	sigfillset(&all);
	rc = pthread_sigmask(SIG_SETMASK, &all, &footprint->mask);
	if (rc != 0)
		fd_list_free(&footprint->fds);
	return -rc;
}

static void set_cloexec(int fd, void *arg)
{
	const int flags = fcntl(fd, F_GETFD);

	(void)arg;
	if (flags >= 0)
		fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

/* A driver that is told of packets by a signal (net_tap) takes a real-time one that nobody uses,
 * and would be killed by it without its handler. */
static bool is_drivers(int sig, const struct sigaction *saved, const struct sigaction *now)
{
	return sig >= SIGRTMIN && sig <= SIGRTMAX && saved->sa_handler == SIG_DFL &&
	       now->sa_handler != SIG_DFL && now->sa_handler != SIG_IGN;
}

/* Only what differs is written: a handler that the program sets just now stays. */
static void restore_action(int sig, const struct sigaction *saved)
{
	struct sigaction now;

	if (sigaction(sig, NULL, &now) != 0 ||
	    (now.sa_handler == saved->sa_handler && now.sa_flags == saved->sa_flags))
		return;
	if (!is_drivers(sig, saved, &now)) {
		sigaction(sig, saved, NULL);
		return;
	}
	/* It interrupts the program's threads: their calls go on, and it runs on the stack they
	 * have for it. */
	now.sa_flags |= SA_RESTART | SA_ONSTACK;
	sigaction(sig, &now, NULL);
}

void footprint_restore(struct footprint *footprint)
{
	fd_list_new(&footprint->fds, set_cloexec, NULL);
	fd_list_free(&footprint->fds);
	for (int sig = 1; sig < NSIG; sig++)
		restore_action(sig, &footprint->actions[sig]);
	pthread_setaffinity_np(pthread_self(), sizeof(footprint->affinity), &footprint->affinity);
	/* Last: what is pending is delivered with everything in its place. */
	pthread_sigmask(SIG_SETMASK, &footprint->mask, NULL);
}
