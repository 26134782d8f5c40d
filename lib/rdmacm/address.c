/* SPDX-License-Identifier: BSD-3-Clause */
/* Socket addresses and GIDs. */
#include <string.h>

#include "id.h"

socklen_t address_len(const struct sockaddr *address)
{
	switch (address->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

bool address_gid(const struct sockaddr *address, uint8_t gid[GID_LEN])
{
	switch (address->sa_family) {
	case AF_INET:
		gid_from_ipv4(&((const struct sockaddr_in *)address)->sin_addr, gid);
		return true;
	case AF_INET6:
		memcpy(gid, &((const struct sockaddr_in6 *)address)->sin6_addr, GID_LEN);
		return true;
	default:
		return false;
	}
}

void address_from_gid(const uint8_t gid[GID_LEN], __be16 port, struct sockaddr_storage *address)
{
	memset(address, 0, sizeof(*address));
	if (gid_is_ipv4(gid)) {
		struct sockaddr_in *in = (struct sockaddr_in *)address;

		in->sin_family = AF_INET;
		in->sin_port = port;
		memcpy(&in->sin_addr, gid + GID_IPV4_OFFSET, sizeof(in->sin_addr));
	} else {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;

		in6->sin6_family = AF_INET6;
		in6->sin6_port = port;
		memcpy(&in6->sin6_addr, gid, sizeof(in6->sin6_addr));
	}
}

bool address_is_any(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ((const struct sockaddr_in *)address)->sin_addr.s_addr == 0;
	return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

/* Return true for ::1 and 127.0.0.0/8, the latter also in its IPv6 form. */
bool address_is_loopback(const struct sockaddr *address)
{
	uint8_t gid[GID_LEN];

	if (!address_gid(address, gid))
		return false;
	if (gid_is_ipv4(gid))
		return gid[GID_IPV4_OFFSET] == 127;
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

/* Return the port, which is at the same offset in both families. */
__be16 address_port(const struct sockaddr *address)
{
	return address_len(address) > 0 ? ((const struct sockaddr_in *)address)->sin_port : 0;
}

void address_set_port(struct sockaddr *address, __be16 port)
{
	((struct sockaddr_in *)address)->sin_port = port;
}

uint32_t address_scope(const struct sockaddr *address)
{
	return address->sa_family == AF_INET6
		       ? ((const struct sockaddr_in6 *)address)->sin6_scope_id
		       : 0;
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return address_port(&id->route.addr.src_addr);
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return address_port(&id->route.addr.dst_addr);
}
