/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a memif wire of our own: waiting for a server, losing a peer, meeting the next. */
#ifndef LINK_MEMIF_H
#define LINK_MEMIF_H

#include "link/gate.h"
#include "link/port.h"

/** Whether the port is such a wire, whose connection is looked after here. MT-safe. */
bool memif_tends(const struct port *port);

/** Look once what has become of the connection; does not wait. Engine's lock. */
void memif_tend(struct port *port);

/**
 * Do so from here on, in a thread, whenever there is something to see: between `enter` and `leave`
 * of `ops`. Not MT-safe. 0 or -errno.
 */
int memif_tend_always(struct port *port, const struct gate_ops *ops, void *user);

#endif
