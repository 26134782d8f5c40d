/* SPDX-License-Identifier: BSD-3-Clause */
/* Parsing of the connection manager's MADs: every check that needs no state. */
#include <string.h>

#include "cm_layout.h"
#include "wire/headers.h"

static const char *const message_names[] = {
#define MESSAGE(name, attr, private_len) [CM_##name - CM_FIRST_MESSAGE] = #name,
	CM_MESSAGES(MESSAGE)
#undef MESSAGE
};

static const uint8_t private_lens[] = {
#define MESSAGE(name, attr, private_len) [CM_##name - CM_FIRST_MESSAGE] = private_len,
	CM_MESSAGES(MESSAGE)
#undef MESSAGE
};

#define MESSAGES (sizeof(private_lens) / sizeof(private_lens[0]))

const char *cm_message_name(unsigned int message)
{
	return message - CM_FIRST_MESSAGE < MESSAGES ? message_names[message - CM_FIRST_MESSAGE]
						     : NULL;
}

uint8_t cm_private_len(unsigned int message)
{
	return message - CM_FIRST_MESSAGE < MESSAGES ? private_lens[message - CM_FIRST_MESSAGE] : 0;
}

uint64_t cm_time_ns(uint8_t exponent)
{
	return UINT64_C(4096) << (exponent & MAD_TIME_MASK);
}

uint8_t cm_ack_timeout(uint8_t ack_delay, uint8_t packet_life_time)
{
	const int way = packet_life_time + 1; /* there and back */
	const int longer = way > ack_delay ? way : ack_delay;
	const int shorter = way > ack_delay ? ack_delay : way;
	/* The sum of two powers of two, rounded up. */
	const int timeout = longer + (shorter >= longer - 1);

	return (uint8_t)(timeout < CM_TIME_MAX ? timeout : CM_TIME_MAX);
}

/* Return true if a connection can have this queue pair: not QP 0 or 1, and not the multicast
 * number. */
static bool is_qpn(uint32_t qpn)
{
	return qpn > GSI_QPN && qpn != WIRE_QPN_MULTICAST;
}

static void get_path(const struct mad_path *from, struct cm_path *path)
{
	const uint32_t flow_rate = rte_be_to_cpu_32(from->flow_rate);

	path->local_lid = rte_be_to_cpu_16(from->local_lid);
	path->remote_lid = rte_be_to_cpu_16(from->remote_lid);
	memcpy(path->local_gid, from->local_gid, sizeof(path->local_gid));
	memcpy(path->remote_gid, from->remote_gid, sizeof(path->remote_gid));
	path->flow_label = flow_rate >> MAD_PATH_FLOW_SHIFT;
	path->packet_rate = flow_rate & MAD_PATH_RATE_MASK;
	path->tclass = from->tclass;
	path->hop_limit = from->hop_limit;
	path->sl = from->sl >> 4;
	path->subnet_local = from->sl & MAD_PATH_SUBNET_LOCAL;
	path->ack_timeout = from->ack_timeout >> MAD_TIME_SHIFT;
}

static bool parse_req(const struct mad_req *from, struct cm_mad *mad)
{
	struct cm_req *req = &mad->req;

	req->ece.vendor_id = wire_get24(from->vendor_id);
	req->service_id = rte_be_to_cpu_64(from->service_id);
	req->ca_guid = rte_be_to_cpu_64(from->ca_guid);
	req->qkey = rte_be_to_cpu_32(from->qkey);
	req->qpn = wire_get24(from->qpn);
	req->responder_resources = from->responder_resources;
	req->initiator_depth = from->initiator_depth;
	req->local_eecn = wire_get24(from->local_eecn);
	req->remote_eecn = wire_get24(from->remote_eecn);
	req->remote_response_timeout = from->remote_timeout >> MAD_TIME_SHIFT;
	req->transport = from->remote_timeout >> MAD_REQ_TRANSPORT_SHIFT & MAD_REQ_TRANSPORT_MASK;
	req->flow_control = from->remote_timeout & MAD_REQ_FLOW_CONTROL;
	req->psn = psn_make(wire_get24(from->psn));
	req->local_response_timeout = from->local_timeout >> MAD_TIME_SHIFT;
	req->retry_count = from->local_timeout & MAD_COUNT_MASK;
	req->pkey = rte_be_to_cpu_16(from->pkey);
	req->mtu = from->mtu >> 4;
	req->rdc_exists = from->mtu & MAD_REQ_RDC;
	req->rnr_retry_count = from->mtu & MAD_COUNT_MASK;
	req->max_cm_retries = from->max_cm_retries >> 4;
	req->srq = from->max_cm_retries & MAD_REQ_SRQ;
	req->extended_type = from->max_cm_retries & MAD_COUNT_MASK;
	req->sap_supported = from->alternate.ack_timeout & MAD_REQ_SAP;
	get_path(&from->primary, &req->primary);
	get_path(&from->alternate, &req->alternate);
	mad->private_data = from->private_data;
	return is_qpn(req->qpn);
}

