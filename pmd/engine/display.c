/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishes a device to the view of its process. All facts are answers of the functions behind
 * ibv_query_device(3) and its relatives, so that files and verbs agree. */
#include "display.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/device.h"
#include "engine/engine.h"
#include "net/link.h"
#include "view/member.h"
#include "wire/headers.h"

_Static_assert(DEVICE_GIDS_MAX == VIEW_GIDS_MAX, "a view has as many GIDs as a device");

struct display {
	struct view_member member;
	struct view_facts facts;		 /* published last */
	struct device_gid gids[DEVICE_GIDS_MAX]; /* the same, as the device has them */
};

static void display_gids(const struct device *device, struct view_facts *facts)
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

static void display_port(const struct device *device, struct view_facts *facts)
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

static void display_fill(const struct device *device, uint32_t number, struct view_facts *facts)
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
	display_gids(device, facts);
	display_port(device, facts);
}

/* Publish for the first time. The engine is stopped meanwhile, and updates the facts from then on.
 */
static void display_tell(struct engine *engine, struct display *display, uint32_t number)
{
	engine_lock(engine);
	display_fill(engine->device, number, &display->facts);
	memcpy(display->gids, engine->device->gids, sizeof(display->gids));
	view_member_tell(&display->member, &display->facts);
	engine->display = display;
	engine->device->displayed = true;
	engine_release(engine);
}

void display_begin(struct engine *engine, uint32_t number)
{
	struct display *display = calloc(1, sizeof(*display));

	if (!display)
		return;
	if (!view_member_join(&display->member)) {
		free(display);
		return;
	}
	display_tell(engine, display, number);
	if (!view_member_wait(&display->member))
		log_warn("the files of '%s' in /sys/class/infiniband are not up to date: the "
			 "view's server does not answer",
			 display->facts.name);
}

static bool display_is_old(const struct display *display, const struct device *device)
{
	struct view_facts now = display->facts;

	display_port(device, &now);
	return now.state != display->facts.state ||
	       memcmp(display->gids, device->gids, sizeof(display->gids)) != 0;
}

void display_update(struct engine *engine)
{
	struct display *display = engine->display;
	struct counters counters;

	if (!display || !view_member_is_in(&display->member))
		return;
	device_counters(engine->device, &counters);
	view_member_count(&display->member, &counters);
	if (!display_is_old(display, engine->device))
		return;
	display_fill(engine->device, display->facts.number, &display->facts);
	memcpy(display->gids, engine->device->gids, sizeof(display->gids));
	view_member_tell(&display->member, &display->facts);
}
