/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slots of the further engines of a process. A process has a slot, and one more for each further
 * engine of its device: with rings, buffers and lanes that only this engine's thread uses. All
 * that a process has once (queue pair numbers, communication ids, groups, its report) belongs to
 * the slot of the first engine.
 */
#ifndef OWNER_SLOT_ENGINE_H
#define OWNER_SLOT_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "slot.h"

struct server;
struct share_engine;

/* Slots of further engines at most, so that other processes get a full share of the buffers. If a
 * port has few slots, the limit is a quarter of them. */
#define SERVER_FURTHER_MAX 16u

/** Reserve what the further engines of a process need, if there is enough: slots and full shares of
 * the buffers. The slot is that of the first engine. */
void slot_engine_reserve(struct server *server, uint16_t number, uint32_t count);

/**
 * Check a request for the slot of a further engine.
 *
 * @param socket
 *   The socket of the request, whose other end must be the process of the first engine.
 * @return
 *   0; -EINVAL: there is no such process, or nothing is reserved for this engine.
 */
int slot_engine_check(const struct server *server, int socket, const struct share_engine *engine);

/** Make a slot that of an engine, after slot_engine_check. Its full share is not reserved any
 * more. */
void slot_engine_add(struct server *server, uint16_t number, const struct share_engine *engine);

/** End the slots of a process together: the further ones with the first, and the first with one of
 * the others. Called when a slot is withdrawn. */
void slot_engine_withdraw(struct server *server, uint16_t number);

/** Forget the slot of a further engine, which is freed; of another slot: do nothing. */
void slot_engine_forget(struct server *server, uint16_t number);

/** Return the number of the first engine's slot, of the process that a slot belongs to. */
uint16_t slot_engine_first(const struct server *server, uint16_t number);

/** Return the slot for packets to a queue pair, of the process whose first slot is given. */
static inline uint16_t slot_engine_of(const struct slot *first, uint16_t number, uint32_t qpn)
{
	uint16_t to;

	if (likely(first->engine_count <= 1))
		return number;
	to = first->engine_slots[qpn % first->engine_count];
	return to == BLOCK_NONE ? number : to;
}

/** Return the engines whose packets go to a slot, as bits. */
uint32_t slot_engine_served(const struct server *server, uint16_t number);

#endif
