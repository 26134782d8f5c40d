/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection manager's MADs to bytes. */
#include <errno.h>
#include <string.h>

#include "cm_layout.h"
#include "wire/headers.h"

static uint8_t time_bits(uint8_t exponent)
{
	return (uint8_t)((exponent & MAD_TIME_MASK) << MAD_TIME_SHIFT);
}

static void put_path(struct mad_path *to, const struct cm_path *path)
{
	to->local_lid = rte_cpu_to_be_16(path->local_lid);
	to->remote_lid = rte_cpu_to_be_16(path->remote_lid);
	memcpy(to->local_gid, path->local_gid, sizeof(to->local_gid));
	memcpy(to->remote_gid, path->remote_gid, sizeof(to->remote_gid));
	to->flow_rate = rte_cpu_to_be_32(path->flow_label << MAD_PATH_FLOW_SHIFT |
					 (path->packet_rate & MAD_PATH_RATE_MASK));
	to->tclass = path->tclass;
	to->hop_limit = path->hop_limit;
	to->sl = (uint8_t)(path->sl << 4 | (path->subnet_local ? MAD_PATH_SUBNET_LOCAL : 0));
	to->ack_timeout = time_bits(path->ack_timeout);
}

static uint8_t *build_req(struct mad_req *to, const struct cm_req *req)
{
	wire_put24(to->vendor_id, req->ece.vendor_id);
	to->service_id = rte_cpu_to_be_64(req->service_id);
	to->ca_guid = rte_cpu_to_be_64(req->ca_guid);
	to->qkey = rte_cpu_to_be_32(req->qkey);
	wire_put24(to->qpn, req->qpn);
	to->responder_resources = req->responder_resources;
	wire_put24(to->local_eecn, req->local_eecn);
	to->initiator_depth = req->initiator_depth;
	wire_put24(to->remote_eecn, req->remote_eecn);
	to->remote_timeout =
		(uint8_t)(time_bits(req->remote_response_timeout) |
			  (req->transport & MAD_REQ_TRANSPORT_MASK) << MAD_REQ_TRANSPORT_SHIFT |
			  (req->flow_control ? MAD_REQ_FLOW_CONTROL : 0));
	wire_put24(to->psn, req->psn.v);
	to->local_timeout = (uint8_t)(time_bits(req->local_response_timeout) |
				      (req->retry_count & MAD_COUNT_MASK));
	to->pkey = rte_cpu_to_be_16(req->pkey);
	to->mtu = (uint8_t)(req->mtu << 4 | (req->rdc_exists ? MAD_REQ_RDC : 0) |
			    (req->rnr_retry_count & MAD_COUNT_MASK));
	to->max_cm_retries = (uint8_t)(req->max_cm_retries << 4 | (req->srq ? MAD_REQ_SRQ : 0) |
				       (req->extended_type & MAD_COUNT_MASK));
	put_path(&to->primary, &req->primary);
	put_path(&to->alternate, &req->alternate);
	to->alternate.ack_timeout |= req->sap_supported ? MAD_REQ_SAP : 0;
	return to->private_data;
}

static uint8_t *build_mra(struct mad_mra *to, const struct cm_mra *mra)
{
	to->about = (uint8_t)(mra->about << MAD_ABOUT_SHIFT);
	to->service_timeout = time_bits(mra->service_timeout);
	return to->private_data;
}

/* Build a REJ. Return NULL if the additional information is too long. */
static uint8_t *build_rej(struct mad_rej *to, const struct cm_rej *rej)
{
	to->about = (uint8_t)(rej->about << MAD_ABOUT_SHIFT);
	to->reason = rte_cpu_to_be_16(rej->reason);
	if (rej->info_len > sizeof(to->info))
		return NULL;
	to->info_len = (uint8_t)(rej->info_len << 1);
	if (rej->info_len > 0)
		memcpy(to->info, rej->info, rej->info_len);
	return to->private_data;
}

static uint8_t *build_rep(struct mad_rep *to, const struct cm_rep *rep)
{
	to->qkey = rte_cpu_to_be_32(rep->qkey);
	wire_put24(to->qpn, rep->qpn);
	wire_put24(to->eecn, rep->eecn);
	wire_put24(to->psn, rep->psn.v);
	to->vendor_id_high = (uint8_t)(rep->ece.vendor_id >> 16);
	to->vendor_id_middle = (uint8_t)(rep->ece.vendor_id >> 8);
	to->vendor_id_low = (uint8_t)rep->ece.vendor_id;
	to->responder_resources = rep->responder_resources;
	to->initiator_depth = rep->initiator_depth;
	to->target_ack_delay =
		(uint8_t)(time_bits(rep->target_ack_delay) |
			  (rep->failover & MAD_REP_FAILOVER_MASK) << MAD_REP_FAILOVER_SHIFT |
			  (rep->flow_control ? MAD_REP_FLOW_CONTROL : 0));
	to->rnr_retry_count =
		(uint8_t)(rep->rnr_retry_count << MAD_REP_RNR_SHIFT | (rep->srq ? MAD_REP_SRQ : 0));
	to->ca_guid = rte_cpu_to_be_64(rep->ca_guid);
	return to->private_data;
}

