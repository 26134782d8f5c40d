/* SPDX-License-Identifier: BSD-3-Clause */
/* An owner whose port is the kernel's as well. Nothing is done where it is not. */
#ifndef OWNER_KERNEL_H
#define OWNER_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "port/port.h"
#include "uplink.h"

struct server;
struct settings;

/* What is no RoCE goes to an interface of the kernel's, and what comes from it out. */
struct kernel {
	bool is_open;
	struct port port;
	uint32_t count; /* frames for it */
	struct rte_mbuf *frames[SERVER_BURST];
};

/** Make the kernel's interface, and use its addresses; the port is open. 0 or -errno (logged). */
int kernel_open(struct server *server, const struct settings *settings);

/** Give the kernel a frame from the port, which is no more the caller's. Only where there is such
 * an interface. */
void kernel_give(struct server *server, struct rte_mbuf *mbuf);

/** Frames in both directions; before processes take the room in the port. Returns how many came
 * from the kernel. */
unsigned int kernel_turn(struct server *server);

void kernel_close(struct server *server);

#endif
