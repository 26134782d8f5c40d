/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mistakes of a program that do no harm here and now, and do elsewhere or one day (uroce-run
 * --check). Who finds one says so in a sentence, and this file tells the user once for each cause.
 *
 * Without --check nobody calls this room.
 */
#ifndef CHECK_FINDING_H
#define CHECK_FINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kinds of mistakes. A suppression names one of them. */
enum check_rule {
	CHECK_LEAK,
	CHECK_CHANGED,
	CHECK_OVERWRITTEN,
	CHECK_DEREGISTERED,
	CHECK_UNSIGNALED,
	CHECK_SMALL_CQ,
	CHECK_SLEEP,
	CHECK_UNACKNOWLEDGED,
	CHECK_RULES,
};

/* Set before the first device is opened, and then constant. */
extern bool check_wanted;

/**
 * Begin. Not MT-safe; a second call changes nothing.
 *
 * @param fails
 *   Let a program with a finding end with CHECK_STATUS if it would end with 0.
 * @param suppressions
 *   A file of what is not told, or "". A line is a rule, or a rule, a blank and a text that the
 *   finding contains.
 * @return
 *   0, or -errno with `error` if the file cannot be read, or is wrong.
 */
int check_start(bool fails, const char *suppressions, char *error, size_t error_size);

#define CHECK_STATUS 66

/**
 * Tell the user of a mistake, unless it was told or is suppressed: a sentence without a full stop.
 * MT-safe; keeps errno.
 *
 * @param cause
 *   Names the cause: of findings of one rule with equal texts only the first is told.
 */
void check_finding(enum check_rule rule, const char *cause, const char *format, ...)
	__attribute__((cold, format(printf, 3, 4)));

/** Return true if the program ends by exit(3) with 0. MT-safe. */
bool check_ends_well(void);

/** End the process with CHECK_STATUS if it is due. When the process exits. */
void check_end(void);

/** Forget all findings, in a child of fork(). While it has one thread. */
void check_forget(void);

#endif
