/* SPDX-License-Identifier: BSD-3-Clause */
/* Facts about the kernel's interfaces: getifaddrs(3) and netdevice(7); lists of addresses. */
#include "netdev/netdev.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "netdev/rtnl.h"

void address_link_local(const uint8_t mac[6], uint8_t gid[GID_LEN])
{
	memset(gid, 0, GID_LEN);
	gid[0] = 0xfe;
	gid[1] = 0x80;
	/* The universal bit is inverted, so that addresses assigned by hand are short. */
	gid[8] = mac[0] ^ 0x02;
	gid[9] = mac[1];
	gid[10] = mac[2];
	gid[11] = 0xff;
	gid[12] = 0xfe;
	memcpy(gid + 13, mac + 3, 3);
}

void address_multicast_mac(const uint8_t gid[GID_LEN], uint8_t mac[6])
{
	if (gid_is_ipv4(gid)) {
		mac[0] = 0x01;
		mac[1] = 0x00;
		mac[2] = 0x5e;
		mac[3] = gid[13] & 0x7f;
		mac[4] = gid[14];
		mac[5] = gid[15];
	} else {
		mac[0] = 0x33;
		mac[1] = 0x33;
		memcpy(mac + 2, gid + 12, 4);
	}
}

int addresses_add(struct addresses *addresses, const struct address *address)
{
	if (addresses_have(addresses, address->vlan, address->gid))
		return -EEXIST;
	if (addresses->count == ADDRESSES_MAX)
		return -ENOSPC;
	addresses->list[addresses->count++] = *address;
	return 0;
}

bool addresses_have(const struct addresses *addresses, int32_t vlan, const uint8_t gid[GID_LEN])
{
	for (size_t i = 0; i < addresses->count; i++) {
		if (addresses->list[i].vlan == vlan &&
		    memcmp(addresses->list[i].gid, gid, GID_LEN) == 0)
			return true;
	}
	return false;
}

bool addresses_have_anywhere(const struct addresses *addresses, const uint8_t gid[GID_LEN])
{
	for (size_t i = 0; i < addresses->count; i++) {
		if (memcmp(addresses->list[i].gid, gid, GID_LEN) == 0)
			return true;
	}
	return false;
}

bool addresses_first_of_vlan(const struct addresses *addresses, size_t index)
{
	for (size_t i = 0; i < index; i++) {
		if (addresses->list[i].vlan == addresses->list[index].vlan)
			return false;
	}
	return true;
}

bool addresses_same(const struct addresses *a, const struct addresses *b)
{
	for (size_t i = 0; i < a->count && i < b->count; i++) {
		const struct address *one = &a->list[i], *two = &b->list[i];

		if (memcmp(one->gid, two->gid, sizeof(one->gid)) != 0 ||
		    one->prefix_len != two->prefix_len || one->vlan != two->vlan ||
		    one->ifindex != two->ifindex)
			return false;
	}
	return a->count == b->count;
}

bool addresses_on_link(const struct addresses *addresses, int32_t vlan, const uint8_t gid[GID_LEN])
{
	const bool ipv4 = gid_is_ipv4(gid);

	if (gid_is_link_local(gid))
		return true;
	for (size_t i = 0; i < addresses->count; i++) {
		const struct address *own = &addresses->list[i];
		const unsigned int bits = own->prefix_len + (ipv4 ? GID_IPV4_BITS : 0u);

		if (own->vlan == vlan && gid_is_ipv4(own->gid) == ipv4 && bits <= 8 * GID_LEN &&
		    gid_same_prefix(own->gid, gid, bits))
			return true;
	}
	return false;
}

static int netdev_ioctl(const char *name, unsigned long request, struct ifreq *ifr)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return -errno;
	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", name);
	rc = ioctl(fd, request, ifr) < 0 ? -errno : 0;
	close(fd);
	return rc;
}

static bool netdev_gid(const struct sockaddr *addr, uint8_t gid[GID_LEN])
{
	if (addr && addr->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)addr;

		gid_from_ipv4((const uint8_t *)&in->sin_addr, gid);
		return true;
	}
	if (addr && addr->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)addr;

		memcpy(gid, &in6->sin6_addr, GID_LEN);
		return true;
	}
	return false;
}

static uint8_t netdev_prefix_len(const struct sockaddr *mask)
{
	uint8_t gid[GID_LEN];
	uint8_t bits = 0;

	if (!netdev_gid(mask, gid))
		return 0;
	for (size_t i = mask->sa_family == AF_INET ? 12 : 0; i < GID_LEN; i++)
		bits = (uint8_t)(bits + __builtin_popcount(gid[i]));
	return bits;
}

static void netdev_add_address(const char *name, const struct address *address,
			       struct addresses *addresses)
{
	if (addresses_add(addresses, address) == -ENOSPC)
		log_warn("%s has more addresses than %d: the last are not used", name,
			 ADDRESSES_MAX);
}

