/* SPDX-License-Identifier: BSD-3-Clause */
/* A link's addresses as its device's GIDs, also when they change. */
#include "gids.h"

#include <string.h>

#include "device/device.h"
#include "engine/engines.h"
#include "engine/engine.h"
#include "net/link.h"

void gids_sync(struct device *device, const struct link *link)
{
	struct device_gid gids[ADDRESSES_MAX];

	for (size_t i = 0; i < link->addresses.count; i++) {
		const struct address *address = &link->addresses.list[i];

		gids[i] = (struct device_gid){.ndev_ifindex = address->ifindex,
					      .vlan_id = address->vlan};
		memcpy(gids[i].gid.raw, address->gid, sizeof(gids[i].gid.raw));
	}
	device_sync_gids(device, gids, link->addresses.count);
}

void gids_follow(struct engine *engine)
{
	if (!link_refresh(engine->link))
		return;
	engines_stop_others(engine->engines);
	gids_sync(engine->device, engine->link);
	engines_start_others(engine->engines);
}
