/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slot that each peer's request went to. A repeated request goes to the same slot, even if the
 * process does not listen any more, and only that slot may answer it. The memory has a fixed size:
 * requests of made-up peers displace each other, and older requests to processes of the same user.
 */
#ifndef OWNER_REPEATS_H
#define OWNER_REPEATS_H

#include <stdbool.h>
#include <stdint.h>

#include "share/user.h"

#define REPEATS_SETS 8192u
#define REPEATS_WAYS 8u
#define REPEATS_NONE UINT16_MAX

/* Longer than a peer with Linux's timeouts repeats a request: 16 times in some 70 s. */
#define REPEATS_NS UINT64_C(128000000000)

/* The peer of a request: its address, and its id there. */
struct repeats_peer {
	uint8_t gid[16];
	int32_t vlan_id;
	uint32_t id;
	bool sidr; /* `id` is a request id of SIDR, not a communication id */
};

struct repeat {
	uint64_t key;
	uint64_t tid;
	uint64_t until_ns; /* 0: free */
	user_t user;	   /* of the slot's process */
	uint32_t generation;
	uint16_t slot;
};

/* The requests of a device's peers. Only one thread at a time may use this struct. */
struct repeats {
	uint32_t seeds[2]; /* random, so that nobody can make requests that displace a chosen one */
	struct repeat sets[REPEATS_SETS][REPEATS_WAYS];
};

/** Initialise an empty table. `repeats` must be all zero. 0, or -EIO if there are no random
 * numbers. */
int repeats_init(struct repeats *repeats);

/** Note the slot that a request went to. `went->key` and `went->until_ns` are ignored. */
void repeats_note(struct repeats *repeats, const struct repeats_peer *peer,
		  const struct repeat *went, uint64_t now_ns);

/** Return the newest request of a peer that may be repeated, or NULL. */
const struct repeat *repeats_find(const struct repeats *repeats, const struct repeats_peer *peer,
				  uint64_t now_ns);

/** Return the newest remembered request of a peer, however old, or NULL. */
const struct repeat *repeats_last(const struct repeats *repeats, const struct repeats_peer *peer);

#endif
