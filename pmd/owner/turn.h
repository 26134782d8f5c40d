/* SPDX-License-Identifier: BSD-3-Clause */
/* One turn of the owner: it moves packets of all processes, in both directions. */
#ifndef OWNER_TURN_H
#define OWNER_TURN_H

#include <stdbool.h>
#include <stdint.h>

struct server;
struct slot;

/** Run one turn, as serve_turn. */
unsigned int turn_run(struct server *server);

/** Take some of the packets that are left in a SLOT_DRAINING slot. Returns how many. */
uint32_t turn_drain(struct server *server, uint16_t number);

/** Return true if a process has sent packets that have not been taken. */
bool turn_slot_waits(struct slot *slot);

/** Return true if packets wait in any process's rings. */
bool turn_waits(struct server *server);

/** Wake the sleeping processes that have received packets. */
void turn_wake(struct server *server);

#endif
