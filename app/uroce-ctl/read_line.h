/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads files of one line, as those of sysfs. */
#ifndef READ_LINE_H
#define READ_LINE_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/** Read the first line of a file, without its end. Return false, and an empty line, if there is
 * none. MT-safe. */
static inline bool read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	bool read = false;

	line[0] = '\0';
	if (file) {
		read = fgets(line, (int)size, file) != NULL;
		fclose(file);
	}
	line[strcspn(line, "\n")] = '\0';
	return read;
}

#endif
