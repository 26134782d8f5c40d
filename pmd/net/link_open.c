/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens the links whose port this process owns: a port of EAL, a kernel interface, or an
 * application's port. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "config/impair.h"
#include "config/settings.h"
#include "eal/privilege.h"
#include "eal/runtime.h"
#include "link_internal.h"
#include "netdev/mute.h"
#include "netdev/netdev.h"
#include "netdev/rtnl.h"
#include "port/guest.h"
#include "port/impair.h"
#include "port/interface.h"
#include "port/udp_port.h"

/* Watch the interface before it is read, so that a change in between is noticed later. */
int link_use_interface(struct link *link, const char *name)
{
	struct netdev netdev;
	int rc;

	link->watch_fd = watch_open();
	if (link->watch_fd < 0)
		log_warn("changes of the addresses of %s will go unnoticed: %s", name,
			 strerror(-link->watch_fd));
	rc = netdev_query(name, &netdev);
	if (rc != 0)
		return rc;
	link_take_addresses(link, &netdev);
	link->ifindex = netdev.ifindex;
	link->told_mtu_bytes = netdev.mtu_bytes;
	memcpy(link->told_mac, netdev.mac, sizeof(link->told_mac));
	snprintf(link->ifname, sizeof(link->ifname), "%s", name);
	return 0;
}

/* The start of early drop. */
struct early_start {
	struct link *link;
	pthread_t thread;
	bool is_apart; /* the thread does it */
	int rc;
};

static void *link_start_early_drop(void *arg)
{
	struct early_start *early = arg;

	early->rc = early_drop_start(&early->link->early_drop, early->link->ifindex);
	return NULL;
}

/* The kernel waits for a grace period before it has attached an eBPF program, and for another one
 * before it has made a packet socket's ring. Wait for both at the same time: programs may wait for
 * this port. */
static void link_begin_early_drop(struct early_start *early)
{
	/* An address that has gone from here may be another host's. */
	if (early->link->watch_fd < 0) {
		early->rc = -EOPNOTSUPP;
		return;
	}
	early->is_apart = privilege_create_same(&early->thread, link_start_early_drop, early) == 0;
	if (!early->is_apart)
		link_start_early_drop(early);
}

/* Where it cannot start, the kernel looks at each packet, too. Nothing else changes. */
static void link_end_early_drop(struct early_start *early, bool drops)
{
	struct link *link = early->link;

	if (early->is_apart)
		pthread_join(early->thread, NULL);
	if (early->rc != 0)
		log_debug("the kernel's UDP looks at the packets to %s, too: %s", link->ifname,
			  strerror(-early->rc));
	else if (drops)
		early_drop_set(&link->early_drop, link->ifindex, &link->addresses);
}

/* Make a packet socket, and keep the kernel silent about its packets. */
static int link_prepare_interface(struct link *link, const struct settings *settings)
{
	int rc = interface_prepare(&link->port, settings->netdev, settings->mtu);

	if (rc == 0)
		rc = impair_prepare(&link->port, settings->impair);
	if (rc != 0)
		return rc;
	link->mute_fd = mute_kernel(settings->netdev);
	if (link->mute_fd < 0)
		return link->mute_fd;
	rc = link_mute_vlans(link);
	/* Whoever has the port receives the packets of that VLAN. */
	return rc == -EADDRINUSE ? rc : 0;
}

/* A UDP socket receives what the kernel must be kept silent about otherwise. */
static int link_prepare_netdev(struct link *link, const struct settings *settings)
{
	struct early_start early = {.link = link};
	int rc;

	link->by_udp = settings->udp;
	rc = link_use_interface(link, settings->netdev);
	if (rc != 0)
		return rc;
	if (!netdev_running(settings->netdev))
		log_warn("interface '%s' is down: `ip link set %s up`", settings->netdev,
			 settings->netdev);
	if (settings->udp) {
		rc = udp_port_prepare(&link->port, settings->netdev, settings->mtu);
		return rc == 0 ? impair_prepare(&link->port, settings->impair) : rc;
	}
	link_begin_early_drop(&early);
	rc = link_prepare_interface(link, settings);
	link_end_early_drop(&early, rc == 0);
	return rc;
}

