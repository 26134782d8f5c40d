/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection manager's ports for a process that opens a kernel interface itself. */
#ifndef ALONE_H
#define ALONE_H

#include <net/if.h>
#include <pthread.h>
#include <stdbool.h>

#include "cm/ports.h"

struct alone {
	pthread_mutex_t lock;
	char ifname[IF_NAMESIZE];
	int fd; /* for the right to be the manager of the interface (netdev/manager.h), or -errno */
	bool is_manager;
};

/**
 * Like cm_ports_local, but only one process per interface gets communication ids: the second one
 * that uses rdma_cm gets -EADDRINUSE, and a message is logged. Call it while the process has the
 * privileges that it opened the interface with. MT-safe.
 */
const struct cm_ports_ops *alone_ports(struct alone *alone, const char *ifname);

#endif
