/* SPDX-License-Identifier: BSD-3-Clause */
/* Command lines of tests. */
#ifndef TEST_COMMON_WORDS_H
#define TEST_COMMON_WORDS_H

#include <string.h>

#define WORDS_MAX 12 /* and a program's name */

/** Divide a line, which is changed, into words behind the program's name. Return their number with
 * it. The words behind them are NULL. */
static inline int words_split(char *line, char *argv[WORDS_MAX + 2])
{
	char *rest = line, *word;
	int argc = 1;

	while ((word = strsep(&rest, " ")) != NULL && argc <= WORDS_MAX) {
		if (*word)
			argv[argc++] = word;
	}
	return argc;
}

#endif
