/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures by dpdk-dumpcap. */
#ifndef OWNER_CAPTURE_H
#define OWNER_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

struct rte_mbuf;
struct server;
struct settings;

struct capture {
	bool on;	 /* packets between processes are captured */
	char prefix[32]; /* of the files of DPDK's memory; "": it has no files */
	uint16_t port;
};

/** Prepare the captures that the settings ask for. The port is open. 0 or -errno (logged). */
int capture_open(struct server *server, const struct settings *settings);

/** Copy a packet that will be handed over. NULL: nobody captures it. */
struct rte_mbuf *capture_copy(const struct server *server, const struct rte_mbuf *mbuf);

/** Capture the copy of a packet that was handed over, and take over the copy. Does nothing with
 * NULL. */
void capture_send(const struct server *server, struct rte_mbuf *copy);

#endif
