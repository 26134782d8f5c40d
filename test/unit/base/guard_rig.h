/* SPDX-License-Identifier: BSD-3-Clause */
/* Guarded copies, faults, and child processes to make them in, for the tests of lib/base/guard.c.
 */
#ifndef TEST_BASE_GUARD_RIG_H
#define TEST_BASE_GUARD_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE 4096

extern uint8_t *memory; /* two pages, new for each test */
extern char local[64];

struct copy_job {
	void *dst;
	const void *src;
	size_t len;
};

/* Map and unmap `memory`, for cmocka. */
int guard_rig_set_up(void **state);
int guard_rig_tear_down(void **state);

/* Copy without a guard of its own; `arg` is a struct copy_job. */
void copy_job_run(void *arg);
/* Copy under guard_run and return its result. */
int guarded_copy(void *dst, const void *src, size_t len);
/* Install the handlers, since cmocka sets its own before each test; expect a copy to return `rc`.
 */
void expect_copy(void *dst, const void *src, size_t len, int rc);

/* Return true if this thread blocks the signal. */
bool signal_is_blocked(int sig);
/* Write to address 64, which is never mapped. */
void fault_at_64(void);

/* Call a function in a child process, where the signals have their default actions; expect the
 * child to exit with `code`, or to be killed by `sig`. */
void expect_exit(void (*function)(void), int code);
void expect_killed(void (*function)(void), int sig);

#endif
