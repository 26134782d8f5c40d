/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions for hardware only: the kernel driver, interrupts, and unplugging. */
#ifndef PCI_H
#define PCI_H

#include <stdbool.h>

#include "ethdev.h"

/** Check a PCI device before EAL starts its driver. 0, or -EOPNOTSUPP (logged): a driver that needs
 * another libibverbs. */
int pci_check(const char *name);

/** Log why no DPDK driver took a PCI device. Returns -ENODEV. */
int pci_explain(const char *name);

/** Return how the device accesses memory. */
enum port_dma pci_dma(const struct port *port);

/** Watch a started port for its removal. Not MT-safe. */
void pci_watch(struct ethdev *dev);

/** Return true if the device has gone or must be released. Engine's thread or lock. */
bool pci_is_gone(const struct ethdev *dev);

/** Release a device that has gone, because the kernel waits for that. Engine's lock. */
void pci_give_up(const struct ethdev *dev);

/** Enable the receive interrupt of a queue. Return true if frames may wait already. Engine's lock;
 * MT-safe if the port has no interrupts. */
bool pci_arm(const struct ethdev_queue *queue);

/** Disable it. Engine's lock. */
void pci_disarm(const struct ethdev_queue *queue);

#endif
