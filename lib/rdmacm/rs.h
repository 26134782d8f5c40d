/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rsockets: sockets on queue pairs, made of public calls of librdmacm and libibverbs. The struct
 * behind a descriptor, and the functions that the files rs_*.c offer each other, by file.
 *
 * Each rsocket has one lock, which no thread holds while it sleeps. Nobody works for an rsocket but
 * who calls: a call polls the completion queue and takes what has come, for all callers. Who sleeps
 * does so on the descriptor, an epoll instance of the rsocket's channels, and on an eventfd of its
 * own, its waker, which others write when they have changed something. What cannot wait for the
 * program (requests of connections, datagrams by UDP, keepalive) a thread does, rs_service.c.
 *
 * Locks, from the outside in: an rsocket's, the service's, the table's. A listener's comes before
 * that of the rsockets in its queue.
 *
 * Errors are -errno inside, and become -1 and errno at a call's last line.
 */
#ifndef RDMACM_RS_H
#define RDMACM_RS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include <rdma/rsocket.h>

#include "id.h"
#include "rs_in.h"
#include "rs_out.h"

#define RS_QUEUE_MAX	 0xfffe
#define RS_QUEUE_MIN	 16
#define RS_POST_MAX	 16 /* receive requests posted in one call */
#define RS_BUFFER_MAX	 (1U << 30)
#define RS_FLAGS_REFUSED (MSG_OOB | MSG_ERRQUEUE) /* of calls; rsockets have neither */
#define RS_DATAGRAM_MAX	 2048			  /* bytes of a datagram and its header */

/* What a stream is doing, in the order of an active and of a passive side. */
enum rs_state {
	RS_IDLE,
	RS_BOUND,
	RS_LISTENING,
	RS_ADDRESS,    /* the peer's link address is looked for */
	RS_ROUTE,      /* the way to the peer */
	RS_CONNECTING, /* the peer is asked */
	RS_ACCEPTED,   /* the peer has our answer, and we do not know */
	RS_CONNECTED,
	RS_ENDED,
};

/* Directions that are closed. */
enum rs_shut {
	RS_SHUT_READ = 1,
	RS_SHUT_WRITE = 2,
	RS_SHUT_PEER = 4, /* the peer sends no more */
};

/* Kinds of what the service's thread does for an rsocket. */
enum rs_duty {
	RS_DUTY_LISTEN,
	RS_DUTY_DATAGRAM,
	RS_DUTY_KEEPALIVE,
};

/* A call that sleeps. In an rsocket's list while its lock is not held. */
struct rs_waker {
	LIST_ENTRY(rs_waker) next;
	int fd;
};

struct rs_options {
	uint32_t send_bytes;
	uint32_t recv_bytes;
	uint16_t send_requests;
	uint16_t recv_requests;
	uint16_t inline_bytes;
	uint16_t iomaps;
	uint32_t spin_us; /* before a call sleeps */
	/* Values of the program's that nothing but rgetsockopt asks for, or that are handed on. */
	int reuse_address;
	int oob_inline;
	int no_delay;
	int ipv6_only;
	int tos;
	struct linger linger;
	int send_timeout_ms; /* less than 0: none */
	int recv_timeout_ms;
	int keepalive;
	int keepalive_s;
};

/* Memory that the peer may write into: the head of the target list, mappings behind it. */
struct rs_target {
	struct rs_window_wire slots[RS_TARGET_SLOTS];
	struct rs_iomap_wire iomaps[];
};

/* A mapping of ours. */
struct rs_mapping {
	TAILQ_ENTRY(rs_mapping) next;
	void *memory; /* the program's */
	size_t len;
	struct ibv_mr *mr; /* NULL: the program has unmapped it, and the peer does not know yet */
	uint64_t offset;
	int index;   /* in the peer's table; less than 0: not for the peer */
	bool untold; /* the peer does not know the last change */
};
TAILQ_HEAD(rs_mapping_list, rs_mapping);

/* What a connection works with; there from the time when its device is known. */
struct rs_link {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t *ring;
	struct ibv_mr *ring_mr;
	uint8_t *buffer; /* of the program's data; control messages' windows behind it */
	struct ibv_mr *buffer_mr;
	struct rs_target *target;
	struct ibv_mr *target_mr;
	uint16_t send_requests;
	uint16_t recv_requests;
	uint16_t inline_bytes;
	uint8_t control_next; /* which of the places behind the buffer is used next */
	unsigned int unacked; /* events of the completion queue */
};

struct rs_datagrams;

