/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to the user. Each line is one write(), so that lines of several threads do not mix. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cancel.h"

static enum log_level log_level = LOG_LEVEL_WARN;

void log_set_level(enum log_level level)
{
	__atomic_store_n(&log_level, level, __ATOMIC_RELAXED);
}

static struct {
	dev_t dev;
	ino_t ino;
} log_journal; /* 0, 0: there is none */

void log_find_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long dev, ino;

	log_journal.dev = 0;
	log_journal.ino = 0;
	if (!stream || sscanf(stream, "%lu:%lu", &dev, &ino) != 2)
		return;
	log_journal.dev = dev;
	log_journal.ino = ino;
}

__attribute__((constructor)) static void log_start(void)
{
	log_find_journal();
}

/* The program may have inherited the variable, and another stderr. */
const char *log_priority(enum log_level level)
{
	static const char *const priorities[] = {
		[LOG_LEVEL_ERROR] = "<3>",
		[LOG_LEVEL_WARN] = "<4>",
		[LOG_LEVEL_INFO] = "<6>",
		[LOG_LEVEL_DEBUG] = "<7>",
	};
	struct stat file;

	if (log_journal.ino == 0 || fstat(STDERR_FILENO, &file) != 0 ||
	    file.st_dev != log_journal.dev || file.st_ino != log_journal.ino)
		return "";
	return priorities[level];
}

void log_print(enum log_level level, const char *format, ...)
{
	const int saved_errno = errno;
	char line[1024];
	int len, more, cancel_state;
	va_list args;

	if (level > __atomic_load_n(&log_level, __ATOMIC_RELAXED))
		return;
	len = snprintf(line, sizeof(line), "%suroce: ", log_priority(level));
	va_start(args, format);
	more = vsnprintf(line + len, sizeof(line) - (size_t)len - 1, format, args);
	va_end(args);
	if (more > 0)
		len += more;
	if (len > (int)sizeof(line) - 2)
		len = (int)sizeof(line) - 2;
	line[len++] = '\n';
	cancel_state = cancel_disable();
	/* Ignore a failure: a message that stderr does not take is lost, and there is no other
	 * place for it. */
	if (write(STDERR_FILENO, line, (size_t)len) < 0)
		len = 0;
	cancel_restore(cancel_state);
	errno = saved_errno;
}
