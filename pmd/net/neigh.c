/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of neighbours. It is searched once per connection, so a plain array is enough. */
#include "net/neigh.h"

#include <errno.h>
#include <string.h>

#include <rte_common.h>

bool routes_add(struct routes *routes, const uint8_t prefix[GID_LEN], unsigned int bits,
		const uint8_t gateway[GID_LEN])
{
	struct route *route = &routes->list[routes->count];

	if (routes->count == ROUTES_MAX)
		return false;
	memcpy(route->prefix, prefix, GID_LEN);
	memcpy(route->gateway, gateway, GID_LEN);
	route->bits = (uint8_t)bits;
	routes->count++;
	return true;
}

static uint32_t redirect_count(const struct routes *routes)
{
	return RTE_MIN(routes->redirect_count, (uint32_t)ROUTES_REDIRECTS_MAX);
}

/* Return the index of a destination's redirect; redirect_count: there is none. */
static uint32_t find_redirect(const struct routes *routes, int32_t vlan, const uint8_t to[GID_LEN])
{
	const uint32_t count = redirect_count(routes);
	uint32_t i = 0;

	while (i < count && (routes->redirects[i].vlan != vlan ||
			     memcmp(routes->redirects[i].to, to, GID_LEN) != 0))
		i++;
	return i;
}

/* An IPv4 address has the prefix of no IPv6 network but ::/0, which is not its gateway's. */
static bool route_fits(const struct route *route, const struct addresses *own, int32_t vlan,
		       const uint8_t to[GID_LEN])
{
	return gid_is_ipv4(route->gateway) == gid_is_ipv4(to) &&
	       gid_same_prefix(route->prefix, to, route->bits) &&
	       addresses_on_link(own, vlan, route->gateway);
}

int routes_find(const struct routes *routes, const struct addresses *own, int32_t vlan,
		const uint8_t to[GID_LEN], uint8_t hop[GID_LEN])
{
	const uint32_t redirect = find_redirect(routes, vlan, to);
	const struct route *best = NULL;

	memcpy(hop, to, GID_LEN);
	if (addresses_on_link(own, vlan, to))
		return 0;
	if (redirect < redirect_count(routes)) {
		memcpy(hop, routes->redirects[redirect].gateway, GID_LEN);
		return 0;
	}
	for (uint32_t i = 0; i < routes->count; i++) {
		const struct route *route = &routes->list[i];

		if (route_fits(route, own, vlan, to) && (!best || route->bits > best->bits))
			best = route;
	}
	if (!best)
		return -ENETUNREACH;
	memcpy(hop, best->gateway, GID_LEN);
	return 0;
}

void routes_redirect(struct routes *routes, int32_t vlan, const uint8_t to[GID_LEN],
		     const uint8_t gateway[GID_LEN], uint64_t now_ns)
{
	uint32_t index = find_redirect(routes, vlan, to);
	struct route_redirect *redirect;

	if (index == redirect_count(routes))
		index = routes->redirect_count++ % ROUTES_REDIRECTS_MAX;
	redirect = &routes->redirects[index];
	memcpy(redirect->to, to, GID_LEN);
	memcpy(redirect->gateway, gateway, GID_LEN);
	redirect->vlan = vlan;
	redirect->at_ns = now_ns;
}

/* Nothing is sent to the address zero, so such an entry is never found. */
void routes_age(struct routes *routes, uint64_t now_ns)
{
	for (uint32_t i = 0; i < redirect_count(routes); i++) {
		struct route_redirect *redirect = &routes->redirects[i];

		if (now_ns - redirect->at_ns > ROUTES_REDIRECT_NS)
			memset(redirect->to, 0, sizeof(redirect->to));
	}
}

/* Return the index of a neighbour's entry, or NEIGH_MAX. */
static size_t neigh_index(const struct neigh_table *table, int32_t vlan, const uint8_t gid[GID_LEN])
{
	size_t i = 0;

	while (i < NEIGH_MAX &&
	       (table->entries[i].state == NEIGH_FREE || table->entries[i].vlan != vlan ||
		memcmp(table->entries[i].gid, gid, GID_LEN) != 0))
		i++;
	return i;
}

static struct neigh *neigh_lookup(struct neigh_table *table, int32_t vlan,
				  const uint8_t gid[GID_LEN])
{
	const size_t i = neigh_index(table, vlan, gid);

	return i < NEIGH_MAX ? &table->entries[i] : NULL;
}

static bool neigh_is_fresh(const struct neigh *neigh, uint64_t now_ns)
{
	return neigh->state == NEIGH_KNOWN && now_ns - neigh->at_ns < NEIGH_LIFETIME_NS;
}

bool neigh_is_known(const struct neigh_table *table, int32_t vlan, const uint8_t gid[GID_LEN],
		    uint64_t now_ns)
{
	const size_t i = neigh_index(table, vlan, gid);

	return i < NEIGH_MAX && neigh_is_fresh(&table->entries[i], now_ns);
}

