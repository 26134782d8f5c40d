/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams by UDP. They announce queue pair numbers, and carry the data until the peer's queue
 * pair is known. */
#include <string.h>
#include <sys/socket.h>

#include "rs_datagram.h"
#include "wire/headers.h"

#define BURST	  64   /* datagrams of a socket in a row */
#define BYTES_MAX 4096 /* largest datagram that is received; longer ones are dropped */

size_t rs_udp_put(struct rs_udp_wire *wire, const struct rs_pair *pair, enum rs_op op)
{
	const bool ipv4 = pair->header.version == 4;

	memset(wire, 0, sizeof(*wire));
	wire->tag = rte_cpu_to_be_32(RS_UDP_TAG);
	wire->version = pair->header.version;
	wire->op = (uint8_t)op;
	wire->length = ipv4 ? RS_UDP_IPV4_LEN : RS_UDP_IPV6_LEN;
	wire->qpn = rte_cpu_to_be_32(pair->id->qp->qp_num);
	if (ipv4)
		memcpy(wire->addr, pair->header.ipv4, sizeof(pair->header.ipv4));
	else
		memcpy(wire->addr, pair->header.ipv6.addr, sizeof(pair->header.ipv6.addr));
	return wire->length;
}

size_t rs_udp_get(const void *data, size_t len, sa_family_t family, enum rs_op *op, uint32_t *qpn)
{
	const uint8_t version = family == AF_INET ? 4 : 6;
	const uint8_t length = family == AF_INET ? RS_UDP_IPV4_LEN : RS_UDP_IPV6_LEN;
	struct rs_udp_wire wire;

	if (len < length)
		return 0;
	memcpy(&wire, data, length);
	if (wire.tag != rte_cpu_to_be_32(RS_UDP_TAG) || wire.version != version ||
	    wire.length != length || (wire.op != RS_OP_DATA && wire.op != RS_OP_CONTROL))
		return 0;
	*op = (enum rs_op)wire.op;
	*qpn = rte_be_to_cpu_32(wire.qpn) & WIRE_QPN_MASK;
	return length;
}

ssize_t rs_udp_send(struct rsocket *s, const struct rs_dest *dest, enum rs_op op,
		    const struct iovec *iov, size_t count, int flags)
{
	uint8_t data[RS_DATAGRAM_MAX];
	struct rs_udp_wire wire;
	const size_t header = rs_udp_put(&wire, dest->pair, op);
	const size_t len = count > 0 ? (size_t)rs_vector_len(iov, count) : 0;
	struct rs_cursor from = {.iov = iov};
	struct iovec parts[] = {{.iov_base = &wire, .iov_len = header},
				{.iov_base = data, .iov_len = len}};
	struct msghdr msg = {.msg_name = (void *)(uintptr_t)&dest->addr,
			     .msg_namelen = address_len((const struct sockaddr *)&dest->addr),
			     .msg_iov = parts,
			     .msg_iovlen = 2};

	if (len > sizeof(data))
		return -EMSGSIZE;
	rs_vector_gather(&from, data, len);
	return sendmsg(s->datagrams->udp, &msg, flags | MSG_NOSIGNAL) < 0 ? -errno : (ssize_t)len;
}

static void take_datagram(struct rsocket *s, const struct sockaddr_storage *from,
			  const uint8_t *data, size_t len)
{
	struct rs_dest *dest;
	enum rs_op op;
	uint32_t qpn;
	const size_t header = rs_udp_get(data, len, from->ss_family, &op, &qpn);

	/* Drop an answer from an address that we have not sent to. */
	if (header == 0 || rs_dest_get(s, from, op == RS_OP_DATA, &dest) != 0)
		return;
	rs_dest_learn(s, dest, qpn);
	if (op != RS_OP_DATA)
		return;
	(void)rs_udp_send(s, dest, RS_OP_CONTROL, NULL, 0, MSG_DONTWAIT);
	rs_datagram_deliver(s, from, data + header, len - header);
}

static void take_burst(struct rsocket *s)
{
	uint8_t data[BYTES_MAX];

	for (int i = 0; i < BURST; i++) {
		struct sockaddr_storage from = {0};
		socklen_t from_len = sizeof(from);
		const ssize_t len =
			recvfrom(s->datagrams->udp, data, sizeof(data), MSG_DONTWAIT | MSG_TRUNC,
				 (struct sockaddr *)&from, &from_len);

		if (len < 0)
			return;
		if ((size_t)len <= sizeof(data))
			take_datagram(s, &from, data, (size_t)len);
	}
}

void rs_datagram_serve(struct rsocket *s)
{
	pthread_mutex_lock(&s->lock);
	/* Check the rsocket: its descriptor number may now belong to another rsocket, which the
	 * service's thread cannot know. */
	if (s->datagrams && s->datagrams->served) {
		rs_dest_take_events(s);
		take_burst(s);
	}
	pthread_mutex_unlock(&s->lock);
}
