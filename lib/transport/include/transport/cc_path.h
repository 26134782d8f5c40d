/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is known of the round trips to each host that a device talks to. Queue pairs to the same
 * host share it, because one that begins in a full network has not seen a short round trip.
 *
 * A host is late if its round trips are often long although the queue pair has no other packet in
 * flight: not because of queues, but because the host is slow to answer, as an emulated machine is.
 * Then it is also known how much longer they are than the shortest one.
 */
#ifndef TRANSPORT_CC_PATH_H
#define TRANSPORT_CC_PATH_H

#include <stdbool.h>
#include <stdint.h>

#define CC_PATHS 1024 /* hosts; a power of two */
/* A measured round trip is forgotten after one to two of these times, because a route may become
 * longer. */
#define CC_PATH_AGE_NS UINT64_C(30000000000)
/* A round trip that is at most this much longer than the shortest one is as good. */
#define CC_PATH_NEAR_NS 2000
/* A host is late after so many more long round trips than short ones of one queue pair, and no more
 * after so many more short ones. Queues do not stay that long: each of these round trips makes all
 * senders slower. */
#define CC_PATH_DOUBTS 8

struct cc_path {
	uint8_t gid[16];
	uint32_t users;		 /* queue pairs; 0: the entry may be given to another host */
	uint64_t min_rtt_ns;	 /* since since_ns; 0: nothing was measured */
	uint64_t old_min_rtt_ns; /* min_rtt_ns of the period before since_ns; 0: nothing was
				    measured */
	uint64_t since_ns;
	/* The slowdowns of all queue pairs to this host (transport/swift.h). */
	uint64_t due_ns;   /* when the next one may begin; 0: no queue pair has left slow start */
	uint64_t slow_ns;  /* when the newest one began; 0: there was none */
	uint64_t ended_ns; /* when the newest one, or the newest time without one, ended */
	uint64_t near_ns;  /* when a round trip was last about as long as the shortest one */
	bool is_late;
	uint8_t shorts;	      /* short round trips of single packets, less the long ones */
	int64_t late_ns;      /* by which single packets' round trips exceed the shortest one */
	int64_t deviation_ns; /* mean deviation of that; 0 with late_ns: there was none */
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

/**
 * Note a round trip of a packet that was alone in flight, after cc_path_note. Engine's thread.
 *
 * @param doubts
 *   The queue pair's long round trips of such packets, less its short ones; updated.
 * @param is_long
 *   Queues of other senders do not explain it.
 */
void cc_path_note_single(struct cc_path *path, uint8_t *doubts, uint64_t min_rtt_ns,
			 uint64_t rtt_ns, bool is_long);

/** Return how much longer than the shortest round trip one may be because the host is late; 0 if it
 * is not. Engine's thread. */
uint64_t cc_path_late_ns(const struct cc_path *path);

#endif
