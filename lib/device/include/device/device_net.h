/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device needs of its network: the link addresses of its peers, and its groups. */
#ifndef DEVICE_DEVICE_NET_H
#define DEVICE_DEVICE_NET_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

/* The next hop of packets to a destination. */
struct device_hop {
	bool known; /* mac is valid, and nothing else is needed */
	uint8_t mac[6];
	bool has_stale;	 /* mac is an old value, to be used if nobody answers */
	uint8_t gid[16]; /* if not known: address of the neighbour to look for */
};

/* Functions of a device's network. The first argument is device.net_user; "lock" is that of the
 * first engine, and "engine's thread" runs it. */
struct device_net_ops {
	/* A multicast group gets its first member on this device, or has lost its last one. One
	 * call at a time; not under lock; may block. 0 or -errno. */
	int (*join)(void *user, const union ibv_gid *gid);
	void (*leave)(void *user, const union ibv_gid *gid);
	/* Find the link address for packets to dgid; blocks up to some seconds. 0, -ETIMEDOUT,
	 * -ENETUNREACH. Not under lock. */
	int (*resolve)(void *user, uint8_t sgid_index, const union ibv_gid *dgid, uint8_t mac[6]);
	/*
	 * The same in two parts, for callers that cannot block. `route` finds the next hop to dgid:
	 * it asks the kernel; not under lock; 0 or -ENETUNREACH. The second function checks if the
	 * neighbour is known by now, and asks for it from time to time; engine's thread or lock.
	 */
	int (*route)(void *user, uint8_t sgid_index, const union ibv_gid *dgid,
		     struct device_hop *hop);
	bool (*look)(void *user, uint8_t sgid_index, const uint8_t gid[16], uint8_t mac[6]);
	/* Learn the neighbour that has sent a MAD; NULL: not used. So a connection can be accepted
	 * without a request for its peer's address. Engine's thread or lock. */
	void (*learn)(void *user, int32_t vlan_id, const uint8_t gid[16], const uint8_t mac[6]);
};

#endif
