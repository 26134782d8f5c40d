/* SPDX-License-Identifier: BSD-3-Clause */
/* Socket addresses and GIDs. */
#include <string.h>

#include "id.h"
#include "wire/headers.h"

/* The two parts of a service id of AF_IB. */
#define IB_SPACE_MASK UINT64_C(0xffffffffffff0000)
#define IB_PORT_MASK  UINT64_C(0xffff)

static const struct sockaddr_ib *ib_of(const struct sockaddr *address)
{
	return (const struct sockaddr_ib *)address;
}

socklen_t address_len(const struct sockaddr *address)
{
	switch (address->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct sockaddr_ib);
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
	case AF_IB:
		memcpy(gid, &ib_of(address)->sib_addr, GID_LEN);
		return true;
	default:
		return false;
	}
}

void address_set_gid(struct sockaddr *address, const uint8_t gid[GID_LEN])
{
	switch (address->sa_family) {
	case AF_INET:
		memcpy(&((struct sockaddr_in *)address)->sin_addr, gid + GID_IPV4_OFFSET,
		       sizeof(struct in_addr));
		break;
	case AF_INET6:
		memcpy(&((struct sockaddr_in6 *)address)->sin6_addr, gid, GID_LEN);
		break;
	default:
		memcpy(&((struct sockaddr_ib *)address)->sib_addr, gid, GID_LEN);
		break;
	}
}

void address_set_loopback(struct sockaddr *address)
{
	static const uint8_t ipv4[GID_LEN] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
	static const uint8_t ipv6[GID_LEN] = {[GID_LEN - 1] = 1};

	address_set_gid(address, address->sa_family == AF_INET ? ipv4 : ipv6);
}

void address_from_gid(sa_family_t family, const uint8_t gid[GID_LEN],
		      struct sockaddr_storage *address)
{
	const sa_family_t ip = gid_is_ipv4(gid) ? AF_INET : AF_INET6;

	memset(address, 0, sizeof(*address));
	address->ss_family = family == AF_IB ? AF_IB : ip;
	address_set_gid((struct sockaddr *)address, gid);
	if (family == AF_IB)
		((struct sockaddr_ib *)address)->sib_pkey = RTE_BE16(WIRE_PKEY_DEFAULT);
}

void address_set_scope(struct sockaddr *address, uint32_t scope)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;

	if (address->sa_family == AF_INET6 && gid_is_link_local(in6->sin6_addr.s6_addr))
		in6->sin6_scope_id = scope;
}

bool address_is_any(const struct sockaddr *address)
{
	uint8_t gid[GID_LEN];

	if (address->sa_family == AF_INET)
		return ((const struct sockaddr_in *)address)->sin_addr.s_addr == 0;
	return address_gid(address, gid) && gid_is_zero(gid);
}

/* Return true for ::1 and 127.0.0.0/8, the latter also in its IPv6 form. */
bool address_is_loopback(const struct sockaddr *address)
{
	uint8_t gid[GID_LEN];

	return address_gid(address, gid) && gid_is_loopback(gid);
}

/* Return the port, which is at the same offset in both families of IP, and the end of a service id
 * in AF_IB. */
__be16 address_port(const struct sockaddr *address)
{
	if (address->sa_family == AF_IB)
		return rte_cpu_to_be_16((uint16_t)rte_be_to_cpu_64(ib_of(address)->sib_sid));
	return address_len(address) > 0 ? ((const struct sockaddr_in *)address)->sin_port : 0;
}

void address_set_port(struct sockaddr *address, __be16 port)
{
	struct sockaddr_ib *ib = (struct sockaddr_ib *)address;

	if (address->sa_family == AF_IB)
		ib->sib_sid = rte_cpu_to_be_64((rte_be_to_cpu_64(ib->sib_sid) & ~IB_PORT_MASK) |
					       rte_be_to_cpu_16(port));
	else
		((struct sockaddr_in *)address)->sin_port = port;
}

uint32_t address_scope(const struct sockaddr *address)
{
	switch (address->sa_family) {
	case AF_INET6:
		return ((const struct sockaddr_in6 *)address)->sin6_scope_id;
	case AF_IB:
		return (uint32_t)ib_of(address)->sib_scope_id;
	default:
		return 0;
	}
}

/* Return true if a service id belongs to a port space, in those bits that its mask compares. */
static bool is_of_space(const struct sockaddr_ib *ib, enum rdma_port_space space)
{
	const uint64_t mask = rte_be_to_cpu_64(ib->sib_sid_mask) & IB_SPACE_MASK;

	return (rte_be_to_cpu_64(ib->sib_sid) & mask) == ((uint64_t)space << 16 & mask);
}

/* Ids of RDMA_PS_IB may use the services of each space, as on Linux. */
enum cm_port_space address_space(enum rdma_port_space ps, const struct sockaddr *address)
{
	static const enum rdma_port_space spaces[] = {RDMA_PS_IB, RDMA_PS_TCP, RDMA_PS_UDP};

	if (address->sa_family != AF_IB)
		return (enum cm_port_space)ps;
	for (size_t i = 0; i < RTE_DIM(spaces); i++) {
		if ((ps == RDMA_PS_IB || ps == spaces[i]) && is_of_space(ib_of(address), spaces[i]))
			return (enum cm_port_space)spaces[i];
	}
	return ADDRESS_NO_SPACE;
}

uint64_t address_service(enum rdma_port_space ps, const struct sockaddr *address)
{
	if (address->sa_family == AF_IB)
		return rte_be_to_cpu_64(ib_of(address)->sib_sid);
	return cm_service_id((enum cm_port_space)ps, rte_be_to_cpu_16(address_port(address)));
}

void address_set_service(struct sockaddr *address, enum cm_port_space space, uint16_t port)
{
	struct sockaddr_ib *ib = (struct sockaddr_ib *)address;

	if (address->sa_family == AF_IB) {
		ib->sib_sid = rte_cpu_to_be_64(cm_service_id(space, port));
		ib->sib_sid_mask = RTE_BE64(IB_SPACE_MASK | IB_PORT_MASK);
	} else {
		address_set_port(address, rte_cpu_to_be_16(port));
	}
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return address_port(&id->route.addr.src_addr);
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return address_port(&id->route.addr.dst_addr);
}
