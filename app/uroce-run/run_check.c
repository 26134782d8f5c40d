/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks before the program runs: privileges, and the state of the interface. The library itself
 * reports all other problems when it opens the port. */
#include "run_check.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/capability.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/drivers.h"
#include "config/settings.h"
#include "run_devargs.h"

#define PCI_DEVICES "/sys/bus/pci/devices"

int check_interface(const struct ifaddrs *list, const char *name, char *error, size_t error_size)
{
	bool found = false, is_ethernet = false, has_address = false;
	unsigned int flags = 0;

	for (const struct ifaddrs *ifa = list; ifa != NULL; ifa = ifa->ifa_next) {
		if (strcmp(ifa->ifa_name, name) != 0)
			continue;
		found = true;
		flags = ifa->ifa_flags;
		if (ifa->ifa_addr == NULL)
			continue;
		if (ifa->ifa_addr->sa_family == AF_PACKET)
			is_ethernet = ((const struct sockaddr_ll *)(const void *)ifa->ifa_addr)
					      ->sll_hatype == ARPHRD_ETHER;
		else if (ifa->ifa_addr->sa_family == AF_INET ||
			 ifa->ifa_addr->sa_family == AF_INET6)
			has_address = true;
	}
	if (!found) {
		snprintf(error, error_size, "there is no interface '%s'; see 'ip link'", name);
		return -ENODEV;
	}
	if (!is_ethernet) {
		snprintf(error, error_size, "interface %s is not Ethernet", name);
		return -EPROTONOSUPPORT;
	}
	if (!(flags & IFF_UP)) {
		snprintf(error, error_size, "interface %s is down; 'ip link set %s up'", name,
			 name);
		return -ENETDOWN;
	}
	if (!has_address) {
		snprintf(error, error_size,
			 "interface %s has no address; 'ip addr add ADDR/LEN dev %s'", name, name);
		return -EADDRNOTAVAIL;
	}
	return 0;
}

static int check_netdev(const char *name, char *error, size_t error_size)
{
	struct ifaddrs *list;
	int ret;

	if (getifaddrs(&list) < 0) {
		ret = -errno;
		snprintf(error, error_size, "cannot list the interfaces: %s", strerror(-ret));
		return ret;
	}
	ret = check_interface(list, name, error, error_size);
	freeifaddrs(list);
	return ret;
}

/* Check the right to use raw packet sockets. A capability from the attributes of uroce-run's file
 * is lost at exec. Only the capabilities of root and ambient capabilities reach the program. */
static int check_raw_packets(const char *iface, char *error, size_t error_size)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		close(fd);
	if (fd >= 0 && (geteuid() == 0 ||
			prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_NET_RAW, 0, 0) == 1))
		return 0;
	snprintf(error, error_size,
		 "no right to send and receive packets on %s (CAP_NET_RAW); use --udp, or run "
		 "uroce-run as root",
		 iface);
	return -EPERM;
}

static int check_port(const char *devargs, char *error, size_t error_size)
{
	char iface[IFNAMSIZ];
	int ret;

	ret = devargs_check(devargs, PCI_DEVICES, drivers_dir(), error, error_size);
	if (ret < 0)
		return ret;
	ret = devargs_find_iface(devargs, iface, sizeof(iface), error, error_size);
	if (ret < 0 || iface[0] == '\0')
		return ret;
	if (if_nametoindex(iface) == 0) {
		snprintf(error, error_size, "port: there is no interface '%s'; see 'ip link'",
			 iface);
		return -ENODEV;
	}
	return check_raw_packets(iface, error, error_size);
}

static int check_socket(const char *path, char *error, size_t error_size)
{
	if (access(path, W_OK) == 0)
		return 0;
	if (errno == ENOENT) {
		snprintf(error, error_size,
			 "no uroced has its socket at %s; start it, or name a port with --netdev "
			 "or --port",
			 path);
		return -ENOENT;
	}
	snprintf(error, error_size, "%s: %s; only the socket's owner and group may attach", path,
		 strerror(errno));
	return -EACCES;
}

int check_settings(const struct settings *settings, char *error, size_t error_size)
{
	int ret;

	if (settings->netdev[0] == '\0' && settings->port[0] == '\0')
		return check_socket(settings->isolated[0] != '\0' ? settings->isolated
								  : settings->socket,
				    error, error_size);
	if (settings->kernel[0] != '\0') {
		snprintf(error, error_size,
			 "kernel: only uroced can make a kernel interface for its port; run "
			 "uroced, and let the program attach");
		return -EINVAL;
	}
	/* The DPDK primary process has created the port. */
	if (settings->secondary != 0)
		return 0;
	if (settings->netdev[0] == '\0')
		return check_port(settings->port, error, error_size);
	ret = check_netdev(settings->netdev, error, error_size);
	if (ret < 0 || settings->udp)
		return ret;
	return check_raw_packets(settings->netdev, error, error_size);
}
