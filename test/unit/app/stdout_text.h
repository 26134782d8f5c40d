/* SPDX-License-Identifier: BSD-3-Clause */
/* Catches the text that a function prints on stdout. */
#ifndef STDOUT_TEXT_H
#define STDOUT_TEXT_H

#include <stdio.h>
#include <unistd.h>

#include "test.h"

static struct {
	int saved;
	FILE *file;
	char text[16384];
} stdout_text;

/* Send stdout to a file. */
static inline void stdout_begin(void)
{
	stdout_text.saved = dup(STDOUT_FILENO);
	stdout_text.file = tmpfile();
	assert_non_null(stdout_text.file);
	fflush(stdout);
	dup2(fileno(stdout_text.file), STDOUT_FILENO);
}

/* Restore stdout, and return what was printed, until the next call. */
static inline const char *stdout_end(void)
{
	size_t len;

	fflush(stdout);
	dup2(stdout_text.saved, STDOUT_FILENO);
	close(stdout_text.saved);
	rewind(stdout_text.file);
	len = fread(stdout_text.text, 1, sizeof(stdout_text.text) - 1, stdout_text.file);
	stdout_text.text[len] = '\0';
	fclose(stdout_text.file);
	return stdout_text.text;
}

#endif
