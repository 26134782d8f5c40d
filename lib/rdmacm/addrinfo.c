/* SPDX-License-Identifier: BSD-3-Clause */
/* Resolution of names to addresses, for rdma_create_ep and rdma_resolve_addr. */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "id.h"

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
