/* SPDX-License-Identifier: BSD-3-Clause */
/* Joins port, addresses and neighbours, passes frames to the protocols that find neighbours, and
 * tells the operator what changes at an interface. */
#include "net/link.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_ether.h>

#include "base/log.h"
#include "base/own.h"
#include "link_internal.h"
#include "net/arp.h"
#include "net/icmp.h"
#include "net/membership.h"
#include "net/nd.h"
#include "net/tag.h"
#include "netdev/mute.h"
#include "netdev/netdev.h"
#include "netdev/rtnl.h"
#include "port/udp_port.h"

static void tell_address(const struct link *link, enum log_level level,
			 const struct address *address, const char *what)
{
	char text[GID_TEXT_MAX];

	gid_text(address->gid, text);
	log_print(level, "%s: address %s %s", link->ifname, text, what);
}

/* Tell which addresses of `all` are not among `others`. */
static void tell_missing(const struct link *link, enum log_level level, const struct addresses *all,
			 const struct addresses *others, const char *what)
{
	for (size_t i = 0; i < all->count; i++) {
		const struct address *address = &all->list[i];

		if (!addresses_have(others, address->vlan, address->gid))
			tell_address(link, level, address, what);
	}
}

void link_tell_addresses(const struct link *link, const struct addresses *before)
{
	tell_missing(link, LOG_LEVEL_WARN, before, &link->addresses, "has gone");
	tell_missing(link, LOG_LEVEL_INFO, &link->addresses, before, "is new");
}

