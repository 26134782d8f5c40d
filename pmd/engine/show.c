/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the facts of a device into its report. */
#include "show.h"

#include <stdio.h>
#include <string.h>

#include "attach/attach.h"
#include "device/device.h"
#include "net/link.h"
#include "report/write.h"

void show_begin(struct report *report, const struct share_facts *facts, const struct link *link,
		struct device *device)
{
	const bool attached = link->remote != NULL;
	struct report_facts *shown = &report->facts;

	shown->role = attached ? REPORT_ATTACHED : REPORT_STANDALONE;
	shown->owner_pid = facts->owner_pid;
	shown->qpn_first = facts->qpn_first;
	shown->qpn_count = facts->qpn_count;
	snprintf(shown->device, sizeof(shown->device), "%s", device->config.name);
	snprintf(shown->port, sizeof(shown->port), "%s", facts->unique);
	shown->netdev = link->addresses.count > 0 && link->addresses.list[0].ifindex != 0;
	shown->udp = link->by_udp;
	shown->guid_be = device->node_guid_be;
	shown->mtu_bytes = link->port.mtu_bytes;
	shown->path_mtu = device->mtu;
	shown->link_mbps = link->port.link_mbps;
	memcpy(shown->mac, link->port.mac, sizeof(shown->mac));
	report_write_device(report, device);
}
