/* SPDX-License-Identifier: BSD-3-Clause */
/* An isolated process: its packets come over a memif wire. */
#ifndef OWNER_ISOLATED_H
#define OWNER_ISOLATED_H

#include <stdbool.h>
#include <stdint.h>

struct rte_mbuf;
struct server;
struct slot;

int isolated_create(struct slot *slot);

/** Nothing where it is none. */
void isolated_destroy(struct server *server, struct slot *slot);

/** Take a descriptor for its wire, in place of what it had. 0, or -errno: a rule was broken. */
int isolated_plug(struct server *server, uint16_t number, int fd);

/** The other end of its wire has gone, and what came over it is still taken. */
void isolated_hang_up(struct server *server, struct slot *slot);

/** Hear what comes over the wire's socket. 0, or -errno: a rule was broken. */
int isolated_hear(struct server *server, uint16_t number);

/** As forward_give. */
bool isolated_give(struct server *server, uint16_t number, struct rte_mbuf *mbuf, uint8_t flags);

/** As forward_take. */
uint32_t isolated_take(struct server *server, uint16_t number, uint32_t most);

/** The socket of its wire, or -1. */
int isolated_wire(const struct slot *slot);

bool isolated_is_broken(const struct slot *slot);

/** Whether there is something to be taken. */
bool isolated_waits(const struct slot *slot);

/** Ask to be told of what it sends from here on, or no more. */
void isolated_listen(const struct slot *slot, bool on);

#endif
