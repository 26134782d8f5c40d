/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager of a device at work: it is the receiver of the device's MADs, sends in the
 * engine's passes, and has its timers run by the engine.
 *
 * An agent has no lock of its own. What follows is run in the engine's turn, or under the engine's
 * lock between agent_enter and agent_leave, unless it says that it is MT-safe.
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

/* How an agent tells of what has happened. Called with the engine's lock held: these call nothing
 * of the agent. */
struct agent_notify {
	/* An event; a connection of a REQ or SIDR_REQ is the callee's from then on, and the events
	 * after it have the user that the callee has named by cm_conn_set_user. */
	void (*event)(const struct cm_event *event, uint64_t now_ns);
	/* The address of a query is complete (0), or -ETIMEDOUT. */
	void (*resolved)(struct agent_query *query, int status);
};

/**
 * The agent of a device, made on the first call, which `notify` is of. Not under the lock; MT-safe.
 *
 * @return
 *   0; -ENOMEM; -EBUSY where somebody else receives the device's MADs; what cm_ports_ops.ids says.
 */
int agent_get(struct device *device, const struct agent_notify *notify, struct agent **agent);

/** End it, with all connections; nothing is sent. Not under the lock. For tests. */
void agent_destroy(struct agent *agent);

/** Take the engine's lock, for calls of the manager. Not MT-safe below: may not nest. */
struct cm *agent_enter(struct agent *agent, uint64_t *now_ns);

/** Tell of the events that the calls have brought, send their MADs, and give the lock back. */
void agent_leave(struct agent *agent);

/** The program is about to sleep on events: the engine's helper runs the engine. MT-safe. */
void agent_wait(struct agent *agent);

/** The ports of the agent's device. MT-safe. */
const struct cm_ports_ops *agent_ports(const struct agent *agent, void **user);

/** The entry of an address in the device's table, or of any address where `gid` is NULL: the first
 * one of an IP version (0: any). Not under the lock; MT-safe. Index, or -EADDRNOTAVAIL. */
int agent_find_gid(struct agent *agent, const uint8_t *gid, uint8_t ip_version, uint32_t ifindex,
		   struct device_gid *found);

/** The entry of our address of a MAD, in its VLAN. Index, or -EADDRNOTAVAIL. */
int agent_find_own(const struct agent *agent, const struct gsi_address *address,
		   struct device_gid *found);

/**
 * Choose the address that packets to `dgid` come from: the one with a way there that has most bits
 * in common with it. Not under the lock; MT-safe.
 *
 * @param ifindex
 *   The scope of a link-local address, or 0.
 * @return
 *   Index, -EADDRNOTAVAIL where the device has no address of that IP version, or -ENETUNREACH.
 */
int agent_choose_source(struct agent *agent, const uint8_t dgid[16], uint32_t ifindex,
			struct device_gid *found);

/* Looking for a peer's link address. */
struct agent_query {
	struct gsi_address address; /* complete once resolved */
	/* the agent's */
	LIST_ENTRY(agent_query) next;
	bool pending;
	uint8_t sgid_index;
	struct device_hop hop;
	uint64_t until_ns;
};

/**
 * Look for the link address of a peer. Not under the lock; MT-safe.
 *
 * @return
 *   0: known, and query->address complete; -EINPROGRESS: notify->resolved will tell; -ENETUNREACH.
 */
int agent_resolve(struct agent *agent, struct agent_query *query, uint8_t sgid_index,
		  const uint8_t dgid[16], uint64_t timeout_ns);

/** Forget a query; nothing is told of it any more. */
void agent_forget(struct agent_query *query);

#endif
