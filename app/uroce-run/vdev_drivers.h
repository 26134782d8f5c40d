/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds installed DPDK drivers of virtual network devices without loading them. */
#ifndef UROCE_RUN_VDEV_DRIVERS_H
#define UROCE_RUN_VDEV_DRIVERS_H

#include <stddef.h>

/**
 * Look for the driver of a virtual device. MT-safe.
 *
 * @param dir
 *   Directory of EAL's drivers: RTE_EAL_PMD_PATH, or a test's substitute.
 * @param device
 *   The device's name: the driver's name and a number, as in net_memif0.
 * @param params
 *   Set to the driver's own description of its arguments, as in "size=<int> copy=<int>"; "" if it
 * has none, or if it does not fit.
 * @return
 *   0: the driver is installed; -ENOENT: it is not; -ENODATA: this cannot be told.
 */
int vdev_drivers_find(const char *dir, const char *device, char *params, size_t params_size);

#endif
