/* SPDX-License-Identifier: BSD-3-Clause */
/* What only hardware does: it is bound to a driver of the kernel, interrupts, and can be pulled
 * out. */
#ifndef PCI_H
#define PCI_H

#include <stdbool.h>

#include "ethdev.h"

/** Say on the log why no DPDK driver took a PCI device. Always -ENODEV. */
int pci_explain(const char *name);

/** How the device comes to memory. */
enum port_dma pci_dma(const struct port *port);

/** For a port that was started: hear of its removal, and use the interrupts that it was set up
 * with. Not MT-safe. */
void pci_watch(struct ethdev *dev);

/** Return true when the device is no more, or shall be given up. Engine's thread or lock. */
bool pci_is_gone(const struct ethdev *dev);

/** Give up a device that is gone: the kernel waits for that. Engine's lock. */
void pci_give_up(const struct ethdev *dev);

/** Have the NIC interrupt for what comes. Return true if frames may wait already. Engine's lock, or
 * MT-safe where the port has no interrupts. */
bool pci_arm(const struct ethdev *dev);

/** Have it interrupt no more. Engine's lock. */
void pci_disarm(const struct ethdev *dev);

#endif
