/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagram rsockets. Each has a UDP socket of the kernel, whose address is the address of the
 * rsocket. The first datagrams to a peer go by UDP. Their header has the sender's queue pair
 * number. A side sends by its queue pair as soon as it knows the queue pair number of the peer.
 *
 * A socket has a queue pair for each of its local addresses (rs_pair.c). It has a destination for
 * each address to which it has sent, or from which it has received (rs_dest.c). Datagrams that
 * arrive by UDP and by queue pairs wait in one queue.
 *
 * The caller of each function holds the rsocket's lock, unless the comment says otherwise.
 */
#ifndef RDMACM_RS_DATAGRAM_H
#define RDMACM_RS_DATAGRAM_H

#include "rs.h"

#define RS_DEST_MAX	1024 /* destinations of a socket */
#define RS_DEST_BUCKETS 256

/* A queue pair, and memory for its datagrams. */
struct rs_pair {
	LIST_ENTRY(rs_pair) next;
	struct sockaddr_storage local; /* with the socket's port */
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	uint8_t *memory; /* one buffer for each receive request, then one for each send request */
	struct ibv_mr *mr;
	uint32_t recv_requests;
	uint32_t send_requests;
	uint32_t *free_sends; /* a stack of indices */
	uint32_t free_count;
	uint32_t max_bytes; /* maximum size of a datagram with its header */
	uint32_t unacked;   /* unacknowledged events of the completion queue */
	uint8_t sgid_index;
	struct rs_datagram_wire header;
};

/* A destination of datagrams. */
struct rs_dest {
	LIST_ENTRY(rs_dest) in_bucket;
	TAILQ_ENTRY(rs_dest) by_use;
	struct sockaddr_storage addr;
	struct rs_pair *pair;
	struct ibv_ah *ah; /* NULL: the link address is not resolved yet */
	uint32_t qpn;	   /* the peer's queue pair number; 0: unknown */
	bool disputed;	   /* two numbers were announced, and nothing was sent by UDP since */
	struct rdma_cm_id
		*looks; /* resolves the peer's link address; NULL: no resolution in progress */
};

/* A datagram that waits for the program. */
struct rs_message {
	STAILQ_ENTRY(rs_message) next;
	struct sockaddr_storage from;
	size_t len;
	uint8_t data[];
};

struct rs_datagrams {
	int udp;
	bool served;			    /* by the service's thread */
	struct rdma_event_channel *channel; /* channel of the ids that resolve link addresses */
	LIST_HEAD(, rs_pair) pairs;
	LIST_HEAD(, rs_dest) buckets[RS_DEST_BUCKETS];
	TAILQ_HEAD(, rs_dest) dests; /* least recently used first */
	unsigned int dest_count;
	STAILQ_HEAD(, rs_message) received;
	size_t received_bytes;
	struct sockaddr_storage peer; /* peer of a connected socket; else of family 0 */
};

/* rs_datagram.c */

int rs_datagram_prepare(struct rsocket *s);
int rs_datagram_bind(struct rsocket *s, const struct sockaddr *addr, socklen_t len);
int rs_datagram_connect(struct rsocket *s, const struct sockaddr *addr, socklen_t len);
int rs_datagram_name(struct rsocket *s, bool peer, struct sockaddr *addr, socklen_t *len);
ssize_t rs_datagram_send(struct rsocket *s, const struct iovec *iov, size_t count, int flags,
			 const struct sockaddr *to, socklen_t to_len);
ssize_t rs_datagram_recv(struct rsocket *s, struct msghdr *msg, int flags);
short rs_datagram_poll_events(const struct rsocket *s, short events);

/** Wait for sends in flight, and close the UDP socket. */
void rs_datagram_close(struct rsocket *s);

/** Free all resources. The caller does not hold the lock. */
void rs_datagram_end(struct rsocket *s);

/** Queue a datagram for the program, or drop it if the queue is full. */
void rs_datagram_deliver(struct rsocket *s, const struct sockaddr_storage *from, const void *data,
			 size_t len);

/** Compare addresses and ports. */
bool rs_datagram_is_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b);

/** Return true for an option that the UDP socket handles. */
bool rs_datagram_has_option(int level, int name);
int rs_datagram_set_option(struct rsocket *s, int level, int name, const void *value,
			   socklen_t len);
int rs_datagram_get_option(struct rsocket *s, int level, int name, void *value, socklen_t *len);

/* rs_pair.c */

/** Find or create the queue pair of a local address, which includes the socket's port. Return 0 or
 * -errno. */
int rs_pair_get(struct rsocket *s, const struct sockaddr_storage *local, struct rs_pair **pair);

/** Send to a destination whose queue pair is known. Return 0, -EAGAIN if no send request is free,
 * or -errno. */
int rs_pair_send(struct rs_pair *pair, const struct rs_dest *dest, const struct iovec *iov,
		 size_t len);
void rs_pair_end(struct rs_pair *pair);

/** Handle all completions of a socket's queue pairs, request an event for the next one of each, and
 * drop the events of the past ones. */
void rs_datagram_poll(struct rsocket *s);
void rs_datagram_arm(struct rsocket *s);
void rs_datagram_drop_events(struct rsocket *s);

/* rs_dest.c */

/** Find the destination of an address; create it if `make` is set. Return 0; -ENOENT: not found; or
 * -errno. */
int rs_dest_get(struct rsocket *s, const struct sockaddr_storage *addr, bool make,
		struct rs_dest **dest);

/** Take a queue pair number that came from the peer's address, and start to resolve its link
 * address. */
void rs_dest_learn(struct rsocket *s, struct rs_dest *dest, uint32_t qpn);

/** Note that data was sent to the peer by UDP, which it answers with its queue pair number. */
void rs_dest_asked(struct rs_dest *dest);

/** Handle the results of address resolutions. */
void rs_dest_take_events(struct rsocket *s);
void rs_dest_end_all(struct rsocket *s);

/** Write or read the UDP header. Return its length; rs_udp_get returns 0 if the header is invalid.
 */
size_t rs_udp_put(struct rs_udp_wire *wire, const struct rs_pair *pair, enum rs_op op);
size_t rs_udp_get(const void *data, size_t len, sa_family_t family, enum rs_op *op, uint32_t *qpn);

/** Receive by UDP. The service's thread calls it, without the lock. */
void rs_datagram_serve(struct rsocket *s);

/** Write the header of datagrams from an address. Return its length. */
size_t rs_address_put(struct rs_datagram_wire *wire, const struct sockaddr_storage *from);

/** Read a header and check it against the packet's addresses. Return its length, or 0 if it is
 * invalid. */
size_t rs_address_get(const void *data, size_t len, const struct ibv_grh *grh,
		      struct sockaddr_storage *from);

#endif