static void link_init_own(struct link *link)
{
	int (*const make_pool)(struct port * port) = link->port.make_pool;
	void *const make_pool_arg = link->port.make_pool_arg;

	memset(link, 0, sizeof(*link));
	link->port.make_pool = make_pool;
	link->port.make_pool_arg = make_pool_arg;
	link_init(link);
}

int link_prepare(struct link *link, const struct settings *settings)
{
	int rc;

	link_init_own(link);
	link->port.unique = settings->socket;
	link->port.watched = settings->capture != SETTINGS_CAPTURE_NO;
	if (settings->netdev[0] != '\0')
		return link_prepare_netdev(link, settings);
	rc = port_prepare(&link->port, settings->port, settings->mtu);
	return rc == 0 ? impair_prepare(&link->port, settings->impair) : rc;
}

/* Add the untagged link-local address, the user's addresses, and the link-local ones of their
 * VLANs. */
static void link_add_own_addresses(const struct link *link, const struct settings *settings,
				   struct addresses *addresses)
{
	struct address local = {.prefix_len = LINK_LOCAL_PREFIX, .vlan = VLAN_NONE};

	address_link_local(link->port.mac, local.gid);
	addresses_add(addresses, &local);
	for (size_t i = 0; i < settings->ip_count; i++) {
		const struct settings_ip *ip = &settings->ips[i];
		struct address address = {.prefix_len = ip->prefix_len, .vlan = ip->vlan};

		memcpy(address.gid, ip->gid, sizeof(address.gid));
		addresses_add(addresses, &address);
	}
	for (size_t i = 0; i < settings->ip_count; i++) {
		local.vlan = settings->ips[i].vlan;
		addresses_add(addresses, &local);
	}
}

static void link_add_routes(struct routes *routes, const struct settings *settings)
{
	for (size_t i = 0; i < settings->route_count; i++) {
		const struct settings_route *route = &settings->routes[i];

		(void)routes_add(routes, route->prefix,
				 route->prefix_len +
					 (gid_is_ipv4(route->gateway) ? GID_IPV4_BITS : 0u),
				 route->gateway);
	}
}

bool link_change_addresses(struct link *link, const struct settings *settings, uint64_t now_ns)
{
	struct addresses addresses = {.count = 0};
	struct routes routes = {.count = 0};
	bool same;

	if (link->ifindex != 0)
		return false;
	link_add_own_addresses(link, settings, &addresses);
	link_add_routes(&routes, settings);
	same = addresses_same(&addresses, &link->addresses);
	pthread_mutex_lock(&link->addresses_lock);
	link->addresses = addresses;
	link->routes = routes;
	pthread_mutex_unlock(&link->addresses_lock);
	if (same)
		return false;
	groups_follow(&link->groups, &link->addresses, now_ns);
	return true;
}

int link_open(struct link *link, const struct settings *settings)
{
	int rc;

	groups_init(&link->groups);
	rc = port_open(&link->port);
	link->port.tsc_hz = runtime_tsc_hz();
	if (rc == 0 && link->ifindex == 0) {
		link_add_own_addresses(link, settings, &link->addresses);
		link_add_routes(&link->routes, settings);
	}
	return rc;
}

int link_open_guest(struct link *link, struct guest *guest, const struct settings *settings)
{
	int rc;

	link_init_own(link);
	groups_init(&link->groups);
	link->port.mtu_bytes = settings->mtu;
	link->port.mbufs = impair_config_buffers(settings->impair);
	rc = guest_open(guest, &link->port);
	link->port.tsc_hz = runtime_tsc_hz();
	if (rc == 0)
		rc = impair_prepare(&link->port, settings->impair);
	if (rc != 0)
		return rc;
	link_add_own_addresses(link, settings, &link->addresses);
	link_add_routes(&link->routes, settings);
	guest_steer(guest, &link->addresses);
	return 0;
}
