/* SPDX-License-Identifier: BSD-3-Clause */
/* Which DPDK drivers of virtual network devices are installed, told without loading them. */
#ifndef UROCE_RUN_DRIVERS_H
#define UROCE_RUN_DRIVERS_H

#include <stddef.h>

/**
 * Look for the driver of a virtual device. MT-safe.
 *
 * @param dir
 *   Where EAL's drivers are: RTE_EAL_PMD_PATH, or what a test has in its place.
 * @param device
 *   The device's name: the driver's and a number, as in net_memif0.
 * @param params
 *   Set to the driver's own words on the arguments it takes, as in "size=<int> copy=<int>"; ""
 * where it has none, or more than fit.
 * @return
 *   0 where it is installed; -ENOENT where it is not; -ENODATA where that cannot be told.
 */
int pci_drivers_find(const char *dir, const char *device, char *params, size_t params_size);

#endif
