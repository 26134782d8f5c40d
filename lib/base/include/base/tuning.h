/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The optimisations that can be switched off by name, to see what each brings. All are on unless
 * somebody says otherwise before there is a device. None changes what happens, but for how fast.
 */
#ifndef BASE_TUNING_H
#define BASE_TUNING_H

#include <stdbool.h>
#include <stddef.h>

/* field, name, what it does */
#define TUNINGS(X)                                                                             \
	X(key_cache, "key-cache", "the places of keys used last are remembered")               \
	X(fused_copy, "fused-copy", "payload is copied and its CRC computed in one pass")      \
	X(short_icrc, "short-icrc", "headers and a short payload are one piece to the CRC")    \
	X(batch_ack, "batch-ack", "one acknowledgement answers all packets of a burst")        \
	X(buffer_cache, "buffer-cache", "packet buffers are taken from the pool by the dozen") \
	X(prefetch, "prefetch", "what a packet needs is fetched while one before it is taken") \
	X(runs, "runs", "packets that follow each other go to a kernel interface in one piece")

struct tuning {
#define TUNING_FIELD(field, name, meaning) bool field;
	TUNINGS(TUNING_FIELD)
#undef TUNING_FIELD
};

/* Looked at by every step, and set before there are devices; a program that compares (testroce)
 * changes it between measurements, and what is under way then is right by either setting. */
extern struct tuning tuning;

/**
 * Switch on all but the named ones. Not MT-safe.
 *
 * @param names
 *   Separated by commas; "" for none.
 * @return
 *   0; or -ENOENT where a name is not known: nothing has changed.
 */
int tuning_without(const char *names);

/** Whether tuning_without would take them. MT-safe. */
bool tuning_knows(const char *names);

/** All names, separated by commas. MT-safe. */
const char *tuning_names(void);

#endif
