/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XRC domains that several processes of a host share, because they share a port. The owner of the
 * port knows which processes have opened a file's domain, and which target queue pairs it has. When
 * a packet to a target of ours names a shared receive queue of another process, that process makes
 * a queue pair that stands in for the target there, and requests are passed to it
 * (transport/pass.h).
 */
#ifndef DEVICE_XRC_SHARE_H
#define DEVICE_XRC_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct device;
struct pass_link;
struct xrcd;
struct xrcd_member;

enum xrc_note_type {
	/* process, and it waits for the result */
	XRC_OPEN,   /* ibv_open_xrcd: `flags`. 0, -EAGAIN, -EINVAL; -EOPNOTSUPP: not shared */
	XRC_TARGET, /* it has made the target `target`. 0 or -errno */
	XRC_FIND,   /* is `target` a target of the domain? 0 or -EINVAL */
	/* process, without a reply */
	XRC_CLOSE,	/* ibv_close_xrcd */
	XRC_TARGET_END, /* `target` has ended, and with it its links */
	/* target's process: make a stand-in. owner: the same, to the process with the queue
	 * `srqn` */
	XRC_LINK,
	/* process with the queue: `result`, and the number of the stand-in. owner: the same, to the
	 * target's process */
	XRC_LINKED,
	XRC_UNLINK, /* target's process: the link has ended. owner: end the stand-in */
	XRC_LOST,   /* process with the queue: the stand-in has ended. owner: the link has ended */
};

#define XRC_FLAG_CREATE	   (1u << 0)
#define XRC_FLAG_EXCLUSIVE (1u << 1)

/* What processes and the owner of the port tell each other; nothing in it is trusted. */
struct xrc_note {
	uint32_t type; /* enum xrc_note_type */
	int32_t result;
	uint64_t dev; /* the domain: its file */
	uint64_t ino;
	uint32_t flags;	   /* XRC_OPEN */
	uint32_t target;   /* XRC_TARGET*, XRC_FIND, XRC_LINK: number of the target */
	uint32_t alias;	   /* of a link: the target's number on it, which identifies it */
	uint32_t stand_in; /* XRC_LINKED: number of the stand-in */
	/* XRC_LINK: */
	uint32_t srqn;
	uint32_t psn;
	uint8_t mtu; /* enum ibv_mtu */
	uint8_t min_rnr_timer;
	uint8_t gid[16]; /* the port's address that both use */
	int32_t vlan_id; /* of the address; -1: untagged */
};

/* Operations of a process that shares its port. */
struct xrc_share_ops {
	/* Ask the owner, and wait for note->result. Control. 0 or -errno: no answer. */
	int (*ask)(void *user, struct xrc_note *note);
	/* Tell the owner; in order, soon. MT-safe; does not wait. */
	void (*tell)(void *user, const struct xrc_note *note);
	/* Return true if `next` would find a note. Engine's thread. */
	bool (*has_next)(void *user);
	/* Return false if there is no note of the owner, else take the oldest one. Engine's
	 * thread. */
	bool (*next)(void *user, struct xrc_note *note);
};

/** Return true if xrc_share_follow has something to do. First engine's thread, from time to time.
 */
bool xrc_share_is_due(struct device *device);

/** Process what the owner has told, and end stand-ins that have failed. First engine's thread, and
 * all other engines are stopped. */
void xrc_share_follow(struct device *device);

/** Find the way to the process with a shared receive queue (struct pass.find). `user` begins with a
 * struct xrcd_member. */
int xrc_share_find(void *user, uint32_t srqn, struct pass_link **found);

/** Forget the links of a target that ends. Engine's lock. */
void xrc_share_end_links(struct xrcd_member *member);

/** End the stand-ins of a domain that is closed, and tell their targets. Device's lock. */
void xrc_share_end_stand_ins(struct xrcd *xrcd);

#endif
