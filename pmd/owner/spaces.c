/* SPDX-License-Identifier: BSD-3-Clause */
/* Port spaces of a device: which process is bound to which port, and which one listens. */
#include "owner/spaces.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_common.h>

#include "wire/gid.h"

#define EPHEMERAL_COUNT (SPACES_EPHEMERAL_END - SPACES_EPHEMERAL)

static_assert(SPACES_ISOLATED_MAX < EPHEMERAL_COUNT,
	      "isolated processes cannot take all ephemeral ports of a space");

struct spaces_port {
	LIST_ENTRY(spaces_port) by_port;
	LIST_ENTRY(spaces_port) by_id;
	LIST_ENTRY(spaces_port) by_slot;
	LIST_ENTRY(spaces_port) by_service; /* only if it listens */
	struct cm_port_claim claim;
	uint32_t id;
	uint16_t slot;
	bool listens;
	user_t user;
};

static uint32_t bucket_of_port(enum cm_port_space space, uint16_t port)
{
	return (port ^ (uint32_t)space << 8) % SPACES_BUCKETS;
}

static bool is_isolated(user_t user)
{
	return user != USER_TRUSTED;
}

static struct spaces_port *find_id(const struct spaces *spaces, uint32_t id)
{
	struct spaces_port *port;

	LIST_FOREACH (port, &spaces->by_id[id % SPACES_BUCKETS], by_id) {
		if (port->id == id)
			return port;
	}
	return NULL;
}

static struct spaces_port *find_of_slot(const struct spaces *spaces, uint16_t slot, uint32_t id)
{
	struct spaces_port *port = find_id(spaces, id);

	return port && port->slot == slot ? port : NULL;
}

/* Return true if two claims may share a port. Different users may not, as with SO_REUSEPORT: the
 * second one would keep the first one from listening. */
static bool may_share(const struct spaces_port *port, const struct cm_port_claim *claim,
		      user_t user)
{
	return claim->reuse && port->claim.reuse && port->user == user;
}

/* Return true if no other claim has the port, or only claims that share it. `self` is the claim
 * itself, if it is in the table. */
static bool is_free(const struct spaces *spaces, const struct cm_port_claim *claim, user_t user,
		    const struct spaces_port *self)
{
	const struct spaces_port *port;

	LIST_FOREACH (port, &spaces->by_port[bucket_of_port(claim->space, claim->port)], by_port) {
		if (port != self && cm_port_overlaps(&port->claim, claim) &&
		    !may_share(port, claim, user))
			return false;
	}
	return true;
}

/* Choose a free ephemeral port. The search begins at a random one, so that nobody can guess
 * which port is used next. A port is chosen only if no other claim has it, even with REUSEADDR. */
static int choose(const struct spaces *spaces, struct cm_port_claim *claim)
{
	struct cm_port_claim alone = *claim;
	uint32_t start;

	if (getrandom(&start, sizeof(start), 0) != (ssize_t)sizeof(start))
		return -EIO;
	alone.reuse = false;
	for (uint32_t i = 0; i < EPHEMERAL_COUNT; i++) {
		alone.port = (uint16_t)(SPACES_EPHEMERAL +
					(start % EPHEMERAL_COUNT + i) % EPHEMERAL_COUNT);
		if (is_free(spaces, &alone, USER_TRUSTED, NULL)) {
			claim->port = alone.port;
			return 0;
		}
	}
	return -EADDRINUSE;
}

static bool is_space(enum cm_port_space space)
{
	return space == CM_PS_IPOIB || space == CM_PS_TCP || space == CM_PS_UDP ||
	       space == CM_PS_IB;
}

static bool is_valid(const struct cm_port_claim *claim)
{
	if (!is_space(claim->space))
		return false;
	if (claim->any_address)
		return claim->ip_version == 0 || claim->ip_version == 4 || claim->ip_version == 6;
	return !gid_is_zero(claim->address) &&
	       claim->ip_version == (gid_is_ipv4(claim->address) ? 4 : 6);
}

/* Count the ports of a user's isolated processes; of one process, if the user has no limit. */
static uint32_t count_of(const struct spaces *spaces, uint16_t slot, user_t user)
{
	uint32_t count = 0;

	if (!user_is_limited(user))
		return spaces->counts[slot];
	for (uint16_t i = 0; i < SPACES_SLOTS; i++)
		count += spaces->users[i] == user ? spaces->counts[i] : 0;
	return count;
}

static bool has_room(const struct spaces *spaces, uint16_t slot, user_t user)
{
	if (!is_isolated(user))
		return spaces->counts[slot] < SPACES_SLOT_MAX;
	return spaces->isolated < SPACES_ISOLATED_MAX &&
	       count_of(spaces, slot, user) < SPACES_USER_MAX;
}

