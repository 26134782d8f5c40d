/* SPDX-License-Identifier: BSD-3-Clause */
/* Resolution of names to addresses, for rdma_create_ep and rdma_resolve_addr. */
#include <netdb.h>
#include <stdlib.h>
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

static struct sockaddr *copy_address(const struct sockaddr *address, socklen_t len)
{
	struct sockaddr *copy = malloc(len);

	if (copy)
		memcpy(copy, address, len);
	return copy;
}

/* Derive the port space and the queue pair's type from each other. If the hints have neither,
 * choose those of a reliable connection. */
static void set_types(struct rdma_addrinfo *info, const struct rdma_addrinfo *hints)
{
	info->ai_port_space = hints ? hints->ai_port_space : 0;
	info->ai_qp_type = hints ? hints->ai_qp_type : 0;
	if (info->ai_port_space == 0)
		info->ai_port_space = info->ai_qp_type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
	if (info->ai_qp_type == 0)
		info->ai_qp_type =
			info->ai_port_space == RDMA_PS_UDP || info->ai_port_space == RDMA_PS_IPOIB
				? IBV_QPT_UD
				: IBV_QPT_RC;
}

/* Return true if the name is a GID in digits, which is written as an IPv6 address. */
static bool wants_gid(const struct rdma_addrinfo *hints)
{
	return hints && (hints->ai_flags & RAI_FAMILY) && (hints->ai_flags & RAI_NUMERICHOST) &&
	       hints->ai_family == AF_IB;
}

static int set_source(struct rdma_addrinfo *info, const struct rdma_addrinfo *hints)
{
	if (!hints || !hints->ai_src_addr || hints->ai_src_len == 0)
		return 0;
	info->ai_src_addr = copy_address(hints->ai_src_addr, hints->ai_src_len);
	info->ai_src_len = hints->ai_src_len;
	return info->ai_src_addr ? 0 : -ENOMEM;
}

static struct sockaddr *copy_as_ib(const struct sockaddr *address, int space)
{
	const __be16 port = address_port(address);
	struct sockaddr_storage ib;
	uint8_t gid[GID_LEN];

	if (!address_gid(address, gid))
		return NULL;
	address_from_gid(AF_IB, gid, &ib);
	((struct sockaddr_ib *)&ib)->sib_scope_id = address_scope(address);
	address_set_service((struct sockaddr *)&ib, (enum cm_port_space)space,
			    rte_be_to_cpu_16(port));
	/* Port 0 stands for any port of the space: do not compare it. */
	if (port == 0)
		((struct sockaddr_ib *)&ib)->sib_sid_mask &= ~RTE_BE64(0xffff);
	return copy_address((const struct sockaddr *)&ib, sizeof(struct sockaddr_ib));
}

static int fill(struct rdma_addrinfo *info, const struct addrinfo *found,
		const struct rdma_addrinfo *hints)
{
	char *name = found->ai_canonname ? strdup(found->ai_canonname) : NULL;
	const bool as_ib = wants_gid(hints) && found->ai_family != AF_IB;
	const socklen_t len = as_ib ? sizeof(struct sockaddr_ib) : found->ai_addrlen;
	struct sockaddr *address;

	set_types(info, hints);
	info->ai_flags = hints ? hints->ai_flags : 0;
	info->ai_family = as_ib ? AF_IB : found->ai_family;
	address = as_ib ? copy_as_ib(found->ai_addr, info->ai_port_space)
			: copy_address(found->ai_addr, found->ai_addrlen);
	if (info->ai_flags & RAI_PASSIVE) {
		info->ai_src_addr = address;
		info->ai_src_len = len;
		info->ai_src_canonname = name;
	} else {
		info->ai_dst_addr = address;
		info->ai_dst_len = len;
		info->ai_dst_canonname = name;
	}
	if (!address || (found->ai_canonname && !name))
		return -ENOMEM;
	return info->ai_flags & RAI_PASSIVE ? 0 : set_source(info, hints);
}

static struct addrinfo hints_of(const struct rdma_addrinfo *hints)
{
	const int flags = hints ? hints->ai_flags : 0;
	const bool datagram =
		hints && (hints->ai_qp_type == IBV_QPT_UD || hints->ai_port_space == RDMA_PS_UDP ||
			  hints->ai_port_space == RDMA_PS_IPOIB);
	const int family = hints && hints->ai_family != AF_IB ? hints->ai_family : AF_UNSPEC;

	return (struct addrinfo){
		.ai_flags = (flags & RAI_PASSIVE ? AI_PASSIVE : 0) |
			    (flags & RAI_NUMERICHOST ? AI_NUMERICHOST : 0),
		.ai_family = wants_gid(hints) ? AF_INET6 : family,
		.ai_socktype = datagram ? SOCK_DGRAM : SOCK_STREAM,
	};
}

/* Call getaddrinfo(3), and return its answer in the form of rdma_getaddrinfo(3). */
static int resolve(const char *node, const char *service, const struct rdma_addrinfo *hints,
		   struct rdma_addrinfo *info)
{
	const struct addrinfo wanted = hints_of(hints);
	struct addrinfo *found;
	int rc = getaddrinfo(node, service, &wanted, &found);

	if (rc != 0)
		return rc;
	rc = fill(info, found, hints);
	freeaddrinfo(found);
	return rc == 0 ? 0 : EAI_MEMORY;
}

/* Return the addresses of the hints if there is no name: one address, both or none. */
static int take_hints(const struct rdma_addrinfo *hints, struct rdma_addrinfo *info)
{
	info->ai_flags = hints->ai_flags;
	info->ai_family = hints->ai_family;
	if (info->ai_family == AF_UNSPEC && hints->ai_dst_addr)
		info->ai_family = hints->ai_dst_addr->sa_family;
	set_types(info, hints);
	if (hints->ai_dst_addr && hints->ai_dst_len > 0) {
		info->ai_dst_addr = copy_address(hints->ai_dst_addr, hints->ai_dst_len);
		info->ai_dst_len = hints->ai_dst_len;
		if (!info->ai_dst_addr)
			return EAI_MEMORY;
	}
	return set_source(info, hints) == 0 ? 0 : EAI_MEMORY;
}

/* Set errno for an error of getaddrinfo(3), which the call returns. */
static int set_errno(int rc)
{
	int error = EINVAL;

	if (rc == EAI_MEMORY)
		error = ENOMEM;
	else if (rc == EAI_SYSTEM)
		error = errno;
	(void)id_result(ID_REASON(-error, "getaddrinfo(3): %s", gai_strerror(rc)));
	return rc;
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res)
{
	ID_CALL();
	struct rdma_addrinfo *info;
	int rc;

	if ((!node && !service && !hints) || !res)
		return id_result(
			explain_argument("node, service and hints are all NULL, or res is"));
	info = calloc(1, sizeof(*info));
	if (!info)
		return id_result(-ENOMEM);
	if (node || service)
		rc = resolve(node, service, hints, info);
	else
		rc = take_hints(hints, info);
	if (rc != 0) {
		rdma_freeaddrinfo(info);
		return set_errno(rc);
	}
	*res = info;
	return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;

		free(res->ai_connect);
		free(res->ai_route);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res);
		res = next;
	}
}
