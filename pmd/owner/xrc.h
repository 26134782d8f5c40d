/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains that trusted processes share (device/xrc_share.h): who has opened which, their target
 * queue pairs, and the links from targets to processes with shared receive queues. */
#ifndef OWNER_XRC_H
#define OWNER_XRC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "owner/serve.h"

struct server;
struct xrc_note;

/* Notes to a process whose socket was full. */
struct xrc_queue {
	STAILQ_HEAD(, xrc_waiting) notes;
	uint32_t count;
};

struct xrc_process {
	LIST_HEAD(, xrc_member) members;
	LIST_HEAD(, xrc_target) targets; /* that are its own */
	LIST_HEAD(, xrc_join) joins;	 /* to its shared receive queues */
	struct xrc_queue queue;
	uint32_t opens; /* of all its domains */
};

#define XRC_BUCKETS 1024

/* There may be many targets and links, so they are found by a hash of their numbers. Only trusted
 * processes choose these. */
struct xrc {
	struct xrc_process processes[SERVE_SLOTS_MAX]; /* by slot */
	LIST_HEAD(, xrc_member) members[XRC_BUCKETS];  /* by file */
	LIST_HEAD(, xrc_target) targets[XRC_BUCKETS];  /* by number */
	LIST_HEAD(, xrc_join) joins[XRC_BUCKETS];      /* by alias */
	uint32_t records;			       /* of all kinds */
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
int xrc_hear(struct server *server, uint16_t number, const struct xrc_note *note, bool *answered);

/** Send the notes that wait, of each process as many as its socket takes. */
void xrc_send_waiting(struct server *server);

/** A process has ended: tell those with which it has links, and forget all of it. */
void xrc_end(struct server *server, uint16_t number);

#endif
