/* SPDX-License-Identifier: BSD-3-Clause */
/* Join the kernel's list of UNIX sockets and a process's descriptors. */
#include "held.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SOCKETS_MAX 4096
#define LISTENS	    0x10000 /* in Flags of /proc/net/unix */

static bool parse_line(const char *line, struct held_socket *socket)
{
	unsigned int flags;

	if (sscanf(line, "%*s %*x %*x %x %x %*x %" SCNu64 " %107[^\n]", &flags, &socket->type,
		   &socket->inode, socket->path) != 4)
		return false;
	socket->listens = (flags & LISTENS) != 0;
	return socket->path[0] == '/';
}

/* Find a socket in the list of the process's network namespace. */
static bool find_socket(FILE *list, uint64_t inode, struct held_socket *socket)
{
	char line[512];

	rewind(list);
	while (fgets(line, sizeof(line), list)) {
		if (parse_line(line, socket) && socket->inode == inode)
			return true;
	}
	return false;
}

bool held_each(const char *root, const char *pid,
	       void (*tell)(void *arg, const struct held_socket *socket), void *arg)
{
	char path[PATH_MAX], target[64];
	const struct dirent *entry;
	uint32_t looks = 0;
	FILE *list;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc/%s/net/unix", root, pid);
	list = fopen(path, "re");
	snprintf(path, sizeof(path), "%s/proc/%s/fd", root, pid);
	dir = opendir(path);
	while (list && dir && (entry = readdir(dir)) != NULL && looks < SOCKETS_MAX) {
		const ssize_t len =
			readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		struct held_socket socket;
		uint64_t inode;

		target[len < 0 ? 0 : len] = '\0';
		if (sscanf(target, "socket:[%" SCNu64 "]", &inode) != 1)
			continue;
		looks++;
		if (find_socket(list, inode, &socket))
			tell(arg, &socket);
	}
	if (list)
		fclose(list);
	if (!dir)
		return false;
	closedir(dir);
	return true;
}