STAILQ_HEAD(rs_backlog, rsocket);

struct rsocket {
	int fd;		   /* an epoll instance, and the program's number */
	int type;	   /* SOCK_STREAM or SOCK_DGRAM */
	int domain;	   /* AF_INET or AF_INET6 */
	pid_t pid;	   /* of who made it */
	unsigned int refs; /* under the table's lock: calls in progress, and the table */

	pthread_mutex_t lock; /* of all that follows */
	bool closed;
	int flags; /* O_NONBLOCK */
	LIST_HEAD(, rs_waker) wakers;
	struct rs_options options;
	int error; /* that the program has not been told */

	/* streams */
	enum rs_state state;
	unsigned int shut; /* of enum rs_shut */
	struct rdma_event_channel *channel;
	uint64_t looked_ns; /* when the channel was looked at */
	struct rdma_cm_id *id;
	struct rs_link link;
	struct rs_hello peer;
	uint32_t peer_slot; /* of the peer's target list, that we write next */
	struct rs_in in;
	struct rs_out out;
	struct rs_mapping_list mappings;
	unsigned int untold;	 /* mappings that the peer does not know of */
	uint8_t *taken_indices;	 /* which of the peer's table are in use; peer.iomaps of them */
	struct rs_iomap *iomaps; /* what the peer has mapped for us, options.iomaps of them */
	int keepalive_fd;	 /* a timer; less than 0: none */
	void *route;		 /* RDMA_ROUTE's */
	size_t route_len;

	/* listeners */
	struct rs_backlog backlog;
	unsigned int waiting; /* rsockets in the backlog */
	unsigned int backlog_max;
	STAILQ_ENTRY(rsocket) next; /* in a listener's backlog */

	struct rs_datagrams *datagrams;
};

/* A place in a program's vector. */
struct rs_cursor {
	const struct iovec *iov;
	size_t offset; /* in the first of them */
};

typedef bool (*rs_test)(const struct rsocket *s);

/* End a call that returns a size or a descriptor. */
static inline ssize_t rs_result(ssize_t rc)
{
	if (rc >= 0)
		return rc;
	errno = (int)-rc;
	return -1;
}

/* Return true where a call may not wait. */
static inline bool rs_is_nonblock(const struct rsocket *s, int flags)
{
	return s->flags & O_NONBLOCK || flags & MSG_DONTWAIT;
}

static inline bool rs_is_opening(const struct rsocket *s)
{
	return s->state >= RS_ADDRESS && s->state <= RS_ACCEPTED;
}

/* rs_table.c. MT-safe. */

/** Put an rsocket into the table by its descriptor. 0 or -errno. */
int rs_table_add(struct rsocket *s);

/** The rsocket of a descriptor, to be given back; NULL: there is none. */
struct rsocket *rs_table_get(int fd);

/** Give an rsocket back, which ends with its last user. */
void rs_table_put(struct rsocket *s);

/** Take it out of the table. False where another thread has done that. */
bool rs_table_remove(struct rsocket *s);

/* rs_config.c */

/** The administrator's defaults. MT-safe. */
void rs_config_get(struct rs_options *options);

/* rs_socket.c */

/** Make an rsocket; with a listener, one of its connections. NULL: errno. */
struct rsocket *rs_socket_create(int domain, int type, const struct rsocket *listener);

/** Free what nobody uses. */
void rs_socket_free(struct rsocket *s);

/** Have the descriptor readable when this one is. 0 or -errno. */
int rs_socket_watch(struct rsocket *s, int fd);

/** End it: -errno where it has been closed already. */
int rs_socket_close(struct rsocket *s);

/* rs_wait.c. With the rsocket's lock. */

/** Wake those who sleep: something has changed. */
void rs_wait_changed(struct rsocket *s);

/** Take all that has come, without sleeping. */
void rs_wait_progress(struct rsocket *s);

/** The same after a sleep: take the channels' events too. */
void rs_wait_woken(struct rsocket *s);

/** Have what comes from now on be seen by who sleeps. */
void rs_wait_arm(struct rsocket *s);

/** Wait until the test is true, or the rsocket is closed. 0, -EAGAIN where the caller or the time
 * (at timeout_ms, less than 0: none) does not let us wait, -EBADF, or -EINTR. */
int rs_wait_for(struct rsocket *s, rs_test test, bool nonblock, int timeout_ms);

/** Monotonic time. MT-safe. */
uint64_t rs_wait_now_ns(void);

/* rs_service.c. MT-safe. */

