/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ownership of ports: the port spaces of a host's device, and the communication ids of a process.
 *
 * A process that has a device alone keeps its ports itself (cm_ports_local). Processes that share a
 * device ask an arbiter by the same table of functions. The driver of the device puts the table
 * into `device->cm_ports` before the first connection.
 */
#ifndef CM_PORTS_H
#define CM_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/cm_ip.h"

/* A claim of a port: what an id of rdma_cm is bound to, as a socket is bound to an address. */
struct cm_port_claim {
	enum cm_port_space space; /* each port space has ports of its own */
	uint16_t port;		  /* 0: choose a free one */
	uint8_t ip_version;	  /* 4, 6; 0: both, with any_address only */
	bool any_address;
	uint8_t address[16]; /* GID; unused with any_address. ::1 and ::ffff:127.0.0.1 are loopback
			      */
	int32_t vlan_id;     /* VLAN of the address; -1: untagged */
	bool reuse; /* REUSEADDR: other claims with it may have the same port; only one of them may
		       listen */
};

/*
 * All functions are MT-safe. They may wait for another process, so the caller must not hold the
 * engine's lock.
 */
struct cm_ports_ops {
	/*
	 * Claim a port. 0, and `claim->port` and `id` are set; -EADDRINUSE if another claim has it
	 * (or all of a range), -ENOSPC if the process has as many as it may have, -ENOMEM, -ENODEV
	 * if the arbiter has ended.
	 */
	int (*claim)(void *user, struct cm_port_claim *claim, uint32_t *id);
	/*
	 * Direct REQs and SIDR_REQs for the port to this process. 0, or -EADDRINUSE: others have
	 * claimed the same port (REUSEADDR).
	 */
	int (*listen)(void *user, uint32_t id);
	/*
	 * Change REUSEADDR, and the IP version if the claim is of any address. 0; -EADDRINUSE:
	 * another claim has the port in the new version; -EINVAL: there is no such claim, it
	 * listens, or it cannot have the version.
	 */
	int (*change)(void *user, uint32_t id, uint8_t ip_version, bool reuse);
	/* Release a port, whose listener has ended. */
	void (*release)(void *user, uint32_t id);
	/*
	 * Return the communication ids that this process may use: those with `value` in the bits of
	 * `mask`. MADs that carry such an id as ours come to this process. 0, 0: all. Called once,
	 * before the first MAD.
	 */
	int (*ids)(void *user, uint32_t *mask, uint32_t *value);
};

/** The ports of a process that has its devices alone; the user is ignored. */
extern const struct cm_ports_ops cm_ports_local;

/** Forget all ports: in a child of fork() they are the parent's. Not MT-safe. */
void cm_ports_forget(void);

/**
 * Return true if two claims have the same port and a common address. The rules are Linux's, except
 * that the error is -EADDRINUSE for any address, too. MT-safe.
 */
bool cm_port_overlaps(const struct cm_port_claim *a, const struct cm_port_claim *b);

/** Return true if cm_ports_ops.change can give a claim this IP version. MT-safe. */
bool cm_port_may_change(const struct cm_port_claim *claim, uint8_t ip_version);

#endif
