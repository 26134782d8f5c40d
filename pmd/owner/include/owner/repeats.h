/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which slot a peer's request went to. A request that comes again goes there, though its listener
 * has ended meanwhile; and who answers it is who got it. The memory has a fixed size: requests of
 * made-up peers displace each other, and older ones to the same user's processes.
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

/* A request's peer: its id is one of this address's. */
struct repeats_peer {
	uint8_t gid[16];
	int32_t vlan_id;
	uint32_t id;
	bool sidr; /* a request id of SIDR is no communication id */
};

struct repeat {
	uint64_t key;
	uint64_t tid;
	uint64_t until_ns; /* 0: free */
	user_t user;	   /* of the slot's process */
	uint32_t generation;
	uint16_t slot;
};

/* One thread at a time. */
struct repeats {
	uint32_t seeds[2]; /* nobody can make requests that displace a certain one */
	struct repeat sets[REPEATS_SETS][REPEATS_WAYS];
};

/** Empty. 0, or -EIO where there are no random numbers. `repeats` is all zero before. */
int repeats_init(struct repeats *repeats);

/** Note where a request has gone to; its key and time are set here. */
void repeats_note(struct repeats *repeats, const struct repeats_peer *peer,
		  const struct repeat *went, uint64_t now_ns);

/** The newest request of a peer that may come again, or NULL. */
const struct repeat *repeats_find(const struct repeats *repeats, const struct repeats_peer *peer,
				  uint64_t now_ns);

/** The newest request of a peer that is remembered, however old, or NULL. */
const struct repeat *repeats_last(const struct repeats *repeats, const struct repeats_peer *peer);

#endif
