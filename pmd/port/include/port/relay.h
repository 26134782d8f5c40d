/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port of a further engine of a device. If the device's port has a queue for it
 * (port_ops.open_queue), the engine receives and sends by this queue, and the relay only brings it
 * the frames that other engines have for it. Otherwise, and while the queue leads nowhere
 * (port.relayed), the first engine, which has the device's port, receives and sends for it. Frames
 * pass through this process's memory.
 */
#ifndef PORT_RELAY_H
#define PORT_RELAY_H

#include <stdbool.h>
#include <stdint.h>

struct port;
struct port_ops;
struct relay;
struct rte_mbuf;

/* What a relay reads and calls of the engine that has the port. */
struct relay_carrier {
	const struct port *port;
	uint32_t engines; /* of the device */
	const bool *lost; /* atomic: the port is lost for ever */
	/* Frames wait in `relay_fetch`. Called by the thread of the relay's engine. */
	void (*sent)(void *arg);
	void *sent_arg;
};

/**
 * Make the relay of engine `number`, and fill in the port of this engine. `carrier` is copied. Not
 * MT-safe; no engine runs yet. 0 or -errno (logged).
 */
int relay_open(const struct relay_carrier *carrier, uint32_t number, struct port *port,
	       struct relay **relay);

/** Return true if the engine has a queue of its own that receives now. MT-safe. */
bool relay_receives(const struct relay *relay);

/**
 * Return where the operations of the engine's own queue are, for a caller that has stopped all
 * engines and wraps them. Engine's lock.
 *
 * @param port
 *   That of a further engine, from relay_open.
 * @param arg
 *   Set to the argument of these operations.
 * @return
 *   NULL: the engine has no queue that receives.
 */
const struct port_ops **relay_queue(const struct port *port, void **arg);

/**
 * Give a relay's engine a frame, which it frees. Any engine's thread.
 *
 * @param received
 *   The carrier's port has received the frame.
 * @return
 *   False if there was no buffer for it; the frame is freed then.
 */
bool relay_give(struct relay *relay, struct rte_mbuf *mbuf, bool received);

/**
 * Move a frame that another engine will free out of a pool that only the relay's engine may use.
 * Thread of the relay's engine.
 *
 * @return
 *   The frame, or its copy; NULL if there was no buffer, and then the frame is freed.
 */
struct rte_mbuf *relay_hand_out(struct relay *relay, struct rte_mbuf *mbuf);

/** Take up to `n` frames that the relay's engine does not send itself, because it has no queue, or
 * because the queue takes nothing. They are in buffers of the carrier's port. Carrier's thread.
 * Returns how many. */
uint16_t relay_fetch(struct relay *relay, struct rte_mbuf **mbufs, uint16_t n);

/** Return true if relay_fetch would find frames. MT-safe. */
bool relay_sends(const struct relay *relay);

#endif
