/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbour table: the MAC address of an IP address in a VLAN, as neighbours have announced it.
 */
#ifndef NET_NEIGH_H
#define NET_NEIGH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netdev/netdev.h"

#define NEIGH_MAX	    256
#define NEIGH_LIFETIME_NS   UINT64_C(30000000000) /* RFC 4861's REACHABLE_TIME */
#define NEIGH_RETRANSMIT_NS UINT64_C(200000000)
#define NEIGH_ABANDON_NS    UINT64_C(5000000000) /* longer than any caller waits for an answer */

/* The asker: NEIGH_TRUSTED or the number of an untrusted one. Each untrusted asker may wait for a
 * limited number of neighbours. */
#define NEIGH_TRUSTED	 UINT16_MAX
#define NEIGH_WANTED_MAX 8

enum neigh_state {
	NEIGH_FREE,
	NEIGH_WANTED, /* asked for: an answer will be believed */
	NEIGH_KNOWN,
};

struct neigh {
	uint8_t gid[GID_LEN];
	int32_t vlan;
	uint8_t mac[6];
	enum neigh_state state;
	uint16_t asker; /* WANTED: who asked */
	uint64_t at_ns; /* KNOWN: time of the answer; WANTED: time of the last request, 0: none */
};

/* All functions: one thread at a time. */
struct neigh_table {
	struct neigh entries[NEIGH_MAX];
	size_t next_victim;
};

/** Return true if a neighbour is known and its entry not too old. Changes nothing. */
bool neigh_is_known(const struct neigh_table *table, int32_t vlan, const uint8_t gid[GID_LEN],
		    uint64_t now_ns);

/** Return true if a neighbour is known, not too old, and has this MAC address. Changes nothing. */
bool neigh_has_mac(const struct neigh_table *table, int32_t vlan, const uint8_t gid[GID_LEN],
		   const uint8_t mac[6], uint64_t now_ns);

/**
 * Look up a neighbour. If it is unknown or its entry too old, the entry becomes wanted.
 *
 * @param asker
 *   NEIGH_TRUSTED, or the number of an untrusted asker.
 * @param ask
 *   Set to true if a request must be sent now: first at once, then every NEIGH_RETRANSMIT_NS.
 * @return
 *   True if `mac` was set.
 */
bool neigh_find(struct neigh_table *table, uint16_t asker, int32_t vlan, const uint8_t gid[GID_LEN],
		uint64_t now_ns, uint8_t mac[6], bool *ask);

/**
 * Enter a neighbour's answer. It is believed only if it was asked for or the neighbour is known, so
 * that other hosts cannot fill the table.
 *
 * @param overrides
 *   The answer may replace a different known MAC address (RFC 4861, 7.2.5).
 */
void neigh_answer(struct neigh_table *table, int32_t vlan, const uint8_t gid[GID_LEN],
		  const uint8_t mac[6], bool overrides, uint64_t now_ns);

/** Enter a neighbour that asked for us, because we will soon send to it. Never displaces a wanted
 * entry. */
void neigh_learn(struct neigh_table *table, int32_t vlan, const uint8_t gid[GID_LEN],
		 const uint8_t mac[6], uint64_t now_ns);

#define ROUTES_MAX	     16
#define ROUTES_REDIRECTS_MAX 64
/* A redirect is forgotten then: only the gateway that it names could correct it. */
#define ROUTES_REDIRECT_NS UINT64_C(600000000000)

struct route {
	uint8_t prefix[GID_LEN];
	uint8_t bits; /* of the GID */
	uint8_t gateway[GID_LEN];
};

struct route_redirect {
	uint8_t to[GID_LEN];
	int32_t vlan;
	uint64_t at_ns;
	uint8_t gateway[GID_LEN]; /* `to` itself: it is on the link */
};

/* All zero: no route. All functions: one thread at a time. */
struct routes {
	struct route list[ROUTES_MAX];
	uint32_t count;
	/* The newest ones: a ring. */
	struct route_redirect redirects[ROUTES_REDIRECTS_MAX];
	uint32_t redirect_count; /* how many were ever added */
};

/** Add a route. Return false if there is no room. */
bool routes_add(struct routes *routes, const uint8_t prefix[GID_LEN], unsigned int bits,
		const uint8_t gateway[GID_LEN]);

/**
 * Find the neighbour to which packets to a destination go: itself if it is on the link, or else
 * what a redirect says, or the gateway of the longest prefix. Only gateways on the link count.
 *
 * @return
 *   0 or -ENETUNREACH.
 */
int routes_find(const struct routes *routes, const struct addresses *own, int32_t vlan,
		const uint8_t to[GID_LEN], uint8_t hop[GID_LEN]);

/** Send packets to a destination to this gateway from now on. The oldest redirect may be forgotten.
 */
void routes_redirect(struct routes *routes, int32_t vlan, const uint8_t to[GID_LEN],
		     const uint8_t gateway[GID_LEN], uint64_t now_ns);

/** Forget old redirects. Call it now and then. */
void routes_age(struct routes *routes, uint64_t now_ns);

#endif