/* The port keeps the MTU and the MAC address that it was started with. */
void link_tell_interface(struct link *link, const struct netdev *netdev)
{
	const uint8_t *mac = netdev->mac;

	if (netdev->mtu_bytes != link->told_mtu_bytes)
		log_warn("%s: the MTU is now %u; the port keeps %u until it is started again%s",
			 link->ifname, netdev->mtu_bytes, link->port.mtu_bytes,
			 netdev->mtu_bytes < link->port.mtu_bytes ? ", and longer packets are lost"
								  : "");
	if (memcmp(mac, link->told_mac, sizeof(link->told_mac)) != 0)
		log_warn("%s: the MAC address is now %02x:%02x:%02x:%02x:%02x:%02x; the port keeps "
			 "the old one until it is started again, and packets are lost",
			 link->ifname, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	link->told_mtu_bytes = netdev->mtu_bytes;
	memcpy(link->told_mac, mac, sizeof(link->told_mac));
}

/* A RoCE packet is as long as its queue pair's path MTU says, so nothing can be made shorter now.
 */
void link_tell_too_long(const struct link *link, const struct icmp_notice *notice)
{
	char to[GID_TEXT_MAX], from[GID_TEXT_MAX];

	gid_text(notice->to, to);
	gid_text(notice->from, from);
	log_warn("%s: router %s drops packets to %s, because they are too long: use a shorter path "
		 "MTU (it passes %u bytes; 0: it does not say)",
		 link_name(link), from, to, notice->mtu_bytes);
}

/* Whoever can reach us may tell that a packet was too long, and must not fill the log. */
#define TOO_LONG_PERIOD_NS UINT64_C(10000000000)

static void link_close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static struct link_mute *link_find_mute(struct link *link, unsigned int ifindex)
{
	for (size_t i = 0; i < link->mute_count; i++) {
		if (link->mutes[i].ifindex == ifindex)
			return &link->mutes[i];
	}
	return NULL;
}

int link_mute_vlans(struct link *link)
{
	struct link_mute mutes[ADDRESSES_MAX];
	size_t count = 0;
	int rc = 0;
	char name[IF_NAMESIZE];

	for (size_t i = 0; i < link->addresses.count; i++) {
		const unsigned int ifindex = link->addresses.list[i].ifindex;
		struct link_mute *mute;

		if (ifindex == link->ifindex || !addresses_first_of_vlan(&link->addresses, i))
			continue;
		mute = link_find_mute(link, ifindex);
		if (mute) {
			mutes[count++] = *mute;
			mute->fd = -1;
		} else if (if_indextoname(ifindex, name)) {
			const int fd = mute_kernel(name);

			mutes[count++] = (struct link_mute){.ifindex = ifindex, .fd = fd};
			if (fd < 0 && rc == 0)
				rc = fd;
		}
	}
	for (size_t i = 0; i < link->mute_count; i++)
		link_close_fd(link->mutes[i].fd);
	memcpy(link->mutes, mutes, count * sizeof(mutes[0]));
	link->mute_count = count;
	return rc;
}

void link_take_addresses(struct link *link, const struct netdev *netdev)
{
	struct addresses taken = {.count = 0};

	for (size_t i = 0; i < netdev->addresses.count; i++) {
		struct address address = netdev->addresses.list[i];

		if (address.vlan != VLAN_NONE && gid_is_link_local(address.gid))
			continue;
		address.vlan = VLAN_NONE;
		addresses_add(&taken, &address);
	}
	link->addresses = link->by_udp ? taken : netdev->addresses;
}

void link_init(struct link *link)
{
	link->mute_fd = -1;
	link->early_drop = EARLY_DROP_OFF;
	link->watch_fd = -1;
	pthread_mutex_init(&link->addresses_lock, NULL);
}

void link_init_remote(struct link *link, const struct link_remote *remote, void *arg,
		      const struct addresses *addresses)
{
	memset(link, 0, sizeof(*link));
	link_init(link);
	link->remote = remote;
	link->remote_arg = arg;
	link->addresses = *addresses;
}

void link_close(struct link *link)
{
	if (link->port.started)
		port_close(&link->port);
	port_destroy(&link->port);
	early_drop_stop(&link->early_drop);
	for (size_t i = 0; i < link->mute_count; i++)
		link_close_fd(link->mutes[i].fd);
	link->mute_count = 0;
	link_close_fd(link->mute_fd);
	link_close_fd(link->watch_fd);
	link->mute_fd = link->watch_fd = -1;
	pthread_mutex_destroy(&link->addresses_lock);
}

static bool link_has(struct link *link, int32_t vlan, const uint8_t gid[GID_LEN])
{
	bool has;

	pthread_mutex_lock(&link->addresses_lock);
	has = addresses_have(&link->addresses, vlan, gid);
	pthread_mutex_unlock(&link->addresses_lock);
	return has;
}

bool link_refresh(struct link *link)
{
	struct addresses before;
	struct netdev netdev;

	if (link->remote)
		return link->remote->refresh(link);
	if (link->watch_fd < 0)
		return false;
	if (!own_is(link->watch_fd)) {
		/* Nobody tells any more when an address goes to another host. */
		early_drop_stop(&link->early_drop);
		return false;
	}
	if (!watch_changed(link->watch_fd)) {
		early_drop_renew(&link->early_drop);
		return false;
	}
	if (netdev_query(link->ifname, &netdev) != 0) {
		early_drop_stop(&link->early_drop);
		return false;
	}
	link_tell_interface(link, &netdev);
	before = link->addresses;
	pthread_mutex_lock(&link->addresses_lock);
	link_take_addresses(link, &netdev);
	pthread_mutex_unlock(&link->addresses_lock);
	if (addresses_same(&before, &link->addresses)) {
		early_drop_renew(&link->early_drop);
		return false;
	}
	link_tell_addresses(link, &before);
	early_drop_set(&link->early_drop, link->ifindex, &link->addresses);
	if (link->mute_fd >= 0)
		(void)link_mute_vlans(link);
	/* The kernel sends the reports on its own groups: the time does not matter. */
	groups_follow(&link->groups, &link->addresses, 0);
	return true;
}

/* Learn a neighbour that asks for us. Packets never go straight to an address that is not on the
 * link, and such an entry would only displace others. */
static void link_learn(struct link *link, int32_t vlan, const uint8_t gid[GID_LEN],
		       const uint8_t mac[6], uint64_t now_ns)
{
	if (addresses_on_link(&link->addresses, vlan, gid) &&
	    !addresses_have(&link->addresses, vlan, gid))
		neigh_learn(&link->neighbours, vlan, gid, mac, now_ns);
}

void link_hear(struct link *link, int32_t vlan, const uint8_t gid[GID_LEN], const uint8_t mac[6],
	       uint64_t now_ns)
{
	if (link->remote || link->ifindex != 0 || !nd_mac_valid(mac) ||
	    neigh_is_known(&link->neighbours, vlan, gid, now_ns))
		return;
	link_learn(link, vlan, gid, mac, now_ns);
}

static size_t link_input_arp(struct link *link, int32_t vlan, const struct arp *arp,
			     uint64_t now_ns, uint8_t *reply)
{
	uint8_t sender[GID_LEN], target[GID_LEN];
	static const uint8_t none[4];

	gid_from_ipv4(arp->sender_ip, sender);
	gid_from_ipv4(arp->target_ip, target);
	if (!arp->request) {
		neigh_answer(&link->neighbours, vlan, sender, arp->sender_mac, true, now_ns);
		return 0;
	}
	if (link->ifindex != 0 || !addresses_have(&link->addresses, vlan, target))
		return 0;
	/* A probe (RFC 5227) has no sender address. */
	if (memcmp(arp->sender_ip, none, sizeof(none)) != 0)
		link_learn(link, vlan, sender, arp->sender_mac, now_ns);
	return arp_build_reply(reply, link->port.mac, arp);
}

static size_t link_input_nd(struct link *link, int32_t vlan, const struct nd *nd, uint64_t now_ns,
			    uint8_t *reply)
{
	if (!nd->solicitation) {
		if (nd->has_mac)
			neigh_answer(&link->neighbours, vlan, nd->target, nd->mac, nd->overrides,
				     now_ns);
		return 0;
	}
	if (link->ifindex != 0 || !addresses_have(&link->addresses, vlan, nd->target))
		return 0;
	if (nd->has_mac)
		link_learn(link, vlan, nd->src_ip, nd->mac, now_ns);
	return nd_build_advertisement(reply, link->port.mac, nd);
}

static int link_find_hop(struct link *link, int32_t vlan, const uint8_t to[GID_LEN],
			 uint8_t hop[GID_LEN])
{
	int rc;

	pthread_mutex_lock(&link->addresses_lock);
	rc = routes_find(&link->routes, &link->addresses, vlan, to, hop);
	pthread_mutex_unlock(&link->addresses_lock);
	return rc;
}

/*
 * Believe a redirect only if it comes from the gateway that the packets go to now, and names a
 * neighbour (RFC 1122, 3.2.2.2; RFC 4861, 8.1). An IPv6 gateway tells by its link-local address, so
 * it is known by its MAC address.
 */
static void link_redirect(struct link *link, int32_t vlan, const struct icmp_notice *notice,
			  uint64_t now_ns)
{
	uint8_t hop[GID_LEN];

	if (link_find_hop(link, vlan, notice->to, hop) != 0 ||
	    memcmp(hop, notice->to, GID_LEN) == 0 ||
	    (gid_is_ipv4(hop) && memcmp(hop, notice->from, GID_LEN) != 0) ||
	    !neigh_has_mac(&link->neighbours, vlan, hop, notice->mac, now_ns) ||
	    addresses_have(&link->addresses, vlan, notice->gateway) ||
	    ((gid_is_ipv4(hop) || memcmp(notice->gateway, notice->to, GID_LEN) != 0) &&
	     !addresses_on_link(&link->addresses, vlan, notice->gateway)))
		return;
	pthread_mutex_lock(&link->addresses_lock);
	routes_redirect(&link->routes, vlan, notice->to, notice->gateway, now_ns);
	pthread_mutex_unlock(&link->addresses_lock);
}

static void link_input_icmp(struct link *link, int32_t vlan, const struct icmp_notice *notice,
			    uint64_t now_ns)
{
	if (notice->kind == ICMP_REDIRECT) {
		link_redirect(link, vlan, notice, now_ns);
	} else if (now_ns >= link->too_long_due_ns) {
		link->too_long_due_ns = now_ns + TOO_LONG_PERIOD_NS;
		link_tell_too_long(link, notice);
	}
}

/* Handle a frame whose tag was removed: the protocols are the same in every VLAN. */
static size_t link_input_untagged(struct link *link, int32_t vlan, const uint8_t *frame, size_t len,
				  uint64_t now_ns, uint8_t *reply)
{
	struct membership_query query;
	struct icmp_notice notice;
	struct arp arp;
	struct nd nd;

	if (arp_parse(frame, len, &arp))
		return link_input_arp(link, vlan, &arp, now_ns, reply);
	if (nd_parse(frame, len, &nd))
		return link_input_nd(link, vlan, &nd, now_ns, reply);
	if (link->ifindex != 0)
		return 0;
	if (membership_parse(frame, len, &query)) {
		groups_asked(&link->groups, vlan, &query, now_ns);
		return 0;
	}
	if (icmp_parse(&link->addresses, vlan, frame, len, &notice)) {
		link_input_icmp(link, vlan, &notice, now_ns);
		return 0;
	}
	return echo_reply(&link->addresses, vlan, link->port.mac, frame, len, reply,
			  LINK_REPLY_MAX - TAG_LEN);
}

size_t link_input(struct link *link, uint8_t *frame, size_t len, uint64_t now_ns, uint8_t *reply)
{
	int32_t vlan;

	if (link->remote)
		return 0;
	frame = tag_remove(frame, &len, &vlan);
	return tag_insert(reply, link_input_untagged(link, vlan, frame, len, now_ns, reply), vlan);
}

/* Join a group on all of our networks, because a program that attaches to a group names no network.
 * Without any address yet, join on the interface itself. */
int link_join(struct link *link, const uint8_t gid[GID_LEN], uint64_t now_ns)
{
	uint8_t frame[LINK_REPLY_MAX];
	size_t len;
	int rc = 0;

	if (link->remote)
		return link->remote->join(link, gid);
	for (size_t i = 0; rc == 0 && i < link->addresses.count; i++) {
		const struct address *address = &link->addresses.list[i];

		if (addresses_first_of_vlan(&link->addresses, i))
			rc = groups_join(&link->groups, address->vlan, address->ifindex, gid,
					 now_ns);
	}
	if (link->addresses.count == 0)
		rc = groups_join(&link->groups, VLAN_NONE, link->ifindex, gid, now_ns);
	while (rc != 0 && link_leave(link, gid, now_ns, frame, &len))
		;
	return rc;
}

bool link_leave(struct link *link, const uint8_t gid[GID_LEN], uint64_t now_ns, uint8_t *frame,
		size_t *len)
{
	if (link->remote) {
		*len = 0;
		link->remote->leave(link, gid);
		return false;
	}
	return groups_leave(&link->groups, gid, now_ns, link->port.mac, &link->addresses, frame,
			    len);
}

size_t link_report(struct link *link, uint64_t now_ns, uint8_t *frame)
{
	if (link->remote)
		return 0;
	pthread_mutex_lock(&link->addresses_lock);
	routes_age(&link->routes, now_ns);
	pthread_mutex_unlock(&link->addresses_lock);
	return groups_report(&link->groups, now_ns, link->port.mac, &link->addresses, frame);
}

static int link_route_kernel(const struct link *link, unsigned int ifindex,
			     const uint8_t dgid[GID_LEN], struct link_hop *hop)
{
	bool confirmed;

	/* An interface of this host, for example the other end of a veth: it would not answer
	 * address resolution. */
	if (netdev_mac_of(dgid, hop->mac) == 0) {
		hop->known = true;
		return 0;
	}
	memcpy(hop->gid, dgid, GID_LEN);
	if (!gid_is_link_local(dgid) && rtnl_route(ifindex, dgid, hop->gid) != 0)
		return -ENETUNREACH;
	if (link->by_udp) {
		udp_port_gateway(link->port.mac, hop->mac);
		hop->known = true;
		return 0;
	}
	if (rtnl_neigh(ifindex, hop->gid, hop->mac, &confirmed) == 0) {
		hop->known = confirmed;
		hop->has_stale = !confirmed;
	}
	return 0;
}

int link_route(struct link *link, const struct address *from, const uint8_t dgid[GID_LEN],
	       struct link_hop *hop)
{
	memset(hop, 0, sizeof(*hop));
	if (gid_is_multicast(dgid)) {
		address_multicast_mac(dgid, hop->mac);
		hop->known = true;
		return 0;
	}
	if (link->remote)
		return link->remote->route(link, from, dgid, hop);
	if (link_has(link, from->vlan, dgid)) {
		memcpy(hop->mac, link->port.mac, sizeof(hop->mac));
		hop->known = true;
		return 0;
	}
	if (from->ifindex != 0)
		return link_route_kernel(link, from->ifindex, dgid, hop);
	return link_find_hop(link, from->vlan, dgid, hop->gid);
}

bool link_resolve(struct link *link, uint16_t asker, const struct address *from,
		  const uint8_t gid[GID_LEN], uint64_t now_ns, uint8_t mac[6], uint8_t *request,
		  size_t *request_len)
{
	size_t len;
	bool ask;

	*request_len = 0;
	if (link->remote)
		return link->remote->resolve(link, from, gid, mac);
	if (neigh_find(&link->neighbours, asker, from->vlan, gid, now_ns, mac, &ask))
		return true;
	if (!ask)
		return false;
	if (gid_is_ipv4(gid))
		len = arp_build_request(request, link->port.mac, from->gid + GID_IPV4_OFFSET,
					gid + GID_IPV4_OFFSET);
	else
		len = nd_build_solicitation(request, link->port.mac, from->gid, gid);
	*request_len = tag_insert(request, len, from->vlan);
	return false;
}
