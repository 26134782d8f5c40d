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
	bool on;	 /* what is handed over is captured */
	char prefix[32]; /* of files that DPDK's memory is in; "": in none */
	uint16_t port;
};

/** Make ready what settings want captured; the port is open. 0 or -errno (logged). */
int capture_open(struct server *server, const struct settings *settings);

/** A copy of a packet that is to be handed over; NULL where nothing captures it. */
struct rte_mbuf *capture_copy(const struct server *server, const struct rte_mbuf *mbuf);

/** It was handed over: show the copy, which is no more the caller's. Nothing with NULL. */
void capture_send(const struct server *server, struct rte_mbuf *copy);

#endif
