/* SPDX-License-Identifier: BSD-3-Clause */
/* A device: its port, addresses, limits, and queue pairs by number, and the function that takes
 * every received frame. */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "device/device_engine.h"
#include "device/device_map.h"
#include "device/device_net.h"
#include "device/objects.h"
#include "device/quota.h"
#include "mem/dm.h"
#include "qp/qp.h"
#include "telemetry/counters.h"
#include "wire/build.h"
#include "wire/mad.h"
#include "wire/packet.h"

struct cm_ports_ops;
struct gsi_ops;
struct key_table;
struct mcast_group;
struct qp;
struct qpn_page;
struct srq_table;
struct xrc_share_ops;
struct xrcd;

#define DEVICE_ENGINES_MAX   16
#define DEVICE_GIDS_MAX	     128
#define DEVICE_NAME_MAX	     64
#define DEVICE_MCAST_BUCKETS 256

struct device_gid {
	union ibv_gid gid;     /* all zero: the entry is free */
	uint32_t ndev_ifindex; /* kernel interface, 0 for none */
	int32_t vlan_id;       /* -1: untagged */
};

struct device_config {
	char name[DEVICE_NAME_MAX];
	uint8_t mac[6];
	bool mac_is_random;	 /* changes at each start: the GUID does not depend on it */
	uint32_t port_mtu_bytes; /* largest IP packet of the port (an interface's MTU) */
	uint64_t link_mbps;
	uint32_t engines; /* at most DEVICE_ENGINES_MAX; 0: one */
	enum cc_kind cc;  /* congestion control of new queue pairs; atomic */
	/* The queue pair numbers that are ours if others share the port; 0, 0: all. */
	uint32_t qpn_first;
	uint32_t qpn_count;
	uint32_t qp_limit;	 /* most queue pairs; 0: as many as there are numbers for */
	enum sack_use sack;	 /* of queue pairs */
	uint64_t mr_limit_bytes; /* most memory in regions that keep their pages; 0: no limit */
	const char *unique; /* distinguishes this port of this host from all others: hashed into the
			       GUID */
};

struct device {
	struct device_config config;
	uint64_t node_guid_be;
	bool shown; /* files show it in /sys/class/infiniband_verbs, as uverbsN, where N is its
			   index among the process's devices; set by the driver before use */
	struct device_gid gids[DEVICE_GIDS_MAX]; /* changed under the device's lock */
	uint32_t gid_end;			 /* behind the last used one; the same */
	bool link_up;				 /* atomic */
	const char *lost_why; /* before IBV_EVENT_DEVICE_FATAL; NULL: not known; atomic */
	enum ibv_mtu
		mtu; /* largest path MTU that fits port_mtu_bytes with IPv6, UDP, BTH, RETH, ICRC */
	struct key_table *keys;
	struct cc_params cc_params; /* changed under the device's lock */
	struct pager *pager; /* set by the driver of the device; NULL: accesses wait for pages */

	/* Set by the driver of the device before it is used. */
	const struct device_net_ops
		*net; /* NULL: it has no network, and so neither peers nor groups */
	void *net_user;
	const struct device_dma_ops *dma; /* NULL: the port reads no memory of the program */
	void *dma_user;

	/* The first engine runs the port's addresses and neighbours, and the connection manager. */
	struct device_engine *engines[DEVICE_ENGINES_MAX];
	uint32_t engine_count;

	/* The receiver of MADs to QP 1 (device/gsi.h); changed under the device's lock. */
	const struct gsi_ops *gsi;
	void *gsi_user;
	/* The keeper of the connection manager's ports (cm/ports.h); NULL: this process keeps them.
	 * Set by the driver of the device, before it is used. */
	const struct cm_ports_ops *cm_ports;
	void *cm_ports_user;

	pthread_mutex_t qpn_lock;
	uint32_t qp_max;
	uint32_t qps;	   /* queue pairs in use; atomic */
	uint32_t qpn_next; /* the next number to try; under qpn_lock */
	struct qpn_page *
		*qpn_pages; /* [qpn >> 12]->qps[qpn & 0xfff]; allocated on demand and kept */

	pthread_mutex_t groups_lock; /* taken by calls that change groups, before the device's */
	LIST_HEAD(, mcast_group) groups[DEVICE_MCAST_BUCKETS]; /* device's lock */
	uint32_t group_count;

