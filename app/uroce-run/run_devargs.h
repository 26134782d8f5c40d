/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of DPDK device arguments that need no DPDK driver. */
#ifndef UROCE_RUN_DEVARGS_H
#define UROCE_RUN_DEVARGS_H

#include <stddef.h>

/**
 * Check the form of device arguments, that a virtual device's driver is installed, and that a PCI
 * device is there and free. MT-safe.
 *
 * @param pci_devices
 *   /sys/bus/pci/devices, or a test's substitute.
 * @param drivers
 *   Directory of EAL's drivers, or a test's substitute.
 * @return
 *   0, or -EINVAL, -ENODEV, -EBUSY with `error`.
 */
int devargs_check(const char *devargs, const char *pci_devices, const char *drivers, char *error,
		  size_t error_size);

/**
 * Find the kernel interface that a virtual device uses. MT-safe.
 *
 * @return
 *   0 with `iface` ("" if the device uses none), or -EINVAL with `error` if the arguments lack the
 * interface that the driver needs.
 */
int devargs_find_iface(const char *devargs, char *iface, size_t iface_size, char *error,
		       size_t error_size);

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
