/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The multicast groups of a link. On a kernel interface the kernel joins them for us. On a port of
 * our own we report to routers and switches: twice when we join, and when they query.
 */
#ifndef NET_GROUPS_H
#define NET_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "net/membership.h"
#include "net/tag.h"
#include "netdev/netdev.h"

#define DUE_NEVER UINT64_MAX

/* An entry, embedded in its object. Not in the heap while its time is DUE_NEVER. */
struct due {
	uint64_t at_ns;
	size_t place; /* index in the heap */
};

/* All zero: empty. */
struct due_heap {
	struct due **entries; /* the earliest first; entry i is no later than 2i + 1 and 2i + 2 */
	size_t count;
	size_t room;
};

/** Make room for that many entries. Not MT-safe, like all functions here. 0 or -ENOMEM. */
int due_reserve(struct due_heap *heap, size_t count);
void due_fini(struct due_heap *heap);

/** Set the time at which an entry is due. */
void due_set(struct due_heap *heap, struct due *due, uint64_t at_ns);

/** Return the earliest entry, or NULL. */
static inline struct due *due_first(const struct due_heap *heap)
{
	return heap->count > 0 ? heap->entries[0] : NULL;
}

struct member_socket {
	LIST_ENTRY(member_socket) link;
	int fd;
	bool ipv4;
	bool full;	/* the kernel lets it join no more groups */
	uint32_t joins; /* number of groups that it has joined */
};

/* All zero: no sockets. */
struct members {
	LIST_HEAD(, member_socket) sockets;
};

#define GROUPS_FRAME_MAX (MEMBERSHIP_FRAME_MAX + TAG_LEN)

/* The membership of a group in one VLAN. */
struct membership {
	LIST_ENTRY(membership) link;
	struct group *group;
	int32_t vlan;		  /* the VLAN */
	unsigned int ifindex;	  /* the kernel's interface in that VLAN, or 0 */
	struct member_socket *by; /* the socket by which the kernel has joined it, or NULL */
	unsigned int unasked;	  /* unsolicited reports still to be sent */
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
	size_t memberships; /* number in all groups */
	struct members members;
	struct due_heap due;
	uint64_t old_until_ns[2]; /* IPv4, IPv6: end of the time in which we assume an older router
				   */
	uint32_t random;
};

void groups_init(struct groups *groups);

/**
 * Join a group in a VLAN. 0, -ENOMEM, or -errno of the kernel.
 *
 * @param ifindex
 *   The kernel interface on which the kernel joins for us, or 0.
 */
int groups_join(struct groups *groups, int32_t vlan, unsigned int ifindex,
		const uint8_t gid[GID_LEN], uint64_t now_ns);

/** Join all groups in VLANs that are new, after our addresses have changed. */
void groups_follow(struct groups *groups, const struct addresses *own, uint64_t now_ns);

/**
 * Leave a group in one of its VLANs.
 *
 * @param frame
 *   Room for the leave message: GROUPS_FRAME_MAX bytes.
 * @param len
 *   Set to its length, or 0 if none must be sent.
 * @return
 *   False if we are in the group in no VLAN.
 */
bool groups_leave(struct groups *groups, const uint8_t gid[GID_LEN], uint64_t now_ns,
		  const uint8_t mac[6], const struct addresses *own, uint8_t *frame, size_t *len);

/** Handle a router's query in a VLAN. */
void groups_asked(struct groups *groups, int32_t vlan, const struct membership_query *query,
		  uint64_t now_ns);

/** Build the next due report in a room of GROUPS_FRAME_MAX bytes. Returns its length; 0: none is
 * due. */
size_t groups_report(struct groups *groups, uint64_t now_ns, const uint8_t mac[6],
		     const struct addresses *own, uint8_t *frame);

#endif
