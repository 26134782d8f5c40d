/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes and redirects. */
#include "net/routes.h"

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
