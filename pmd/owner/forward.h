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

/** Take in a frame from the port, in a buffer of the arena. */
void forward_input(struct server *server, struct rte_mbuf *mbuf);

/** Give a packet to a process. false, and the packet is still the caller's, where it takes no more.
 */
bool forward_give(struct server *server, uint16_t number, struct rte_mbuf *mbuf, uint8_t flags);

/** Take what a process has put into its rings, at most `most` packets. Returns how many. */
uint32_t forward_take(struct server *server, uint16_t number, uint32_t most);

/** Send on what came from a process, in a buffer that is the owner's. false, and the packet is
 * still the caller's: not now. */
bool forward_send_on(struct server *server, uint16_t number, struct rte_mbuf *mbuf);

/** Give a packet to a process, or drop it where that takes no more. */
void forward_give_or_drop(struct server *server, uint16_t number, struct rte_mbuf *mbuf,
			  uint8_t flags);

/**
 * Give a packet of one process to another. A process that takes nothing for a while loses packets,
 * and nobody waits for it; one that is only late has them wait in the ring of who sent them.
 *
 * @param makes_lane
 *   The two may get a lane, since they talk to each other.
 * @return
 *   False while the packet should wait; it is still the caller's.
 */
bool forward_hand_over(struct server *server, uint16_t from, uint16_t number, struct rte_mbuf *mbuf,
		       bool makes_lane);

/** Lay empty buffers ready for a process. */
void forward_restock(struct server *server, uint16_t number);

/** Send a frame of the owner's own. */
void forward_send_own(struct server *server, struct rte_mbuf *mbuf, size_t len);

/** Give the port what waits for it. */
void forward_flush(struct server *server);

/** Note that a process broke a rule. It is let go of when no packets of it are under way
 * (slot_advance). */
void forward_refuse(struct server *server, uint16_t number);

/** Take buffers that a process has done with. Returns how many. */
uint32_t forward_take_returns(struct server *server, uint16_t number);

#endif
