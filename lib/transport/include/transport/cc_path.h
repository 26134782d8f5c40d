/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shortest round trip to each host that a device talks to. Queue pairs to the same host share
 * it, because one that begins in a full network has not seen a short one.
 */
#ifndef TRANSPORT_CC_PATH_H
#define TRANSPORT_CC_PATH_H

#include <stdint.h>

#define CC_PATHS 1024 /* hosts; a power of two */
/* A measured round trip is forgotten after one to two of these times, because a route may become
 * longer. */
#define CC_PATH_AGE_NS UINT64_C(30000000000)
/* A round trip that is at most this much longer than the shortest one is as good. */
#define CC_PATH_NEAR_NS 2000

struct cc_path {
	uint8_t gid[16];
	uint32_t users;	    /* queue pairs; 0: the entry may be given to another host */
	uint64_t least_ns;  /* since since_ns; 0: nothing was measured */
	uint64_t former_ns; /* least_ns of the period before since_ns; 0: nothing was measured */
	uint64_t since_ns;
	/* The slowdowns of all queue pairs to this host (transport/swift.h). */
	uint64_t due_ns;   /* when the next one may begin; 0: no queue pair has left slow start */
	uint64_t slow_ns;  /* when the newest one began; 0: there was none */
	uint64_t ended_ns; /* when the newest one, or the newest time without one, ended */
	uint64_t near_ns;  /* when a round trip was last about as long as the shortest one */
};

struct cc_paths {
	struct cc_path path[CC_PATHS];
};

/** Return the entry of a host for one more queue pair, or NULL if there is no room. Engine's
 * lock. */
struct cc_path *cc_path_get(struct cc_paths *paths, const uint8_t gid[16]);
/** Release an entry of cc_path_get. NULL is allowed. */
void cc_path_put(struct cc_path *path);

/** Note a round trip, and return the shortest one. Engine's thread. */
uint64_t cc_path_note(struct cc_path *path, uint64_t rtt_ns, uint64_t now_ns);

#endif
