/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which slot has which port of the connection manager: the port spaces of a device, which processes
 * share (cm/ports.h). A port is bound first, and listened on later; several may be bound to the
 * same with REUSEADDR, as long as none of them listens.
 */
#ifndef OWNER_SPACES_H
#define OWNER_SPACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "cm/ports.h"
#include "share/user.h"

#define SPACES_SLOTS	     32
#define SPACES_BUCKETS	     4096u
#define SPACES_NONE	     UINT16_MAX
#define SPACES_SLOT_MAX	     32768u /* ports of a trusted process */
#define SPACES_USER_MAX	     8192u  /* of an isolated process, and of a user's isolated ones */
#define SPACES_ISOLATED_MAX  24576u /* of all isolated ones: less than there are ephemeral ports */
#define SPACES_PRIVILEGED    1024u /* isolated processes of users other than root have none below */
#define SPACES_EPHEMERAL     32768u /* Linux's net.ipv4.ip_local_port_range as it is by default */
#define SPACES_EPHEMERAL_END 61000u

struct spaces_port;
LIST_HEAD(spaces_list, spaces_port);

/* One thread at a time. */
struct spaces {
	struct spaces_list by_port[SPACES_BUCKETS];
	/* Those that listen: few of one port, however many are bound to it with REUSEADDR. */
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
 *   USER_TRUSTED: no limit of a user, and every port. REUSEADDR is a matter of one user.
 * @return
 *   0: the port and `id` are set; -EADDRINUSE; -EACCES: a privileged port; -ENOSPC; -EINVAL;
 * -ENOMEM; -EIO where there are no random numbers.
 */
int spaces_claim(struct spaces *spaces, uint16_t slot, user_t user, struct cm_port_claim *claim,
		 uint32_t *id);

/** Let requests for a port come to its slot, as cm_ports_ops.listen. -EINVAL: no such port of it.
 */
int spaces_listen(struct spaces *spaces, uint16_t slot, uint32_t id);

/** Give a port back. -EINVAL: the slot has no such port. */
int spaces_release(struct spaces *spaces, uint16_t slot, uint32_t id);

/** Give back all that a slot has. */
void spaces_end(struct spaces *spaces, uint16_t slot);

/**
 * Find who listens for requests to an address: who is bound to the very address comes first, then
 * who is bound to any of its IP version, then who is bound to any.
 *
 * @return
 *   A slot, or SPACES_NONE.
 */
uint16_t spaces_find(const struct spaces *spaces, uint64_t service_id, const uint8_t gid[16],
		     int32_t vlan_id);

#endif
