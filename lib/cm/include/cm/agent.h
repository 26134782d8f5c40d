/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager of a device in operation. An agent receives the device's MADs. The engine
 * calls it in each pass to send MADs and to run its timers.
 *
 * An agent has no lock of its own. The functions below run in the engine's poll, or under the
 * engine's lock between agent_enter and agent_leave, unless they are marked MT-safe.
 */
#ifndef CM_AGENT_H
#define CM_AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "cm/cm.h"
#include "cm/ports.h"
#include "device/device.h"

struct agent;
struct agent_query;

/* Reports of an agent. Called with the engine's lock held, so they must not call the agent. */
struct agent_notify {
	/* Report an event. The callee owns the connection of a REQ or SIDR_REQ from then on, and
	 * calls cm_conn_take when the program has seen the request. Later events of the connection
	 * have the user that the callee has set by cm_conn_set_user. */
	void (*event)(const struct cm_event *event, uint64_t now_ns);
	/* Report that the address of a query is complete (0), or -ETIMEDOUT. */
	void (*resolved)(struct agent_query *query, int status);
	/* Report that the device is lost for ever. May be NULL. */
	void (*lost)(struct agent *agent, uint64_t now_ns);
	/* Report that the device's table of addresses has changed. May be NULL. */
	void (*addresses)(struct agent *agent);
};

/**
 * Return the agent of a device. The first call makes it and sets `notify`. Not under the lock;
 * MT-safe.
 *
 * @return
 *   0; -ENOMEM; -EBUSY if the device's MADs have another receiver; or the error of
 *   cm_ports_ops.ids.
 */
int agent_get(struct device *device, const struct agent_notify *notify, struct agent **agent);

/** Destroy an agent and all its connections; nothing is sent. Not under the lock. For tests. */
void agent_destroy(struct agent *agent);

/** Take the engine's lock for calls of the manager. Must not be nested. */
struct cm *agent_enter(struct agent *agent, uint64_t *now_ns);

/** Report the events of these calls, send their MADs, and release the lock. */
void agent_leave(struct agent *agent);

/** Tell the engine that the program is about to sleep on events: the helper thread runs the engine
 * then. MT-safe. */
void agent_wait(struct agent *agent);

/** Return the port table of the agent's device. MT-safe. */
const struct cm_ports_ops *agent_ports(const struct agent *agent, void **user);

/** Find an address in the device's table. If `gid` is NULL, find the first address of an IP version
 * (0: any). Not under the lock; MT-safe. Return its index, or -EADDRNOTAVAIL. */
int agent_find_gid(struct agent *agent, const uint8_t *gid, uint8_t ip_version, uint32_t ifindex,
		   struct device_gid *found);

/** Find the address of ours that a MAD came to, in the MAD's VLAN. Return its index, or
 * -EADDRNOTAVAIL. */
int agent_find_own(const struct agent *agent, const struct gsi_address *address,
		   struct device_gid *found);

/**
 * Choose the source address of packets to `dgid`: of those that have a route to it, the one with
 * the longest common prefix. Not under the lock; MT-safe.
 *
 * @param ifindex
 *   The scope of a link-local address, or 0.
 * @return
 *   The index, -EADDRNOTAVAIL if the device has no address of that IP version, or -ENETUNREACH.
 */
int agent_choose_source(struct agent *agent, const uint8_t dgid[16], uint32_t ifindex,
			struct device_gid *found);

/* A search for a peer's link address. */
struct agent_query {
	struct gsi_address address; /* complete once resolved */
	/* private to the agent */
	LIST_ENTRY(agent_query) next;
	bool pending;
	uint8_t sgid_index;
	struct device_hop hop;
	uint64_t until_ns;
};

/**
 * Find the link address of a peer. Not under the lock; MT-safe.
 *
 * @return
 *   0: query->address is complete; -EINPROGRESS: notify->resolved will report the result;
 *   -ENETUNREACH.
 */
int agent_resolve(struct agent *agent, struct agent_query *query, uint8_t sgid_index,
		  const uint8_t dgid[16], uint64_t timeout_ns);

/** Cancel a query; its result is not reported any more. */
void agent_forget(struct agent_query *query);

#endif
