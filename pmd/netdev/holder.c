/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the holder of a UDP port: its socket in the kernel's list, and a process that has it. */
#include "netdev/holder.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct holder {
	uint64_t inode; /* of the socket */
	unsigned int uid;
};

/* Find a socket of that port in one of the kernel's lists. */
static bool find_socket(const char *list, uint16_t port, struct holder *holder)
{
	char line[512];
	unsigned int local;
	bool found = false;
	FILE *file = fopen(list, "re");

	while (file && !found && fgets(line, sizeof(line), file))
		/* sl, local address and port, remote ones, state, queues, timer, retransmissions,
		 * uid, timeout, inode */
		found = sscanf(line, "%*s %*[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %u %*s %" SCNu64,
			       &local, &holder->uid, &holder->inode) == 3 &&
			local == port;
	if (file)
		fclose(file);
	return found;
}

/* Return true if a process has the socket open. */
static bool process_has(const char *pid, uint64_t inode)
{
	char path[PATH_MAX], wanted[64], target[64];
	const struct dirent *entry;
	bool has = false;
	DIR *dir;

	snprintf(wanted, sizeof(wanted), "socket:[%" PRIu64 "]", inode);
	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	dir = opendir(path);
	while (dir && !has && (entry = readdir(dir)) != NULL) {
		const ssize_t len =
			readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		target[len < 0 ? 0 : len] = '\0';
		has = strcmp(target, wanted) == 0;
	}
	if (dir)
		closedir(dir);
	return has;
}

/* Read a process's name. Another user may have chosen it, so leave out what is not printable. */
static void read_name(const char *pid, char *name, size_t size)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	file = fopen(path, "re");
	if (!file || !fgets(name, (int)size, file))
		name[0] = '\0';
	if (file)
		fclose(file);
	name[strcspn(name, "\n")] = '\0';
	for (char *c = name; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
}

static bool name_process(const struct holder *holder, char *text, size_t size)
{
	const struct dirent *entry;
	DIR *dir = opendir("/proc");
	bool found = false;
	char name[32];

	while (dir && !found && (entry = readdir(dir)) != NULL) {
		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    !process_has(entry->d_name, holder->inode))
			continue;
		read_name(entry->d_name, name, sizeof(name));
		snprintf(text, size, "process %.16s (%s) of user %u", entry->d_name, name,
			 holder->uid);
		found = true;
	}
	if (dir)
		closedir(dir);
	return found;
}

void holder_of_udp_port(uint16_t port, char *text, size_t size)
{
	struct holder holder;

	if (!find_socket("/proc/thread-self/net/udp", port, &holder) &&
	    !find_socket("/proc/thread-self/net/udp6", port, &holder))
		snprintf(text, size, "another program");
	else if (name_process(&holder, text, size))
		return;
	else if (holder.uid == 0)
		snprintf(text, size, "the kernel's RDMA driver (rdma_rxe), or a process of root");
	else
		snprintf(text, size, "a process of user %u", holder.uid);
}
