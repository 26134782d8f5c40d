/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel drops RoCE packets to an interface's own addresses as soon as the packet sockets have
 * them. Otherwise its IP and UDP look at each one, and the socket of mute_kernel drops it.
 *
 * An eBPF program at the interface's tcx ingress does it (Linux 6.6). It is attached by a link, so
 * it goes with the last descriptor of the link, and with the process at the latest. It acts only
 * while the process renews it: the addresses of a process that is stopped, or makes no calls, may
 * belong to another host meanwhile, to which this one forwards packets.
 */
#ifndef NETDEV_EARLY_DROP_H
#define NETDEV_EARLY_DROP_H

#include <stdint.h>

#include "netdev/netdev.h"

struct early_drop_memory;

struct early_drop {
	struct early_drop_memory *memory; /* shared with the eBPF program; NULL: there is none */
	int fd;				  /* the link */
};

#define EARLY_DROP_OFF ((struct early_drop){.memory = NULL, .fd = -1})

/**
 * Find out whether the process's seccomp filter lets it live when it calls bpf(2): a child tries
 * it. Without this, early_drop_start fails in a process with a filter. It is for uroced: a library
 * must not fork in an application.
 *
 * Not MT-safe: call it before the process has a second thread.
 */
void early_drop_try_filter(void);

/* The other functions: one thread at a time. They do nothing without an eBPF program. */

/**
 * Attach an eBPF program to an interface. It drops nothing before early_drop_set.
 *
 * @param drop
 *   Set to EARLY_DROP_OFF in case of an error.
 * @return
 *   0; -EPERM: no privilege, or a seccomp filter; another -errno: the kernel has no tcx, for
 * example.
 */
int early_drop_start(struct early_drop *drop, unsigned int ifindex);

/** Set the addresses to the untagged ones of a list that are the interface's, and renew. Needs no
 * privilege. */
void early_drop_set(struct early_drop *drop, unsigned int ifindex,
		    const struct addresses *addresses);

/** Let the program act for some seconds from now on. If the tuning early_drop is off, stop it
 * instead. */
void early_drop_renew(struct early_drop *drop);

/** Detach the program. */
void early_drop_stop(struct early_drop *drop);

#endif
