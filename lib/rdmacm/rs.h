/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rsockets: sockets on queue pairs. They use only public calls of librdmacm and libibverbs. This
 * header has the struct behind a descriptor, and the functions that the files rs_*.c share, grouped
 * by file.
 *
 * Each rsocket has one lock. No thread holds it while it sleeps. A call polls the completion queue
 * itself and handles all completions, including those for which another thread waits. A thread that
 * must wait sleeps on two descriptors: the descriptor of the rsocket, which is an epoll instance of
 * its channels, and the thread's waker, an eventfd. A thread that changes an rsocket writes to all
 * wakers in the rsocket's list. One thread of the library (rs_service.c) does the work that cannot
 * wait for a call of the program: it accepts connections, receives datagrams by UDP, and sends
 * keepalives.
 *
 * Lock order, outermost first: rsocket, service, table. A listener's lock comes before the locks of
 * the rsockets in its backlog.
 *
 * Internal functions return -errno. The last line of a public call converts it to -1 and errno.
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

#define RS_QUEUE_MAX  0xfffe
#define RS_QUEUE_MIN  16
#define RS_INLINE_MAX 512 /* bytes */
#define RS_POST_MAX   16  /* receive requests posted in one call */
#define RS_BUFFER_MAX (1U << 30)
#define RS_FLAGS_REFUSED                                                                           \
	(MSG_OOB | MSG_ERRQUEUE) /* flags that calls refuse: rsockets have no out-of-band data and \
				    no error queue */
#define RS_KEPT		11	 /* options that are kept without an effect */
#define RS_DATAGRAM_MAX 2048	 /* bytes of a datagram and its header */

/* States of a stream. An active side passes RS_ADDRESS, RS_ROUTE and RS_CONNECTING, a passive side
 * RS_ACCEPTED. */
enum rs_state {
	RS_IDLE,
	RS_BOUND,
	RS_LISTENING,
	RS_ADDRESS,    /* the peer's link address is being resolved */
	RS_ROUTE,      /* the route to the peer is being resolved */
	RS_CONNECTING, /* REQ is sent; the REP is awaited */
	RS_ACCEPTED,   /* REP is sent; it is not known if the peer has received it */
	RS_CONNECTED,
	RS_ENDED,
};

/* Directions that are closed. */
enum rs_shut {
	RS_SHUT_READ = 1,
	RS_SHUT_WRITE = 2,
	RS_SHUT_PEER = 4, /* the peer sends no more */
};

/* Work that the service's thread does for an rsocket. */
enum rs_duty {
	RS_DUTY_LISTEN,
	RS_DUTY_DATAGRAM,
	RS_DUTY_KEEPALIVE,
};

/* A thread that sleeps. It is in an rsocket's list only while the rsocket's lock is free. */
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
	uint32_t spin_us; /* polling time before a call sleeps */
	/* Values that only rgetsockopt reads, or that are passed to other libraries. */
	int kept[RS_KEPT];
	int reuse_address;
	int ipv6_only;
	int tos;
	struct linger linger;
	int send_timeout_ms; /* less than 0: none */
	int recv_timeout_ms;
	int keepalive;
	int keepalive_s;
};

/* Memory that the peer may write: the slots of the target list, followed by the table of mappings.
 */
struct rs_target {
	struct rs_window_wire slots[RS_TARGET_SLOTS];
	struct rs_iomap_wire iomaps[];
};

/* A mapping of the local program. */
struct rs_mapping {
	TAILQ_ENTRY(rs_mapping) next;
	void *memory; /* the program's */
	size_t len;
	struct ibv_mr *mr; /* NULL: unmapped by the program, but the peer is not informed yet */
	uint64_t offset;
	int index;   /* in the peer's table; less than 0: the peer may not write it */
	bool untold; /* the peer is not informed of the latest change */
};
TAILQ_HEAD(rs_mapping_list, rs_mapping);

/* Queues and memory of a connection, created as soon as the device of the connection is known. */
struct rs_link {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t *ring;
	struct ibv_mr *ring_mr;
	uint8_t *buffer; /* data to send, followed by RS_CONTROL_SLOTS windows to send */
	struct ibv_mr *buffer_mr;
	struct rs_target *target;
	struct ibv_mr *target_mr;
	uint16_t send_requests;
	uint16_t recv_requests;
	uint16_t inline_bytes;
	uint8_t control_next; /* counter that selects the next window behind the buffer */
	unsigned int unacked; /* unacknowledged events of the completion queue */
};

struct rs_datagrams;

STAILQ_HEAD(rs_backlog, rsocket);

struct rsocket {
	int fd;		   /* an epoll instance; the program knows the rsocket by this number */
	int type;	   /* SOCK_STREAM or SOCK_DGRAM */
	int domain;	   /* AF_INET or AF_INET6 */
	pid_t pid;	   /* the process that created the rsocket */
	unsigned int refs; /* references by calls in progress, table and backlog; protected by the
			      table's lock */

	pthread_mutex_t lock; /* protects all members below */
	bool closed;
	int flags; /* O_NONBLOCK */
	LIST_HEAD(, rs_waker) wakers;
	struct rs_options options;
	int error; /* pending error, which the program has not read yet */