static int check(const struct spaces *spaces, uint16_t slot, user_t user,
		 struct cm_port_claim *claim)
{
	if (!is_valid(claim))
		return -EINVAL;
	if (!has_room(spaces, slot, user))
		return -ENOSPC;
	if (claim->port == 0)
		return choose(spaces, claim);
	if (claim->port < SPACES_PRIVILEGED && user_is_limited(user))
		return -EACCES;
	return is_free(spaces, claim, user, NULL) ? 0 : -EADDRINUSE;
}

int spaces_claim(struct spaces *spaces, uint16_t slot, user_t user, struct cm_port_claim *claim,
		 uint32_t *id)
{
	struct spaces_port *port;
	const int rc = check(spaces, slot, user, claim);

	if (rc != 0)
		return rc;
	port = calloc(1, sizeof(*port));
	if (!port)
		return -ENOMEM;
	port->claim = *claim;
	port->slot = slot;
	port->user = user;
	do
		port->id = ++spaces->next_id;
	while (find_id(spaces, port->id));
	LIST_INSERT_HEAD(&spaces->by_port[bucket_of_port(claim->space, claim->port)], port,
			 by_port);
	LIST_INSERT_HEAD(&spaces->by_id[port->id % SPACES_BUCKETS], port, by_id);
	LIST_INSERT_HEAD(&spaces->by_slot[slot], port, by_slot);
	spaces->users[slot] = user;
	spaces->counts[slot]++;
	spaces->count++;
	spaces->isolated += is_isolated(user);
	*id = port->id;
	return 0;
}

/* Make a claim listen. As in Linux, it must be alone on its address, and does not share it any
 * more. */
int spaces_listen(struct spaces *spaces, uint16_t slot, uint32_t id)
{
	struct spaces_port *port = find_of_slot(spaces, slot, id), *other;
	uint32_t bucket;

	if (!port)
		return -EINVAL;
	bucket = bucket_of_port(port->claim.space, port->claim.port);
	LIST_FOREACH (other, &spaces->by_port[bucket], by_port) {
		if (other != port && cm_port_overlaps(&other->claim, &port->claim))
			return -EADDRINUSE;
	}
	if (port->listens)
		return 0;
	port->claim.reuse = false;
	port->listens = true;
	LIST_INSERT_HEAD(&spaces->by_service[bucket], port, by_service);
	return 0;
}

int spaces_change(struct spaces *spaces, uint16_t slot, uint32_t id, uint8_t ip_version, bool reuse)
{
	struct spaces_port *port = find_of_slot(spaces, slot, id);
	struct cm_port_claim changed;

	if (!port || port->listens || !cm_port_may_change(&port->claim, ip_version))
		return -EINVAL;
	changed = port->claim;
	changed.ip_version = ip_version;
	changed.reuse = reuse;
	if (!is_free(spaces, &changed, port->user, port))
		return -EADDRINUSE;
	port->claim = changed;
	return 0;
}

static void remove_port(struct spaces *spaces, struct spaces_port *port)
{
	LIST_REMOVE(port, by_port);
	LIST_REMOVE(port, by_id);
	LIST_REMOVE(port, by_slot);
	if (port->listens)
		LIST_REMOVE(port, by_service);
	spaces->counts[port->slot]--;
	spaces->count--;
	spaces->isolated -= is_isolated(port->user);
	free(port);
}

int spaces_release(struct spaces *spaces, uint16_t slot, uint32_t id)
{
	struct spaces_port *port = find_of_slot(spaces, slot, id);

	if (!port)
		return -EINVAL;
	remove_port(spaces, port);
	return 0;
}

void spaces_end(struct spaces *spaces, uint16_t slot)
{
	while (!LIST_EMPTY(&spaces->by_slot[slot]))
		remove_port(spaces, LIST_FIRST(&spaces->by_slot[slot]));
	spaces->users[slot] = USER_TRUSTED;
}

/* Return how narrowly a port is bound. A request goes to the narrowest one. -1: the request is
 * not for this port. */
static int narrowness(const struct spaces_port *port, const struct cm_port_claim *wanted)
{
	if (!cm_port_overlaps(&port->claim, wanted))
		return -1;
	return 2 * !port->claim.any_address + (port->claim.ip_version != 0);
}

uint16_t spaces_find(const struct spaces *spaces, uint64_t service_id, const uint8_t gid[GID_LEN],
		     int32_t vlan_id)
{
	struct cm_port_claim wanted = {
		.space = (enum cm_port_space)(service_id >> 16),
		.port = (uint16_t)service_id,
		.ip_version = gid_is_ipv4(gid) ? 4 : 6,
		.vlan_id = vlan_id,
	};
	const struct spaces_port *port;
	uint16_t found = SPACES_NONE;
	int best = -1;

	/* Port spaces have only service ids whose upper half is zero. */
	if (service_id >> 32 != 0 || !is_space(wanted.space))
		return SPACES_NONE;
	memcpy(wanted.address, gid, GID_LEN);
	LIST_FOREACH (port, &spaces->by_service[bucket_of_port(wanted.space, wanted.port)],
		      by_service) {
		const int narrow = narrowness(port, &wanted);

		if (narrow > best) {
			best = narrow;
			found = port->slot;
		}
	}
	return found;
}
