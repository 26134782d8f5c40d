/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of a device, which are IP addresses, and paths from one of them to a peer. */
#include <errno.h>
#include <string.h>

#include "base/reason.h"
#include "device/device.h"
#include "wire/gid.h"
#include "wire/headers.h"

#define PORT_NUM       1
#define VLAN_VID_MAX   4094
#define VLAN_PCP_SHIFT 13

static void update_end(struct device *device)
{
	device->gid_end = DEVICE_GIDS_MAX;
	while (device->gid_end > 0 && gid_is_zero(device->gids[device->gid_end - 1].gid.raw))
		device->gid_end--;
}

int device_add_gid(struct device *device, const union ibv_gid *gid, int32_t vlan_id,
		   uint32_t ifindex)
{
	int free_index = -ENOSPC;

	if (gid_is_zero(gid->raw) || gid_is_multicast(gid->raw) || vlan_id < -1 ||
	    vlan_id > VLAN_VID_MAX)
		return -EINVAL;
	for (int i = DEVICE_GIDS_MAX - 1; i >= 0; i--) {
		const struct device_gid *entry = &device->gids[i];

		if (gid_is_zero(entry->gid.raw))
			free_index = i;
		else if (memcmp(&entry->gid, gid, sizeof(*gid)) == 0 && entry->vlan_id == vlan_id)
			return -EEXIST;
	}
	if (free_index >= 0) {
		device->gids[free_index].vlan_id = vlan_id;
		device->gids[free_index].ndev_ifindex = ifindex;
		device->gids[free_index].gid = *gid;
		update_end(device);
	}
	return free_index;
}

static bool is_listed(const struct device_gid *entry, const struct device_gid *gids, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (entry->vlan_id == gids[i].vlan_id &&
		    memcmp(&entry->gid, &gids[i].gid, sizeof(entry->gid)) == 0)
			return true;
	}
	return false;
}

void device_sync_gids(struct device *device, const struct device_gid *gids, size_t count)
{
	bool changed = false;

	for (int i = 0; i < DEVICE_GIDS_MAX; i++) {
		struct device_gid *entry = &device->gids[i];

		if (gid_is_zero(entry->gid.raw) || is_listed(entry, gids, count))
			continue;
		*entry = (struct device_gid){.vlan_id = -1};
		changed = true;
	}
	for (size_t i = 0; i < count; i++) {
		if (device_add_gid(device, &gids[i].gid, gids[i].vlan_id, gids[i].ndev_ifindex) >=
		    0)
			changed = true;
	}
	update_end(device);
	if (changed)
		device_raise(device, IBV_EVENT_GID_CHANGE);
}

int device_find_gid(const struct device *device, const uint8_t gid[16], int32_t vlan_id)
{
	for (int i = 0; i < DEVICE_GIDS_MAX; i++) {
		const struct device_gid *entry = &device->gids[i];

		if (memcmp(entry->gid.raw, gid, 16) == 0 &&
		    (vlan_id == DEVICE_ANY_VLAN || vlan_id == entry->vlan_id))
			return gid_is_zero(gid) ? -ENOENT : i;
	}
	return -ENOENT;
}

/* Return the VLAN tag of packets from an address: its VLAN, with the service level as priority. -1
 * if it has no VLAN. */
static int32_t vlan_tci(const struct device_gid *source, uint8_t sl)
{
	return source->vlan_id < 0 ? -1 : source->vlan_id | (sl & 7) << VLAN_PCP_SHIFT;
}

int device_make_path(const struct device *device, const struct ibv_ah_attr *ah,
		     const uint8_t dst_mac[6], uint16_t udp_sport, struct path *path)
{
	const struct ibv_global_route *grh = &ah->grh;
	const struct device_gid *source;
	struct path_attr attr;

	if (!ah->is_global || ah->port_num != PORT_NUM || grh->sgid_index >= DEVICE_GIDS_MAX)
		return CALL_REASON(
			-EINVAL,
			"is_global is %u, port_num %u and sgid_index %u; they must be 1, "
			"1 and below %d",
			ah->is_global, ah->port_num, grh->sgid_index, DEVICE_GIDS_MAX);
	source = &device->gids[grh->sgid_index];
	if (gid_is_zero(source->gid.raw))
		return CALL_REASON(-EINVAL, "the device has no GID at sgid_index %u",
				   grh->sgid_index);
	if (gid_is_zero(grh->dgid.raw))
		return CALL_REASON(-EINVAL, "grh.dgid, the destination's GID, is 0");
	attr = (struct path_attr){
		.vlan_tci = vlan_tci(source, ah->sl),
		.tclass = grh->traffic_class,
		/* Programs for InfiniBand leave it 0. */
		.hop_limit = grh->hop_limit ? grh->hop_limit : WIRE_HOP_LIMIT,
		.flow_label = grh->flow_label & 0xfffff,
		.udp_sport = udp_sport,
	};
	memcpy(attr.src_mac, device->config.mac, sizeof(attr.src_mac));
	memcpy(attr.dst_mac, dst_mac, sizeof(attr.dst_mac));
	memcpy(attr.sgid, source->gid.raw, sizeof(attr.sgid));
	memcpy(attr.dgid, grh->dgid.raw, sizeof(attr.dgid));
	if (path_init(path, &attr) == 0)
		return 0;
	return CALL_REASON(-EINVAL,
			   "one of the GIDs is IPv4 and the other one IPv6: choose another "
			   "sgid_index");
}
