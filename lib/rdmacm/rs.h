/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rsockets: sockets on queue pairs, made of public calls of librdmacm and libibverbs. The struct
 * behind a descriptor, and the functions that the files rs_*.c offer each other, by file.
 *
 * Each rsocket has one lock, which no thread holds while it sleeps. A call polls the completion
 * queue itself, and handles all completions, also those that another thread waits for. A thread
 * that has to wait sleeps on two descriptors: the rsocket's, which is an epoll instance of its
 * channels, and an eventfd of the thread, its waker. Each thread that changes an rsocket writes the
 * wakers in its list. One thread of the library (rs_service.c) does the work that cannot wait for a
 * call of the program: it accepts connections, receives datagrams by UDP, and sends keepalives.
 *
 * Order of locks, the outermost first: an rsocket's, the service's, the table's. A listener's lock
 * comes before the locks of the rsockets in its backlog.
 *
 * Internal errors are -errno; a call's last line converts them to -1 and errno.
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
#define RS_INLINE_MAX	 512 /* bytes */
#define RS_POST_MAX	 16  /* receive requests posted in one call */
#define RS_BUFFER_MAX	 (1U << 30)
#define RS_FLAGS_REFUSED (MSG_OOB | MSG_ERRQUEUE) /* of calls; rsockets have neither */
#define RS_DATAGRAM_MAX	 2048			  /* bytes of a datagram and its header */

/* States of a stream: those of an active side in order, then those of a passive side. */
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
	uint32_t spin_us; /* before a call sleeps */
	/* Values that only rgetsockopt reads, or that other libraries use. */
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
	bool untold; /* the peer does not know the latest change */
};
TAILQ_HEAD(rs_mapping_list, rs_mapping);

/* Queues and memory of a connection. Made as soon as the device of the connection is known. */
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
	unsigned int refs; /* under the table's lock: calls in progress, table, and backlog */

	pthread_mutex_t lock; /* of all that follows */
	bool closed;
	int flags; /* O_NONBLOCK */
	LIST_HEAD(, rs_waker) wakers;
	struct rs_options options;
	int error; /* pending: the program has not seen it yet */

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
	struct rs_iomap *iomaps; /* the peer's mappings; options.iomaps of them */
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

/** Return the rsocket of a descriptor, or NULL. The thread must call rs_table_put, and cannot be
 * cancelled until then. */
struct rsocket *rs_table_get(int fd);
void rs_table_put(struct rsocket *s);

/** Take a reference that any thread may drop; the last one frees the rsocket. */
void rs_table_hold(struct rsocket *s);
void rs_table_drop(struct rsocket *s);

/** Remove it from the table. Return false if another thread has removed it. */
bool rs_table_remove(struct rsocket *s);

/* rs_config.c */

/** Fill in the administrator's defaults. MT-safe. */
void rs_config_get(struct rs_options *options);

/* rs_socket.c */

/** Create an rsocket. With a listener it is one of the listener's connections, without an id. NULL:
 * errno. */
struct rsocket *rs_socket_create(int domain, int type, const struct rsocket *listener);

/** Free an rsocket that no thread uses. */
void rs_socket_free(struct rsocket *s);

/** Make the rsocket's descriptor readable whenever fd is. 0 or -errno. */
int rs_socket_watch(struct rsocket *s, int fd);

/** Close it; the caller has a reference. 0, or -EBADF if it is closed already. */
int rs_socket_close(struct rsocket *s);

/* rs_wait.c. With the rsocket's lock. */

/** Wake all threads that sleep, because the rsocket has changed. */
void rs_wait_changed(struct rsocket *s);

/** Handle all completions, without sleeping. */
void rs_wait_progress(struct rsocket *s);

/** Do the same after a sleep, and handle the events of the channels. */
void rs_wait_woken(struct rsocket *s);

/** Request an event for the next completion. */
void rs_wait_arm(struct rsocket *s);

/** Wait until the test is true, or the rsocket is closed. 0, -EAGAIN where the caller or the time
 * (at timeout_ms, less than 0: none) does not let us wait, -EBADF, or -EINTR. */
int rs_wait_for(struct rsocket *s, rs_test test, bool nonblock, int timeout_ms);

/** Wait in the same way, also through signals. 0, -EAGAIN after that time, or -EBADF. */
int rs_wait_out(struct rsocket *s, rs_test test, int timeout_ms);

