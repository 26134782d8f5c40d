/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts addresses between a user's text and GIDs, and refuses those that no host can have. */
#include "value.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/gid.h"

#define VLAN_MAX 4094 /* IEEE 802.1Q: 4095 is reserved */

static int address_refuse(char *error, size_t error_size, const char *text, const char *why)
{
	snprintf(error, error_size, "address '%s': %s", text, why);
	return -EINVAL;
}

static const char *address_check_ipv4(uint32_t addr, unsigned int prefix_len)
{
	const uint32_t host_mask = prefix_len == 0 ? UINT32_MAX : (1ULL << (32 - prefix_len)) - 1;

	if (addr >> 24 == 0 || addr >> 24 == IN_LOOPBACKNET || addr >> 28 >= 0xe)
		return "not an address that a host can have";
	/* The networks of two addresses (RFC 3021) and of one address have no network address and
	 * no broadcast address. */
	if (prefix_len < 31 && (addr & host_mask) == 0)
		return "this is the network's address, not that of a host";
	if (prefix_len < 31 && (addr & host_mask) == host_mask)
		return "this is the broadcast address, not that of a host";
	return NULL;
}

static const char *address_check_ipv6(const struct in6_addr *addr)
{
	if (IN6_IS_ADDR_UNSPECIFIED(addr) || IN6_IS_ADDR_LOOPBACK(addr) ||
	    IN6_IS_ADDR_MULTICAST(addr))
		return "not an address that a host can have";
	if (IN6_IS_ADDR_V4MAPPED(addr))
		return "write an IPv4 address as IPv4";
	return NULL;
}

/* Parse a decimal number from `min` to `max`. Return -1 for anything else. */
static int address_parse_number(const char *text, int min, int max)
{
	int value = 0;

	if (*text == '\0' || strlen(text) > 4)
		return -1;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		value = value * 10 + *text - '0';
	}
	return value >= min && value <= max ? value : -1;
}

int address_parse(const char *text, struct settings_ip *ip, char *error, size_t error_size)
{
	char addr[ADDRESS_TEXT_MAX];
	const char *why;
	struct in6_addr v6;
	struct in_addr v4;
	int prefix_len, vlan = -1;
	char *slash, *at;

	if (snprintf(addr, sizeof(addr), "%s", text) >= (int)sizeof(addr))
		return address_refuse(error, error_size, text, "too long for an IP address");
	at = strchr(addr, '@');
	if (at != NULL) {
		*at = '\0';
		vlan = address_parse_number(at + 1, 1, VLAN_MAX);
		if (vlan < 0)
			return address_refuse(error, error_size, text,
					      "a VLAN is a number from 1 to 4094");
	}
	slash = strchr(addr, '/');
	if (slash == NULL)
		return address_refuse(
			error, error_size, text,
			"the prefix length is missing; write ADDR/LEN, as in 10.0.0.1/24");
	*slash = '\0';

	memset(ip, 0, sizeof(*ip));
	if (inet_pton(AF_INET, addr, &v4) == 1) {
		prefix_len = address_parse_number(slash + 1, 1, 32);
		if (prefix_len < 0)
			return address_refuse(error, error_size, text,
					      "the prefix length of IPv4 is a number from 1 to 32");
		why = address_check_ipv4(ntohl(v4.s_addr), (unsigned int)prefix_len);
		gid_from_ipv4(&v4, ip->gid);
	} else if (inet_pton(AF_INET6, addr, &v6) == 1) {
		prefix_len = address_parse_number(slash + 1, 1, 128);
		if (prefix_len < 0)
			return address_refuse(
				error, error_size, text,
				"the prefix length of IPv6 is a number from 1 to 128");
		why = address_check_ipv6(&v6);
		memcpy(ip->gid, &v6, sizeof(v6));
	} else {
		return address_refuse(
			error, error_size, text,
			"not an IP address; write ADDR/LEN, as in 10.0.0.1/24 or fd00::1/64");
	}
	if (why != NULL)
		return address_refuse(error, error_size, text, why);
	ip->prefix_len = (uint8_t)prefix_len;
	ip->vlan = (int16_t)vlan;
	return 0;
}