static uint8_t *build_sidr_rep(struct mad_sidr_rep *to, const struct cm_sidr_rep *rep)
{
	to->status = rep->status;
	wire_put24(to->qpn, rep->qpn);
	to->service_id = rte_cpu_to_be_64(rep->service_id);
	to->qkey = rte_cpu_to_be_32(rep->qkey);
	if (rep->info_len > sizeof(to->info))
		return NULL;
	to->info_len = rep->info_len;
	if (rep->info_len > 0)
		memcpy(to->info, rep->info, rep->info_len);
	return to->private_data;
}

static uint8_t *build_lap(struct mad_lap *to, const struct cm_lap *lap)
{
	const struct cm_path *path = &lap->path;

	wire_put24(to->remote_qpn, lap->remote_qpn);
	to->remote_timeout = time_bits(lap->remote_response_timeout);
	to->local_lid = rte_cpu_to_be_16(path->local_lid);
	to->remote_lid = rte_cpu_to_be_16(path->remote_lid);
	memcpy(to->local_gid, path->local_gid, sizeof(to->local_gid));
	memcpy(to->remote_gid, path->remote_gid, sizeof(to->remote_gid));
	wire_put24(to->flow_label, path->flow_label << MAD_LAP_FLOW_SHIFT);
	to->tclass = path->tclass;
	to->hop_limit = path->hop_limit;
	to->packet_rate = path->packet_rate & MAD_PATH_RATE_MASK;
	to->sl = (uint8_t)(path->sl << 4 | (path->subnet_local ? MAD_PATH_SUBNET_LOCAL : 0));
	to->ack_timeout = time_bits(path->ack_timeout);
	return to->private_data;
}

static uint8_t *build_apr(struct mad_apr *to, const struct cm_apr *apr)
{
	to->status = apr->status;
	if (apr->info_len > sizeof(to->info))
		return NULL;
	to->info_len = apr->info_len;
	if (apr->info_len > 0)
		memcpy(to->info, apr->info, apr->info_len);
	return to->private_data;
}

/* Write a message's own fields. Return the address of its private data. */
static uint8_t *build_message(uint8_t *data, const struct cm_mad *mad)
{
	struct mad_sidr_req *sidr_req = (struct mad_sidr_req *)data;
	struct mad_dreq *dreq = (struct mad_dreq *)data;

	switch (mad->message) {
	case CM_REQ:
		return build_req((struct mad_req *)data, &mad->req);
	case CM_MRA:
		return build_mra((struct mad_mra *)data, &mad->mra);
	case CM_REJ:
		return build_rej((struct mad_rej *)data, &mad->rej);
	case CM_REP:
		return build_rep((struct mad_rep *)data, &mad->rep);
	case CM_RTU:
	case CM_DREP:
		return data + offsetof(struct mad_ids, private_data);
	case CM_DREQ:
		wire_put24(dreq->remote_qpn, mad->dreq_qpn);
		return dreq->private_data;
	case CM_SIDR_REQ:
		sidr_req->pkey = rte_cpu_to_be_16(mad->sidr_req.pkey);
		sidr_req->service_id = rte_cpu_to_be_64(mad->sidr_req.service_id);
		return sidr_req->private_data;
	case CM_SIDR_REP:
		return build_sidr_rep((struct mad_sidr_rep *)data, &mad->sidr_rep);
	case CM_LAP:
		return build_lap((struct mad_lap *)data, &mad->lap);
	case CM_APR:
		return build_apr((struct mad_apr *)data, &mad->apr);
	}
	return NULL;
}

static bool has_remote_id(enum cm_message message)
{
	return message != CM_REQ && message != CM_SIDR_REQ && message != CM_SIDR_REP;
}

static uint32_t modifier_of(const struct cm_mad *mad)
{
	switch (mad->message) {
	case CM_REQ:
		return mad->req.ece.options;
	case CM_REP:
		return mad->rep.ece.options;
	default:
		return 0;
	}
}

int cm_mad_build(const struct cm_mad *mad, uint8_t *bytes)
{
	const struct mad_header header = {
		.base_version = MAD_BASE_VERSION,
		.mgmt_class = MAD_CLASS_CM,
		.class_version = CM_CLASS_VERSION,
		.method = MAD_SEND,
		.tid = rte_cpu_to_be_64(mad->tid),
		.attr = rte_cpu_to_be_16((uint16_t)mad->message),
		.modifier = rte_cpu_to_be_32(modifier_of(mad)),
	};
	const rte_be32_t ids[2] = {rte_cpu_to_be_32(mad->local_id),
				   rte_cpu_to_be_32(mad->remote_id)};
	uint8_t *data = bytes + sizeof(header);
	uint8_t *private_data;

	memset(bytes, 0, MAD_LEN);
	memcpy(bytes, &header, sizeof(header));
	private_data = build_message(data, mad);
	if (!private_data || mad->private_len > cm_private_len(mad->message))
		return -EINVAL;
	memcpy(data, ids, has_remote_id(mad->message) ? sizeof(ids) : sizeof(ids[0]));
	if (mad->private_len > 0)
		memcpy(private_data, mad->private_data, mad->private_len);
	return 0;
}
