/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients and sockets that the owner ignores for a while. */
#ifndef OWNER_REST_H
#define OWNER_REST_H

#include <stdint.h>

struct listener;
struct server;
struct slot;
struct newcomer;

/** Ignore an isolated process, a newcomer or a listener until its budget allows it again. */
void rest_slot(struct server *server, uint16_t number);
void rest_newcomer(struct server *server, struct newcomer *newcomer);
void rest_listener(struct server *server, struct listener *listener);

/** Forget a slot or client that rested. */
void rest_forget_slot(struct server *server, struct slot *slot);
void rest_forget_newcomer(struct server *server, struct newcomer *newcomer);

/** Watch again those whose rest is over. */
void rest_look(struct server *server);

/** Return how long the owner may sleep: `ms`, or less if a rest ends before. */
int rest_longest_ms(const struct server *server, int ms);

/** Charge the time that a slot's or a newcomer's message took. The sender rests if its budget is
 * spent. */
void rest_charge_slot(struct server *server, uint16_t number, uint64_t took_ns);
void rest_charge_newcomers(struct server *server, uint64_t took_ns);

#endif
