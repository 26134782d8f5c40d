/* SPDX-License-Identifier: BSD-3-Clause */
/* A memif client that does not reach its server through a named socket. */
#ifndef PORT_MEMIF_CALLER_H
#define PORT_MEMIF_CALLER_H

#include <stdbool.h>
#include <stdint.h>

struct port;

/* A place in the order of the packets of one direction. */
struct memif_mark {
	uint32_t connection; /* the number of the connection that has the packets */
	uint16_t index;
};

/* Functions that such a client calls to reach its server. Engine's lock. */
struct memif_caller {
	/* Return a socket whose other end the server has, and set `doorbell_fd` to the end of their
	 * doorbells (memif/doorbell.h); the client owns both from then on. -errno: the client tries
	 * again later. Does not wait. */
	int (*call)(void *arg, int *doorbell_fd);
	/* Return true while the port behind the server has a link. */
	bool (*link_up)(void *arg);
	/* Return true when the server has gone for good. */
	bool (*lost)(void *arg);
};

/**
 * Make a port such a client. Its server notifies it of packets by a socket (memif/doorbell.h).
 * Before EAL starts. Not MT-safe.
 *
 * @param arg
 *   Passed to the functions of `caller`.
 * @return
 *   0 or -errno.
 */
int memif_prepare_caller(struct port *port, const struct memif_caller *caller, void *arg,
			 const uint8_t mac[6], uint32_t mtu_bytes);

/** Return what was passed to memif_prepare_caller. `memif` is the port's ops_arg. MT-safe. */
void *memif_caller_arg(const void *memif);

/** Mark the packets that such a port has sent until now. `memif` is its ops_arg. Engine's thread.
 */
struct memif_mark memif_caller_sent(const void *memif);

/** Return true if the server has taken all marked packets, or can take them no more. Ask often:
 * before 2^15 further packets. Engine's thread. */
bool memif_caller_has_taken(const void *memif, const struct memif_mark *mark);

/** Mark the packets that have arrived until now. Engine's thread. */
struct memif_mark memif_caller_arrived(const void *memif);

/** Return true if all marked packets have been received, or are lost. Ask often: before 2^15
 * further packets. Engine's thread. */
bool memif_caller_has_received(const void *memif, const struct memif_mark *mark);

#endif
