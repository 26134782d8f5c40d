/* SPDX-License-Identifier: BSD-3-Clause */
/* An isolated process: its packets come over memif. */
#ifndef OWNER_ISOLATED_H
#define OWNER_ISOLATED_H

#include <stdbool.h>
#include <stdint.h>

struct rte_mbuf;
struct server;
struct share_message;
struct slot;
struct tenants_take;

int isolated_create(struct slot *slot);

/** Free the isolated part of a slot. Does nothing if the slot's process is not isolated. */
void isolated_destroy(struct server *server, struct slot *slot);

/** Make a memif connection for the process, in place of its previous one, and answer its request
 * (SHARE_MEMIF), in `message`. Return 0, also if the answer is an error, or -errno if the process
 * broke a rule or has gone. */
int isolated_plug(struct server *server, uint16_t number, struct share_message *message);

/** Note that the memif socket's other end has gone. Packets already in the rings are still taken.
 */
void isolated_hang_up(struct server *server, struct slot *slot);

/** Handle the messages on the memif socket. 0, -EBUSY: try later; or another -errno if the process
 * broke a rule. */
int isolated_hear(struct server *server, uint16_t number);

/** Do forward_give for an isolated process. */
bool isolated_give(struct server *server, uint16_t number, struct rte_mbuf *mbuf, uint8_t flags);

/** Tell the process how many of its packets others did not take. */
void isolated_tell_dropped(const struct slot *slot);

/** Tell the process which others have not read packets that it sent (unread.h). */
void isolated_tell_unread(const struct slot *slot, uint64_t unread);

/** Tell how many packets the process was given, and how many it has taken: only differences count.
 * Return false if there is no connection. */
bool isolated_tell_taken(const struct slot *slot, uint32_t *given, uint32_t *taken);

/** Wake the process if it sleeps. After a full fence behind its packets. */
void isolated_wake(struct slot *slot);

/** Do forward_take for an isolated process. */
uint32_t isolated_take(struct server *server, uint16_t number, uint32_t most,
		       struct tenants_take *take);

/** Return the process's memif socket, or -1. */
int isolated_socket(const struct slot *slot);

/** Return true if the process takes packets. */
bool isolated_is_connected(const struct slot *slot);

bool isolated_is_broken(const struct slot *slot);

/** Return true if the process has sent packets that have not been taken. */
bool isolated_waits(const struct slot *slot);

/** Switch notifications about packets that the process sends on or off. */
void isolated_listen(const struct slot *slot, bool on);

#endif