static bool parse_mra(const struct mad_mra *from, struct cm_mad *mad)
{
	mad->mra.about = from->about >> MAD_ABOUT_SHIFT;
	mad->mra.service_timeout = from->service_timeout >> MAD_TIME_SHIFT;
	mad->private_data = from->private_data;
	return mad->mra.about <= CM_ABOUT_OTHER;
}

static bool parse_rej(const struct mad_rej *from, struct cm_mad *mad)
{
	mad->rej.about = from->about >> MAD_ABOUT_SHIFT;
	mad->rej.reason = rte_be_to_cpu_16(from->reason);
	mad->rej.info = from->info;
	mad->rej.info_len = from->info_len >> 1;
	mad->private_data = from->private_data;
	return mad->rej.about <= CM_ABOUT_OTHER && mad->rej.info_len <= CM_INFO_MAX;
}

static bool parse_rep(const struct mad_rep *from, struct cm_mad *mad)
{
	struct cm_rep *rep = &mad->rep;

	rep->qkey = rte_be_to_cpu_32(from->qkey);
	rep->qpn = wire_get24(from->qpn);
	rep->eecn = wire_get24(from->eecn);
	rep->psn = psn_make(wire_get24(from->psn));
	rep->ece.vendor_id = (uint32_t)from->vendor_id_high << 16 |
			     (uint32_t)from->vendor_id_middle << 8 | from->vendor_id_low;
	rep->responder_resources = from->responder_resources;
	rep->initiator_depth = from->initiator_depth;
	rep->target_ack_delay = from->target_ack_delay >> MAD_TIME_SHIFT;
	rep->failover = from->target_ack_delay >> MAD_REP_FAILOVER_SHIFT & MAD_REP_FAILOVER_MASK;
	rep->flow_control = from->target_ack_delay & MAD_REP_FLOW_CONTROL;
	rep->rnr_retry_count = from->rnr_retry_count >> MAD_REP_RNR_SHIFT;
	rep->srq = from->rnr_retry_count & MAD_REP_SRQ;
	rep->ca_guid = rte_be_to_cpu_64(from->ca_guid);
	mad->private_data = from->private_data;
	return is_qpn(cm_rep_qpn(rep));
}

static bool parse_sidr_rep(const struct mad_sidr_rep *from, struct cm_mad *mad)
{
	struct cm_sidr_rep *rep = &mad->sidr_rep;

	rep->status = from->status;
	rep->qpn = wire_get24(from->qpn);
	rep->service_id = rte_be_to_cpu_64(from->service_id);
	rep->qkey = rte_be_to_cpu_32(from->qkey);
	rep->info = from->info;
	rep->info_len = from->info_len;
	mad->remote_id = 0;
	mad->private_data = from->private_data;
	return rep->info_len <= CM_INFO_MAX && (rep->status != CM_SIDR_VALID || is_qpn(rep->qpn));
}

static bool parse_lap(const struct mad_lap *from, struct cm_mad *mad)
{
	struct cm_lap *lap = &mad->lap;

	lap->remote_qpn = wire_get24(from->remote_qpn);
	lap->remote_response_timeout = from->remote_timeout >> MAD_TIME_SHIFT;
	lap->path.local_lid = rte_be_to_cpu_16(from->local_lid);
	lap->path.remote_lid = rte_be_to_cpu_16(from->remote_lid);
	memcpy(lap->path.local_gid, from->local_gid, sizeof(lap->path.local_gid));
	memcpy(lap->path.remote_gid, from->remote_gid, sizeof(lap->path.remote_gid));
	lap->path.flow_label = wire_get24(from->flow_label) >> MAD_LAP_FLOW_SHIFT;
	lap->path.tclass = from->tclass;
	lap->path.hop_limit = from->hop_limit;
	lap->path.packet_rate = from->packet_rate & MAD_PATH_RATE_MASK;
	lap->path.sl = from->sl >> 4;
	lap->path.subnet_local = from->sl & MAD_PATH_SUBNET_LOCAL;
	lap->path.ack_timeout = from->ack_timeout >> MAD_TIME_SHIFT;
	mad->private_data = from->private_data;
	return is_qpn(lap->remote_qpn);
}

