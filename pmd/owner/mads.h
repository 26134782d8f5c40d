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

struct gsi {
	struct arbiter *arbiter;
	struct psn psn;	 /* of the next MAD of our own */
	char netdev[64]; /* the interface of the kernel's that the port is; "": none */
	int manager_fd;	 /* the right to be its connection manager, or -1 */
};

/** Take in a packet for QP 1 from the port. */
void mads_input(struct server *server, struct rte_mbuf *mbuf, uint8_t flags);

/** Send on a packet for QP 1 of this host, as forward_send_on. */
bool mads_send_on(struct server *server, uint16_t number, struct rte_mbuf *mbuf);

/* The lengths that a frame with a MAD may have: from IPv4 without a tag to IPv6 with one. */
#define MADS_FRAME_MIN 322
#define MADS_FRAME_MAX 346

/** Take note of a frame for a QP 1 that a process sends out of the port. */
void mads_note(struct server *server, uint16_t number, const uint8_t *frame, size_t len);

/** Tell peers of processes that have ended, where it is due. */
void mads_farewell(struct server *server);

/** Return true if an untrusted process may send a frame to a QP 1, or to another queue pair. */
bool mads_may_send(const struct server *server, uint16_t number, const uint8_t *frame, size_t len);

/** Be the connection manager of the interface that the port is, if nobody else is. Return false
 * while another process is: MADs are its. */
bool mads_manage(struct server *server);

/** Do what a process asks with SHARE_CLAIM, SHARE_LISTEN or SHARE_RELEASE. 0 or -errno. */
int mads_ports(struct server *server, uint16_t number, struct share_message *message);

#endif
