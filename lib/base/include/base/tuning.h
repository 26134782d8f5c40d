/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Optimisations that can be switched off by name, to measure what each of them gains. All are on,
 * unless somebody switches one off before the first device exists. They change the speed only.
 */
#ifndef BASE_TUNING_H
#define BASE_TUNING_H

#include <stdbool.h>
#include <stddef.h>

/* field, name, what it does */
#define TUNINGS(X)                                                                                \
	X(key_cache, "key-cache", "the slots of the keys used last are cached")                   \
	X(fused_copy, "fused-copy", "payload is copied and its CRC computed in one pass")         \
	X(short_icrc, "short-icrc", "the CRC takes headers and a short payload in one piece")     \
	X(batch_ack, "batch-ack", "one acknowledgement answers all packets of a burst")           \
	X(buffer_cache, "buffer-cache", "packet buffers are taken from the pool in groups")       \
	X(prefetch, "prefetch", "a packet's data is prefetched while earlier ones are processed") \
	X(runs, "runs", "consecutive packets go to a kernel interface in one piece")              \
	X(early_drop, "early-drop", "the kernel's UDP does not look at received packets")         \
	X(direct, "direct", "isolated programs send to each other past uroced")                   \
	X(store_choice, "store-choice", "long packets are stored in the way that measures fastest")

struct tuning {
#define TUNING_FIELD(field, name, meaning) bool field;
	TUNINGS(TUNING_FIELD)
#undef TUNING_FIELD
};

/* Every stage of the packet path reads it. It is set before the first device exists. testroce also
 * changes it between measurements, so work in progress must be right under either setting. */
extern struct tuning tuning;

/**
 * Switch on all optimisations except the named ones. Not MT-safe.
 *
 * @param names
 *   Separated by commas; "" for none.
 * @return
 *   0; or -ENOENT for an unknown name: nothing has changed.
 */
int tuning_without(const char *names);

/** Return true if tuning_without would accept the names. MT-safe. */
bool tuning_knows(const char *names);

/** Return all names, separated by commas. MT-safe. */
const char *tuning_names(void);

#endif
