/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner's epoll set. */
#ifndef OWNER_EVENT_H
#define OWNER_EVENT_H

#include <stdint.h>

struct server;

/* Kinds of descriptors in the epoll set. */
enum server_event {
	EVENT_WAKE,
	EVENT_PORT, /* or the kernel's interface */
	EVENT_CONN, /* the port's connection (port_conn_fd) */
	EVENT_LISTEN,
	EVENT_HELLO,  /* number: the descriptor of a trusted client that has no slot yet */
	EVENT_SOCKET, /* number: the slot */
	EVENT_PIDFD,  /* number: the slot */
	EVENT_LISTEN_ISOLATED,
	EVENT_PENDING_CLIENT, /* number: the descriptor of an untrusted client that has no slot yet
			       */
	EVENT_MEMIF,	      /* number: the slot */
	EVENT_DOORBELL,	      /* number: the slot; edge-triggered */
};

/** Return the time of CLOCK_MONOTONIC. */
uint64_t event_now_ns(void);

/** Add a descriptor to the epoll set. 0 or -errno. */
int event_watch(struct server *server, int fd, enum server_event event, uint32_t number);

/** Change the event of a descriptor that is in the set. 0 or -errno. */
int event_rewatch(struct server *server, int fd, enum server_event event, uint32_t number);

#endif
