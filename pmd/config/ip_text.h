/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion of addresses between a user's text (10.0.0.1/24, fd00::1/64@5) and GIDs. Private to
 * this room. */
#ifndef CONFIG_ADDRESS_H
#define CONFIG_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "config/settings.h"

/* Longest text of an address, its prefix length, its VLAN and the NUL. */
#define ADDRESS_TEXT_MAX 64
#define ROUTE_TEXT_MAX	 (2 * ADDRESS_TEXT_MAX)
/* The longest list of addresses or routes. */
#define LIST_TEXT_MAX ((size_t)SETTINGS_ROUTES_MAX * ROUTE_TEXT_MAX)

/**
 * Parse ADDR/LEN, or ADDR/LEN@VID. MT-safe.
 *
 * @return
 *   0, or -EINVAL with `error` if no host can have the address.
 */
int address_parse(const char *text, struct settings_ip *ip, char *error, size_t error_size);

/** Write an address as text, the inverse of address_parse. MT-safe. `text` has ADDRESS_TEXT_MAX
 * bytes. */
void address_format(const struct settings_ip *ip, char *text);

/** Parse "PREFIX/LEN via GATEWAY", or with `is_gateway` the address of a gateway of all else.
 * MT-safe. 0, or -EINVAL with `error`. */
int route_parse(const char *text, bool is_gateway, struct settings_route *route, char *error,
		size_t error_size);

/** Write a route as text, the inverse of route_parse. MT-safe. `text` has ROUTE_TEXT_MAX bytes. */
void route_format(const struct settings_route *route, char *text);

#endif
