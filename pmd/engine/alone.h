/* SPDX-License-Identifier: BSD-3-Clause */
/* The ports of the connection manager where a process opens an interface of the kernel's itself. */
#ifndef ALONE_H
#define ALONE_H

#include <net/if.h>
#include <pthread.h>

#include "cm/ports.h"

struct alone {
	pthread_mutex_t lock;
	char ifname[IF_NAMESIZE];
	int fd; /* the right to be the manager of the interface, or -1 */
};

/**
 * As cm_ports_local, but only one process of an interface gets communication ids: the second one to
 * use rdma_cm gets -EADDRINUSE, and a message. MT-safe.
 */
const struct cm_ports_ops *alone_ports(struct alone *alone, const char *ifname);

#endif
