/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast groups: each attached queue pair gets a copy of the datagrams to a group (IBTA 10.5).
 * Calls that change groups take turns by device.groups_lock, and the device's lock for a moment
 * only: to join a group on the port may take seconds, and the engines run meanwhile.
 */
#ifndef DEVICE_MCAST_H
#define DEVICE_MCAST_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct device;
struct device_engine;
struct packet;
struct qp;

/**
 * Attach a queue pair to a group; attaching it again changes nothing. The first member of a group
 * joins it on the port. MT-safe, not under lock; may block.
 *
 * @param blocks_own
 *   The queue pair does not receive datagrams that it sends itself
 *   (IBV_QP_CREATE_BLOCK_SELF_MCAST_LB).
 * @return
 *   0 (or 1: it is newly attached), -EINVAL for a GID that is not a group's, -ENOMEM if the
 *   device's limits are reached, or the error of device_net_ops.join.
 */
int mcast_attach(struct device *device, const union ibv_gid *gid, struct qp *qp, bool blocks_own);

/** Detach a queue pair. The last member of a group leaves it on the port. MT-safe, not under lock;
 * may block. 0, or -EINVAL if it is not attached. */
int mcast_detach(struct device *device, const union ibv_gid *gid, struct qp *qp);

/** Detach a queue pair from every group. MT-safe, not under lock; may block. */
void mcast_detach_all(struct device *device, struct qp *qp);

/** Deliver a datagram to all queue pairs of its group that belong to an engine. Engine's thread.
 * Returns false if the device has no queue pair in the group. */
bool mcast_deliver(const struct device_engine *engine, const struct packet *packet,
		   uint64_t now_ns);

#endif
