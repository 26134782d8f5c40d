/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CM ports of each slot: the port spaces of a device that processes share (cm/ports.h). A port
 * is bound first and listened on later. With REUSEADDR several may bind the same port, as long as
 * none of them listens.
 */
#ifndef OWNER_SPACES_H
#define OWNER_SPACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "cm/ports.h"
#include "share/user.h"

#define SPACES_SLOTS	     256
#define SPACES_BUCKETS	     4096u
#define SPACES_NONE	     UINT16_MAX
#define SPACES_SLOT_MAX	     32768u /* ports of a trusted process */
#define SPACES_USER_MAX	     8192u  /* of all isolated processes of a user */
#define SPACES_ISOLATED_MAX  24576u /* of all isolated processes: fewer than ephemeral ports */
#define SPACES_PRIVILEGED    1024u  /* below: not for isolated processes, except the superuser's */
#define SPACES_EPHEMERAL     32768u /* Linux's default net.ipv4.ip_local_port_range */
#define SPACES_EPHEMERAL_END 61000u

struct spaces_port;
LIST_HEAD(spaces_list, spaces_port);

/* The port spaces of a device. Only one thread at a time may use this struct. */
struct spaces {
	struct spaces_list by_port[SPACES_BUCKETS];
	/* Listening ports: there are few with one number, however many are bound with REUSEADDR. */
	struct spaces_list by_service[SPACES_BUCKETS];
	struct spaces_list by_id[SPACES_BUCKETS];
	struct spaces_list by_slot[SPACES_SLOTS];
	uint32_t counts[SPACES_SLOTS];
	user_t users[SPACES_SLOTS]; /* of slots that have ports */
	uint32_t isolated;	    /* ports of isolated processes */
	uint32_t count;
	uint32_t next_id;
};

/**
 * Bind a port, as cm_ports_ops.claim.
 *
 * @param user
 *   USER_TRUSTED: no user limit, and every port. REUSEADDR works among ports of one user.
 * @return
 *   0: the port and `id` are set; -EADDRINUSE; -EACCES: a privileged port; -ENOSPC; -EINVAL;
 * -ENOMEM; -EIO: there are no random numbers.
 */
int spaces_claim(struct spaces *spaces, uint16_t slot, user_t user, struct cm_port_claim *claim,
		 uint32_t *id);

/** Start to send requests for a port to its slot, as cm_ports_ops.listen. 0;
 * -EINVAL: the slot has no such port; -EADDRINUSE. */
int spaces_listen(struct spaces *spaces, uint16_t slot, uint32_t id);

/** Change a port that is bound, as cm_ports_ops.change. 0; -EINVAL: the slot has no such port, the
 * port is listened on, or cannot have the version; -EADDRINUSE. */
int spaces_change(struct spaces *spaces, uint16_t slot, uint32_t id, uint8_t ip_version,
		  bool reuse);

/** Free a port. 0, or -EINVAL: the slot has no such port. */
int spaces_release(struct spaces *spaces, uint16_t slot, uint32_t id);

/** Free all ports of a slot. */
void spaces_end(struct spaces *spaces, uint16_t slot);

/**
 * Find the slot that listens for requests to an address. A port bound to the address comes first,
 * then one bound to any address of its IP version, then one bound to any address.
 *
 * @return
 *   A slot, or SPACES_NONE.
 */
uint16_t spaces_find(const struct spaces *spaces, uint64_t service_id, const uint8_t gid[16],
		     int32_t vlan_id);

#endif
