/* SPDX-License-Identifier: BSD-3-Clause */
/* An agent's addresses: the choice of our own, and the search for peers' link addresses. */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "agent_parts.h"
#include "wire/gid.h"

/* The shortest and the longest pause between two looks for an answer. A pause may be long after
 * some looks, because a peer that has not answered by then is distant. */
#define LOOK_FIRST_NS UINT64_C(500000)
#define LOOK_LAST_NS  UINT64_C(16000000)

static uint8_t version_of(const uint8_t gid[GID_LEN])
{
	return gid_is_ipv4(gid) ? 4 : 6;
}

static bool is_wanted(const struct device_gid *entry, const uint8_t *gid, uint8_t ip_version,
		      uint32_t ifindex)
{
	if (gid_is_zero(entry->gid.raw) ||
	    (ifindex != 0 && entry->ndev_ifindex != 0 && entry->ndev_ifindex != ifindex))
		return false;
	if (gid)
		return memcmp(entry->gid.raw, gid, GID_LEN) == 0;
	return ip_version == 0 || version_of(entry->gid.raw) == ip_version;
}

/* Copy the device's addresses, because they may change at any time. */
static void copy_gids(struct agent *agent, struct device_gid gids[DEVICE_GIDS_MAX])
{
	struct device *device = agent->device;

	device_lock(device);
	memcpy(gids, device->gids, sizeof(device->gids));
	device_unlock(device);
}

int agent_find_gid(struct agent *agent, const uint8_t *gid, uint8_t ip_version, uint32_t ifindex,
		   struct device_gid *found)
{
	struct device_gid gids[DEVICE_GIDS_MAX];

	copy_gids(agent, gids);
	for (int i = 0; i < DEVICE_GIDS_MAX; i++) {
		if (is_wanted(&gids[i], gid, ip_version, ifindex)) {
			*found = gids[i];
			return i;
		}
	}
	return -EADDRNOTAVAIL;
}

int agent_find_own(const struct agent *agent, const struct gsi_address *address,
		   struct device_gid *found)
{
	const struct device *device = agent->device;

	for (int i = 0; i < DEVICE_GIDS_MAX; i++) {
		if (device->gids[i].vlan_id == address->vlan_id &&
		    is_wanted(&device->gids[i], address->local, 0, 0)) {
			*found = device->gids[i];
			return i;
		}
	}
	return -EADDRNOTAVAIL;
}

static int common_bits(const uint8_t *a, const uint8_t *b)
{
	int bits = 0;

	while (bits < GID_LEN * 8 && !(((a[bits / 8] ^ b[bits / 8]) >> (7 - bits % 8)) & 1))
		bits++;
	return bits;
}

/* Return how well an address suits a destination; negative: not at all. */
static int suits(const struct device_gid *entry, const uint8_t dgid[GID_LEN], uint32_t ifindex)
{
	const uint8_t *gid = entry->gid.raw;

	if (!is_wanted(entry, NULL, version_of(dgid), ifindex))
		return -1;
	/* Link-local and other addresses do not mix: a router does not forward a link-local one,
	 * and no host answers to one of another link (RFC 4007). Groups are reached from any
	 * address. */
	if (!gid_is_multicast(dgid) && gid_is_link_local(dgid) != gid_is_link_local(gid))
		return -1;
	return common_bits(gid, dgid);
}

int agent_choose_source(struct agent *agent, const uint8_t dgid[GID_LEN], uint32_t ifindex,
			struct device_gid *found)
{
	const struct device *device = agent->device;
	struct device_gid gids[DEVICE_GIDS_MAX];
	int best = -EADDRNOTAVAIL, best_score = -1;
	struct device_hop hop;
	union ibv_gid to;

	memcpy(to.raw, dgid, sizeof(to.raw));
	copy_gids(agent, gids);
	for (int i = 0; i < DEVICE_GIDS_MAX; i++) {
		const int score = suits(&gids[i], dgid, ifindex);

		if (score <= best_score)
			continue;
		if (!device->net ||
		    device->net->route(device->net_user, (uint8_t)i, &to, &hop) != 0) {
			if (best < 0)
				best = -ENETUNREACH;
			continue;
		}
		best = i;
		best_score = score;
		*found = gids[i];
	}
	return best;
}

static void complete(struct agent_query *query, const uint8_t mac[6])
{
	memcpy(query->address.mac, mac, sizeof(query->address.mac));
	query->address.mac_known = true;
}

static bool look(struct agent *agent, struct agent_query *query)
{
	const struct device *device = agent->device;
	uint8_t mac[6];

	if (!device->net->look(device->net_user, query->sgid_index, query->hop.gid, mac))
		return false;
	complete(query, mac);
	return true;
}

static void end(struct agent *agent, struct agent_query *query, int status)
{
	LIST_REMOVE(query, next);
	query->pending = false;
	agent->notify.resolved(query, status);
}

/* Continue a query. Return true if it has ended. */
static bool step(struct agent *agent, struct agent_query *query, uint64_t now_ns)
{
	if (look(agent, query)) {
		end(agent, query, 0);
		return true;
	}
	if (now_ns < query->until_ns)
		return false;
	/* The kernel's old entry of the neighbour may still be right. */
	if (query->hop.has_stale)
		complete(query, query->hop.mac);
	end(agent, query, query->hop.has_stale ? 0 : -ETIMEDOUT);
	return true;
}

uint64_t queries_deadline_ns(const struct agent *agent)
{
	return agent->look_ns;
}

unsigned int queries_run(struct agent *agent, uint64_t now_ns)
{
	struct agent_query *query = LIST_FIRST(&agent->queries);
	unsigned int ended = 0;

	if (now_ns < agent->look_ns)
		return 0;
	while (query) {
		struct agent_query *next = LIST_NEXT(query, next);

		ended += step(agent, query, now_ns);
		query = next;
	}
	agent->look_ns = LIST_EMPTY(&agent->queries) ? UINT64_MAX : now_ns + agent->look_pause_ns;
	agent->look_pause_ns = RTE_MIN(2 * agent->look_pause_ns, LOOK_LAST_NS);
	return ended;
}

int agent_resolve(struct agent *agent, struct agent_query *query, uint8_t sgid_index,
		  const uint8_t dgid[GID_LEN], uint64_t timeout_ns)
{
	struct device *device = agent->device;
	const struct device_gid *from = &device->gids[sgid_index];
	union ibv_gid to;
	uint64_t now_ns;
	int rc;

	memcpy(to.raw, dgid, sizeof(to.raw));
	query->pending = false;
	query->sgid_index = sgid_index;
	if (!device->net || device->net->route(device->net_user, sgid_index, &to, &query->hop) != 0)
		return -ENETUNREACH;
	agent_enter(agent, &now_ns);
	query->address = (struct gsi_address){.vlan_id = from->vlan_id};
	memcpy(query->address.local, from->gid.raw, GID_LEN);
	memcpy(query->address.remote, dgid, GID_LEN);
	query->until_ns = now_ns + timeout_ns;
	rc = query->hop.known || look(agent, query) ? 0 : -EINPROGRESS;
	if (query->hop.known)
		complete(query, query->hop.mac);
	if (rc == -EINPROGRESS) {
		query->pending = true;
		LIST_INSERT_HEAD(&agent->queries, query, next);
		agent->look_pause_ns = LOOK_FIRST_NS;
		agent->look_ns = now_ns + LOOK_FIRST_NS;
	}
	agent_leave(agent);
	return rc;
}

void agent_forget(struct agent_query *query)
{
	if (query->pending)
		LIST_REMOVE(query, next);
	query->pending = false;
}
