/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel interface that the kernel also uses, driven through a packet socket. */
#ifndef PORT_INTERFACE_H
#define PORT_INTERFACE_H

#include <stdint.h>

struct port;

/**
 * Make `port` a port on a kernel interface. Before EAL starts. Not MT-safe.
 *
 * @param mtu_bytes
 *   The MTU that the user has set, or 0.
 * @return
 *   0 or -errno (logged).
 */
int interface_prepare(struct port *port, const char *ifname, uint32_t mtu_bytes);

#endif
