/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why something fails. The check that fails says so in a sentence, and who reports the failure to
 * the user adds it (uroce-run --explain). While nobody wants reasons, a check that passes costs
 * nothing more, and one that fails reads one variable.
 */
#ifndef BASE_REASON_H
#define BASE_REASON_H

#include <stdbool.h>

#include <rte_branch_prediction.h>

/* Set before the first check, and then constant. */
extern bool reason_wanted;

/* Not a call of the program fails, but a work request or a packet. */
#define REASON_FAULT 0

/**
 * Say why something fails: a sentence without a full stop. The newest one of a thread counts.
 * MT-safe; keeps errno.
 *
 * @param of
 *   What fails: a call with this errno value, of either sign, or REASON_FAULT.
 */
void reason_say(int of, const char *format, ...) __attribute__((cold, format(printf, 2, 3)));

/** Return what this thread has said since the last call about a failure of this kind, or NULL. It
 * is valid until the thread says something else. MT-safe. */
const char *reason_take(int of);

/** Return true if this thread has said something since about a failure of this kind. MT-safe. */
bool reason_is_said(int of);

/**
 * Begin a call of the program that is made of other calls, and end it. The thread's reasons are
 * kept for it until then: the other calls do not report them. Such calls may be nested. MT-safe.
 */
void reason_enter(const char *call);
void reason_leave(void);

/** Return the name of the outermost such call that this thread is in, or NULL; `depth`: how many
 * there are. MT-safe. */
const char *reason_call(unsigned int *depth);

/** Forget what this thread has said about a fault: what failed was only a try. MT-safe. */
static inline void reason_drop(void)
{
	if (unlikely(reason_wanted))
		(void)reason_take(REASON_FAULT);
}

/** Evaluate to `error`, the negative errno value of a call of the program, and say why. */
#define CALL_REASON(error, ...) \
	(unlikely(reason_wanted) ? (reason_say(error, __VA_ARGS__), (error)) : (error))

/** Evaluate to `failure`, and say why a work request or a packet fails. */
#define FAULT_REASON(failure, ...) \
	(unlikely(reason_wanted) ? (reason_say(REASON_FAULT, __VA_ARGS__), (failure)) : (failure))

#endif