bool neigh_has_mac(const struct neigh_table *table, int32_t vlan, const uint8_t gid[GID_LEN],
		   const uint8_t mac[6], uint64_t now_ns)
{
	const size_t i = neigh_index(table, vlan, gid);

	return i < NEIGH_MAX && neigh_is_fresh(&table->entries[i], now_ns) &&
	       memcmp(table->entries[i].mac, mac, sizeof(table->entries[i].mac)) == 0;
}

/* Return true if nobody waits for a wanted neighbour any more: a waiting asker would have asked
 * again.
 */
static bool neigh_is_abandoned(const struct neigh *neigh, uint64_t now_ns)
{
	return neigh->state == NEIGH_WANTED && now_ns - neigh->at_ns >= NEIGH_ABANDON_NS;
}

/* Return how suitable an entry is to be replaced, the more the higher; 0: it must not be. */
static int neigh_spare(const struct neigh *neigh, uint64_t now_ns)
{
	if (neigh->state == NEIGH_FREE)
		return 3;
	if (neigh->state == NEIGH_KNOWN)
		return now_ns - neigh->at_ns < NEIGH_LIFETIME_NS ? 1 : 2;
	return neigh_is_abandoned(neigh, now_ns) ? 2 : 0;
}

/* Choose an entry to fill: a free one, else a useless one, else known ones in turn. NULL if all
 * entries are waited for. */
static struct neigh *neigh_take(struct neigh_table *table, int32_t vlan, const uint8_t gid[GID_LEN],
				uint64_t now_ns)
{
	struct neigh *victim = NULL;
	int most = 0;

	for (size_t i = 0; i < NEIGH_MAX; i++) {
		struct neigh *neigh = &table->entries[(table->next_victim + i) % NEIGH_MAX];
		const int spare = neigh_spare(neigh, now_ns);

		if (spare > most) {
			victim = neigh;
			most = spare;
		}
	}
	if (!victim)
		return NULL;
	table->next_victim = (size_t)(victim - table->entries + 1) % NEIGH_MAX;
	memcpy(victim->gid, gid, GID_LEN);
	victim->vlan = vlan;
	return victim;
}

/* Return true if an asker may wait for one more neighbour. */
static bool neigh_may_want(const struct neigh_table *table, uint16_t asker, uint64_t now_ns)
{
	size_t count = 0;

	if (asker == NEIGH_TRUSTED)
		return true;
	for (size_t i = 0; i < NEIGH_MAX; i++) {
		const struct neigh *neigh = &table->entries[i];

		count += neigh->state == NEIGH_WANTED && neigh->asker == asker &&
			 !neigh_is_abandoned(neigh, now_ns);
	}
	return count < NEIGH_WANTED_MAX;
}

static void neigh_set(struct neigh *neigh, const uint8_t mac[6], uint64_t now_ns)
{
	memcpy(neigh->mac, mac, sizeof(neigh->mac));
	neigh->state = NEIGH_KNOWN;
	neigh->at_ns = now_ns;
}

bool neigh_find(struct neigh_table *table, uint16_t asker, int32_t vlan, const uint8_t gid[GID_LEN],
		uint64_t now_ns, uint8_t mac[6], bool *ask)
{
	struct neigh *neigh = neigh_lookup(table, vlan, gid);

	*ask = false;
	if (neigh && neigh_is_fresh(neigh, now_ns)) {
		memcpy(mac, neigh->mac, sizeof(neigh->mac));
		return true;
	}
	if (neigh && neigh->state == NEIGH_WANTED && !neigh_is_abandoned(neigh, now_ns)) {
		*ask = now_ns - neigh->at_ns >= NEIGH_RETRANSMIT_NS;
	} else if (neigh_may_want(table, asker, now_ns)) {
		if (!neigh)
			neigh = neigh_take(table, vlan, gid, now_ns);
		*ask = neigh != NULL;
		if (neigh)
			neigh->asker = asker;
	}
	if (*ask) {
		neigh->state = NEIGH_WANTED;
		neigh->at_ns = now_ns;
	}
	return false;
}

void neigh_answer(struct neigh_table *table, int32_t vlan, const uint8_t gid[GID_LEN],
		  const uint8_t mac[6], bool overrides, uint64_t now_ns)
{
	struct neigh *neigh = neigh_lookup(table, vlan, gid);

	if (!neigh)
		return;
	if (neigh->state == NEIGH_KNOWN && !overrides &&
	    memcmp(neigh->mac, mac, sizeof(neigh->mac)) != 0)
		return;
	neigh_set(neigh, mac, now_ns);
}

void neigh_learn(struct neigh_table *table, int32_t vlan, const uint8_t gid[GID_LEN],
		 const uint8_t mac[6], uint64_t now_ns)
{
	struct neigh *neigh = neigh_lookup(table, vlan, gid);

	if (!neigh)
		neigh = neigh_take(table, vlan, gid, now_ns);
	if (neigh)
		neigh_set(neigh, mac, now_ns);
}
