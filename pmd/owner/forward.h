/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets between the port and the processes, and between processes. */
#ifndef OWNER_FORWARD_H
#define OWNER_FORWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rte_mbuf;
struct server;
struct slot;
struct tenants_take;

/** Handle a frame from the port, in a buffer of the arena. */
void forward_input(struct server *server, struct rte_mbuf *mbuf);

/** Return true if a frame from the port must wait while the processes of the last owner come back
 * (resume.h). */
bool forward_must_wait(const struct server *server, const struct rte_mbuf *mbuf);

/** Give a packet to a process. Return false if the process has no room: the caller keeps the
 * packet.
 */
bool forward_give(struct server *server, uint16_t number, struct rte_mbuf *mbuf, uint8_t flags);

/** Take at most `most` packets, and what `take` allows, out of a process's rings. Returns how many
 * packets. */
uint32_t forward_take(struct server *server, uint16_t number, uint32_t most,
		      struct tenants_take *take);

/** Forward a process's packet that is in an owner's buffer. `take` counts the copies that are made
 * of it; it may be NULL. Return false if the packet must wait: the caller keeps it. */
bool forward_send_on(struct server *server, uint16_t number, struct rte_mbuf *mbuf,
		     struct tenants_take *take);

/** Return the flags of packets that a process sends to another one. */
uint8_t forward_flags_of(const struct server *server, uint16_t from);

/** Give a packet of one process to another, as forward_give; capture and count it. */
bool forward_pass(struct server *server, uint16_t number, struct rte_mbuf *mbuf, uint8_t flags);

/**
 * Drop a packet that a process has not taken. If the receiver is only slow, packets wait in the
 * sender's ring. If it has taken nothing for a while, its packets are dropped, and no sender waits.
 *
 * @return
 *   False if the packet must wait; the caller keeps it.
 */
bool forward_drop_late(struct server *server, uint16_t number, struct rte_mbuf *mbuf);

/** Refill a process's ring of empty buffers. */
void forward_refill(struct server *server, uint16_t number);

/** Send a frame of the owner's own. */
void forward_send_own(struct server *server, struct rte_mbuf *mbuf, size_t len);

/** Send a copy of a frame of the owner's own. Returns false if no buffer is free. */
bool forward_send_copy(struct server *server, const uint8_t *frame, size_t len);

/** Give the pending packets to the port. */
void forward_flush(struct server *server);

/** Note that a process broke a rule. Its slot ends when none of its packets is being forwarded
 * (slot_advance). */
void forward_refuse(struct server *server, uint16_t number);

/** Take back the buffers that a process has released. Returns how many. */
uint32_t forward_take_returns(struct server *server, uint16_t number);

#endif
