/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the faults of rules happen (inject/inject.h). */
#ifndef VERBS_INJECT_H
#define VERBS_INJECT_H

#include "implementation.h"
#include "inject/inject.h"

struct verbs_context;
struct ibv_qp_ex;

/* inject_calls.c */

/** Return the table in which each call may fail by a rule. The first call reads the rules of
 * UROCE_INJECT; a bad one ends the process. MT-safe. */
const struct implementation *inject_implementation(void);

/* inject.c */

/** Return what a call that is to fail returns, and set errno. MT-safe. */
intptr_t inject_failure(enum inject_call call, int error);
#define INJECT_FAILURE(type, call, error) ((type)inject_failure(INJECT_##call, error))

/** Put the functions that look at rules into a new context's table. Does nothing without rules. */
void inject_operations(struct verbs_context *verbs);

/** Let the requests of a list that was built, and is not posted yet, fail by rules. */
void inject_built(struct ibv_qp_ex *ex);

/** Begin anew, in a child of fork(). */
void inject_forget(void);

/** The functions of uroce/inject.h. */
int inject_api_add(const char *rule);
int inject_api_end(int rule);
int64_t inject_api_count(int rule);

#endif
