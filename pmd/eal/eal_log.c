/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream for DPDK's log, and a replacement for stderr while EAL starts, because parts of EAL
 * write to stderr directly. */
#include "eal/eal_log.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_log.h>

#include "base/log.h"

#define REASON_MAX 256

static FILE *eal_log_stream;
static FILE *eal_log_stderr; /* replaces stderr during capture; never closed, because other threads
				may still use it */
static FILE *eal_log_program_stderr;
static __thread bool eal_log_capturing;
static char eal_log_first[REASON_MAX]; /* written by the capturing thread */

/* Skip one prefix, "EAL: " or "function(): ", which means nothing to users. */
static const char *skip_origin(const char *text, size_t *len)
{
	size_t n = 0;

	while (n < *len && (isalnum((unsigned char)text[n]) || text[n] == '_'))
		n++;
	if (n > 0 && n + 3 < *len && strncmp(text + n, "(): ", 4) == 0)
		n += 4;
	else if (n > 0 && n + 1 < *len && strncmp(text + n, ": ", 2) == 0)
		n += 2;
	else
		return text;
	*len -= n;
	return text + n;
}

static void eal_log_keep(const char *text, size_t len)
{
	if (eal_log_first[0] != '\0')
		return;
	for (int i = 0; i < 2; i++)
		text = skip_origin(text, &len);
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		len--;
	if (len >= sizeof(eal_log_first))
		len = sizeof(eal_log_first) - 1;
	for (size_t i = 0; i < len; i++)
		eal_log_first[i] = isprint((unsigned char)text[i]) ? text[i] : ' ';
	eal_log_first[len] = '\0';
}

static ssize_t eal_log_write(void *cookie, const char *text, size_t len)
{
	(void)cookie;
	if (eal_log_capturing && rte_log_cur_msg_loglevel() <= (int)RTE_LOG_ERR)
		eal_log_keep(text, len);
	log_debug("%.*s", (int)(len > 0 && text[len - 1] == '\n' ? len - 1 : len), text);
	return (ssize_t)len;
}

/* Keep the first text of the capturing thread, and drop the rest. Other threads of the program may
 * write to the same stream meanwhile: pass their text on. */
static ssize_t eal_log_write_stderr(void *cookie, const char *text, size_t len)
{
	ssize_t written;

	(void)cookie;
	if (!eal_log_capturing) {
		written = write(STDERR_FILENO, text, len);
		return written < 0 ? 0 : written;
	}
	eal_log_keep(text, len);
	return (ssize_t)len;
}

int eal_log_open(void)
{
	const cookie_io_functions_t log_io = {.write = eal_log_write};
	const cookie_io_functions_t stderr_io = {.write = eal_log_write_stderr};

	if (eal_log_stream)
		return 0;
	eal_log_stream = fopencookie(NULL, "w", log_io);
	eal_log_stderr = fopencookie(NULL, "w", stderr_io);
	if (!eal_log_stream || !eal_log_stderr)
		return -ENOMEM;
	setvbuf(eal_log_stream, NULL, _IOLBF, 0);
	setvbuf(eal_log_stderr, NULL, _IOLBF, 0);
	return -rte_openlog_stream(eal_log_stream);
}

void eal_log_capture(void)
{
	eal_log_first[0] = '\0';
	/* If eal_log_open was not called, DPDK's log belongs to the program, and shows the errors
	 * itself. */
	if (!eal_log_stream)
		return;
	eal_log_capturing = true;
	eal_log_program_stderr = stderr;
	stderr = eal_log_stderr;
}

void eal_log_release(void)
{
	if (!eal_log_stream)
		return;
	fflush(eal_log_stderr);
	stderr = eal_log_program_stderr;
	eal_log_capturing = false;
}

const char *eal_log_reason(void)
{
	return eal_log_first;
}
