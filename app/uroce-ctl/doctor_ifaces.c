/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of the kernel's Ethernet interfaces: state, MTU, offloads. */

#include <inttypes.h>
#include <net/if_arp.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define NET	   "/sys/class/net"
#define FRAME_MORE 80 /* bytes of an IP packet beyond the payload, with IPv6 and all headers */

/* Return the largest path MTU that fits, or 0. */
static uint64_t path_mtu(uint64_t mtu)
{
	uint64_t path = 4096;

	while (path >= 256 && path + FRAME_MORE > mtu)
		path /= 2;
	return path >= 256 ? path : 0;
}

static void check_mtu(const struct doctor *doctor, const char *iface)
{
	const uint64_t mtu = doctor_number(doctor, 0, NET "/%s/mtu", iface);
	char change[256];

	if (path_mtu(mtu) == 4096) {
		doctor_tell(doctor, "mtu", iface, NULL, "%" PRIu64 ": path MTU 4096", mtu);
		return;
	}
	snprintf(change, sizeof(change),
		 "as root: ip link set dev %s mtu %d, at both ends and in switches between them",
		 iface, 4096 + FRAME_MORE);
	doctor_tell(doctor, "mtu", iface, change, "%" PRIu64 ": path MTU %" PRIu64 ", not 4096",
		    mtu, path_mtu(mtu));
}

static void check_state(const struct doctor *doctor, const char *iface)
{
	char state[32], change[256];

	doctor_read(doctor, state, sizeof(state), NET "/%s/operstate", iface);
	if (strcmp(state, "down") == 0) {
		snprintf(change, sizeof(change), "as root: ip link set dev %s up (and its cable)",
			 iface);
		doctor_tell(doctor, "link", iface, change, "down");
	} else {
		doctor_tell(doctor, "link", iface, NULL, "%s", state[0] ? state : "unknown");
	}
}

static void check_offloads(const struct doctor *doctor, const char *iface)
{
	const enum doctor_offload offload = doctor->host->segments_udp(iface);
	static const char *const found[] = {
		[OFFLOAD_UNKNOWN] = "unknown",
		[OFFLOAD_MISSING] = "no tx-udp-segmentation in its driver: the kernel splits runs",
		[OFFLOAD_OFF] = "tx-udp-segmentation off: the kernel splits runs of packets",
		[OFFLOAD_ON] = "tx-udp-segmentation on: runs of packets leave in one piece",
	};
	char change[256];

	snprintf(change, sizeof(change),
		 "as root: ethtool -K %s tx-udp-segmentation on, unless a reader at the other end "
		 "of "
		 "a veth needs single packets",
		 iface);
	doctor_tell(doctor, "offloads", iface, offload == OFFLOAD_OFF ? change : NULL, "%s",
		    found[offload]);
}

void doctor_ifaces(const struct doctor *doctor)
{
	char **names;
	const size_t count = doctor_list(doctor, NET, &names);

	for (size_t i = 0; i < count; i++) {
		if (doctor_number(doctor, 0, NET "/%s/type", names[i]) != ARPHRD_ETHER)
			continue;
		check_state(doctor, names[i]);
		check_mtu(doctor, names[i]);
		check_offloads(doctor, names[i]);
	}
	doctor_list_free(names, count);
}
