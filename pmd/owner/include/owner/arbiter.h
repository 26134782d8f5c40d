/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QP 1 of a device that processes share: who gets a management datagram, and who may send which.
 * Each process has a connection manager of its own; the arbiter has the ports that they listen on
 * and the communication ids that they use.
 *
 *   REQ, SIDR_REQ            to who listens; one that comes again, to who got the first
 *                            request; of a queue pair that somebody still has a connection
 *                            with, to that process, which rejects it as stale
 *   REJ of a request whose   to who got the request
 *   id nobody has told yet
 *   all others               to whose communication id it names
 *
 * The arbiter itself answers a datagram that is for nobody, as Linux does: no process ever answers
 * for another. When a process ends, its peers are told in its name (owner/connections.h). It
 * neither sends, waits nor reads a clock.
 */
#ifndef OWNER_ARBITER_H
#define OWNER_ARBITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/ports.h"
#include "owner/connections.h"
#include "owner/ids.h"
#include "owner/repeats.h"
#include "owner/spaces.h"
#include "share/user.h"
#include "wire/cm.h"

#define ARBITER_NOBODY UINT16_MAX

struct arbiter_slot {
	bool live;
	uint32_t generation;
	user_t user;
	uint32_t id_value;
};

/* One thread at a time. */
struct arbiter {
	struct arbiter_slot slots[SPACES_SLOTS];
	struct ids ids;
	struct spaces spaces;
	struct repeats repeats;
	struct connections connections;
};

/* A MAD, and the addresses of its packet. */
struct arbiter_mad {
	const uint8_t *bytes;
	size_t len;
	const uint8_t *sgid;
	const uint8_t *dgid;
	uint8_t mac[6];	  /* of the other side: who has sent it to us, or the next hop from us */
	int32_t vlan_tci; /* -1: untagged */
	bool local;	  /* its sender is on this host */
};

enum arbiter_verdict {
	ARBITER_GIVE,	/* to a slot */
	ARBITER_ANSWER, /* it is for nobody: its sender gets an answer */
	ARBITER_DROP,	/* no MAD that anybody takes */
};

/** Nobody has anything. 0, -ENOMEM, or -EIO where there are no random numbers. */
int arbiter_create(struct arbiter **arbiter);

void arbiter_destroy(struct arbiter *arbiter);

/**
 * A process begins: it gets a block of communication ids, which have `id_value` in the bits of
 * IDS_MASK. 0; what ids_alloc says.
 */
int arbiter_begin(struct arbiter *arbiter, uint16_t slot, user_t user, uint64_t now_ns,
		  uint32_t *id_value);

/** A process has ended: its ports are free at once, its ids rest, and its peers are to be told.
 * Nothing where it had not begun. */
void arbiter_end(struct arbiter *arbiter, uint16_t slot, uint64_t now_ns);

/** cm_ports_ops.claim of a process, whose address is one of the device's or loopback's. */
int arbiter_claim(struct arbiter *arbiter, uint16_t slot, struct cm_port_claim *claim,
		  uint32_t *id);

/** cm_ports_ops.listen and release of a process. */
int arbiter_listen(struct arbiter *arbiter, uint16_t slot, uint32_t id);
int arbiter_release(struct arbiter *arbiter, uint16_t slot, uint32_t id);

/**
 * Find who gets a MAD of any content and length.
 *
 * @param slot
 *   ARBITER_GIVE: set to whom.
 * @param answer
 *   ARBITER_ANSWER: MAD_LEN bytes for the sender.
 */
enum arbiter_verdict arbiter_route(struct arbiter *arbiter, const struct arbiter_mad *mad,
				   uint64_t now_ns, uint16_t *slot, uint8_t *answer);

/** A process sends a MAD of any content and length. */
void arbiter_sent(struct arbiter *arbiter, uint16_t slot, const struct arbiter_mad *mad);

/** Return when arbiter_farewell has a MAD next; UINT64_MAX: never. */
uint64_t arbiter_due_ns(const struct arbiter *arbiter);

/**
 * Take the next MAD to the peer of a process that has ended.
 *
 * @param bytes
 *   MAD_LEN bytes.
 * @return
 *   False where none is due.
 */
bool arbiter_farewell(struct arbiter *arbiter, uint64_t now_ns, struct connections_path *path,
		      uint8_t *bytes);

/* The numbers and addresses that an untrusted process may name as its own. */
struct arbiter_sender {
	uint16_t slot;
	uint32_t qpn_first;
	uint32_t qpn_count;
};

/**
 * Return true if a process may send a MAD of any content and length: a message of the connection
 * manager, with ids and queue pairs of its own, that answers no request but those that went to it.
 */
bool arbiter_may_send(const struct arbiter *arbiter, const struct arbiter_sender *sender,
		      const struct arbiter_mad *mad);

#endif
