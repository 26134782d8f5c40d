/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells the operator what changes at a kernel interface while it is used. */
#include <arpa/inet.h>
#include <string.h>

#include <rte_ether.h>

#include "base/log.h"
#include "link_internal.h"

static void tell_address(const struct link *link, enum log_level level,
			 const struct address *address, const char *what)
{
	char text[INET6_ADDRSTRLEN] = "";

	if (gid_is_ipv4(address->gid))
		inet_ntop(AF_INET, address->gid + GID_IPV4_OFFSET, text, sizeof(text));
	else
		inet_ntop(AF_INET6, address->gid, text, sizeof(text));
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
	char mac[RTE_ETHER_ADDR_FMT_SIZE];
	struct rte_ether_addr address;

	if (netdev->mtu_bytes != link->told_mtu_bytes)
		log_warn("%s: the MTU is now %u; the port keeps %u until it is started again%s",
			 link->ifname, netdev->mtu_bytes, link->port.mtu_bytes,
			 netdev->mtu_bytes < link->port.mtu_bytes ? ", and longer packets are lost"
								  : "");
	if (memcmp(netdev->mac, link->told_mac, sizeof(netdev->mac)) != 0) {
		memcpy(address.addr_bytes, netdev->mac, sizeof(netdev->mac));
		rte_ether_format_addr(mac, sizeof(mac), &address);
		log_warn("%s: the MAC address is now %s; the port keeps the old one until it is "
			 "started again, and packets are lost",
			 link->ifname, mac);
	}
	link->told_mtu_bytes = netdev->mtu_bytes;
	memcpy(link->told_mac, netdev->mac, sizeof(link->told_mac));
}
