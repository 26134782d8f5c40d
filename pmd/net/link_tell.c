/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells the operator what changes at a kernel interface while it is used. */
#include <string.h>

#include "base/log.h"
#include "link_internal.h"

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
