/* SPDX-License-Identifier: BSD-3-Clause */
/* Which MAC address belongs to which IP address of which VLAN: a small table of what neighbours
 * said.
 */
#ifndef NET_NEIGH_H
#define NET_NEIGH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netdev/addresses.h"

#define NEIGH_MAX	    256
#define NEIGH_LIFETIME_NS   UINT64_C(30000000000) /* RFC 4861's REACHABLE_TIME */
#define NEIGH_RETRANSMIT_NS UINT64_C(200000000)
#define NEIGH_FORSAKEN_NS   UINT64_C(5000000000) /* longer than anybody waits for an answer */

/* Who asks: one that is trusted, or one of those who are not, of whom each waits for so many at
 * most. */
#define NEIGH_TRUSTED	 UINT16_MAX
#define NEIGH_WANTED_MAX 8

enum neigh_state {
	NEIGH_FREE,
	NEIGH_WANTED, /* asked for; what answers is believed */
	NEIGH_KNOWN,
};

struct neigh {
	uint8_t gid[GID_LEN];
	int32_t vlan;
	uint8_t mac[6];
	enum neigh_state state;
	uint16_t asker; /* WANTED: whose */
	uint64_t
		at_ns; /* KNOWN: when it was learned; WANTED: when it was last asked for, 0 never */
};

/* All functions: one thread at a time. */
struct neigh_table {
	struct neigh entries[NEIGH_MAX];
	size_t next_victim;
};

/**
 * Look for a neighbour; if it is not known (or was too long ago) it becomes wanted.
 *
 * @param asker
 *   NEIGH_TRUSTED, or the number of one that is not.
 * @param ask
 *   Set where a request should be sent now: the first time, then every NEIGH_RETRANSMIT_NS.
 * @return
 *   Whether `mac` was filled.
 */
bool neigh_find(struct neigh_table *table, uint16_t asker, int32_t vlan, const uint8_t gid[GID_LEN],
		uint64_t now_ns, uint8_t mac[6], bool *ask);

/**
 * Enter a neighbour's answer. It is believed only if it was asked for or the neighbour is known, so
 * that other hosts cannot fill the table.
 *
 * @param overrides
 *   The answer may replace another MAC address that is known; else it does not (RFC 4861, 7.2.5).
 */
void neigh_answer(struct neigh_table *table, int32_t vlan, const uint8_t gid[GID_LEN],
		  const uint8_t mac[6], bool overrides, uint64_t now_ns);

/** A neighbour asked for us, and will soon be talked to. Never displaces one that is waited
 * for. */
void neigh_learn(struct neigh_table *table, int32_t vlan, const uint8_t gid[GID_LEN],
		 const uint8_t mac[6], uint64_t now_ns);

#endif
