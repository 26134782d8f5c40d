/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the kernel for the route to an address that nobody has. */
#include "interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>

/* For documents (RFC 5737, RFC 3849). */
#define IPV4_OF_NOBODY "192.0.2.1"
#define IPV6_OF_NOBODY "2001:db8::1"

/* Get the address from which packets to others leave: that of a datagram socket that is connected,
 * which sends nothing. */
static bool source_to_others(int family, struct sockaddr_storage *source)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = 1};
	struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_port = 1};
	const bool is6 = family == AF_INET6;
	const void *address = is6 ? (const void *)&to6 : (const void *)&to;
	socklen_t len = is6 ? sizeof(to6) : sizeof(to);
	const int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool found;

	if (fd < 0)
		return false;
	inet_pton(AF_INET, IPV4_OF_NOBODY, &to.sin_addr);
	inet_pton(AF_INET6, IPV6_OF_NOBODY, &to6.sin6_addr);
	found = connect(fd, address, len) == 0;
	len = sizeof(*source);
	found = found && getsockname(fd, (struct sockaddr *)source, &len) == 0;
	close(fd);
	return found;
}

static bool has_address(const struct ifaddrs *ifa, const struct sockaddr_storage *source)
{
	const struct sockaddr_in *a = (const void *)ifa->ifa_addr, *b = (const void *)source;
	const struct sockaddr_in6 *a6 = (const void *)ifa->ifa_addr, *b6 = (const void *)source;

	if (ifa->ifa_addr == NULL || ifa->ifa_addr->sa_family != source->ss_family)
		return false;
	if (source->ss_family == AF_INET)
		return a->sin_addr.s_addr == b->sin_addr.s_addr;
	return source->ss_family == AF_INET6 &&
	       memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
}

static bool find_interface(const struct sockaddr_storage *source, char name[IF_NAMESIZE])
{
	struct ifaddrs *list;
	bool found = false;

	if (getifaddrs(&list) != 0)
		return false;
	for (const struct ifaddrs *ifa = list; ifa != NULL && !found; ifa = ifa->ifa_next) {
		found = has_address(ifa, source);
		/* An address may have a label, as "eth0:1". */
		if (found)
			snprintf(name, IF_NAMESIZE, "%.*s", (int)strcspn(ifa->ifa_name, ":"),
				 ifa->ifa_name);
	}
	freeifaddrs(list);
	return found;
}

bool interface_to_others(char name[IF_NAMESIZE])
{
	static const int families[] = {AF_INET, AF_INET6};
	struct sockaddr_storage source;

	for (size_t i = 0; i < RTE_DIM(families); i++)
		if (source_to_others(families[i], &source) && find_interface(&source, name))
			return true;
	return false;
}
