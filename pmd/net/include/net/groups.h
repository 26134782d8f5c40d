/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The multicast groups that a link is in. On a kernel's interface the kernel joins them for us; on
 * a port of our own we tell routers and switches ourselves, unasked twice and then when they ask.
 */
#ifndef NET_GROUPS_H
#define NET_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "net/due.h"
#include "net/members.h"
#include "net/membership.h"
#include "net/tag.h"
#include "netdev/addresses.h"

#define GROUPS_FRAME_MAX (MEMBERSHIP_FRAME_MAX + TAG_LEN)

/* In one of our networks. */
struct membership {
	LIST_ENTRY(membership) link;
	struct group *group;
	int32_t vlan;		  /* the network */
	unsigned int ifindex;	  /* the kernel's interface there, or 0 */
	struct member_socket *by; /* by whom the kernel is in it there, or NULL */
	unsigned int unasked;	  /* reports that are still to be sent unasked */
	struct due due;		  /* the next report */
};

struct group {
	LIST_ENTRY(group) link;
	uint8_t gid[GID_LEN];
	LIST_HEAD(, membership) memberships; /* never empty */
};

/* Engine's thread or lock. */
struct groups {
	LIST_HEAD(, group) list;
	size_t memberships; /* of all groups */
	struct members members;
	struct due_heap due;
	uint64_t old_until_ns[2]; /* IPv4, IPv6: so long, an older router is thought to be there */
	uint32_t random;
};

void groups_init(struct groups *groups);

/**
 * Join a group in a VLAN. 0, -ENOMEM, or -errno of the kernel.
 *
 * @param ifindex
 *   The kernel's interface that joins it for us, or 0.
 */
int groups_join(struct groups *groups, int32_t vlan, unsigned int ifindex,
		const uint8_t gid[GID_LEN], uint64_t now_ns);

/** Our networks have changed: be in all groups in those that are new. */
void groups_follow(struct groups *groups, const struct addresses *own, uint64_t now_ns);

/**
 * Leave a group in one of the VLANs where we are in it.
 *
 * @param frame
 *   Room for the frame that says so: GROUPS_FRAME_MAX bytes.
 * @param len
 *   Set to its length, or 0 where nobody needs to know.
 * @return
 *   false where we were in it nowhere.
 */
bool groups_leave(struct groups *groups, const uint8_t gid[GID_LEN], uint64_t now_ns,
		  const uint8_t mac[6], const struct addresses *own, uint8_t *frame, size_t *len);

/** A router of a VLAN asks. */
void groups_asked(struct groups *groups, int32_t vlan, const struct membership_query *query,
		  uint64_t now_ns);

/** The next report that is due, in room of GROUPS_FRAME_MAX bytes; its length, or 0 for none. */
size_t groups_report(struct groups *groups, uint64_t now_ns, const uint8_t mac[6],
		     const struct addresses *own, uint8_t *frame);

#endif
