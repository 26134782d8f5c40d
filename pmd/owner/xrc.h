/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains that trusted processes share (device/xrc_share.h): who has opened which, their target
 * queue pairs, and the links from targets to processes with shared receive queues. */
#ifndef OWNER_XRC_H
#define OWNER_XRC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct server;
struct share_xrc;

struct xrc {
	LIST_HEAD(, xrc_member) members;
	LIST_HEAD(, xrc_target) targets;
	LIST_HEAD(, xrc_join) joins;
	STAILQ_HEAD(, xrc_waiting) waiting; /* notes to processes whose sockets were full */
};

void xrc_init(struct xrc *xrc);

/**
 * Handle what a process has sent; nothing in it is trusted.
 *
 * @param answered
 *   Set to whether the process waits for a reply.
 * @return
 *   0 or -errno: the result, if there is a reply; else whether the process broke a rule.
 */
int xrc_hear(struct server *server, uint16_t number, const struct share_xrc *note, bool *answered);

/** Send the notes that wait. */
void xrc_send_waiting(struct server *server);

/** A process has ended: tell those with which it has links, and forget all of it. */
void xrc_end(struct server *server, uint16_t number);

/** Return how many records there are of all kinds. */
uint32_t xrc_count(const struct xrc *xrc);

#endif
