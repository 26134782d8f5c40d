/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups: which queue pairs get a copy of the datagrams to one (IBTA 10.5). */
#ifndef DEVICE_MCAST_H
#define DEVICE_MCAST_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct device;
struct packet;
struct qp;

/**
 * Attach a queue pair to a group; once more changes nothing. The first of a group joins it on the
 * port. Engine's lock.
 *
 * @param blocks_own
 *   It does not want what it sends itself (IBV_QP_CREATE_BLOCK_SELF_MCAST_LB).
 * @return
 *   0 (1: it is new there), -EINVAL for a GID that is no group's, -ENOMEM where the device's limits
 *   are reached, or what engine_ops.join says.
 */
int mcast_attach(struct device *device, const union ibv_gid *gid, struct qp *qp, bool blocks_own);

/** Detach. The last of a group leaves it on the port. Engine's lock. 0, or -EINVAL where it is not
 * attached. */
int mcast_detach(struct device *device, const union ibv_gid *gid, struct qp *qp);

/** Detach from every group. Engine's lock. */
void mcast_detach_all(struct device *device, struct qp *qp);

/** Give a datagram to all queue pairs of its group. Engine's thread. False: nobody is in it. */
bool mcast_deliver(const struct device *device, const struct packet *packet, uint64_t now_ns);

#endif
