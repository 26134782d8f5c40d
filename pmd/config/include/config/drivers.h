/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptions of the installed DPDK drivers. */
#ifndef CONFIG_DRIVERS_H
#define CONFIG_DRIVERS_H

#include <stdbool.h>

/**
 * Return the directory of DPDK's drivers. A bundle has them in liburoce.so.0. Not MT-safe.
 */
const char *drivers_dir(void);

/**
 * Pass the description of each DPDK driver for networks to a callback, until it returns false.
 * MT-safe.
 *
 * @param dir
 *   The directory of DPDK's drivers.
 * @param look
 *   Called with the description that the driver's file contains, a JSON text such as {"name":
 *   "net_memif", ..., "pci_ids": []}. The text is valid only during the call.
 * @return
 *   The number of descriptions that were passed; 0 also if there is no such directory.
 */
unsigned int drivers_each(const char *dir, bool (*look)(void *arg, const char *description),
			  void *arg);

/**
 * Return true if DPDK drives the NICs of a kernel driver through rdma-core's libibverbs: a
 * ConnectX, for example. Programs of uroce have uroce's library in its place, so such a NIC cannot
 * be a port. MT-safe.
 */
bool drivers_need_verbs(const char *kernel_driver);

#endif
