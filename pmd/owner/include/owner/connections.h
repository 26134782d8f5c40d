/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connections of the processes of a shared device, as their MADs show them. The processes have
 * the connections; the owner knows as much as it needs to end them when a process dies, as Linux
 * ends those of a dead process:
 *
 *   asked    the process has sent a REQ         the peer gets a REJ of the REQ, timeout
 *   taken    the process has got a REQ          the peer gets a REJ of the REQ, consumer defined
 *   up       it has sent or got the REP         the peer gets DREQs until it answers
 *   closing  it has sent a DREQ                 the same, unless the DREP comes by itself
 *
 * An entry is made only by what a process sends, but for a REQ that it gets: of those the newest
 * few are kept.
 */
#ifndef OWNER_CONNECTIONS_H
#define OWNER_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "share/blocks.h"
#include "share/leases.h"
#include "wire/cm.h"

#define CONNECTIONS_SLOTS     32
#define CONNECTIONS_BUCKETS   4096u
#define CONNECTIONS_TAKEN_MAX 1024u		/* of a process: REQs that it has not answered */
#define CONNECTIONS_OWN_MAX   BLOCK_QPNS	/* of a process: all others */
#define CONNECTIONS_LEFT_MAX  (4u * BLOCK_QPNS) /* of processes that have ended */

#define CONNECTIONS_TRIES    5u			 /* DREQs to a peer that does not answer */
#define CONNECTIONS_RETRY_NS UINT64_C(500000000) /* to the second one; then twice as long each */

/* The way between a process and its peer, as the process sees it. */
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
	struct connections_queue taken; /* oldest first, as is the next one */
	struct connections_queue own;
	uint32_t taken_count;
	uint32_t own_count;
};

/* One thread at a time. */
struct connections {
	uint32_t seed;
	struct connections_bucket by_id[CONNECTIONS_BUCKETS];
	struct connections_bucket by_qpn[CONNECTIONS_BUCKETS]; /* of peers; of those that are up */
	struct connections_slot slots[CONNECTIONS_SLOTS];
	struct connections_queue left[CONNECTIONS_TRIES + 1]; /* by messages sent; next due first */
	uint32_t left_count;
};

/** Empty. 0, or -EIO where there are no random numbers. */
int connections_init(struct connections *connections);

void connections_fini(struct connections *connections);

/** A process has sent a message of a connection. */
void connections_sent(struct connections *connections, uint16_t slot, const struct cm_mad *mad,
		      const struct connections_path *path);

/** A process gets a message of a connection. */
void connections_given(struct connections *connections, uint16_t slot, const struct cm_mad *mad,
		       const struct connections_path *path);

/** A message has come for a process that has ended: its peer may have to be told no more. */
void connections_heard(struct connections *connections, const struct cm_mad *mad,
		       const struct connections_path *path);

/** A process has ended: all its peers are to be told. */
void connections_end(struct connections *connections, uint16_t slot, uint64_t now_ns);

/**
 * Find the process that still has a connection with the queue pair that a REQ comes from (12.9.8.3,
 * stale connections). It is named once a connection.
 *
 * @return
 *   A slot, or LEASE_NONE.
 */
uint16_t connections_stale(struct connections *connections, const struct cm_mad *req,
			   const struct connections_path *path);

/** Return when connections_farewell has a message next; UINT64_MAX: never. */
uint64_t connections_due_ns(const struct connections *connections);

/**
 * Take the next message to the peer of a process that has ended.
 *
 * @param mad
 *   A message without private data.
 * @return
 *   False where none is due.
 */
bool connections_farewell(struct connections *connections, uint64_t now_ns, struct cm_mad *mad,
			  struct connections_path *path);

#endif
