/* SPDX-License-Identifier: BSD-3-Clause */
/* net_af_packet's arguments and socket, and the privilege that it needs. */
#include "af_packet.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/log.h"
#include "base/own.h"
#include "netdev/netdev.h"
#include "psock/psock.h"
#include "wire/build.h"

#define L2_MAX		  22 /* Ethernet and two VLAN tags */
#define RING_FRAME_HEADER 96 /* TPACKET2_HDRLEN, aligned, and some */
#define FRAME_MIN	  2048
#define FRAME_MAX	  16384
#define BLOCK_BYTES	  65536
#define RING_BYTES	  (8u << 20) /* for a burst while this process waits for a CPU */

int af_packet_socket(void)
{
	const int fd = psock_socket();

	if (fd >= 0)
		return fd;
	if (fd == -EPERM || fd == -EACCES)
		log_error(
			"packet sockets need the privilege CAP_NET_RAW: run as root, or give it to "
			"the program (setpriv, systemd's AmbientCapabilities)");
	else
		log_error("cannot open a packet socket: %s", strerror(-fd));
	return fd;
}

int af_packet_learn_netdev(struct port *port, const char *ifname)
{
	struct netdev netdev;
	const int rc = netdev_query(ifname, &netdev);

	if (rc != 0)
		return rc;
	if (port->mtu_bytes > netdev.mtu_bytes) {
		log_error("interface '%s' has an MTU of %u, less than the %u that are wanted: `ip "
			  "link set %s mtu %u` first",
			  ifname, netdev.mtu_bytes, port->mtu_bytes, ifname, port->mtu_bytes);
		return -EINVAL;
	}
	if (port->mtu_bytes == 0)
		port->mtu_bytes = netdev.mtu_bytes;
	port->link_mbps = netdev.mbps;
	return 0;
}

int af_packet_learn(struct port *port, const char *ifname)
{
	const int fd = af_packet_socket();

	if (fd < 0)
		return fd;
	close(fd);
	return af_packet_learn_netdev(port, ifname);
}

uint32_t af_packet_frame_bytes(uint32_t mtu_bytes)
{
	/* Frames longer than the longest RoCE frame may be cut: they are not for us. */
	const uint32_t longest = RTE_MIN(mtu_bytes + L2_MAX, (uint32_t)PACKET_FRAME_MAX);
	uint32_t frame = FRAME_MIN;

	while (frame < longest + RING_FRAME_HEADER && frame < FRAME_MAX)
		frame *= 2;
	return frame;
}

int af_packet_prepare(struct port *port, uint32_t *frame_bytes)
{
	struct devargs *devargs = &port->devargs;
	unsigned long frame = af_packet_frame_bytes(port->mtu_bytes);
	char text[24];
	int rc;

	rc = devargs_get_number(devargs, "framesz", &frame);
	if (rc != 0)
		return rc;
	*frame_bytes = (uint32_t)frame;
	snprintf(text, sizeof(text), "%lu", frame);
	rc = devargs_default(devargs, "framesz", text);
	snprintf(text, sizeof(text), "%lu", RING_BYTES / RTE_MAX(frame, 1ul));
	if (rc == 0)
		rc = devargs_default(devargs, "framecnt", text);
	snprintf(text, sizeof(text), "%u", BLOCK_BYTES);
	if (rc == 0)
		rc = devargs_default(devargs, "blocksz", text);
	if (rc == 0)
		rc = devargs_default(devargs, "qdisc_bypass", "1");
	if (rc != 0)
		log_error("the arguments of port '%s' are too long", devargs->name);
	return rc;
}

static void match_packet_socket(int fd, void *arg)
{
	int *found = arg;
	int domain;
	socklen_t len = sizeof(domain);

	if (*found >= 0 || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) != 0 ||
	    domain != AF_PACKET)
		return;
	own_mark(fd);
	*found = fd;
}

int af_packet_find_socket(const struct fd_list *before)
{
	int found = -1;

	fd_list_new(before, match_packet_socket, &found);
	return found;
}

int af_packet_listen_to_groups(int fd, const char *ifname)
{
	const struct packet_mreq all = {.mr_ifindex = (int)if_nametoindex(ifname),
					.mr_type = PACKET_MR_ALLMULTI};
	int err;

	if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)) == 0)
		return 0;
	err = errno;
	log_error("cannot listen to groups on %s: %s", ifname, strerror(err));
	return -err;
}
