/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds mistakes of the program that do no harm here (check/finding.h). While nobody wants it, each
 * call that creates or ends an object reads one variable. */
#ifndef VERBS_CHECK_H
#define VERBS_CHECK_H

#include "base/origin.h"
#include "check/finding.h"

struct face_context;

/* check_leaks.c */

/** Tell which objects the contexts of one file still have, which ends now. No lock. */
void check_closing(struct face_context *root) __attribute__((cold));

/** Keep where the program has created an object of a context, or the context. MT-safe. */
static inline void check_keep_origin(const void *object)
{
	if (unlikely(check_wanted))
		origin_keep(object);
}

/** Forget it. MT-safe. */
static inline void check_drop_origin(const void *object)
{
	if (unlikely(check_wanted))
		origin_drop(object);
}

#endif
