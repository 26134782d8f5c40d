/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagram rsockets: the calls on the socket, the queue of received datagrams, and the header of
 * those that go by queue pairs: the sender's address. */
#include "rs_datagram.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

/* Send by UDP, with a header that has the local queue pair number. Return the bytes of data, or
 * -errno. */
static ssize_t rs_udp_send(struct rsocket *s, const struct rs_dest *dest, enum rs_op op,
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

#define CLOSE_MS 1000 /* longest wait for posted sends */

int rs_datagram_prepare(struct rsocket *s)
{
	struct rs_datagrams *datagrams = calloc(1, sizeof(*datagrams));

	if (!datagrams)
		return -ENOMEM;
	s->datagrams = datagrams;
	datagrams->udp = -1;
	STAILQ_INIT(&datagrams->received);
	TAILQ_INIT(&datagrams->dests);
	LIST_INIT(&datagrams->pairs);
	datagrams->channel = rdma_create_event_channel();
	if (!datagrams->channel || fcntl(datagrams->channel->fd, F_SETFL, O_NONBLOCK) != 0)
		return -errno;
	datagrams->udp = socket(s->domain, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return datagrams->udp < 0 ? -errno : 0;
}

bool rs_datagram_is_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr *sa = (const struct sockaddr *)a;
	const struct sockaddr *sb = (const struct sockaddr *)b;
	uint8_t gid_a[GID_LEN], gid_b[GID_LEN];

	return sa->sa_family == sb->sa_family && address_gid(sa, gid_a) && address_gid(sb, gid_b) &&
	       memcmp(gid_a, gid_b, GID_LEN) == 0 && address_port(sa) == address_port(sb);
}

/* Bind the socket if it has no port, and make the service's thread receive. */
static int start_serving(struct rsocket *s)
{
	struct sockaddr_storage any = {.ss_family = (sa_family_t)s->domain};
	struct rs_datagrams *datagrams = s->datagrams;
	struct sockaddr_storage own = {0};
	socklen_t len = sizeof(own);
	int rc;

	if (datagrams->served)
		return 0;
	if (getsockname(datagrams->udp, (struct sockaddr *)&own, &len) != 0)
		return -errno;
	if (address_port((struct sockaddr *)&own) == 0 &&
	    bind(datagrams->udp, (struct sockaddr *)&any, address_len((struct sockaddr *)&any)) !=
		    0)
		return -errno;
	rc = rs_service_add(s, datagrams->channel->fd, RS_DUTY_DATAGRAM);
	if (rc == 0)
		rc = rs_service_add(s, datagrams->udp, RS_DUTY_DATAGRAM);
	datagrams->served = rc == 0;
	return rc;
}

int rs_datagram_bind(struct rsocket *s, const struct sockaddr *addr, socklen_t len)
{
	if (bind(s->datagrams->udp, addr, len) != 0)
		return -errno;
	return start_serving(s);
}

int rs_datagram_connect(struct rsocket *s, const struct sockaddr *addr, socklen_t len)
{
	struct rs_datagrams *datagrams = s->datagrams;
	struct rs_dest *dest;
	int rc;

	if (connect(datagrams->udp, addr, len) != 0)
		return -errno;
	memset(&datagrams->peer, 0, sizeof(datagrams->peer));
	memcpy(&datagrams->peer, addr, address_len(addr));
	rc = start_serving(s);
	return rc == 0 ? rs_dest_get(s, &datagrams->peer, true, &dest) : rc;
}

int rs_datagram_name(struct rsocket *s, bool peer, struct sockaddr *addr, socklen_t *len)
{
	const int udp = s->datagrams->udp;
	struct sockaddr_storage name = {0};
	socklen_t full = sizeof(name);
	const int rc = peer ? getpeername(udp, (struct sockaddr *)&name, &full)
			    : getsockname(udp, (struct sockaddr *)&name, &full);

	if (rc != 0)
		return -errno;
	rs_name_copy(&name, addr, len);
	return 0;
}

static bool can_send(const struct rsocket *s)
{
	const struct rs_pair *pair;

	LIST_FOREACH (pair, &s->datagrams->pairs, next) {
		if (pair->free_count == 0)
			return false;
	}
	return true;
}

static bool has_sent_all(const struct rsocket *s)
{
	const struct rs_pair *pair;

	LIST_FOREACH (pair, &s->datagrams->pairs, next) {
		if (pair->free_count < pair->send_requests)
			return false;
	}
	return true;
}

static bool has_received(const struct rsocket *s)
{
	return !STAILQ_EMPTY(&s->datagrams->received);
}

short rs_datagram_poll_events(const struct rsocket *s, short events)
{
	short ready = 0;

	if (has_received(s))
		ready |= events & (POLLIN | POLLRDNORM);
	if (can_send(s))
		ready |= events & (POLLOUT | POLLWRNORM);
	return ready;
}

static int find_peer(const struct rs_datagrams *datagrams, const struct sockaddr *to,
		     socklen_t to_len, struct sockaddr_storage *peer)
{
	memset(peer, 0, sizeof(*peer));
	if (!to) {
		*peer = datagrams->peer;
		return peer->ss_family ? 0 : -EDESTADDRREQ;
	}
	if (to_len < sizeof(to->sa_family) || address_len(to) == 0)
		return -EAFNOSUPPORT;
	if (to_len < address_len(to))
		return -EINVAL;
	memcpy(peer, to, address_len(to));
	return 0;
}

/* Return the largest payload that fits by UDP and by the queue pair. A peer with stock rdma-core
 * receives at most RS_DATAGRAM_MAX bytes by UDP. */
static size_t max_len(const struct rs_pair *pair)
{
	const size_t udp = pair->header.version == 4 ? RS_UDP_IPV4_LEN : RS_UDP_IPV6_LEN;

	return RTE_MIN((size_t)(pair->max_bytes - pair->header.length), RS_DATAGRAM_MAX - udp);
}

/* Send by the queue pair if the peer's queue pair is known, else by UDP. Return the bytes, or
 * -EAGAIN if no send request is free. */
static ssize_t send_once(struct rsocket *s, const struct sockaddr_storage *peer,
			 const struct iovec *iov, size_t count, size_t len, int flags)
{
	struct rs_dest *dest;
	ssize_t rc = rs_dest_get(s, peer, true, &dest);

	if (rc != 0)
		return rc;
	if (len > max_len(dest->pair))
		return -EMSGSIZE;
	if (dest->ah && dest->qpn != 0) {
		rc = rs_pair_send(dest->pair, dest, iov, len);
		return rc == 0 ? (ssize_t)len : rc;
	}
	rc = rs_udp_send(s, dest, RS_OP_DATA, iov, count, flags & MSG_DONTWAIT);
	if (rc >= 0)
		rs_dest_asked(dest);
	return rc;
}

ssize_t rs_datagram_send(struct rsocket *s, const struct iovec *iov, size_t count, int flags,
			 const struct sockaddr *to, socklen_t to_len)
{
	const bool nonblock = rs_is_nonblock(s, flags);
	const size_t len = (size_t)rs_vector_len(iov, count);
	struct sockaddr_storage peer;
	ssize_t rc = find_peer(s->datagrams, to, to_len, &peer);

	if (rc == 0)
		rc = start_serving(s);
	if (rc != 0)
		return rc;
	for (;;) {
		rs_datagram_poll(s);
		rc = send_once(s, &peer, iov, count, len, nonblock ? MSG_DONTWAIT : 0);
		if (rc != -EAGAIN || nonblock)
			return rc;
		rc = rs_wait_for(s, can_send, false, s->options.send_timeout_ms);
		if (rc != 0)
			return rc;
	}
}

void rs_datagram_deliver(struct rsocket *s, const struct sockaddr_storage *from, const void *data,
			 size_t len)
{
	struct rs_datagrams *datagrams = s->datagrams;
	struct rs_message *message;

	if (datagrams->peer.ss_family && !rs_datagram_is_same(&datagrams->peer, from))
		return;
	/* Count the struct too: many small datagrams take more memory than their bytes. */
	if (datagrams->received_bytes + sizeof(*message) + len > s->options.recv_bytes)
		return;
	message = malloc(sizeof(*message) + len);
	if (!message)
		return;
	message->from = *from;
	message->len = len;
	memcpy(message->data, data, len);
	STAILQ_INSERT_TAIL(&datagrams->received, message, next);
	datagrams->received_bytes += sizeof(*message) + len;
	rs_wait_changed(s);
}

static void drop_first(struct rs_datagrams *datagrams)
{
	struct rs_message *message = STAILQ_FIRST(&datagrams->received);

	STAILQ_REMOVE_HEAD(&datagrams->received, next);
	datagrams->received_bytes -= sizeof(*message) + message->len;
	free(message);
}

ssize_t rs_datagram_recv(struct rsocket *s, struct msghdr *msg, int flags)
{
	const bool nonblock = rs_is_nonblock(s, flags);
	const struct rs_message *message;
	ssize_t rc = start_serving(s);
	size_t len;

	if (rc == 0 && !has_received(s))
		rc = rs_wait_for(s, has_received, nonblock, s->options.recv_timeout_ms);
	if (rc != 0)
		return rc;
	message = STAILQ_FIRST(&s->datagrams->received);
	len = rs_vector_scatter(msg->msg_iov, msg->msg_iovlen, message->data, message->len);
	if (len < message->len)
		msg->msg_flags |= MSG_TRUNC;
	if (flags & MSG_TRUNC)
		len = message->len;
	if (msg->msg_name)
		rs_name_copy(&message->from, msg->msg_name, &msg->msg_namelen);
	if (!(flags & MSG_PEEK))
		drop_first(s->datagrams);
	return (ssize_t)len;
}

void rs_datagram_close(struct rsocket *s)
{
	struct rs_datagrams *datagrams = s->datagrams;

	if (!datagrams)
		return;
	/* Stop the service first: its thread does not find the rsocket in the table any more. */
	if (datagrams->served) {
		rs_service_remove(datagrams->udp);
		rs_service_remove(datagrams->channel->fd);
		datagrams->served = false;
	}
	(void)rs_wait_out(s, has_sent_all, CLOSE_MS);
	close(datagrams->udp);
	datagrams->udp = -1;
}

void rs_datagram_end(struct rsocket *s)
{
	struct rs_datagrams *datagrams = s->datagrams;
	struct rs_pair *pair;

	if (!datagrams)
		return;
	rs_dest_end_all(s);
	while ((pair = LIST_FIRST(&datagrams->pairs)) != NULL) {
		LIST_REMOVE(pair, next);
		rs_pair_end(pair);
	}
	while (has_received(s))
		drop_first(datagrams);
	rdma_destroy_event_channel(datagrams->channel);
	if (datagrams->udp >= 0)
		close(datagrams->udp);
	free(datagrams);
}

/* Return true for options that the UDP socket handles. Options of our own queues are not among
 * them. */
bool rs_datagram_has_option(int level, int name)
{
	if (level != SOL_SOCKET)
		return level != SOL_RDMA;
	return name == SO_REUSEADDR || name == SO_REUSEPORT || name == SO_BROADCAST ||
	       name == SO_BINDTODEVICE || name == SO_PRIORITY;
}

int rs_datagram_set_option(struct rsocket *s, int level, int name, const void *value, socklen_t len)
{
	int *option = rs_option_find(s, level, name);

	if (setsockopt(s->datagrams->udp, level, name, value, len) != 0)
		return -errno;
	/* Keep the value: datagrams sent by a queue pair use the same traffic class. */
	if (option && len >= sizeof(*option))
		memcpy(option, value, sizeof(*option));
	return 0;
}

int rs_datagram_get_option(struct rsocket *s, int level, int name, void *value, socklen_t *len)
{
	return getsockopt(s->datagrams->udp, level, name, value, len) == 0 ? 0 : -errno;
}

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
