/* SPDX-License-Identifier: BSD-3-Clause */
/* IP addresses in the form of GIDs: their kinds and prefixes, and addresses derived from others. */
#include "netdev/addresses.h"

#include <errno.h>
#include <string.h>

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
