/* SPDX-License-Identifier: BSD-3-Clause */
/* The routes of a port whose addresses are ours: those of the settings, and better ones that
 * routers have told (ICMP redirects). */
#ifndef NET_ROUTES_H
#define NET_ROUTES_H

#include <stdbool.h>
#include <stdint.h>

#include "netdev/addresses.h"

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
