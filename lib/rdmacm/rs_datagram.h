/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagram rsockets. Each has a UDP socket of the kernel's, whose address is the rsocket's. The
 * first datagrams to a peer go by UDP, with a header that has the sender's queue pair number. As
 * soon as a side knows the other's number, it sends by its queue pair.
 *
 * A socket has a queue pair for each of its own addresses (rs_pair.c), and a destination for each
 * address that it has sent to or heard of (rs_dest.c). What arrives either way waits in one queue.
 *
 * All functions are called with the rsocket's lock, except where they say so.
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
	uint8_t *memory; /* a place for each receive request, then one for each send request */
	struct ibv_mr *mr;
	uint32_t recv_requests;
	uint32_t send_requests;
	uint32_t *free_sends; /* a stack of indices */
	uint32_t free_count;
	uint32_t max_bytes; /* of a datagram with its header */
	uint32_t unacked;   /* events of the completion queue */
	uint8_t sgid_index;
	struct rs_datagram_wire header;
};

/* A destination of datagrams. */
struct rs_dest {
	LIST_ENTRY(rs_dest) in_bucket;
	TAILQ_ENTRY(rs_dest) by_use;
	struct sockaddr_storage addr;
	struct rs_pair *pair;
	struct ibv_ah *ah;	  /* NULL: the way there is not known */
	uint32_t qpn;		  /* of the peer; 0: it has not told */
	struct rdma_cm_id *looks; /* resolves the peer's link address; NULL: none is needed */
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
	struct rdma_event_channel *channel; /* of ids that look for a way */
	LIST_HEAD(, rs_pair) pairs;
	LIST_HEAD(, rs_dest) buckets[RS_DEST_BUCKETS];
	TAILQ_HEAD(, rs_dest) dests; /* used last at the end */
	unsigned int dest_count;
	STAILQ_HEAD(, rs_message) received;
	size_t received_bytes;
	struct sockaddr_storage peer; /* of a connected socket; else of family 0 */
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

/** Free all; no lock. */
void rs_datagram_end(struct rsocket *s);

/** Queue a datagram for the program, or drop it if the queue is full. */
void rs_datagram_deliver(struct rsocket *s, const struct sockaddr_storage *from, const void *data,
			 size_t len);

/** Compare addresses and ports. */
bool rs_datagram_is_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b);

/** Return true for an option that is the UDP socket's. */
bool rs_datagram_has_option(int level, int name);
int rs_datagram_set_option(struct rsocket *s, int level, int name, const void *value,
			   socklen_t len);
int rs_datagram_get_option(struct rsocket *s, int level, int name, void *value, socklen_t *len);

/* rs_pair.c */

/** The queue pair of one of our addresses, with the socket's port. 0 or -errno. */
int rs_pair_get(struct rsocket *s, const struct sockaddr_storage *local, struct rs_pair **pair);

/** Send to a destination whose queue pair is known. 0, or -EAGAIN without a free request. */
int rs_pair_send(struct rs_pair *pair, const struct rs_dest *dest, const struct iovec *iov,
		 size_t len);
void rs_pair_end(struct rs_pair *pair);

/** For all queue pairs of a socket, as rs_wait.c wants it. */
void rs_datagram_poll(struct rsocket *s);
void rs_datagram_arm(struct rsocket *s);
void rs_datagram_woken(struct rsocket *s);

/* rs_dest.c */

/** The destination of an address; `make` makes one. 0, -ENOENT, or -errno. */
int rs_dest_get(struct rsocket *s, const struct sockaddr_storage *addr, bool make,
		struct rs_dest **dest);

/** Note the peer's queue pair number, and resolve its link address. */
void rs_dest_learn(struct rsocket *s, struct rs_dest *dest, uint32_t qpn);

/** Handle the ends of address resolutions. */
void rs_dest_take_events(struct rsocket *s);
void rs_dest_end_all(struct rsocket *s);

/* rs_udp.c */

/** Send by UDP, with our queue pair's number in front. Bytes of data, or -errno. */
ssize_t rs_udp_send(struct rsocket *s, const struct rs_dest *dest, enum rs_op op,
		    const struct iovec *iov, size_t count, int flags);

/** Write and read the header. Its length; 0: it is none. */
size_t rs_udp_put(struct rs_udp_wire *wire, const struct rs_pair *pair, enum rs_op op);
size_t rs_udp_get(const void *data, size_t len, sa_family_t family, enum rs_op *op, uint32_t *qpn);

/** Receive by UDP. Called by the service's thread, without the lock. */
void rs_datagram_serve(struct rsocket *s);

/* rs_address.c */

/** Write the header of datagrams from an address. Its length. */
size_t rs_address_put(struct rs_datagram_wire *wire, const struct sockaddr_storage *from);

/** Read a header and check it against the packet's addresses. Its length; 0: it is none. */
size_t rs_address_get(const void *data, size_t len, const struct ibv_grh *grh,
		      struct sockaddr_storage *from);

#endif
