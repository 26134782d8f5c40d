/* SPDX-License-Identifier: BSD-3-Clause */
/* A link: a port, the addresses it has, and the neighbours on it. Frames that are not RoCE end
 * here. */
#ifndef NET_LINK_H
#define NET_LINK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/groups.h"
#include "net/neigh.h"
#include "netdev/addresses.h"
#include "port/port.h"

struct guest;
struct settings;

#define LINK_REPLY_MAX 2048 /* room that answers of ours take; longer pings go unanswered */

struct link;
struct link_hop;

/*
 * A link whose port another process has: what is asked of addresses, groups and neighbours is asked
 * of that one. Each as the function of that name below.
 */
struct link_remote {
	bool (*refresh)(struct link *link);
	int (*join)(struct link *link, const uint8_t gid[GID_LEN]);
	int (*leave)(struct link *link, const uint8_t gid[GID_LEN]);
	int (*route)(struct link *link, const struct address *from, const uint8_t dgid[GID_LEN],
		     struct link_hop *hop);
	bool (*resolve)(struct link *link, const struct address *from, const uint8_t gid[GID_LEN],
			uint8_t mac[6]);
};

/* Keeps the kernel silent about RoCE on a VLAN's interface. */
struct link_mute {
	unsigned int ifindex;
	int fd; /* or -errno */
};

struct link {
	struct port port;
	const struct link_remote *remote; /* NULL: the port is ours */
	void *remote_arg;
	struct addresses addresses; /* the first is untagged and link-local */
	/* those of an interface change; the engine's thread writes */
	pthread_mutex_t addresses_lock;
	unsigned int ifindex; /* of a kernel interface that is shared or beside the port, which
				 answers ARP itself; else 0 */
	char ifname[16];
	int mute_fd; /* keeps the kernel silent about RoCE, or -1 */
	struct link_mute mutes[ADDRESSES_MAX];
	size_t mute_count;
	int watch_fd;		       /* hears of changes of addresses, or -1 */
	struct neigh_table neighbours; /* engine's lock */
	struct groups groups;	       /* engine's lock */
};

/** Begin a link whose port another process has; its port is still to be filled in. Not MT-safe. */
void link_init_remote(struct link *link, const struct link_remote *remote, void *arg,
		      const struct addresses *addresses);

/** Understand the settings, before EAL starts. Not MT-safe. 0 or -errno (logged). */
int link_prepare(struct link *link, const struct settings *settings);

/** Bring the port up, after EAL's start. Not MT-safe. 0 or -errno (logged). */
int link_open(struct link *link, const struct settings *settings);

/** The same on a port of the application's, which runs DPDK itself. Not MT-safe. 0 or -errno
 * (logged). */
int link_open_guest(struct link *link, struct guest *guest, const struct settings *settings);

/**
 * The kernel has an interface beside the port, and answers ARP, neighbour discovery and echo
 * itself: its addresses are used from here on. Not MT-safe, before the link is used. 0 or -errno
 * (logged).
 */
int link_use_interface(struct link *link, const char *name);

/** Read the addresses of an interface anew where the kernel says that they have changed. Engine's
 * thread. Whether it was so. */
bool link_refresh(struct link *link);

/**
 * Take in a frame that is not RoCE: learn neighbours, answer ARP, neighbour discovery and echo
 * where the port is ours alone. Engine's thread.
 *
 * @param frame
 *   Its tag is taken out in place.
 * @param reply
 *   Room of LINK_REPLY_MAX bytes for the answer.
 * @return
 *   Length of the answer, or 0 for none.
 */
size_t link_input(struct link *link, uint8_t *frame, size_t len, uint64_t now_ns, uint8_t *reply);

/** Join a multicast group. Engine's lock. 0 or -errno. */
int link_join(struct link *link, const uint8_t gid[GID_LEN], uint64_t now_ns);

/**
 * Leave it in one of our networks. Engine's lock.
 *
 * @param frame
 *   Room of LINK_REPLY_MAX bytes for the frame that tells of it.
 * @param len
 *   Set to its length, or 0 for none.
 * @return
 *   false where we have left it everywhere.
 */
bool link_leave(struct link *link, const uint8_t gid[GID_LEN], uint64_t now_ns, uint8_t *frame,
		size_t *len);

/** The next report on a group that is due, in room of LINK_REPLY_MAX bytes; its length, or 0 for
 * none. Engine's thread. */
size_t link_report(struct link *link, uint64_t now_ns, uint8_t *frame);

/* Where packets to a destination go. */
struct link_hop {
	bool known; /* mac is all there is to know */
	uint8_t mac[6];
	bool has_stale;	      /* mac is what was true once, should nobody answer */
	uint8_t gid[GID_LEN]; /* else: the neighbour to ask for */
};

/** Find the next hop from one of our addresses, by our prefixes or the kernel's routes. MT-safe;
 * asks the kernel. 0 or -ENETUNREACH. */
int link_route(struct link *link, const struct address *from, const uint8_t dgid[GID_LEN],
	       struct link_hop *hop);

/**
 * Look for a neighbour's MAC address, to be asked for from one of our addresses. Engine's lock.
 *
 * @param asker
 *   As of neigh_find.
 * @param request
 *   Room of LINK_REPLY_MAX bytes.
 * @param request_len
 *   Set to the length of a request to be sent now, or 0.
 * @return
 *   Whether `mac` was filled.
 */
bool link_resolve(struct link *link, uint16_t asker, const struct address *from,
		  const uint8_t gid[GID_LEN], uint64_t now_ns, uint8_t mac[6], uint8_t *request,
		  size_t *request_len);

#endif
