/* SPDX-License-Identifier: BSD-3-Clause */
#include "open_fds.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned int entries_count(const char *path)
{
	DIR *dir = opendir(path);
	unsigned int count = 0;

	if (!dir)
		abort();
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void entries_wait(const char *path, unsigned int count)
{
	for (int i = 0; entries_count(path) > count; i++) {
		if (i == 60000)
			abort();
		usleep(1000);
	}
}

unsigned int fds_count(void)
{
	return entries_count("/proc/self/fd");
}

void fds_wait(unsigned int count)
{
	entries_wait("/proc/self/fd", count);
}

unsigned int threads_count(void)
{
	return entries_count("/proc/self/task");
}

void threads_wait(unsigned int count)
{
	entries_wait("/proc/self/task", count);
}
