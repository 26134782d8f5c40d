/* SPDX-License-Identifier: BSD-3-Clause */
/* A port without a network, for the programs of one host. */
#ifndef LOCAL_PORT_H
#define LOCAL_PORT_H

struct port;

/** Set a prepared port's operations to those of a port without a network (port_prepare). Not
 * MT-safe. 0 or -ENOMEM. */
int local_port_prepare(struct port *port);

#endif