/** Monotonic time. MT-safe. */
uint64_t rs_wait_now_ns(void);

/* rs_service.c. MT-safe. */

/** Have the service's thread do a duty whenever fd is readable. 0 or -errno. */
int rs_service_add(const struct rsocket *s, int fd, enum rs_duty duty);
void rs_service_remove(int fd);

/* rs_link.c. With the rsocket's lock. */

/** Create the queues and the memory of a connection. 0 or -errno. */
int rs_link_create(struct rsocket *s);
void rs_link_destroy(struct rsocket *s);

/** Write our hello, and read the peer's. */
void rs_link_say_hello(const struct rsocket *s, struct rs_hello_wire *wire);
int rs_link_take_hello(struct rsocket *s, const void *data, size_t len);

/** Post so many receive requests. 0 or -errno. */
int rs_link_post_receives(struct rsocket *s, unsigned int count);

/* rs_connect.c. With the rsocket's lock. */

/** Handle the connection manager's events. */
void rs_connect_take_events(struct rsocket *s);

/** End a connection; 0 for an orderly end. */
void rs_connect_end(struct rsocket *s, int error);

/** Enter RS_CONNECTED. */
void rs_connect_done(struct rsocket *s);

/** Wait until a connection that is being made is there, or is not. 0, or why the wait ended. */
int rs_connect_wait(struct rsocket *s, bool nonblock, int timeout_ms);

/* rs_listen.c */

/** Accept requests of a listener. Called by the service's thread, without the lock. */
void rs_listen_serve(struct rsocket *s);

/** Stop listening, and close the connections of the backlog. With the lock. */
void rs_listen_end(struct rsocket *s);

/* rs_message.c. With the rsocket's lock. */

/** Poll the completion queue. */
void rs_message_poll(struct rsocket *s);

/** Send a control message. Return false if there is no free send request for it. */
bool rs_message_control(struct rsocket *s, enum rs_control control);

/** Grant credits and a window to the peer, if some are due. */
void rs_message_grant(struct rsocket *s);

/** Post a write of a message. 0 or -errno. */
int rs_message_post(struct rsocket *s, struct ibv_send_wr *wr);

/** Return the wr_id of a send request: its kind, and the bytes of the buffer that it holds. */
uint64_t rs_message_wr_id(enum rs_op op, uint32_t bytes);

/* rs_send.c. With the rsocket's lock. */

/** Copy bytes and post a write of them; rs_out_choose has told how. 0 or -errno. */
int rs_send_write(struct rsocket *s, struct rs_cursor *from, uint32_t len, bool is_inline,
		  struct ibv_send_wr *wr);

/** Test whether a send need not wait. */
bool rs_send_is_ready(const struct rsocket *s);

/** Return 0, or the error of a send in this state, which stays pending. */
int rs_send_check(const struct rsocket *s);

/** Return what a send tells: the bytes sent, or its error, which is not pending any more. */
ssize_t rs_send_result(struct rsocket *s, size_t sent, ssize_t rc);

/* rs_recv.c */

/** Test whether a receive need not wait. */
bool rs_recv_is_ready(const struct rsocket *s);

/* rs_vector.c */

/** Return the bytes of a vector, or -errno. */
ssize_t rs_vector_len(const struct iovec *iov, size_t count);

/** Copy the next len bytes of a vector, which must have them. */
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

/** Copy a mapping that the peer has written. 0, or -EPROTO for an index outside of the table. */
int rs_iomap_take(struct rsocket *s, uint32_t index);

/** Write changed mappings to the peer. 0, -EAGAIN without a credit or a request, or -errno. */
int rs_iomap_tell(struct rsocket *s);

/** End all mappings. */
void rs_iomap_end(struct rsocket *s);

/* rs_name.c */

/** Copy an address as getsockname(2) does. */
void rs_name_copy(const void *from, struct sockaddr *addr, socklen_t *len);

/* rs_option.c */

/** Return the member of rs_options that keeps a socket option, or NULL. */
int *rs_option_find(struct rsocket *s, int level, int name);

/* rs_poll.c. With the rsocket's lock. */

/** Return the events that poll(2) would report. */
short rs_poll_events(const struct rsocket *s, short events);

#endif