	uint32_t quota[DEVICE_QUOTA_KINDS]; /* existing objects of each kind; atomic */
	uint64_t mr_bytes;		    /* bytes in regions that keep their pages; atomic */
	struct device_objects objects;
	struct dm_pool dm_pool;
	pthread_mutex_t xrcd_lock; /* protects xrcds */
	LIST_HEAD(, xrcd) xrcds;
	/* The owner of the port, by which processes share domains; NULL: no other process shares
	 * the port. Set by the driver of the device, before it is used. */
	const struct xrc_share_ops *xrc_share;
	void *xrc_share_user;
	struct srq_table *srq_table; /* XRC; NULL until the first domain; its contents are under the
					device's lock */

	/* Report an unaffiliated event (port up, port down, GID change, fatal); set by the
	 * facade. */
	void (*event)(void *user, enum ibv_event_type type);
	void *event_user;

	/* The first engine writes these in each engine poll, so they have a cache line to
	 * themselves: all engines read the members above for each packet. */
	struct psn gsi_psn __rte_cache_aligned; /* PSN of the next MAD that is sent; first engine's
						   thread or lock */
	bool gsi_holds;	 /* gsi_ops.receive leaves events to gsi_tell; first engine's thread */
	bool gsi_untold; /* it has left some; first engine's thread or lock */
};

/** Create a device without addresses, whose engines have no driver. 0, -EINVAL, -ENOMEM. */
int device_create(const struct device_config *config, struct device **device);

/** Return the largest path MTU on a port that carries IP packets of this size; 0 if not even the
 * smallest fits. MT-safe. */
enum ibv_mtu device_path_mtu(uint32_t port_mtu_bytes);

/** Return the GUID of a device with this configuration, in network order. MT-safe. */
uint64_t device_guid(const struct device_config *config);

/** Return the congestion control of new queue pairs. MT-safe. */
enum cc_kind device_cc_kind(const struct device *device);

/**
 * Change the congestion control of a queue pair, or of all (`qpn` 0) and of new ones. Queue pairs
 * that cannot have it are left out if all are meant. Device's lock.
 *
 * @param each
 *   Called for each queue pair that was changed and must run now.
 * @return
 *   0; -EINVAL: there is no such algorithm; -ENOENT: there is no such queue pair; -EOPNOTSUPP: it
 *   cannot have this algorithm; -ENOMEM.
 */
int device_change_cc(struct device *device, uint32_t qpn, enum cc_kind kind,
		     void (*each)(struct qp *qp, void *arg), void *arg);

/** Destroy a device that has no queue pairs left. */
void device_destroy(struct device *device);

/** Return the engine that runs what a device has once. MT-safe. */
static inline struct device_engine *device_first(const struct device *device)
{
	return device->engines[0];
}

/** Stop all engines between two engine polls, for a control call. MT-safe, may not nest. */
void device_lock(const struct device *device);

/** Let the engines run again. By the thread that stopped them. */
void device_unlock(const struct device *device);

/** The application is about to sleep until one of these engines raises an event: other threads must
 * run them. `engines` has a bit for each engine, by its number. MT-safe. */
void device_wait(const struct device *device, uint32_t engines);

/** Return the sum of a counter over all engines. MT-safe. */
uint64_t device_counter(const struct device *device, enum counter counter);

/** Do so for all counters. MT-safe. */
void device_counters(const struct device *device, struct counters *sum);

/** Put an address into the first free entry of the GID table (untagged or of a VLAN). Device's
 * lock. Index, -EEXIST, -ENOSPC, or -EINVAL for zeros, a group's address or no VLAN. */
int device_add_gid(struct device *device, const union ibv_gid *gid, int32_t vlan_id,
		   uint32_t ifindex);

/**
 * Make the GID table equal to a list: remove entries that are not in the list, put new ones into
 * the first free entries, and keep the index of all others. Raises IBV_EVENT_GID_CHANGE for a
 * change. Device's lock.
 */
void device_sync_gids(struct device *device, const struct device_gid *gids, size_t count);

#define DEVICE_ANY_VLAN (-2)

/** Return the index of an address in a VLAN (-1: untagged), or in any VLAN; -ENOENT if the device
 * does not have it. */
int device_find_gid(const struct device *device, const uint8_t gid[16], int32_t vlan_id);

/** Allocate a number for a queue pair of an engine; device_free_qpn frees it. MT-safe. QPN in [2,
 * 2^24), or -ENOSPC. The first number is random. */
int device_alloc_qpn(struct device_engine *engine);

/** Do so. If the device has a range of numbers, and half of the engine's are in use, the number is
 * another engine's: device_engine_of_qpn tells whose. MT-safe. */
int device_alloc_qpn_near(struct device_engine *engine);

/** Return the number of the engine that a queue pair number names: frames find their engine without
 * a table. The first engine has the management queue pairs. MT-safe. */
