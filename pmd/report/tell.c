/* SPDX-License-Identifier: BSD-3-Clause */
/* The fields of a report by name. Names and words for values are those of rdma(8). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>

#include <infiniband/verbs.h>
#include <rte_byteorder.h>

#include "mem/mr.h"
#include "qp/attr.h"
#include "qp/qp.h"
#include "report/read.h"
#include "transport/cc.h"
#include "wire/cm_ip.h"
#include "wire/gid.h"

static const struct {
	const char *name;
	const char *number;
} kinds[REPORT_KINDS] = {
	[REPORT_QP] = {"qp", "lqpn"},	      [REPORT_CQ] = {"cq", "cqn"},
	[REPORT_MR] = {"mr", "mrn"},	      [REPORT_PD] = {"pd", "pdn"},
	[REPORT_SRQ] = {"srq", "srqn"},	      [REPORT_CTX] = {"ctx", "ctxn"},
	[REPORT_CM_ID] = {"cm_id", "cm-idn"},
};

const char *report_kind_name(enum report_kind kind)
{
	return kinds[kind].name;
}

/* Return a word of a table, which may have gaps; `i` may be any number, because another process
 * wrote it. */
static const char *word(const char *const *words, size_t count, uint32_t i)
{
	return i < count && words[i] ? words[i] : "UNKNOWN";
}

const char *report_qp_type(uint32_t type)
{
	static const char *const words[] = {
		[IBV_QPT_RC] = "RC",
		[IBV_QPT_UC] = "UC",
		[IBV_QPT_UD] = "UD",
		[IBV_QPT_XRC_SEND] = "XRC_INI",
		[IBV_QPT_XRC_RECV] = "XRC_TGT",
	};

	return word(words, RTE_DIM(words), type);
}

static const char *region_word(uint32_t kind)
{
	static const char *const words[] = {
		[MR_MEMORY] = "memory", [MR_IMPLICIT] = "implicit", [MR_NULL] = "null",
		[MR_DEVICE] = "device", [MR_DMABUF] = "dmabuf",	    [MR_WINDOW] = "window",
	};

	return word(words, RTE_DIM(words), kind);
}

static void tell_text(const struct report_fields *fields, const char *name, const char *value)
{
	fields->text(fields->arg, name, value);
}

static void tell_number(const struct report_fields *fields, const char *name, uint64_t value)
{
	fields->number(fields->arg, name, value);
}

static void tell_gid(const struct report_fields *fields, const uint8_t gid[16])
{
	char text[INET6_ADDRSTRLEN] = "";

	inet_ntop(AF_INET6, gid, text, sizeof(text));
	tell_text(fields, "dgid", text);
}

static void tell_cc(const struct report_fields *fields, uint32_t cc)
{
	if (cc < CC_KINDS)
		tell_text(fields, "congestion-control", cc_ops((enum cc_kind)cc)->name);
}

static void tell_qp(const struct report_qp *qp, const struct report_fields *fields)
{
	if (qp->dest_qpn != 0) {
		tell_number(fields, "rqpn", qp->dest_qpn);
		tell_gid(fields, qp->dgid);
	}
	tell_text(fields, "type", report_qp_type(qp->type));
	tell_text(fields, "state", attr_state_name(qp->state));
	tell_number(fields, "rq-psn", qp->rq_psn);
	tell_number(fields, "sq-psn", qp->sq_psn);
	tell_text(fields, "path-mig-state", "MIGRATED");
	if (qp->path_mtu >= IBV_MTU_256 && qp->path_mtu <= IBV_MTU_4096)
		tell_number(fields, "path-mtu", 128u << qp->path_mtu);
	tell_number(fields, "sends", qp->sends);
	tell_number(fields, "receives", qp->receives);
	if (qp_waits_name(qp->waits))
		tell_text(fields, "waits-for", qp_waits_name(qp->waits));
	tell_number(fields, "pdn", qp->pd);
	tell_number(fields, "send-cqn", qp->send_cq);
	tell_number(fields, "recv-cqn", qp->recv_cq);
	tell_cc(fields, qp->cc);
}

static void tell_mr(const struct report_mr *mr, uint32_t key, const struct report_fields *fields)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%" PRIx32, key);
	tell_text(fields, "rkey", text);
	tell_text(fields, "lkey", text);
	snprintf(text, sizeof(text), "0x%" PRIx64, mr->iova);
	tell_text(fields, "iova", text);
	tell_number(fields, "mrlen", mr->length);
	tell_text(fields, "mr-type", region_word(mr->kind));
	tell_number(fields, "access", mr->access);
	tell_number(fields, "pdn", mr->pd);
}

static void tell_srq(const struct report_srq *srq, const struct report_fields *fields)
{
	tell_text(fields, "type", srq->is_xrc ? "XRC" : "BASIC");
	if (srq->is_xrc) {
		tell_number(fields, "xrc-srqn", srq->xrc_number);
		tell_number(fields, "cqn", srq->cq);
	}
	tell_number(fields, "max-wr", srq->max_wr);
	tell_number(fields, "limit", srq->limit);
	tell_number(fields, "receives", srq->receives);
	tell_number(fields, "users", srq->users);
	tell_number(fields, "pdn", srq->pd);
}

