/* SPDX-License-Identifier: BSD-3-Clause */
#include "open_fds.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

unsigned int fds_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int count = 0;

	if (!dir)
		abort();
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

void fds_wait(unsigned int count)
{
	for (int i = 0; fds_count() > count; i++) {
		if (i == 60000)
			abort();
		usleep(1000);
	}
}
