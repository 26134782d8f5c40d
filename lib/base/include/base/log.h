/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to the user: one line each, on stderr unless the program chooses another place. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARN,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
};

/**
 * Set the level of messages that are printed. MT-safe.
 *
 * @param level
 *   The least important level that is printed; LOG_LEVEL_WARN at start.
 */
void log_set_level(enum log_level level);

/** Find out from the environment (JOURNAL_STREAM) if stderr is systemd's journal; done once at the
 * start. Not MT-safe. */
void log_find_journal(void);

/** Return what the journal wants in front of a line: the priority of syslog(3), as "<3>"; "" if
 * stderr is not the journal. MT-safe. */
const char *log_priority(enum log_level level);

/** Print one line that begins with "uroce: ". A newline is added. MT-safe; keeps errno. */
void log_print(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_print(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_print(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_print(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_print(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
