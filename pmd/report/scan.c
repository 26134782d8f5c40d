/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A report is a memory file without a name: it ends with the process that has it open, however that
 * ends, and is found among the process's descriptors. Who may do that is who may debug it.
 */
#include "report/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/write.h"

/* As the kernel tells of a memory file. */
#define LINK "/memfd:" REPORT_FILE " (deleted)"

/* Files seen so far: a child of a process has its descriptors too. */
struct seen {
	ino_t *inodes;
	size_t count, room;
};

static bool see(struct seen *seen, ino_t inode)
{
	for (size_t i = 0; i < seen->count; i++) {
		if (seen->inodes[i] == inode)
			return false;
	}
	if (seen->count == seen->room) {
		const size_t room = seen->room ? 2 * seen->room : 64;
		ino_t *inodes = realloc(seen->inodes, room * sizeof(*inodes));

		if (!inodes)
			return false;
		seen->inodes = inodes;
		seen->room = room;
	}
	seen->inodes[seen->count++] = inode;
	return true;
}

/* The number that a process has for itself, in its own PID namespace; 0 where it has gone. */
static pid_t own_pid(pid_t pid)
{
	char path[64], line[256];
	pid_t own = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "NSpid:", 6) == 0)
			own = (pid_t)strtol(strrchr(line, '\t') ? strrchr(line, '\t') : line + 6,
					    NULL, 10);
	}
	if (file)
		fclose(file);
	return own;
}

static void take(struct report_set *set, struct seen *seen, pid_t pid, int fd)
{
	struct report *report;
	struct stat file;

	if (fstat(fd, &file) != 0 || report_map(fd, &report) != 0)
		return;
	/* A child that was forked has the parent's report, and may have one of its own. */
	if (report->pid != own_pid(pid) || !see(seen, file.st_ino) ||
	    report_set_add(set, pid, report) != 0)
		report_unmap(report);
}

static void scan_process(struct report_set *set, struct seen *seen, pid_t pid)
{
	char path[64], link[64];
	const struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)) != NULL) {
		const ssize_t len = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link));
		int fd;

		if (len != (ssize_t)strlen(LINK) || memcmp(link, LINK, strlen(LINK)) != 0)
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		take(set, seen, pid, fd);
		close(fd);
	}
	if (dir)
		closedir(dir);
}

int report_scan(struct report_set *set)
{
	struct seen seen = {0};
	const struct dirent *entry;
	DIR *dir = opendir("/proc");

	if (!dir)
		return -errno;
	while ((entry = readdir(dir)) != NULL) {
		char *end;
		const long pid = strtol(entry->d_name, &end, 10);

		if (end != entry->d_name && *end == '\0' && pid > 0)
			scan_process(set, &seen, (pid_t)pid);
	}
	closedir(dir);
	free(seen.inodes);
	return 0;
}
