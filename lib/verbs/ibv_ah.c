/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles: a resolved path that datagrams name; the prebuilt headers of an address vector:
 * the peer's link address and the source port of the flow; and the address to reply to, from a
 * datagram's completion and its 40 bytes of network header. */
#include <assert.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "device/quota.h"
#include "mem/pd.h"
#include "transport/datagram.h"
#include "verbs_internal.h"
#include "wire/gid.h"

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
	struct ibv_ah_attr routed = *attr;
	uint8_t mac[6] = {0};
	int rc;

	if (attr->port_num != FACE_PORT)
		return CALL_REASON(-EINVAL, "port_num is %u; it must be 1", attr->port_num);
	/* Linux gives a connection the hop limit of the route, mostly 64, whatever the program
	 * says. Many say 1, and reach peers behind routers all the same (ibv_rc_pingpong). */
	if (qpn != 0)
		routed.grh.hop_limit = WIRE_HOP_LIMIT;
	/* Reject an invalid address before anybody waits for an answer. */
	rc = make_path(device, &routed, mac, sport, path);
	if (rc == 0)
		rc = device->net->resolve(device->net_user, attr->grh.sgid_index, &attr->grh.dgid,
					  mac);
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
	rc = device->net->resolve(device->net_user, sgid_index, &attr->grh.dgid, eth_mac);
	if (rc == 0 && vid)
		*vid = vlan_id < 0 ? UINT16_MAX : (uint16_t)vlan_id;
	return rc;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *ibv, struct ibv_ah_attr *attr)
{
	struct face_context *context = face_context(ibv->context);
	struct face_ah *ah;
	int rc;

	if (context_is_orphan(ibv->context))
		return face_null(-ENODEV);
	rc = like_refuses(LIKE_LACKS_ah);
	if (rc != 0)
		return face_null(rc);
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return face_null(-ENOMEM);
	ah->pd = face_pd(ibv)->pd;
	rc = pd_get(ah->pd);
	if (rc != 0)
		goto free_handle;
	rc = quota_take(context->device, DEVICE_QUOTA_AH);
	if (rc != 0)
		goto put_pd;
	/* Any queue pairs may use a handle, so its flow label depends on its address only. */
	rc = path_resolve(context->device, attr, 0, 0, &ah->ah.path);
	if (rc != 0)
		goto give_quota;
	ah->attr = *attr;
	ah->ah.ibv.context = ibv->context;
	ah->ah.ibv.pd = ibv;
	ah->ah.ibv.handle = context_handle(context);
	ah->parent = parent_get(ibv);
	context_add(context, FACE_AH, &ah->object);
	handles_add(&ah->ah.ibv);
	return &ah->ah.ibv;
give_quota:
	quota_give(context->device, DEVICE_QUOTA_AH);
put_pd:
	pd_put(ah->pd);
free_handle:
	free(ah);
	return face_null(rc);
}

static void give_back(struct face_ah *ah)
{
	quota_give(face_context(ah->ah.ibv.context)->device, DEVICE_QUOTA_AH);
	pd_put(ah->pd);
	parent_put(ah->parent);
}

void ah_end(struct face_object *object)
{
	give_back(container_of(object, struct face_ah, object));
}

static int end_ah(void *handle)
{
	struct ibv_ah *ibv = handle;
	struct face_ah *ah = face_ah(ibv);

	if (context_is_orphan(ibv->context))
		return -ENODEV;
	give_back(ah);
	context_remove(face_context(ibv->context), &ah->object);
	free(ah);
	return 0;
}

int ibv_destroy_ah(struct ibv_ah *ibv)
{
	return handles_end(ibv, end_ah);
}

#define GRH_IPV4_OFFSET 20 /* an IPv4 header is in the last 20 of the 40 bytes, A17.4.5.1.2 */

struct ipv4_header {
	uint8_t version_ihl;
	uint8_t tos;
	uint8_t unused[6];
	uint8_t ttl;
	uint8_t protocol;
	uint8_t checksum[2];
	uint8_t saddr[4];
	uint8_t daddr[4];
};
static_assert(sizeof(struct ipv4_header) == 20, "IPv4 header without options is 20 bytes");

/* Return true if the header sums up to all ones (RFC 791). */
static bool ipv4_checksum_ok(const uint8_t *header)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < sizeof(struct ipv4_header); i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

/* Return 4, 6 or -1. The first 20 bytes of the IPv4 form are undefined and may look like IPv6. */
static int grh_version(const uint8_t *bytes)
{
	const uint8_t *ipv4 = bytes + GRH_IPV4_OFFSET;

	if (ipv4[0] == 0x45 && ipv4_checksum_ok(ipv4))
		return 4;
	return bytes[0] >> 4 == 6 ? 6 : -1;
}

static int set_sgid(struct face_context *context, const union ibv_gid *gid,
		    struct ibv_ah_attr *attr)
{
	int rc = context_lock(context);

	if (rc != 0)
		return rc;
	rc = device_find_gid(context->device, gid->raw, DEVICE_ANY_VLAN);
	context_unlock(context);
	if (rc < 0)
		return rc;
	attr->grh.sgid_index = (uint8_t)rc;
	return 0;
}

static int from_ipv4(struct face_context *context, const uint8_t *bytes, struct ibv_ah_attr *attr)
{
	struct ipv4_header header;
	union ibv_gid own;

	memcpy(&header, bytes + GRH_IPV4_OFFSET, sizeof(header));
	gid_from_ipv4(header.saddr, attr->grh.dgid.raw);
	gid_from_ipv4(header.daddr, own.raw);
	attr->grh.hop_limit = header.ttl;
	attr->grh.traffic_class = header.tos;
	return set_sgid(context, &own, attr);
}

static int from_ipv6(struct face_context *context, const struct ibv_grh *grh,
		     struct ibv_ah_attr *attr)
{
	const uint32_t word = rte_be_to_cpu_32(grh->version_tclass_flow);

	if (grh->next_hdr != IPPROTO_UDP)
		return -EPROTONOSUPPORT; /* RoCE v1, of which we have no GID */
	attr->grh.dgid = grh->sgid;
	attr->grh.hop_limit = grh->hop_limit;
	attr->grh.traffic_class = (uint8_t)(word >> 20);
	attr->grh.flow_label = word & IB_GRH_FLOWLABEL_MASK;
	return set_sgid(context, &grh->dgid, attr);
}

int ibv_init_ah_from_wc(struct ibv_context *ibv, uint8_t port_num, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct face_context *context = face_context(ibv);
	int rc;

	*attr = (struct ibv_ah_attr){
		.dlid = wc->slid,
		/* In completions of our device, sl is the packet type and not a priority. */
		.sl = wc->sl & DATAGRAM_SL_UDP ? 0 : wc->sl,
		.src_path_bits = wc->dlid_path_bits,
		.port_num = port_num,
	};
	if (port_num != FACE_PORT)
		return face_minus_one(-EINVAL);
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	attr->is_global = 1;
	switch (grh_version((const uint8_t *)grh)) {
	case 4:
		rc = from_ipv4(context, (const uint8_t *)grh, attr);
		break;
	case 6:
		rc = from_ipv6(context, grh, attr);
		break;
	default:
		rc = -EPROTONOSUPPORT;
	}
	return rc == 0 ? 0 : face_minus_one(rc);
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) != 0)
		return NULL;
	return ibv_create_ah(pd, &attr);
}
