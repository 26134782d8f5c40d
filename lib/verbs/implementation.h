/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between libibverbs.so.1 and the library that implements it: one table, exported as
 * uroce_implementation@UROCE_PRIVATE. liburoce-attached.so and liburoce.so.0 have one each, and a
 * process uses one of them.
 */
#ifndef VERBS_IMPLEMENTATION_H
#define VERBS_IMPLEMENTATION_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "later.h"
#include "private.h"

struct cm_private;

/* These are macros of verbs.h, too. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

struct implementation {
	const char *version; /* of the build: all libraries come from one */
	size_t size;	     /* of this struct */
	/* the library's code and data */
	const char *begin, *end;
	/* ibv_get_device_list, called by the code at `caller` */
	struct ibv_device **(*get_device_list)(const void *caller, int *num_devices);
	const struct cm_private *(*private_cm)(uint32_t version);
	/* Return the table to use in the place of this one if UROCE_INJECT is set. */
	const struct implementation *(*injecting)(void);
	/* uroce/inject.h */
	int (*inject_add)(const char *rule);
	int (*inject_end)(int rule);
	int64_t (*inject_count)(int rule);
#define CALL(type, function, parameters, arguments) type(*function) parameters;
#include "inject/calls.def"
#undef CALL
};

extern const struct implementation uroce_implementation __attribute__((visibility("default")));

/** Return true if the address is in the implementation's library. MT-safe; before the first call
 * of verbs there is none. For librspreload.so of the same build. */
bool uroce_private_has(const void *address);

/** The functions behind uroce/inject.h, which finds them by their names. */
int uroce_inject_add(const char *rule);
int uroce_inject_remove(int rule);
int64_t uroce_inject_count(int rule);

#endif
