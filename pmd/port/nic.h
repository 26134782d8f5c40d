/* SPDX-License-Identifier: BSD-3-Clause */
/* What only hardware does: it is bound to a driver of the kernel, interrupts, and can be pulled
 * out. */
#ifndef NIC_H
#define NIC_H

#include <stdbool.h>

#include "ethdev.h"

/** Say on the log why no DPDK driver took a PCI device. Always -ENODEV. */
int nic_explain(const char *name);

/** How the device comes to memory. */
enum port_dma nic_dma(const struct port *port);

/** For a port that was started: hear of its removal, and use the interrupts that it was set up
 * with. Not MT-safe. */
void nic_watch(struct ethdev *dev);

/** Return true when the device is no more, or shall be given up. Engine's thread or lock. */
bool nic_is_gone(const struct ethdev *dev);

/** Give up a device that is gone: the kernel waits for that. Engine's lock. */
void nic_give_up(const struct ethdev *dev);

/** Have the NIC interrupt for what comes. Return true if frames may wait already. Engine's lock, or
 * MT-safe where the port has no interrupts. */
bool nic_arm(const struct ethdev *dev);

/** Have it interrupt no more. Engine's lock. */
void nic_disarm(const struct ethdev *dev);

#endif