/** Have the service's thread do something when a descriptor is readable. 0 or -errno. */
int rs_service_add(const struct rsocket *s, int fd, enum rs_duty duty);
void rs_service_remove(int fd);

/* rs_link.c. With the rsocket's lock. */

/** Make all that a connection works with. 0 or -errno. */
int rs_link_create(struct rsocket *s);
void rs_link_destroy(struct rsocket *s);

/** Tell of ourselves, and take what the peer tells. */
void rs_link_say_hello(const struct rsocket *s, struct rs_hello_wire *wire);
int rs_link_take_hello(struct rsocket *s, const void *data, size_t len);

/** Post so many receive requests. 0 or -errno. */
int rs_link_post_receives(struct rsocket *s, unsigned int count);

/* rs_connect.c. With the rsocket's lock. */

/** Take the connection manager's events. */
void rs_connect_take_events(struct rsocket *s);

/** End a connection; 0 for an orderly end. */
void rs_connect_end(struct rsocket *s, int error);

/** Both sides know of the connection. */
void rs_connect_done(struct rsocket *s);

/** Wait until a connection that is being made is there, or is not. 0, or why the wait ended. */
int rs_connect_wait(struct rsocket *s, bool nonblock);

/* rs_listen.c */

/** Take requests of a listener, by the service's thread, without the lock. */
void rs_listen_serve(struct rsocket *s);

/** Forget who has not been accepted. With the lock. */
void rs_listen_end(struct rsocket *s);

/* rs_message.c. With the rsocket's lock. */

/** Poll the completion queue. */
void rs_message_poll(struct rsocket *s);

/** Send a message about the stream, if one can be. False: not now. */
bool rs_message_control(struct rsocket *s, enum rs_control control);

/** Tell the peer of credits and windows, if it has to know. */
void rs_message_grant(struct rsocket *s);

/** Post a write of a message. 0 or -errno. */
int rs_message_post(struct rsocket *s, struct ibv_send_wr *wr);

/** A send request's number: its kind, and how many bytes of the buffer it holds. */
uint64_t rs_message_wr_id(enum rs_op op, uint32_t bytes);

/* rs_send.c. With the rsocket's lock. */

/** Copy bytes into the buffer and post a write of them; they fit (rs_out_fit). 0 or -errno. */
int rs_send_write(struct rsocket *s, struct rs_cursor *from, uint32_t len, struct ibv_send_wr *wr);

/** Test whether a send need not wait. */
bool rs_send_is_ready(const struct rsocket *s);

/** The error of a send that cannot be, or 0. */
int rs_send_check(struct rsocket *s);

/* rs_recv.c */

/** Test whether a receive need not wait. */
bool rs_recv_is_ready(const struct rsocket *s);

/* rs_vector.c */

/** Bytes of a program's vector, or -errno. */
ssize_t rs_vector_len(const struct iovec *iov, size_t count);

/** Copy the next bytes of a vector, which has them. */
void rs_vector_gather(struct rs_cursor *from, void *data, size_t len);

/** Copy into a vector from its beginning. Return the bytes for which it has room. */
size_t rs_vector_scatter(const struct iovec *iov, size_t count, const void *data, size_t len);

/* rs_shutdown.c. With the rsocket's lock. */

/** Close directions, as shutdown(2). 0 or -errno. */
int rs_shutdown_stream(struct rsocket *s, int how);

/* rs_keepalive.c. With the rsocket's lock. */

int rs_keepalive_set(struct rsocket *s);
void rs_keepalive_end(struct rsocket *s);
void rs_keepalive_serve(struct rsocket *s);

/* rs_iomap.c. With the rsocket's lock. */

/** The peer has written a mapping. 0, or -EPROTO for an index that it does not have. */
int rs_iomap_take(struct rsocket *s, uint32_t index);

/** Tell the peer of mappings. 0, -EAGAIN where there is no room, or -errno. */
int rs_iomap_tell(struct rsocket *s);

/** End all mappings. */
void rs_iomap_end(struct rsocket *s);

/* rs_name.c */

/** Copy an address as getsockname(2) does. */
void rs_name_copy(const void *from, struct sockaddr *addr, socklen_t *len);

/* rs_option.c */

/** Which option of rs_options a socket's option is; NULL: it is no simple one. */
int *rs_option_find(struct rsocket *s, int level, int name);

/* rs_poll.c. With the rsocket's lock. */

/** What poll(2) would tell of these events. */
short rs_poll_events(const struct rsocket *s, short events);

#endif
