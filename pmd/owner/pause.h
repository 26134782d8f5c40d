/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients and sockets that the owner ignores for a while. */
#ifndef OWNER_PAUSE_H
#define OWNER_PAUSE_H

#include <stdint.h>

struct listener;
struct server;
struct slot;
struct pending_client;

/** Ignore an isolated process, a pending client or a listener until its budget allows it again. */
void pause_slot(struct server *server, uint16_t number);
void pause_pending_client(struct server *server, struct pending_client *pending);
void pause_listener(struct server *server, struct listener *listener);

/** Forget a slot or client that was paused. */
void pause_forget_slot(struct server *server, struct slot *slot);
void pause_forget_pending_client(struct server *server, struct pending_client *pending);

/** Watch the clients and sockets again whose pause is over. */
void pause_check(struct server *server);

/** Return how long the owner may sleep: `ms`, or less if a pause ends before. */
int pause_longest_ms(const struct server *server, int ms);

/** Charge the time that a slot's or a pending client's message took. The sender is paused if its
 * budget is spent. */
void pause_charge_slot(struct server *server, uint16_t number, uint64_t took_ns);
void pause_charge_pending_clients(struct server *server, uint64_t took_ns);

#endif
