/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishes a device to the view of its process. All facts are answers of the functions behind
 * ibv_query_device(3) and its relatives, so that files and verbs agree. */
#include "publish.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/device.h"
#include "engine/engine.h"
#include "engine/engines.h"
#include "net/link.h"
#include "view/member.h"
#include "wire/headers.h"

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

_Static_assert(DEVICE_GIDS_MAX == VIEW_GIDS_MAX, "a view has as many GIDs as a device");

struct publication {
	struct view_member member;
	struct view_facts facts;		 /* published last */
	struct device_gid gids[DEVICE_GIDS_MAX]; /* the same, as the device has them */
};

static void publish_gids(const struct device *device, struct view_facts *facts)
{
	char name[IF_NAMESIZE];

	for (int i = 0; i < DEVICE_GIDS_MAX; i++) {
		const struct device_gid *from = &device->gids[i];
		struct view_gid *to = &facts->gids[i];

		memset(to, 0, sizeof(*to));
		memcpy(to->raw, from->gid.raw, sizeof(to->raw));
		if (from->ndev_ifindex == 0 || !if_indextoname(from->ndev_ifindex, name))
			continue;
		snprintf(to->ndev, sizeof(to->ndev), "%s", name);
		/* The port's own interface is that of the first GID; others may be of its VLANs. */
		if (facts->netdev[0] == '\0')
			snprintf(facts->netdev, sizeof(facts->netdev), "%s", name);
	}
}

static void publish_port(const struct device *device, struct view_facts *facts)
{
	struct ibv_port_attr attr;

	device_query_port(device, &attr);
	facts->state = (uint8_t)attr.state;
	facts->phys_state = attr.phys_state;
	facts->active_width = attr.active_width;
	facts->active_speed = attr.active_speed;
	facts->port_cap_flags = attr.port_cap_flags;
	facts->pkey = WIRE_PKEY_DEFAULT;
}

static void publish_fill(const struct device *device, uint32_t number, struct view_facts *facts)
{
	struct ibv_device_attr_ex attr;

	device_query(device, &attr);
	memset(facts, 0, sizeof(*facts));
	snprintf(facts->name, sizeof(facts->name), "%s", device->config.name);
	snprintf(facts->fw_ver, sizeof(facts->fw_ver), "%s", attr.orig_attr.fw_ver);
	facts->number = number;
	facts->vendor_id = attr.orig_attr.vendor_id;
	facts->vendor_part_id = attr.orig_attr.vendor_part_id;
	facts->hw_ver = attr.orig_attr.hw_ver;
	facts->node_guid_be = attr.orig_attr.node_guid;
	facts->sys_image_guid_be = attr.orig_attr.sys_image_guid;
	publish_gids(device, facts);
	publish_port(device, facts);
}

/* Publish for the first time. The engine is stopped meanwhile, and updates the facts from then on.
 */
static void publish_tell(struct engine *engine, struct publication *publication, uint32_t number)
{
	engine_lock(engine);
	publish_fill(engine->device, number, &publication->facts);
	memcpy(publication->gids, engine->device->gids, sizeof(publication->gids));
	view_member_tell(&publication->member, &publication->facts);
	engine->publication = publication;
	engine->device->shown = true;
	engine_release(engine);
}

void publish_begin(struct engine *engine, uint32_t number)
{
	struct publication *publication = calloc(1, sizeof(*publication));

	if (!publication)
		return;
	if (!view_member_join(&publication->member)) {
		free(publication);
		return;
	}
	publish_tell(engine, publication, number);
	if (!view_member_wait(&publication->member))
		log_warn("the files of '%s' in /sys/class/infiniband are not up to date: the "
			 "view's server does not answer",
			 publication->facts.name);
}

static bool publish_is_old(const struct publication *publication, const struct device *device)
{
	struct view_facts now = publication->facts;

	publish_port(device, &now);
	return now.state != publication->facts.state ||
	       memcmp(publication->gids, device->gids, sizeof(publication->gids)) != 0;
}

void publish_update(struct engine *engine)
{
	struct publication *publication = engine->publication;
	struct counters counters;

	if (!publication || !view_member_is_in(&publication->member))
		return;
	device_counters(engine->device, &counters);
	view_member_count(&publication->member, &counters);
	if (!publish_is_old(publication, engine->device))
		return;
	publish_fill(engine->device, publication->facts.number, &publication->facts);
	memcpy(publication->gids, engine->device->gids, sizeof(publication->gids));
	view_member_tell(&publication->member, &publication->facts);
}
