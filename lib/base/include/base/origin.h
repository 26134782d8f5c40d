/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the program has created its objects: the calls on the stack then. Kept only while reasons
 * (base/reason.h) or checks (check/finding.h) are wanted, beside the objects, which have nothing of
 * it.
 */
#ifndef BASE_ORIGIN_H
#define BASE_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/reason.h"

/* Room for what origin_write says. */
#define ORIGIN_TEXT_MAX 192

/** Keep the stack of the calling thread for an object, which is created now. MT-safe. It may read
 * the program's files, which takes milliseconds: not under the engine's lock. */
void origin_keep(const void *object) __attribute__((cold));

/** Forget an object, before it is destroyed. MT-safe. */
void origin_drop(const void *object) __attribute__((cold));

/**
 * Forget an object that is to be destroyed now, and may stay nevertheless. MT-safe.
 *
 * @return
 *   What is to be given to origin_settle(); NULL: nothing was kept.
 */
struct origin *origin_take_kept(const void *object) __attribute__((cold));

/** Keep again what origin_take_kept has returned if the object `stays`, or free it. MT-safe. */
void origin_settle(struct origin *origin, bool stays);

/** The same as origin_keep, origin_take_kept and origin_drop, if reasons are wanted. */
static inline void origin_note(const void *object)
{
	if (unlikely(reason_wanted))
		origin_keep(object);
}

static inline struct origin *origin_take(const void *object)
{
	return unlikely(reason_wanted) ? origin_take_kept(object) : NULL;
}

static inline void origin_forget(const void *object)
{
	if (unlikely(reason_wanted))
		origin_drop(object);
}

/**
 * Write where an object was created, as "; WHAT was created by: f() file.c:12 < main() file.c:40":
 * the innermost functions of the program. A function without debug information is "module+0x12".
 *
 * MT-safe.
 *
 * @return
 *   `text`, which is empty if nothing is known.
 */
const char *origin_write(const void *object, const char *what, char text[ORIGIN_TEXT_MAX])
	__attribute__((cold));

/** Return true if the program has not created the object itself, but a call of librdmacm.so.1.
 * MT-safe. */
bool origin_is_of_rdmacm(const void *object) __attribute__((cold));

/** Around fork(): no other thread is in this file then. */
void origin_before_fork(void);
void origin_after_fork(void);

#endif
