/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of a memif wire that does not come to its server by the name of a socket. */
#ifndef PORT_MEMIF_CALLER_H
#define PORT_MEMIF_CALLER_H

#include <stdbool.h>
#include <stdint.h>

struct port;

/* Functions by which such a client asks the part of the program that knows the server. Engine's
 * lock. */
struct memif_caller {
	/* Connect anew: a socket whose other end the server has, which is the wire's from here on;
	 * or -errno: it is tried again later. Does not wait. */
	int (*call)(void *arg);
	/* Return true while the port behind the server has a link. */
	bool (*link_up)(void *arg);
	/* Return true when the server has gone for good. */
	bool (*lost)(void *arg);
};

/**
 * Make a port such a client, whose server tells of no packets: nothing wakes who sleeps. Before EAL
 * starts. Not MT-safe.
 *
 * @param arg
 *   Of `caller`.
 * @return
 *   0 or -errno.
 */
int memif_prepare_caller(struct port *port, const struct memif_caller *caller, void *arg,
			 const uint8_t mac[6], uint32_t mtu_bytes);

#endif