/* Add an interface's addresses: those that are link-local, or those that are not. */
static void netdev_add_addresses(const char *name, const struct ifaddrs *list, bool link_local,
				 struct address address, struct addresses *addresses)
{
	for (const struct ifaddrs *ifa = list; ifa; ifa = ifa->ifa_next) {
		if (strcmp(ifa->ifa_name, name) != 0 || !netdev_gid(ifa->ifa_addr, address.gid) ||
		    gid_is_link_local(address.gid) != link_local)
			continue;
		address.prefix_len = netdev_prefix_len(ifa->ifa_netmask);
		netdev_add_address(name, &address, addresses);
	}
}

/* Add the addresses of VLANs, behind those of the interface below, as in Linux's GID table. */
static void netdev_add_vlans(const struct ifaddrs *list, unsigned int ifindex,
			     struct addresses *addresses)
{
	struct address address = {0};
	unsigned int lower;

	for (const struct ifaddrs *ifa = list; ifa; ifa = ifa->ifa_next) {
		/* Each interface has one entry of this family. */
		if (!ifa->ifa_addr || ifa->ifa_addr->sa_family != AF_PACKET)
			continue;
		address.ifindex = if_nametoindex(ifa->ifa_name);
		if (address.ifindex == 0 || address.ifindex == ifindex ||
		    rtnl_vlan(address.ifindex, &lower, &address.vlan) != 0 || lower != ifindex)
			continue;
		netdev_add_addresses(ifa->ifa_name, list, true, address, addresses);
		netdev_add_addresses(ifa->ifa_name, list, false, address, addresses);
	}
}

static uint64_t netdev_mbps(const char *name)
{
	char path[128];
	char text[32] = "";
	ssize_t len;
	long mbps;
	int fd;

	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	mbps = len > 0 ? strtol(text, NULL, 10) : 0;
	return mbps > 0 ? (uint64_t)mbps : 0;
}

static int netdev_add_all_addresses(const char *name, struct netdev *netdev)
{
	struct address address = {.vlan = VLAN_NONE, .ifindex = netdev->ifindex};
	struct addresses *addresses = &netdev->addresses;
	struct ifaddrs *list;
	int err;

	if (getifaddrs(&list) < 0) {
		err = errno;
		log_error("cannot read the addresses of %s: %s", name, strerror(err));
		return -err;
	}
	/* Put the link-local address first: kernels and programs expect it as the first GID, in
	 * whatever order addresses were added. */
	netdev_add_addresses(name, list, true, address, addresses);
	if (addresses->count == 0) {
		address.prefix_len = LINK_LOCAL_PREFIX;
		address_link_local(netdev->mac, address.gid);
		addresses_add(addresses, &address);
	}
	netdev_add_addresses(name, list, false, address, addresses);
	netdev_add_vlans(list, netdev->ifindex, addresses);
	freeifaddrs(list);
	return 0;
}

int netdev_query(const char *name, struct netdev *netdev)
{
	struct ifreq ifr = {0};
	int rc;

	memset(netdev, 0, sizeof(*netdev));
	netdev->ifindex = strlen(name) < IFNAMSIZ ? if_nametoindex(name) : 0;
	if (netdev->ifindex == 0) {
		log_error("there is no interface '%s': `ip link` lists the interfaces", name);
		return -ENODEV;
	}
	rc = netdev_ioctl(name, SIOCGIFHWADDR, &ifr);
	if (rc == 0 && ifr.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
		log_error("interface '%s' is not Ethernet: RoCE needs an Ethernet interface", name);
		return -EINVAL;
	}
	memcpy(netdev->mac, ifr.ifr_hwaddr.sa_data, sizeof(netdev->mac));
	if (rc == 0)
		rc = netdev_ioctl(name, SIOCGIFMTU, &ifr);
	if (rc != 0) {
		log_error("cannot query interface '%s': %s", name, strerror(-rc));
		return rc;
	}
	netdev->mtu_bytes = (uint32_t)ifr.ifr_mtu;
	netdev->mbps = netdev_mbps(name);
	return netdev_add_all_addresses(name, netdev);
}

int netdev_limit_mtu(const char *name, uint32_t mtu_bytes)
{
	struct ifreq ifr = {0};
	const int rc = netdev_ioctl(name, SIOCGIFMTU, &ifr);

	if (rc != 0 || (uint32_t)ifr.ifr_mtu <= mtu_bytes)
		return rc;
	ifr.ifr_mtu = (int)mtu_bytes;
	return netdev_ioctl(name, SIOCSIFMTU, &ifr);
}

bool netdev_running(const char *name)
{
	struct ifreq ifr = {0};

	if (netdev_ioctl(name, SIOCGIFFLAGS, &ifr) != 0)
		return false;
	return (ifr.ifr_flags & IFF_UP) && (ifr.ifr_flags & IFF_RUNNING);
}

int netdev_mac_of(const uint8_t gid[GID_LEN], uint8_t mac[6])
{
	char name[IF_NAMESIZE];
	unsigned int ifindex;
	struct ifreq ifr = {0};

	if (rtnl_local(gid, &ifindex) != 0 || !if_indextoname(ifindex, name) ||
	    netdev_ioctl(name, SIOCGIFHWADDR, &ifr) != 0 ||
	    ifr.ifr_hwaddr.sa_family != ARPHRD_ETHER)
		return -ENOENT;
	memcpy(mac, ifr.ifr_hwaddr.sa_data, 6);
	return 0;
}
