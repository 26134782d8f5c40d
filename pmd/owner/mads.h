/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets to QP 1 of a shared device, and the ports of its connection managers. */
#ifndef OWNER_MADS_H
#define OWNER_MADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/psn.h"

struct arbiter;
struct rte_mbuf;
struct server;
struct share_message;
struct waiting_mad;

struct gsi {
	struct arbiter *arbiter;
	struct psn psn;	 /* of the next MAD of our own */
	char netdev[64]; /* the kernel interface that is this port; "": none */
	int manager_fd;	 /* for the right to be its connection manager (netdev/manager.h); or -errno
			  */
	bool is_manager; /* the owner has that right */
};

/** Handle a packet for QP 1 from the port. */
void mads_input(struct server *server, struct rte_mbuf *mbuf, uint8_t flags);

/** Forward a packet for QP 1 of this host, as forward_send_on. */
bool mads_send_on(struct server *server, uint16_t number, struct rte_mbuf *mbuf);

/** Record a frame to a QP 1 that a process sends out of the port. */
void mads_note(struct server *server, uint16_t number, const uint8_t *frame, size_t len);

/** Send the due messages that tell peers that a process has ended. */
void mads_disconnect_orphans(struct server *server);

/** Return true if an untrusted process may send a frame to a QP 1, or to another queue pair. */
bool mads_may_send(const struct server *server, uint16_t number, const uint8_t *frame, size_t len);

/** Count a packet that a process may send if it asks for a connection. Return false if its tenant
 * has asked for too many: the packet must be dropped, and the connection manager asks again. */
bool mads_may_ask(struct server *server, uint16_t number, const uint8_t *frame, size_t len);

/** Become the connection manager of the port's kernel interface. Return false while another process
 * is the manager: MADs belong to that process. */
bool mads_manage(struct server *server);

/** Handle a process's SHARE_CLAIM, SHARE_LISTEN, SHARE_CHANGE or SHARE_RELEASE. 0 or -errno. */
int mads_ports(struct server *server, uint16_t number, struct share_message *message);

/*
 * MADs that wait for a trusted process. In a storm of connections a process gets more MADs than its
 * rx ring has words, and may wait longer for a CPU than senders wait for it. A lost MAD costs its
 * connection seconds, so copies of MADs wait here. The sender and its other packets go on.
 */
#define MAD_QUEUE_MAX 8192 /* of a process; 2.9 MB */
/* A process that takes no MAD for so long loses those that wait. Peers retransmit after 4
 * seconds. */
#define MAD_QUEUE_NS UINT64_C(10000000000)

/* All zero: none waits. */
struct mad_queue {
	struct waiting_mad *all; /* MAD_QUEUE_MAX, a ring; NULL while none waits */
	uint32_t first;		 /* index in `all` of the oldest */
	uint32_t count;
	uint64_t moved_ns; /* when the first began to wait, or the process took one */
};

/**
 * Let a MAD wait for a process, and free its buffer.
 *
 * @param flags
 *   As forward_give.
 * @param local
 *   It comes from a process.
 * @return
 *   False, and the packet is still the caller's: the process is isolated or has gone, the queue is
 *   full, or memory is missing.
 */
bool mad_queue_put(struct server *server, uint16_t number, struct rte_mbuf *mbuf, uint8_t flags,
		   bool local);

/** Give a process the MADs that wait for it, as far as there is room. Returns how many. */
uint32_t mad_queue_serve(struct server *server, uint16_t number);

/** Drop the MADs that wait for a process. */
void mad_queue_drop(struct server *server, uint16_t number);

/** Return how long the owner may sleep: `ms`, or less while MADs wait, because a process that
 * makes room does not wake the owner. */
int mad_queue_longest_ms(const struct server *server, int ms);

#endif
