/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connections of processes that share a device, as seen from their MADs. The processes have the
 * connections. The owner records what it needs to end them when a process dies, as Linux does for a
 * dead process:
 *
 *   asked    the process has sent a REQ         the peer gets a REJ, timeout, with our GUID
 *   taken    the process has got a REQ          the peer gets a REJ of the REQ, consumer defined
 *   up       it has sent or got the REP         the peer gets DREQs until it answers
 *   closing  it has sent a DREQ                 the same, unless the DREP comes by itself
 *
 * An entry is made when a process sends a message, or when it gets a REQ. Of the latter only the
 * newest few are kept.
 */
#ifndef OWNER_CONNECTIONS_H
#define OWNER_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_byteorder.h>

#include "share/blocks.h"
#include "wire/cm.h"

#define CONNECTIONS_SLOTS     256
#define CONNECTIONS_BUCKETS   4096u
#define CONNECTIONS_TAKEN_MAX 1024u		/* of a process: REQs that it has not answered */
#define CONNECTIONS_OWN_MAX   BLOCK_QPNS	/* of a process: all other entries */
#define CONNECTIONS_LEFT_MAX  (4u * BLOCK_QPNS) /* entries of processes that have ended */

#define CONNECTIONS_TRIES    5u			 /* DREQs to a peer that does not answer */
#define CONNECTIONS_RETRY_NS UINT64_C(500000000) /* before the second DREQ; doubles each time */

/* The addresses of a process and its peer, as the process sees them. */
struct connections_path {
	uint8_t mac[6]; /* next hop to the peer */
	uint8_t ours[16];
	uint8_t theirs[16];
	int32_t vlan_tci; /* -1: untagged */
};

struct connection;
LIST_HEAD(connections_bucket, connection);
TAILQ_HEAD(connections_queue, connection);

struct connections_slot {
	struct connections_queue taken; /* REQs that it has got; oldest first, as in `own` */
	struct connections_queue own;
	uint32_t taken_count;
	uint32_t own_count;
};

/* The connections of a device's processes. Only one thread at a time may use this struct. */
struct connections {
	uint32_t seed;
	struct connections_bucket by_id[CONNECTIONS_BUCKETS];
	struct connections_bucket
		by_qpn[CONNECTIONS_BUCKETS]; /* by the peer's queue pair; only those that are up */
	struct connections_slot slots[CONNECTIONS_SLOTS];
	struct connections_queue
		left[CONNECTIONS_TRIES + 1]; /* by number of messages sent; next due first */
	uint32_t left_count;
	rte_be64_t guid_be; /* information of the last orphan disconnect */
};

/** Make it empty. 0, or -EIO if there are no random numbers. */
int connections_init(struct connections *connections);

void connections_fini(struct connections *connections);

/** Record a message that a process has sent. */
void connections_sent(struct connections *connections, uint16_t slot, const struct cm_mad *mad,
		      const struct connections_path *path);

/** Record a message that a process gets. */
void connections_given(struct connections *connections, uint16_t slot, const struct cm_mad *mad,
		       const struct connections_path *path);

/** Record a message for a process that has ended: perhaps its peer need not be told any more. */
void connections_heard(struct connections *connections, const struct cm_mad *mad,
		       const struct connections_path *path);

/** Note that a process has ended: its peers will be told. */
void connections_end(struct connections *connections, uint16_t slot, uint64_t now_ns);

/**
 * Find the process that still has a connection with the queue pair that a REQ comes from (12.9.8.3,
 * stale connections). Each connection is found once.
 *
 * @return
 *   A slot, or SLOT_NONE.
 */
uint16_t connections_stale(struct connections *connections, const struct cm_mad *req,
			   const struct connections_path *path);

/** Return the time of the next message of connections_disconnect_orphan; UINT64_MAX: never. */
uint64_t connections_due_ns(const struct connections *connections);

/**
 * Take the next message to the peer of a process that has ended.
 *
 * @param mad
 *   A message without private data. Its information is valid until the next call.
 * @return
 *   False if none is due.
 */
bool connections_disconnect_orphan(struct connections *connections, uint64_t now_ns,
				   struct cm_mad *mad, struct connections_path *path);

#endif