static const char *space_word(uint64_t service_id)
{
	switch (service_id >> 16) {
	case CM_PS_IPOIB:
		return "IPoIB";
	case CM_PS_TCP:
		return "TCP";
	case CM_PS_UDP:
		return "UDP";
	case CM_PS_IB:
		return "IB";
	default:
		return "UNKNOWN";
	}
}

/* Only the passive side of a connection has a port that is known. */
static void tell_address(const struct report_fields *fields, const char *name,
			 const uint8_t gid[GID_LEN], bool has_port, uint64_t service_id)
{
	char address[INET6_ADDRSTRLEN] = "*", text[INET6_ADDRSTRLEN + 16];
	const bool ip6 = !gid_is_ipv4(gid) && !gid_is_zero(gid);

	if (!gid_is_zero(gid))
		gid_text(gid, address);
	snprintf(text, sizeof(text), ip6 ? "[%s]:%" PRIu16 : "%s:%" PRIu16, address,
		 (uint16_t)service_id);
	tell_text(fields, name, has_port ? text : address);
}

static void tell_cm_id(const struct report_cm_id *id, const struct report_fields *fields)
{
	if (id->qpn != 0)
		tell_number(fields, "lqpn", id->qpn);
	tell_text(fields, "state", id->state);
	tell_text(fields, "ps", space_word(id->service_id));
	tell_address(fields, "src-addr", id->local, !id->active, id->service_id);
	if (!gid_is_zero(id->remote))
		tell_address(fields, "dst-addr", id->remote, id->active, id->service_id);
}

void report_tell_record(const struct report_record *record, const struct report_fields *fields)
{
	if (record->kind >= REPORT_KINDS)
		return;
	tell_number(fields, kinds[record->kind].number, record->number);
	switch ((enum report_kind)record->kind) {
	case REPORT_QP:
		tell_qp(&record->qp, fields);
		break;
	case REPORT_CQ:
		tell_number(fields, "cqe", record->cq.cqe);
		tell_number(fields, "users", record->cq.users);
		tell_number(fields, "waiting", record->cq.waiting);
		break;
	case REPORT_MR:
		tell_mr(&record->mr, record->number, fields);
		break;
	case REPORT_PD:
		tell_number(fields, "users", record->pd.users);
		break;
	case REPORT_SRQ:
		tell_srq(&record->srq, fields);
		break;
	case REPORT_CM_ID:
		tell_cm_id(&record->cm_id, fields);
		break;
	case REPORT_CTX:
	case REPORT_KINDS:
		break;
	}
}

static void tell_guid(const struct report_fields *fields, const char *name, uint64_t guid_be)
{
	const uint64_t guid = rte_be_to_cpu_64(guid_be);
	char text[20];

	snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48) & 0xffff,
		 (unsigned int)(guid >> 32) & 0xffff, (unsigned int)(guid >> 16) & 0xffff,
		 (unsigned int)guid & 0xffff);
	tell_text(fields, name, text);
}

void report_tell_dev(const struct report_facts *facts, const struct report_fields *fields)
{
	tell_text(fields, "node_type", "ca");
	tell_text(fields, "fw", UROCE_VERSION);
	tell_guid(fields, "node_guid", facts->guid_be);
	tell_guid(fields, "sys_image_guid", facts->guid_be);
}

void report_tell_link(const struct report_facts *facts, const struct report_fields *fields)
{
	char mac[18];

	tell_text(fields, "state", facts->link_up ? "ACTIVE" : "DOWN");
	tell_text(fields, "physical_state", facts->link_up ? "LINK_UP" : "DISABLED");
	tell_text(fields, facts->netdev ? "netdev" : "devargs", facts->port);
	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", facts->mac[0], facts->mac[1],
		 facts->mac[2], facts->mac[3], facts->mac[4], facts->mac[5]);
	tell_text(fields, "address", mac);
	tell_number(fields, "mtu", facts->mtu_bytes);
	if (facts->path_mtu >= IBV_MTU_256 && facts->path_mtu <= IBV_MTU_4096)
		tell_number(fields, "path-mtu", 128u << facts->path_mtu);
	tell_number(fields, "mbps", facts->link_mbps);
	tell_cc(fields, facts->cc);
}

void report_tell_congestion(const struct report_view *view, const struct report_fields *fields)
{
	tell_cc(fields, view->facts.cc);
	for (uint32_t i = 0; i < CC_PARAM_COUNT; i++)
		tell_number(fields, cc_param(i)->name, cc_param_get(&view->cc_params, i));
}

void report_tell_stats(const struct report_view *view, const struct report_fields *fields)
{
	for (uint32_t i = 0; i < view->stat_count; i++)
		tell_number(fields, view->stats[i].name, view->stats[i].value);
}

uint64_t report_stat(const struct report_view *view, const char *name)
{
	for (uint32_t i = 0; i < view->stat_count; i++) {
		if (strcmp(view->stats[i].name, name) == 0)
			return view->stats[i].value;
	}
	return 0;
}

const struct report_record *report_find_qp(const struct report_view *view, uint32_t qpn)
{
	for (uint32_t i = 0; i < view->record_count; i++) {
		if (view->records[i].kind == REPORT_QP && view->records[i].number == qpn)
			return &view->records[i];
	}
	return NULL;
}
