/* SPDX-License-Identifier: BSD-3-Clause */
/* A poll of the owner moves packets of all processes, in both directions. */
#ifndef OWNER_SERVER_POLL_H
#define OWNER_SERVER_POLL_H

#include <stdbool.h>
#include <stdint.h>

struct server;
struct slot;
struct tenants_take;

/** Run one poll, as serve_poll. */
unsigned int server_poll_run(struct server *server);

/** Take some of the packets that are left in a SLOT_DRAINING slot. Returns how many. */
uint32_t server_poll_drain(struct server *server, uint16_t number, struct tenants_take *take);

/** Return true if a process has sent packets that have not been taken. */
bool server_poll_slot_waits(struct slot *slot);

/** Return true if packets wait in the rings of any process whose tenant need not wait for its rate.
 */
bool server_poll_waits(struct server *server);

/** Wake the sleeping processes that have received packets. */
void server_poll_wake(struct server *server);

#endif
