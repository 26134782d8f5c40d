/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of the settings against this host before the program runs. */
#ifndef UROCE_RUN_CHECK_H
#define UROCE_RUN_CHECK_H

#include <stddef.h>

struct ifaddrs;
struct settings;

/**
 * Check the settings against this host: its interfaces, devices and the user's rights. MT-safe.
 *
 * @return
 *   0, or -errno with `error`: one line with the problem and its remedy.
 */
int check_settings(const struct settings *settings, char *error, size_t error_size);

/**
 * Check that an interface exists, is Ethernet, is up and has an address. MT-safe.
 *
 * @param list
 *   All interfaces and addresses, as getifaddrs(3) returns them.
 * @return
 *   0, -ENODEV, -EPROTONOSUPPORT, -ENETDOWN or -EADDRNOTAVAIL with `error`.
 */
int check_interface(const struct ifaddrs *list, const char *name, char *error, size_t error_size);

#endif
