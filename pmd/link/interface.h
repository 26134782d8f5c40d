/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel interface that the kernel goes on using, driven by a packet socket. */
#ifndef INTERFACE_H
#define INTERFACE_H

struct port;

/** Make port->ifname's packets those of a port whose pool is made. Not MT-safe. 0 or -errno
 * (logged). */
int interface_open(struct port *port);

#endif