	/* streams */
	enum rs_state state;
	unsigned int shut; /* bits of enum rs_shut */
	struct rdma_event_channel *channel;
	uint64_t looked_ns; /* time of the last poll of the channel */
	struct rdma_cm_id *id;
	struct rs_link link;
	struct rs_hello peer;
	uint32_t peer_slot; /* next slot to write in the peer's target list */
	struct rs_in in;
	struct rs_out out;
	struct rs_mapping_list mappings;
	unsigned int untold;	 /* mappings whose latest change the peer does not know */
	uint8_t *taken_indices;	 /* peer.iomaps elements; 1: index in use */
	struct rs_iomap *iomaps; /* the peer's mappings; options.iomaps elements */
	int keepalive_fd;	 /* a timerfd; less than 0: no keepalive */
	void *route;		 /* value of RDMA_ROUTE */
	size_t route_len;

	/* listeners */
	struct rs_backlog backlog;
	unsigned int waiting; /* number of rsockets in the backlog */
	unsigned int backlog_max;
	STAILQ_ENTRY(rsocket) next; /* in a listener's backlog */

	struct rs_datagrams *datagrams;
};

/* A position in a program's vector. */
struct rs_cursor {
	const struct iovec *iov;
	size_t offset; /* in iov[0] */
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

/* Return true if a call must not wait. */
static inline bool rs_is_nonblock(const struct rsocket *s, int flags)
{
	return s->flags & O_NONBLOCK || flags & MSG_DONTWAIT;
}

static inline bool rs_is_opening(const struct rsocket *s)
{
	return s->state >= RS_ADDRESS && s->state <= RS_ACCEPTED;
}

/* Return true if neither side sends any more. The bits are those of enum rs_shut. */
static inline bool rs_is_over(unsigned int shut)
{
	return shut & RS_SHUT_WRITE && shut & RS_SHUT_PEER;
}

/* rs_table.c. MT-safe. */

/** Add an rsocket to the table under its descriptor. Return 0 or -errno. */
int rs_table_add(struct rsocket *s);

/** Return the rsocket of a descriptor, or NULL. The thread must call rs_table_put, and cannot be
 * cancelled until then. */
struct rsocket *rs_table_get(int fd);
void rs_table_put(struct rsocket *s);

/** The same, with the rsocket's lock held. */
struct rsocket *rs_table_lock(int fd);
void rs_table_unlock(struct rsocket *s);

/** Take a reference, which any thread may drop. The last drop frees the rsocket. */
void rs_table_hold(struct rsocket *s);
void rs_table_drop(struct rsocket *s);

/** Remove an rsocket from the table. Return false if another thread has removed it. */
bool rs_table_remove(struct rsocket *s);

/** Wait until the calls of other threads on a closed rsocket have ended. A call from a signal's
 * handler does not wait: it may have interrupted such a call of its own thread. */
void rs_table_await(struct rsocket *s);

/* rs_option.c */

/** Fill in the defaults that the administrator has configured. MT-safe. */
void rs_config_get(struct rs_options *options);

/* rs_socket.c */

/** Create an rsocket. If `listener` is not NULL, the rsocket is one of its connections and gets no
 * id. Return NULL with errno on failure. */
struct rsocket *rs_socket_create(int domain, int type, const struct rsocket *listener);

/** Free an rsocket that no thread uses. */
void rs_socket_free(struct rsocket *s);

/** Make the rsocket's descriptor readable while fd is readable. Return 0 or -errno. */
int rs_socket_watch(struct rsocket *s, int fd);

/** Close an rsocket; the caller holds a reference. Return 0, or -EBADF if it is closed already. */
int rs_socket_close(struct rsocket *s);

/* rs_poll.c. The caller holds the rsocket's lock. */

/** Wake all threads that sleep on the rsocket, because its state has changed. */
void rs_wait_changed(struct rsocket *s);

/** Handle all completions, without sleeping. */
void rs_wait_progress(struct rsocket *s);

/** Handle the events of the channels after a sleep, then all completions. */
void rs_wait_woken(struct rsocket *s);

/** Request an event for the next completion. */
void rs_wait_arm(struct rsocket *s);

/**
 * Wait until the test is true or the rsocket is closed. timeout_ms less than 0 means no timeout.
 * Return 0; -EAGAIN: `nonblock` is set and the test is false, or the time is over; -EBADF: the
 * rsocket is closed; or -EINTR.
 */
int rs_wait_for(struct rsocket *s, rs_test test, bool nonblock, int timeout_ms);

/** Do the same, but continue to wait after a signal. Return 0, -EAGAIN after the timeout, or
 * -EBADF. */
int rs_wait_out(struct rsocket *s, rs_test test, int timeout_ms);

/** Return the monotonic time. MT-safe. */
uint64_t rs_wait_now_ns(void);

/* rs_service.c. MT-safe. */

/** Make the service's thread do a duty whenever fd is readable. Return 0 or -errno. */
int rs_service_add(const struct rsocket *s, int fd, enum rs_duty duty);
void rs_service_remove(int fd);

/* rs_link.c. The caller holds the rsocket's lock. */

/** Create the queues and the memory of a connection. Return 0 or -errno. */
int rs_link_create(struct rsocket *s);
void rs_link_destroy(struct rsocket *s);

/** Write the local hello; read the peer's hello. */
void rs_link_say_hello(const struct rsocket *s, struct rs_hello_wire *wire);
int rs_link_take_hello(struct rsocket *s, const void *data, size_t len);

/** Post `count` receive requests. Return 0 or -errno. */
int rs_link_post_receives(struct rsocket *s, unsigned int count);

/* rs_connect.c. The caller holds the rsocket's lock. */

/** Handle the connection manager's events. */
void rs_connect_take_events(struct rsocket *s);

/** End a connection. `error` is 0 for an orderly end. */
void rs_connect_end(struct rsocket *s, int error);

/** Enter RS_CONNECTED. */
void rs_connect_done(struct rsocket *s);

/** Wait until an attempt to connect has succeeded or failed. Return 0, or the error of rs_wait_for.
 */
int rs_connect_wait(struct rsocket *s, bool nonblock, int timeout_ms);

/* rs_socket.c */

/** Accept connection requests of a listener. The service's thread calls it, without the lock. */
void rs_listen_serve(struct rsocket *s);

/** Stop listening, and close the connections in the backlog. The caller holds the lock. */
void rs_listen_end(struct rsocket *s);

/** Return true for a listener whose device is lost: no request will come. The caller holds the
 * lock. */
bool rs_listen_is_lost(const struct rsocket *s);

/* rs_link.c. The caller holds the rsocket's lock. */

/** Poll the completion queue. */
void rs_message_poll(struct rsocket *s);

/** Send a control message. Return false if there is no free send request for it. */
bool rs_message_control(struct rsocket *s, enum rs_control control);

/** Grant credits and a window to the peer, if some are due. */
void rs_message_grant(struct rsocket *s);

/** Post the WRITE of a message. Return 0 or -errno. */
int rs_message_post(struct rsocket *s, struct ibv_send_wr *wr);

/** Return the wr_id of a send request: its kind, and the bytes of the buffer that it holds. */
uint64_t rs_message_wr_id(enum rs_op op, uint32_t bytes);

/* rs_transfer.c. The caller holds the rsocket's lock. */

/** Copy len bytes and post a WRITE of them. rs_out_choose has set len and is_inline. Return 0 or
 * -errno. */
int rs_send_write(struct rsocket *s, struct rs_cursor *from, uint32_t len, bool is_inline,
		  struct ibv_send_wr *wr);

/** Return true if a send need not wait. */
bool rs_send_is_ready(const struct rsocket *s);

/** Return 0, or the error of a send in this state. The error stays pending. */
int rs_send_check(const struct rsocket *s);

/** Return the result of a send: the bytes sent, or the error, which is then no longer pending. */
ssize_t rs_send_result(struct rsocket *s, size_t sent, ssize_t rc);

/** Return true if a receive need not wait. */
bool rs_recv_is_ready(const struct rsocket *s);

/** Return the length of a vector in bytes, or -errno. MT-safe, as the next two. */
ssize_t rs_vector_len(const struct iovec *iov, size_t count);

/** Copy the next len bytes of a vector. The vector must have len bytes left. */
void rs_vector_gather(struct rs_cursor *from, void *data, size_t len);

/** Copy data into a vector from its beginning. Return the number of bytes that fit. */
size_t rs_vector_scatter(const struct iovec *iov, size_t count, const void *data, size_t len);

/* rs_connect.c. The caller holds the rsocket's lock. */

/** Close directions, as shutdown(2) does, after an accepted connection is established. If both are
 * closed, wait until the peer has acknowledged all data, and end the connection. Return 0 or
 * -errno.
 */
int rs_shutdown_stream(struct rsocket *s, int how);

/* rs_service.c. The caller holds the rsocket's lock. */

int rs_keepalive_set(struct rsocket *s);
void rs_keepalive_end(struct rsocket *s);
void rs_keepalive_serve(struct rsocket *s);

/* rs_iomap.c. The caller holds the rsocket's lock. */

/** Copy a mapping that the peer has written. Return 0, or -EPROTO if the index is outside the
 * table. */
int rs_iomap_take(struct rsocket *s, uint32_t index);

/** Write changed mappings to the peer. Return 0; -EAGAIN: no credit, send request or buffer is
 * free; or -errno. */
int rs_iomap_tell(struct rsocket *s);

/** End all mappings. */
void rs_iomap_end(struct rsocket *s);

/* rs_socket.c */

/** Copy an address as getsockname(2) does. */
void rs_name_copy(const void *from, struct sockaddr *addr, socklen_t *len);

/* rs_option.c */

/** Fill in the defaults of the options that have no effect. */
void rs_option_init(struct rs_options *options);

/** Return the member of rs_options that keeps a socket option, or NULL. */
int *rs_option_find(struct rsocket *s, int level, int name);

/* rs_poll.c. The caller holds the rsocket's lock. */

#endif
