/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients and sockets that the owner does not listen to for a while. */
#ifndef OWNER_REST_H
#define OWNER_REST_H

#include <stdint.h>

struct listener;
struct server;
struct slot;
struct newcomer;

/** Listen no more to an isolated process, to one that came, or for those who come, until they may
 * be heard. */
void rest_slot(struct server *server, uint16_t number);
void rest_newcomer(struct server *server, struct newcomer *newcomer);
void rest_listener(struct server *server, struct listener *listener);

/** Forget a slot or client that rested. */
void rest_forget_slot(struct server *server, struct slot *slot);
void rest_forget_newcomer(struct server *server, struct newcomer *newcomer);

/** Listen again to those who may be heard. */
void rest_look(struct server *server);

/* Return how long the owner may sleep, of `ms`, before it has to look at those that rest. */
int rest_longest_ms(const struct server *server, int ms);

/** Somebody was heard until now, and that took so long. */
void rest_charge_slot(struct server *server, uint16_t number, uint64_t took_ns);
void rest_charge_newcomers(struct server *server, uint64_t took_ns);

#endif
