/* SPDX-License-Identifier: BSD-3-Clause */
/* A link: a port, its addresses and its neighbours. Handles all frames that are not RoCE. */
#ifndef NET_LINK_H
#define NET_LINK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/groups.h"
#include "net/neigh.h"
#include "netdev/netdev.h"
#include "netdev/early_drop.h"
#include "port/port.h"

struct guest;
struct settings;

#define LINK_REPLY_MAX 2048 /* the longest reply; longer pings get none */

struct link;
struct link_hop;

/*
 * Operations of a link whose port another process owns: that process handles addresses, groups and
 * neighbours. Each operation does what the function of its name below does.
 */
struct link_remote {
	bool (*refresh)(struct link *link);
	int (*join)(struct link *link, const uint8_t gid[GID_LEN]);
	void (*leave)(struct link *link, const uint8_t gid[GID_LEN]);
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
	const struct link_remote *remote; /* NULL: we own the port */
	void *remote_arg;
	struct addresses addresses; /* the first is untagged and link-local */
	/* the addresses of an interface may change; the engine's thread writes them */
	pthread_mutex_t addresses_lock; /* protects `routes`, too */
	struct routes routes;		/* of a port whose addresses are the user's */
	uint32_t told_mtu_bytes;	/* the interface's, as it was last told */
	uint8_t told_mac[6];		/* likewise */
	unsigned int ifindex; /* of a kernel interface that is shared or beside the port, which
				 answers ARP itself; else 0 */
	char ifname[16];
	bool by_udp; /* the port is a UDP socket: the kernel finds next hops */
	int mute_fd; /* keeps the kernel silent about RoCE, or -1 */
	struct link_mute mutes[ADDRESSES_MAX];
	size_t mute_count;
	struct early_drop early_drop;  /* engine's thread */
	int watch_fd;		       /* readable when addresses have changed; or -1 */
	struct neigh_table neighbours; /* engine's lock */
	struct groups groups;	       /* engine's lock */
	uint64_t too_long_due_ns;      /* engine's thread: no such message is logged before */
};

/** Return the name by which the user knows the port: the interface's, or the DPDK device's.
 * MT-safe. */
static inline const char *link_name(const struct link *link)
{
	return link->port.through_kernel && link->ifname[0] ? link->ifname
							    : link->port.devargs.name;
}

/** Initialise a link whose port another process owns. The caller fills in the port. Not MT-safe. */
void link_init_remote(struct link *link, const struct link_remote *remote, void *arg,
		      const struct addresses *addresses);

/** Apply the settings, before EAL starts. Not MT-safe. 0 or -errno (logged). */
int link_prepare(struct link *link, const struct settings *settings);

/** Bring the port up, after EAL's start. Not MT-safe. 0 or -errno (logged). */
int link_open(struct link *link, const struct settings *settings);

/** Bring up a port of an application that runs DPDK itself. Not MT-safe. 0 or -errno (logged). */
int link_open_guest(struct link *link, struct guest *guest, const struct settings *settings);

/** Close a link that was prepared or opened, also if that failed, with its port. Nobody uses it any
 * more. Not MT-safe. */
void link_close(struct link *link);

/**
 * Use the addresses of a kernel interface beside the port. The kernel then answers ARP, neighbour
 * discovery and echo itself. Call before the link is used. Not MT-safe. 0 or -errno (logged).
 */
int link_use_interface(struct link *link, const char *name);

/** Give a port that is not a kernel interface the addresses and routes of new settings. Return true
 * if the addresses are others. Engine's thread. */
bool link_change_addresses(struct link *link, const struct settings *settings, uint64_t now_ns);

/** Read the interface's addresses again if the kernel reports a change. Return true if it did.
 * Engine's thread. */
bool link_refresh(struct link *link);

/**
 * Handle a frame that is not RoCE: learn neighbours; answer ARP, neighbour discovery and echo if
 * the port is ours alone. Engine's thread.
 *
 * @param frame
 *   Its VLAN tag is removed in place.
 * @param reply
 *   Room of LINK_REPLY_MAX bytes for the reply.
 * @return
 *   The reply's length; 0: none.
 */
size_t link_input(struct link *link, uint8_t *frame, size_t len, uint64_t now_ns, uint8_t *reply);

/** Learn the neighbour that has sent us a connection message, if it is not known. Do nothing where
 * the kernel or an owner keeps the neighbours. Engine's lock. */
void link_hear(struct link *link, int32_t vlan, const uint8_t gid[GID_LEN], const uint8_t mac[6],
	       uint64_t now_ns);

/** Join a multicast group. Engine's lock. 0 or -errno. */
int link_join(struct link *link, const uint8_t gid[GID_LEN], uint64_t now_ns);

/**
 * Leave a multicast group in one VLAN. Engine's lock.
 *
 * @param frame
 *   Room of LINK_REPLY_MAX bytes for the leave message.
 * @param len
 *   Set to its length; 0: none.
 * @return
 *   False if we are in the group in no VLAN.
 */
bool link_leave(struct link *link, const uint8_t gid[GID_LEN], uint64_t now_ns, uint8_t *frame,
		size_t *len);

/** Build the next due group report in a room of LINK_REPLY_MAX bytes. Returns its length; 0: none
 * is due. Engine's thread. */
size_t link_report(struct link *link, uint64_t now_ns, uint8_t *frame);

/* The next hop of packets to a destination. */
struct link_hop {
	bool known; /* `mac` is complete: no neighbour to ask */
	uint8_t mac[6];
	bool has_stale;	      /* `mac` is an old address, used if nobody answers */
	uint8_t gid[GID_LEN]; /* not known: the neighbour to resolve */
};

/** Find the next hop from one of our addresses, by our routes or the kernel's. MT-safe; queries the
 * kernel. 0 or -ENETUNREACH. */
int link_route(struct link *link, const struct address *from, const uint8_t dgid[GID_LEN],
	       struct link_hop *hop);

/**
 * Look up a neighbour's MAC address; requests are sent from one of our addresses. Engine's lock.
 *
 * @param asker
 *   As in neigh_find.
 * @param request
 *   Room of LINK_REPLY_MAX bytes.
 * @param request_len
 *   Set to the length of a request to be sent now, or 0.
 * @return
 *   True if `mac` was set.
 */
bool link_resolve(struct link *link, uint16_t asker, const struct address *from,
		  const uint8_t gid[GID_LEN], uint64_t now_ns, uint8_t mac[6], uint8_t *request,
		  size_t *request_len);

#endif
