/* SPDX-License-Identifier: BSD-3-Clause */
/* A port that the owner shares with the kernel. The functions do nothing if the port is not shared.
 */
#ifndef OWNER_KERNEL_H
#define OWNER_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "port/port.h"
#include "uplink.h"

struct server;
struct settings;

/* Frames that are not RoCE go to a kernel interface; frames from it go out of the port. */
struct kernel {
	bool is_open;
	struct port port;
	uint32_t count; /* frames for it */
	struct rte_mbuf *frames[SERVER_BURST];
};

/** Make the kernel interface, and use its addresses. The port is open. 0 or -errno (logged). */
int kernel_open(struct server *server, const struct settings *settings);

/** Give the kernel a frame from the port, and take over the frame. Call only if kernel.is_open. */
void kernel_give(struct server *server, struct rte_mbuf *mbuf);

/** Move frames in both directions, before processes fill the port. Returns how many came from the
 * kernel. */
unsigned int kernel_poll(struct server *server);

void kernel_close(struct server *server);

#endif
