/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginning of a process's time in a slot. */
#ifndef OWNER_SLOT_BEGIN_H
#define OWNER_SLOT_BEGIN_H

#include <stdint.h>

struct server;
struct share_engine;

/* Flags of slot_begin. */
#define SLOT_ISOLATED	   0x1 /* it is not trusted with shared memory */
#define SLOT_HOLDS_NOTHING 0x2 /* it says that it maps no memory of its earlier slots */

/**
 * Give a process a slot, and send it the welcome.
 *
 * @param report_fd
 *   The process's report, or -1. The caller keeps the descriptor.
 * @param flags
 *   SLOT_ISOLATED, SLOT_HOLDS_NOTHING.
 * @param engines
 *   Of the process's device. The welcome tells if each of them may have a slot.
 * @return
 *   0; -errno: the process has been told, and the caller keeps the socket.
 */
int slot_begin(struct server *server, int socket, int report_fd, unsigned int flags,
	       uint32_t engines);

/**
 * Give a process a slot for a further engine of its device, and send it the welcome.
 *
 * @return
 *   0; -errno: the process has been told, and the caller keeps the socket.
 */
int slot_begin_further(struct server *server, int socket, const struct share_engine *engine);

#endif
