/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the prebuilt headers of an address vector: finds the peer's link address and the source
 * port of the flow. */
#include "verbs_internal.h"

/*
 * Return the UDP source port of a connection. It is the same for every packet, so that they take
 * one path through the network, and most likely different for every other connection. It is
 * computed as Linux's drivers do: a flow label from the two queue pair numbers if the application
 * gives none, and the port from the flow label.
 */
static uint16_t entropy_port(const struct ibv_ah_attr *attr, uint32_t qpn, uint32_t dest_qpn)
{
	uint64_t mix = (uint64_t)qpn * dest_qpn;

	if (attr->grh.flow_label != 0)
		return ibv_flow_label_to_udp_sport(attr->grh.flow_label);
	mix ^= mix >> 20;
	mix ^= mix >> 40;
	return ibv_flow_label_to_udp_sport((uint32_t)mix & IB_GRH_FLOWLABEL_MASK);
}

/* Build the path under the lock: addresses of the device may change at any time. */
static int make_path(struct device *device, const struct ibv_ah_attr *attr, const uint8_t mac[6],
		     uint16_t sport, struct path *path)
{
	int rc;

	device_lock(device);
	rc = device_make_path(device, attr, mac, sport, path);
	device_unlock(device);
	return rc;
}

int path_resolve(struct device *device, const struct ibv_ah_attr *attr, uint32_t qpn,
		 uint32_t dest_qpn, struct path *path)
{
	const uint16_t sport = entropy_port(attr, qpn, dest_qpn);
	const struct device_engine *first = device_first(device);
	struct ibv_ah_attr routed = *attr;
	uint8_t mac[6] = {0};
	int rc;

	if (attr->port_num != FACE_PORT)
		return -EINVAL;
	/* Linux gives a connection the hop limit of the route, mostly 64, whatever the program
	 * says. Many say 1, and reach peers behind routers all the same (ibv_rc_pingpong). */
	if (qpn != 0)
		routed.grh.hop_limit = WIRE_HOP_LIMIT;
	/* Reject an invalid address before anybody waits for an answer. */
	rc = make_path(device, &routed, mac, sport, path);
	if (rc == 0)
		rc = first->ops->resolve(first->driver, attr->grh.sgid_index, &attr->grh.dgid, mac);
	if (rc == 0)
		rc = make_path(device, &routed, mac, sport, path);
	return rc;
}

/* Return the link address and VLAN for packets to an address; for drivers. 0 or -errno. */
int ibv_resolve_eth_l2_from_gid(struct ibv_context *ibv, struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	struct face_context *context = face_context(ibv);
	struct device *device = context->device;
	const struct device_engine *first = device_first(device);
	const uint8_t sgid_index = attr->grh.sgid_index;
	int32_t vlan_id;
	int rc;

	if (attr->port_num != FACE_PORT || sgid_index >= DEVICE_GIDS_MAX)
		return -EINVAL;
	rc = context_lock(context);
	if (rc != 0)
		return rc;
	vlan_id = device->gids[sgid_index].vlan_id;
	context_unlock(context);
	rc = first->ops->resolve(first->driver, sgid_index, &attr->grh.dgid, eth_mac);
	if (rc == 0 && vid)
		*vid = vlan_id < 0 ? UINT16_MAX : (uint16_t)vlan_id;
	return rc;
}
