/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles: a resolved path that datagrams name; and the address to reply to, from a
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

struct ibv_ah *ibv_create_ah(struct ibv_pd *ibv, struct ibv_ah_attr *attr)
{
	struct face_context *context = face_context(ibv->context);
	struct face_ah *ah;
	int rc;

	if (context_is_orphan(ibv->context))
		return face_null(-ENODEV);
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
