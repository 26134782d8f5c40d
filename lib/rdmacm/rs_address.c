/* SPDX-License-Identifier: BSD-3-Clause */
/* The header of datagrams that go by queue pairs: the sender's address. */
#include <string.h>

#include "rs_datagram.h"

/* Offsets of the source address in a GRH. An IPv4 header is in its last 20 bytes. */
#define GRH_IPV4_SOURCE 32
#define GRH_IPV6_SOURCE 8

size_t rs_address_put(struct rs_datagram_wire *wire, const struct sockaddr_storage *from)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;
	const struct sockaddr_in *in = (const struct sockaddr_in *)from;

	memset(wire, 0, sizeof(*wire));
	wire->port = in->sin_port;
	if (from->ss_family == AF_INET) {
		wire->version = 4;
		wire->length = RS_DATAGRAM_IPV4_LEN;
		memcpy(wire->ipv4, &in->sin_addr, sizeof(wire->ipv4));
	} else {
		wire->version = 6;
		wire->length = RS_DATAGRAM_IPV6_LEN;
		wire->ipv6.flowinfo = in6->sin6_flowinfo;
		memcpy(wire->ipv6.addr, &in6->sin6_addr, sizeof(wire->ipv6.addr));
	}
	return wire->length;
}

static size_t get_ipv4(const struct rs_datagram_wire *wire, const uint8_t *grh,
		       struct sockaddr_storage *from)
{
	struct sockaddr_in *in = (struct sockaddr_in *)from;

	if (memcmp(grh + GRH_IPV4_SOURCE, wire->ipv4, sizeof(wire->ipv4)) != 0)
		return 0;
	in->sin_family = AF_INET;
	in->sin_port = wire->port;
	memcpy(&in->sin_addr, wire->ipv4, sizeof(wire->ipv4));
	return RS_DATAGRAM_IPV4_LEN;
}

static size_t get_ipv6(const struct rs_datagram_wire *wire, const uint8_t *grh,
		       struct sockaddr_storage *from)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)from;

	if (memcmp(grh + GRH_IPV6_SOURCE, wire->ipv6.addr, sizeof(wire->ipv6.addr)) != 0)
		return 0;
	in6->sin6_family = AF_INET6;
	in6->sin6_port = wire->port;
	in6->sin6_flowinfo = wire->ipv6.flowinfo;
	memcpy(&in6->sin6_addr, wire->ipv6.addr, sizeof(wire->ipv6.addr));
	return RS_DATAGRAM_IPV6_LEN;
}

size_t rs_address_get(const void *data, size_t len, const struct ibv_grh *grh,
		      struct sockaddr_storage *from)
{
	struct rs_datagram_wire wire = {0};

	memset(from, 0, sizeof(*from));
	memcpy(&wire, data, RTE_MIN(len, sizeof(wire)));
	if (wire.version == 4 && wire.length == RS_DATAGRAM_IPV4_LEN && len >= wire.length)
		return get_ipv4(&wire, (const uint8_t *)grh, from);
	if (wire.version == 6 && wire.length == RS_DATAGRAM_IPV6_LEN && len >= wire.length)
		return get_ipv6(&wire, (const uint8_t *)grh, from);
	return 0;
}