void address_format(const struct settings_ip *ip, char *text)
{
	char addr[GID_TEXT_MAX];

	gid_text(ip->gid, addr);
	if (ip->vlan < 0)
		snprintf(text, ADDRESS_TEXT_MAX, "%s/%u", addr, ip->prefix_len);
	else
		snprintf(text, ADDRESS_TEXT_MAX, "%s/%u@%d", addr, ip->prefix_len, ip->vlan);
}

static bool gid_parse(const char *text, uint8_t gid[GID_LEN])
{
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1) {
		gid_from_ipv4(&v4, gid);
		return true;
	}
	return inet_pton(AF_INET6, text, gid) == 1 && !gid_is_ipv4(gid);
}

static bool gid_is_host(const uint8_t gid[GID_LEN])
{
	struct in6_addr v6;
	uint32_t addr;

	memcpy(&v6, gid, sizeof(v6));
	if (!gid_is_ipv4(gid))
		return address_check_ipv6(&v6) == NULL;
	memcpy(&addr, gid + GID_IPV4_OFFSET, sizeof(addr));
	return address_check_ipv4(ntohl(addr), 32) == NULL;
}

static int route_refuse(char *error, size_t error_size, const char *text, const char *why)
{
	snprintf(error, error_size, "route '%s': %s", text, why);
	return -EINVAL;
}

/* Parse PREFIX/LEN. Return what is wrong, or NULL. */
static const char *prefix_parse(char *text, struct settings_route *route)
{
	char *slash = strchr(text, '/');
	unsigned int before;
	int len;

	if (slash == NULL)
		return "write PREFIX/LEN via GATEWAY, as in 10.2.0.0/16 via 10.0.0.254";
	*slash = '\0';
	if (!gid_parse(text, route->prefix) || gid_is_multicast(route->prefix))
		return "not the prefix of a network";
	before = gid_is_ipv4(route->prefix) ? GID_IPV4_BITS : 0;
	len = address_parse_number(slash + 1, 0, (int)(8 * GID_LEN - before));
	if (len < 0)
		return "the prefix length is a number up to 32, or 128 for IPv6";
	route->prefix_len = (uint8_t)len;
	for (unsigned int bit = before + (unsigned int)len; bit < 8 * GID_LEN; bit++) {
		if (route->prefix[bit / 8] & 0x80 >> bit % 8)
			return "the prefix has bits behind its length";
	}
	return NULL;
}

int route_parse(const char *text, bool is_gateway, struct settings_route *route, char *error,
		size_t error_size)
{
	char prefix[ROUTE_TEXT_MAX], gateway[ROUTE_TEXT_MAX], end;
	const char *why = NULL;

	memset(route, 0, sizeof(*route));
	if (strlen(text) >= ROUTE_TEXT_MAX)
		return route_refuse(error, error_size, text, "too long");
	if (is_gateway)
		snprintf(gateway, sizeof(gateway), "%s", text);
	else if (sscanf(text, "%s via %s %c", prefix, gateway, &end) != 2)
		why = "write PREFIX/LEN via GATEWAY, as in 10.2.0.0/16 via 10.0.0.254";
	else
		why = prefix_parse(prefix, route);
	if (why == NULL && (!gid_parse(gateway, route->gateway) || !gid_is_host(route->gateway)))
		why = "the gateway is not the address of a host";
	if (is_gateway && why == NULL && gid_is_ipv4(route->gateway))
		gid_from_ipv4(&(uint32_t){0}, route->prefix);
	if (why == NULL && gid_is_ipv4(route->prefix) != gid_is_ipv4(route->gateway))
		why = "prefix and gateway are of different IP versions";
	return why != NULL ? route_refuse(error, error_size, text, why) : 0;
}

void route_format(const struct settings_route *route, char *text)
{
	char prefix[GID_TEXT_MAX], gateway[GID_TEXT_MAX];

	gid_text(route->prefix, prefix);
	gid_text(route->gateway, gateway);
	if (route->prefix_len == 0)
		snprintf(text, ROUTE_TEXT_MAX, "%s", gateway);
	else
		snprintf(text, ROUTE_TEXT_MAX, "%s/%u via %s", prefix, route->prefix_len, gateway);
}