static inline uint32_t device_engine_of_qpn(const struct device *device, uint32_t qpn)
{
	return likely(device->engine_count == 1) || qpn <= GSI_QPN ? 0 : qpn % device->engine_count;
}

/** Return false if a number is not in the device's range of numbers, so that another process that
 * shares the port may have it. MT-safe. */
static inline bool device_has_qpn(const struct device *device, uint32_t qpn)
{
	return device->config.qpn_count == 0 ||
	       qpn - device->config.qpn_first < device->config.qpn_count;
}

/** Set the queue pair of a number (NULL: none any more). Device's lock. */
void device_set_qp(struct device *device, uint32_t qpn, struct qp *qp);

/** As device_set_qp, of an allocated number that the queue pair has beside its own: device_each_qp
 * does not find the queue pair by it. */
void device_set_further_qpn(struct device *device, uint32_t qpn, struct qp *qp);
void device_free_qpn(struct device *device, uint32_t qpn);

/** Return the queue pair of a number, or NULL. Engine's thread or lock. */
struct qp *device_find_qp(const struct device *device, uint32_t qpn);

/* Facts about a received frame that need not be checked again. */
enum frame_known {
	FRAME_TRUSTED =
		1 << 0, /* it never left this device (loopback): check neither checksums nor ICRC */
	FRAME_SUMS_GOOD = 1 << 1, /* the port has verified IPv4 and UDP checksums */
	FRAME_ICRC_GOOD = 1 << 2, /* packet_copy has found the ICRC right */
	/* a program of this host may have sent it with our address: whoever took it from the
	 * network has dropped what another host sent with that source */
	FRAME_SOURCE_GOOD = 1 << 3,
};

/*
 * Frames that an engine receives in one go. Its thread has the engine until the last of them, so no
 * address, path or queue pair of the device changes meanwhile: whoever changes one stops the
 * engines. So when two packets in turn were accepted for one queue pair, those that follow them
 * with the same addresses need not go through the checks of these again.
 */
struct device_burst {
	struct device_engine *engine;
	uint64_t now_ns;
	struct qp *qp;	    /* that the last packet was for; or NULL */
	unsigned int known; /* of the flow's frames; bits of enum frame_known */
	struct packet_flow flow;
};

/** Begin a burst. Engine's thread or lock, as for all of it. */
static inline void device_burst_begin(struct device_burst *burst, struct device_engine *engine,
				      uint64_t now_ns)
{
	burst->engine = engine;
	burst->now_ns = now_ns;
	burst->qp = NULL;
	burst->flow.begun = false;
}

/**
 * Engine: process one received frame: parse it, verify ICRC, address, partition and queue pair;
 * count dropped frames by cause.
 *
 * @param burst
 *   The frames that are received together with it.
 * @param known
 *   Bits of enum frame_known.
 * @param qp
 *   Set to the queue pair that took the packet and now needs qp_run; or to NULL if none did, or if
 *   it has nothing to do.
 * @return
 *   False if the frame is not RoCE: it is for somebody else.
 */
bool device_receive_next(struct device_burst *burst, const uint8_t *frame, size_t len,
			 unsigned int known, struct qp **qp);

/** Engine: do what device_receive_next does with a frame that is received alone. */
static inline bool device_receive(struct device_engine *engine, const uint8_t *frame, size_t len,
				  unsigned int known, uint64_t now_ns, struct qp **qp)
{
	struct device_burst burst;

	device_burst_begin(&burst, engine, now_ns);
	return device_receive_next(&burst, frame, len, known, qp);
}

/** Engine: prefetch the queue pair of a frame that is not checked yet. */
void device_prefetch(const struct device *device, const uint8_t *frame, size_t len);

/** Call `each` for every queue pair that has a number. Engine's thread or lock. */
void device_each_qp(const struct device *device, void (*each)(struct qp *qp, void *arg), void *arg);

/** Return device limits as ibv_query_device_ex(3) reports them. MT-safe. */
void device_query(const struct device *device, struct ibv_device_attr_ex *attr);

/** Return port attributes as ibv_query_port(3) reports them. MT-safe. */
void device_query_port(const struct device *device, struct ibv_port_attr *attr);

/** Build the path of an address vector (it must have a GRH). Device's lock. 0, -EINVAL. */
int device_make_path(const struct device *device, const struct ibv_ah_attr *ah,
		     const uint8_t dst_mac[6], uint16_t udp_sport, struct path *path);

/** Raise an unaffiliated event: tell the facade and the receiver of MADs. Engine's thread or
 * lock. */
void device_raise(struct device *device, enum ibv_event_type type);

#endif
