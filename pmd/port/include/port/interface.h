/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel interface that the kernel goes on using, driven by a packet socket. */
#ifndef PORT_INTERFACE_H
#define PORT_INTERFACE_H

#include <stdint.h>

struct port;

/**
 * Make a port one of an interface's packets. Before EAL starts. Not MT-safe.
 *
 * @param mtu_bytes
 *   What the user says the port carries, or 0.
 * @return
 *   0 or -errno (logged).
 */
int interface_prepare(struct port *port, const char *ifname, uint32_t mtu_bytes);

#endif
