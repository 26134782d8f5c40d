/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Divides what the owner moves among tenants: which slot's packets it takes next, and how many
 * bytes. A tenant is a user (share/user.h) with all its slots. All attached processes together are
 * one tenant, USER_TRUSTED.
 *
 * This is deficit round robin. A poll of the owner has a few rounds. In each round a tenant whose
 * packets wait gets a quantum of credit in proportion to its weight, and its packets are taken
 * until the credit is used up. The last packet may exceed the credit; the tenant then owes the rest
 * to its next rounds. Its waiting slots divide the credit evenly.
 *
 * The credits alone do not divide the room of a slow port, because there the first tenant of a
 * round takes all the room. So the tenant that has sent the fewest bytes for its weight comes
 * first.
 *
 * No function reads a clock. Only one thread at a time may use a struct tenants.
 */
#ifndef OWNER_TENANTS_H
#define OWNER_TENANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "share/user.h"

#define TENANTS_MAX   128u
#define TENANTS_SLOTS 256u
#define TENANTS_NONE  UINT16_MAX

#define TENANTS_WEIGHT_MAX	    1000u
#define TENANTS_RATE_MIN	    UINT64_C(1000000)
#define TENANTS_RATE_MAX	    UINT64_C(1000000000000)
#define TENANTS_CONNECTION_RATE_MAX 1000000u

/* Credit that the tenant of the largest weight gets in a round: a few long packets, so that others'
 * packets wait a few microseconds for them. */
#define TENANTS_QUANTUM_BYTES 32768

/* A shorter packet counts as one of this length, because moving it takes as much time. */
#define TENANTS_PACKET_BYTES 512

/* A tenant with a rate may send at once what it earns in this time. The owner may sleep for 1 ms
 * meanwhile. */
#define TENANTS_BURST_NS UINT64_C(4000000)

struct tenants_limits {
	uint32_t weight; /* 1 to TENANTS_WEIGHT_MAX */
	uint64_t rate;	 /* bytes a second, TENANTS_RATE_MIN to TENANTS_RATE_MAX; 0: no limit */
	uint32_t max_qp; /* queue pairs; 0: no limit. The caller keeps it */
	uint32_t connection_rate; /* requests for connections a second; 0: no limit */
};

/* A turn of a slot: it limits what the owner takes, and counts it. */
struct tenants_take {
	int64_t credit; /* take packets while `cost` is less */
	int64_t cost;	/* of what was taken */
	uint64_t bytes; /* taken */
};

struct tenant {
	user_t user;
	uint16_t slots; /* 0: the tenant has none now */
	struct tenants_limits limits;
	bool keen;	  /* it used up its credit in the last round in which it had packets */
	uint64_t round;	  /* that round's number */
	int64_t credit;	  /* less than 0: it has exceeded its credit */
	uint64_t sent;	  /* bytes that it has sent, divided by its weight; modulo 2^64 */
	uint64_t paid_ns; /* rate: time at which all that it sent has been earned */
	uint64_t paid_fraction; /* and the part of a nanosecond, in units of 1 / rate */
	uint64_t asked_ns;	/* connection_rate: time at which all requests are earned */
	uint16_t first;		/* the slot that comes first in a round */
	uint16_t at;		/* in a round: the slot that comes next */
	uint16_t behind;  /* the slot behind the first that has sent; TENANTS_NONE: none has */
	uint16_t waiting; /* slots that wait in this round and have not had their turn */
	uint64_t slots_waiting[TENANTS_SLOTS / 64]; /* bits of those slots */
};

struct tenants {
	/* Several tenants, or one with a rate: else no turns are needed. */
	bool are_many;
	uint16_t count;	 /* with slots */
	uint16_t rated;	 /* of those, with a rate */
	uint64_t rounds; /* begun so far */
	uint64_t sent;	 /* the least `sent` of the last round's tenants */
	uint64_t due_ns; /* tenants wait for their rate until then; UINT64_MAX: none waits */
	uint16_t order[TENANTS_MAX]; /* tenants of this round */
	uint16_t order_count;
	uint16_t turn; /* index in `order` of the tenant that has its turn */
	struct tenant all[TENANTS_MAX];
};

/** Initialise: there are no tenants. */
void tenants_init(struct tenants *tenants);

/**
 * Note that a slot of a user begins.
 *
 * @param limits
 *   The limits of the user.
 * @return
 *   The tenant; TENANTS_NONE if there are too many.
 */
uint16_t tenants_join(struct tenants *tenants, user_t user, const struct tenants_limits *limits,
		      uint64_t now_ns);

/** Change the limits of an entry, also of one without slots. */
void tenants_change(struct tenants *tenants, uint16_t tenant, const struct tenants_limits *limits);

/** Note that a slot of a tenant ends. TENANTS_NONE: do nothing. */
void tenants_leave(struct tenants *tenants, uint16_t tenant);

/** Begin a round, in which tenants_want says which slots' packets wait. */
void tenants_begin(struct tenants *tenants);

/** Note that packets of a slot wait. At most once for each slot in a round. */
void tenants_want(struct tenants *tenants, uint16_t tenant, uint16_t slot);

/** Give the tenants that want it their credit for the round, and order them. */
void tenants_start(struct tenants *tenants, uint64_t now_ns);

/**
 * Find the slot that has its turn.
 *
 * @param take
 *   Set to what may be taken from it. Call tenants_charge afterwards.
 * @return
 *   TENANTS_NONE: the round is over.
 */
uint16_t tenants_next(struct tenants *tenants, uint64_t now_ns, struct tenants_take *take);

/** Charge a tenant for what was taken from one of its slots, in a round or outside of it. It owes
 * what exceeds its credit to its next rounds. Do nothing while no turns are needed. */
void tenants_charge(struct tenants *tenants, uint16_t tenant, const struct tenants_take *take,
		    uint64_t now_ns);

/** Return the limits of a tenant. */
static inline const struct tenants_limits *tenants_limits_of(const struct tenants *tenants,
							     uint16_t tenant)
{
	return &tenants->all[tenant].limits;
}

/** Return true if a tenant has to wait for its rate. */
bool tenants_is_held(const struct tenants *tenants, uint16_t tenant, uint64_t now_ns);

/** Count a request of a tenant for a connection. Return false if it has sent as many as it may: it
 * may send those of a second at once. */
bool tenants_may_connect(struct tenants *tenants, uint16_t tenant, uint64_t now_ns);

/** Count a copy of a packet that was taken. */
static inline void tenants_take_copy(struct tenants_take *take, uint32_t bytes)
{
	take->cost += bytes > TENANTS_PACKET_BYTES ? bytes : TENANTS_PACKET_BYTES;
}

/** Count a packet that was taken. */
static inline void tenants_take_packet(struct tenants_take *take, uint32_t bytes)
{
	take->bytes += bytes;
	tenants_take_copy(take, bytes);
}

#endif