static bool parse_apr(const struct mad_apr *from, struct cm_mad *mad)
{
	mad->apr.info_len = from->info_len;
	mad->apr.status = from->status;
	mad->apr.info = from->info;
	mad->private_data = from->private_data;
	return mad->apr.info_len <= CM_INFO_MAX;
}

static void get_ids(const uint8_t *data, struct cm_mad *mad)
{
	struct mad_ids ids;

	memcpy(&ids, data, offsetof(struct mad_ids, private_data));
	mad->local_id = rte_be_to_cpu_32(ids.local_id);
	mad->remote_id = rte_be_to_cpu_32(ids.remote_id);
}

static bool parse_message(const uint8_t *data, struct cm_mad *mad)
{
	const struct mad_sidr_req *sidr_req = (const struct mad_sidr_req *)data;
	const struct mad_dreq *dreq = (const struct mad_dreq *)data;

	switch (mad->message) {
	case CM_REQ:
		mad->remote_id = 0;
		return parse_req((const struct mad_req *)data, mad);
	case CM_MRA:
		return parse_mra((const struct mad_mra *)data, mad);
	case CM_REJ:
		return parse_rej((const struct mad_rej *)data, mad);
	case CM_REP:
		return parse_rep((const struct mad_rep *)data, mad);
	case CM_RTU:
	case CM_DREP:
		mad->private_data = data + offsetof(struct mad_ids, private_data);
		return true;
	case CM_DREQ:
		mad->dreq_qpn = wire_get24(dreq->remote_qpn);
		mad->private_data = dreq->private_data;
		return is_qpn(mad->dreq_qpn);
	case CM_SIDR_REQ:
		mad->remote_id = 0;
		mad->sidr_req.pkey = rte_be_to_cpu_16(sidr_req->pkey);
		mad->sidr_req.service_id = rte_be_to_cpu_64(sidr_req->service_id);
		mad->private_data = sidr_req->private_data;
		return true;
	case CM_SIDR_REP:
		return parse_sidr_rep((const struct mad_sidr_rep *)data, mad);
	case CM_LAP:
		return parse_lap((const struct mad_lap *)data, mad);
	case CM_APR:
		return parse_apr((const struct mad_apr *)data, mad);
	}
	return false;
}

static void take_modifier(uint32_t modifier, struct cm_mad *mad)
{
	if (mad->message == CM_REQ)
		mad->req.ece.options = modifier;
	else if (mad->message == CM_REP)
		mad->rep.ece.options = modifier;
}

enum cm_mad_status cm_mad_parse(const uint8_t *bytes, size_t len, struct cm_mad *mad)
{
	struct mad_header header;

	if (len != MAD_LEN)
		return CM_MAD_BAD_LENGTH;
	memcpy(&header, bytes, sizeof(header));
	if (header.base_version != MAD_BASE_VERSION)
		return CM_MAD_BAD_BASE_VERSION;
	if (header.mgmt_class != MAD_CLASS_CM)
		return CM_MAD_BAD_CLASS;
	if (header.class_version != CM_CLASS_VERSION)
		return CM_MAD_BAD_CLASS_VERSION;
	if (header.method != MAD_SEND)
		return CM_MAD_BAD_METHOD;
	mad->message = (enum cm_message)rte_be_to_cpu_16(header.attr);
	if (!cm_message_name(mad->message))
		return CM_MAD_BAD_ATTRIBUTE;
	mad->tid = rte_be_to_cpu_64(header.tid);
	mad->private_len = cm_private_len(mad->message);
	get_ids(bytes + sizeof(header), mad);
	take_modifier(rte_be_to_cpu_32(header.modifier), mad);
	return parse_message(bytes + sizeof(header), mad) ? CM_MAD_OK : CM_MAD_BAD_FIELD;
}
