/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK device arguments, as far as they can be judged without DPDK's drivers. */
#ifndef UROCE_RUN_DEVARGS_H
#define UROCE_RUN_DEVARGS_H

#include <stddef.h>

/**
 * Check the form of device arguments, that a virtual device's driver is installed, and that a PCI
 * device is there and free. MT-safe.
 *
 * @param pci_devices
 *   /sys/bus/pci/devices, or what a test has in its place.
 * @param drivers
 *   Where EAL's drivers are, likewise.
 * @return
 *   0, or -EINVAL, -ENODEV, -EBUSY with `error`.
 */
int devargs_check(const char *devargs, const char *pci_devices, const char *drivers, char *error,
		  size_t error_size);

/**
 * Find which kernel interface a virtual device drives. MT-safe.
 *
 * @return
 *   0 with `iface` ("" where it drives none), or -EINVAL with `error` where it must name one and
 * does not.
 */
int devargs_find_iface(const char *devargs, char *iface, size_t iface_size, char *error,
		       size_t error_size);

#endif
