/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QP 1 of a device that processes share: which process gets a management datagram (MAD), and which
 * MADs a process may send. Each process has a connection manager (CM) of its own. The arbiter knows
 * the ports that they listen on and the communication ids that they use.
 *
 *   REQ, SIDR_REQ     to the process that listens. A repeated request goes to the process that got
 *                     the first one. If a process still has a connection with the sender's queue
 *                     pair, the REQ goes to that process, which rejects it as stale.
 *   REJ of a request  if the MAD names no id of ours: to the process that got the request
 *   all others        to the process that has the communication id in the MAD
 *
 * If a MAD is for no process, the arbiter answers it itself, as Linux does; no process answers for
 * another. When a process ends, the arbiter tells its peers (owner/connections.h). The arbiter does
 * not send, wait or read a clock.
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

/* The arbiter of a device. Only one thread at a time may use this struct. */
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
	uint8_t mac[6];	  /* of the other side: the sender to us, or our next hop */
	int32_t vlan_tci; /* -1: untagged */
	bool local;	  /* the sender is on this host */
};

enum arbiter_verdict {
	ARBITER_GIVE,	/* give it to a slot */
	ARBITER_ANSWER, /* it is for no process: send an answer */
	ARBITER_DROP,	/* no process handles such a MAD */
};

/** Create an arbiter without processes. 0, -ENOMEM, or -EIO if there are no random numbers. */
int arbiter_create(struct arbiter **arbiter);

void arbiter_destroy(struct arbiter *arbiter);

/**
 * Add a process. Its communication ids have `id_value` in the bits of IDS_MASK. Returns what
 * ids_alloc returns.
 */
int arbiter_begin(struct arbiter *arbiter, uint16_t slot, user_t user, uint64_t now_ns,
		  uint32_t *id_value);

/** Add a process that an earlier owner had, with its communication ids. 0, or -EBUSY. */
int arbiter_begin_again(struct arbiter *arbiter, uint16_t slot, user_t user, uint32_t id_value);

/** Remove a process that has ended: its ports are free at once, its ids are in quarantine, and its
 * peers will be told. Does nothing if the process was not added. */
void arbiter_end(struct arbiter *arbiter, uint16_t slot, uint64_t now_ns);

/** Do cm_ports_ops.claim for a process. The address is one of the device's or a loopback one. */
int arbiter_claim(struct arbiter *arbiter, uint16_t slot, struct cm_port_claim *claim,
		  uint32_t *id);

/** Do cm_ports_ops.listen and release for a process. */
int arbiter_listen(struct arbiter *arbiter, uint16_t slot, uint32_t id);
int arbiter_change(struct arbiter *arbiter, uint16_t slot, uint32_t id, uint8_t ip_version,
		   bool reuse);
int arbiter_release(struct arbiter *arbiter, uint16_t slot, uint32_t id);

/**
 * Find the receiver of a MAD of any content and length.
 *
 * @param slot
 *   ARBITER_GIVE: set to the receiver.
 * @param answer
 *   ARBITER_ANSWER: MAD_LEN bytes for the sender.
 */
enum arbiter_verdict arbiter_route(struct arbiter *arbiter, const struct arbiter_mad *mad,
				   uint64_t now_ns, uint16_t *slot, uint8_t *answer);

/** Record a MAD, of any content and length, that a process sends. */
void arbiter_sent(struct arbiter *arbiter, uint16_t slot, const struct arbiter_mad *mad);

/** Return the time of the next MAD of arbiter_disconnect_orphan; UINT64_MAX: never. */
uint64_t arbiter_due_ns(const struct arbiter *arbiter);

/**
 * Take the next MAD to the peer of a process that has ended.
 *
 * @param bytes
 *   MAD_LEN bytes.
 * @return
 *   False if none is due.
 */
bool arbiter_disconnect_orphan(struct arbiter *arbiter, uint64_t now_ns,
			       struct connections_path *path, uint8_t *bytes);

/* The numbers and addresses that an untrusted process may name as its own. */
struct arbiter_sender {
	uint16_t slot;
	uint32_t qpn_first;
	uint32_t qpn_count;
};

/**
 * Return true if an untrusted process may send a MAD of any content and length. It may send CM
 * messages with its own ids and queue pairs, and may answer only requests that went to it.
 */
bool arbiter_may_send(const struct arbiter *arbiter, const struct arbiter_sender *sender,
		      const struct arbiter_mad *mad);

/** Return true if a MAD asks for a connection: it is a REQ or a SIDR_REQ. */
bool arbiter_asks(const struct arbiter_mad *mad);

#endif
