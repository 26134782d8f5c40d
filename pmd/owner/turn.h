/* SPDX-License-Identifier: BSD-3-Clause */
/* A turn of an owner: packets of all, in both directions. */
#ifndef OWNER_TURN_H
#define OWNER_TURN_H

#include <stdbool.h>
#include <stdint.h>

struct server;
struct slot;

/** A turn, as serve_turn. */
unsigned int turn_run(struct server *server);

/** Take some of what is left of a slot that is SLOT_DRAINING. Returns how many packets. */
uint32_t turn_drain(struct server *server, uint16_t number);

/** Return true if a process has sent what is not taken yet. */
bool turn_slot_waits(struct slot *slot);

/** Whether anything waits in the rings of processes. */
bool turn_waits(struct server *server);

/** Wake processes that sleep and have been given something. */
void turn_wake(struct server *server);

#endif
