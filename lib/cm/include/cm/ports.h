/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose port is it: the port spaces of a host's device, and which communication ids are a
 * process's.
 *
 * A process that has a device alone keeps its ports itself (cm_ports_local). Processes that share a
 * device ask an arbiter: it answers to the same table, which who drives the device puts into
 * `device->cm_ports` before the first connection.
 */
#ifndef CM_PORTS_H
#define CM_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/cm_ip.h"

/* The place that an id of rdma_cm is bound to, as a socket address is for a socket. */
struct cm_port_claim {
	enum cm_port_space space; /* a port of one is not that of another */
	uint16_t port;		  /* 0: choose one that is free */
	uint8_t ip_version;	  /* 4, 6; 0: both, of any address only */
	bool any_address;
	uint8_t address[16]; /* GID, where not any_address; ::1 and ::ffff:127.0.0.1 are loopback's
			      */
	int32_t vlan_id;     /* of the address; -1: untagged */
	bool reuse; /* REUSEADDR: others with it may have the same; one of all may listen */
};

/*
 * All MT-safe. They may wait for the answer of another process, so the caller does not have the
 * engine's lock.
 */
struct cm_ports_ops {
	/*
	 * Claim a port. 0, and `claim->port` and `id` are set; -EADDRINUSE where somebody has it
	 * (of a range of ports: all of them), -ENOSPC where the process has as many as it may,
	 * -ENOMEM, -ENODEV where the arbiter has gone.
	 */
	int (*claim)(void *user, struct cm_port_claim *claim, uint32_t *id);
	/*
	 * From now on REQs and SIDR_REQs for the port come to this process. 0, or -EADDRINUSE:
	 * others have claimed the same (REUSEADDR).
	 */
	int (*listen)(void *user, uint32_t id);
	/* Give a port back; a listener of it has ended. */
	void (*release)(void *user, uint32_t id);
	/*
	 * The communication ids that this process may use: those with `value` in the bits of
	 * `mask`. MADs with such an id of ours come to it. 0, 0: all. Asked once, before the first
	 * MAD.
	 */
	int (*ids)(void *user, uint32_t *mask, uint32_t *value);
};

/** The ports of a process that has its devices alone; the user is ignored. */
extern const struct cm_ports_ops cm_ports_local;

/** The service id of a claim, once its port is known. MT-safe. */
static inline uint64_t cm_port_service_id(const struct cm_port_claim *claim)
{
	return cm_service_id(claim->space, claim->port);
}

/**
 * Return true where two claims are of one port and an address in common: Linux's rules, but for the
 * error, which is -EADDRINUSE for any address, too. MT-safe.
 */
bool cm_port_overlaps(const struct cm_port_claim *a, const struct cm_port_claim *b);

#endif
