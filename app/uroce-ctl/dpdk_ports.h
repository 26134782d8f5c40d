/* SPDX-License-Identifier: BSD-3-Clause */
/* The DPDK ports of a process that lets other DPDK processes join it. */
#ifndef DPDK_PORTS_H
#define DPDK_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct held_socket {
	uint64_t inode;
	unsigned int type; /* SOCK_SEQPACKET and so on */
	bool listens;
	char path[108];
};

/**
 * Pass each such socket of a process to a callback, from any network namespace. MT-safe.
 *
 * @param root
 *   In front of /proc; "": this host.
 * @return
 *   false if the process's descriptors cannot be read.
 */
bool held_each(const char *root, const char *pid,
	       void (*tell)(void *arg, const struct held_socket *socket), void *arg);

#define DPDK_PORTS_MAX 32

struct dpdk_port {
	uint32_t id;
	char name[64];
};

struct dpdk_ports {
	char prefix[64]; /* the process's --file-prefix; "": no process may join it */
	uint32_t count;
	struct dpdk_port list[DPDK_PORTS_MAX]; /* by id, upwards */
};

/** Ask a process for its ports by DPDK's telemetry. Returns 0, also if no process may join it, or
 * -errno. */
int dpdk_ports_ask(pid_t pid, struct dpdk_ports *ports);

/** Return a device's DPDK port, or the DPDK port that stands in for another kind of port; NULL:
 * none. */
const struct dpdk_port *dpdk_ports_find(const struct dpdk_ports *ports, const char *port);

/** Return the DPDK port that shows the packets between the programs on `port`; NULL: none. */
const struct dpdk_port *dpdk_ports_find_handed_over(const struct dpdk_ports *ports,
						    const struct dpdk_port *port);

#endif
