/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of the connection manager's user. */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "base/reason.h"
#include "cm_internal.h"
#include "wire/headers.h"

#define LID_NONE      0xffff /* RoCE has no LIDs; Linux's value */
#define FAILOVER_NONE 1	     /* 12.6.8: alternate paths are not supported */

/* Write private data behind the IP header. Return 0, or -EINVAL if it is too long. */
static int put_private(const struct cm_ip *ip, const void *data, uint8_t len, uint8_t *to,
		       struct cm_mad *mad)
{
	const uint8_t skip = ip ? CM_IP_LEN : 0;
	const uint8_t room = cm_private_len(mad->message) - skip;

	if (len > room)
		return CALL_REASON(-EINVAL, CM_SAY_PRIVATE_LONG, len, room,
				   cm_message_name(mad->message), ip ? ", A11" : "");
	if (ip && cm_ip_build(ip, to) != 0)
		return CALL_REASON(-EINVAL, "both addresses must be of one IP version");
	if (len > 0)
		memcpy(to + skip, data, len);
	mad->private_data = to;
	mad->private_len = skip + len;
	return 0;
}

static struct cm_path path_of(const struct cm_connect_attr *attr, uint8_t ack_timeout)
{
	struct cm_path path = {
		.local_lid = LID_NONE,
		.remote_lid = LID_NONE,
		.flow_label = attr->flow_label,
		.tclass = attr->tclass,
		.hop_limit = attr->hop_limit,
		.ack_timeout = ack_timeout,
	};

	memcpy(path.local_gid, attr->to.local, sizeof(path.local_gid));
	memcpy(path.remote_gid, attr->to.remote, sizeof(path.remote_gid));
	return path;
}

static void fill_req(const struct cm_conn *conn, const struct cm_connect_attr *attr,
		     struct cm_req *req)
{
	*req = (struct cm_req){
		.service_id = attr->service_id,
		.ca_guid = conn->cm->config.ca_guid,
		.qkey = attr->qkey,
		.qpn = attr->qpn,
		.responder_resources = attr->responder_resources,
		.initiator_depth = attr->initiator_depth,
		.remote_response_timeout = attr->response_timeout,
		.local_response_timeout = attr->response_timeout,
		.transport = attr->transport,
		.flow_control = attr->flow_control,
		.psn = conn->agreed.rq_psn,
		.retry_count = attr->retry_count,
		.pkey = WIRE_PKEY_DEFAULT,
		.mtu = attr->mtu,
		.rnr_retry_count = attr->rnr_retry_count,
		.max_cm_retries = attr->max_cm_retries,
		.srq = attr->srq,
		.extended_type = attr->extended_type,
		.ece = attr->ece,
		.primary = path_of(attr, conn->agreed.ack_timeout),
	};
}

/* Take all that the REQ asks for as agreed; the REP may reduce it. */
static void take_connect(struct cm_conn *conn, const struct cm_connect_attr *attr)
{
	struct cm_agreed *agreed = &conn->agreed;

	conn->active = true;
	conn->user = attr->user;
	conn->service_id = attr->service_id;
	agreed->local_qpn = attr->qpn;
	agreed->max_rd_atomic = attr->initiator_depth;
	agreed->max_dest_rd_atomic = attr->responder_resources;
	agreed->ack_timeout = cm_ack_timeout(conn->cm->config.ack_delay, attr->packet_life_time);
	agreed->retry_count = attr->retry_count;
	agreed->rnr_retry_count = attr->rnr_retry_count;
	agreed->mtu = attr->mtu;
	agreed->flow_label = attr->flow_label;
	agreed->hop_limit = attr->hop_limit;
	agreed->tclass = attr->tclass;
	conn->max_retries = attr->max_cm_retries;
	conn->life_ns = cm_time_ns(attr->packet_life_time);
	conn->response_ns = cm_time_ns(attr->response_timeout) + 2 * conn->life_ns;
	conn->wait_ns = cm_time_ns(agreed->ack_timeout);
	conn->linger_ns = 2 * conn->response_ns;
}

/* Make the first step of a new connection. On success the caller gets it, on failure it is
 * freed. */
static int start(struct cm_conn *conn, enum cm_input input, const struct cm_mad *say,
		 uint64_t now_ns, struct cm_conn **started)
{
	const int ret = conn_command(conn, input, say, now_ns);

	if (ret != 0)
		conn_free(conn);
	else
		*started = conn;
	return ret;
}

int cm_connect(struct cm *cm, const struct cm_connect_attr *attr, uint64_t now_ns,
	       struct cm_conn **conn)
{
	struct cm_mad say = {.message = CM_REQ};
	uint8_t private_data[CM_REQ_PRIVATE];
	struct cm_conn *made;

	if (attr->response_timeout > CM_TIME_MAX || attr->packet_life_time > CM_TIME_MAX ||
	    put_private(attr->ip, attr->private_data, attr->private_len, private_data, &say) != 0)
		return -EINVAL;
	made = conn_create(cm, &attr->to);
	if (!made)
		return -ENOMEM;
	take_connect(made, attr);
	fill_req(made, attr, &say.req);
	return start(made, CM_INPUT_CONNECT, &say, now_ns, conn);
}

int cm_resolve(struct cm *cm, const struct cm_resolve_attr *attr, uint64_t now_ns,
	       struct cm_conn **conn)
{
	struct cm_mad say = {
		.message = CM_SIDR_REQ,
		.sidr_req = {.pkey = WIRE_PKEY_DEFAULT, .service_id = attr->service_id},
	};
	uint8_t private_data[CM_SIDR_REQ_PRIVATE];
	struct cm_conn *made;

	if (attr->response_timeout > CM_TIME_MAX ||
	    put_private(attr->ip, attr->private_data, attr->private_len, private_data, &say) != 0)
		return -EINVAL;
	made = conn_create(cm, &attr->to);
	if (!made)
		return -ENOMEM;
	made->active = true;
	made->sidr = true;
	made->user = attr->user;
	made->service_id = attr->service_id;
	made->max_retries = attr->max_cm_retries;
	made->response_ns = cm_time_ns(attr->response_timeout);
	return start(made, CM_INPUT_RESOLVE, &say, now_ns, conn);
}

int cm_accept(struct cm_conn *conn, const struct cm_accept_attr *attr, uint64_t now_ns)
{
	const uint8_t resources = RTE_MIN(attr->responder_resources, conn->offered_depth);
	const uint8_t depth = RTE_MIN(attr->initiator_depth, conn->offered_resources);
	const struct cm_mad say = {
		.rep = {.qkey = attr->qkey,
			.qpn = conn->extended ? 0 : attr->qpn,
			.eecn = conn->extended ? attr->qpn : 0,
			.psn = conn->agreed.rq_psn,
			.responder_resources = resources,
			.initiator_depth = depth,
			.target_ack_delay = conn->cm->config.ack_delay,
			.failover = conn->alternate ? FAILOVER_NONE : 0,
			.flow_control = attr->flow_control,
			.rnr_retry_count = attr->rnr_retry_count,
			.srq = attr->srq || conn->extended,
			.ece = attr->ece,
			.ca_guid = conn->cm->config.ca_guid},
		.private_data = attr->private_data,
		.private_len = attr->private_len,
	};
	const int ret = conn_command(conn, CM_INPUT_ACCEPT, &say, now_ns);

	if (ret != 0)
		return ret;
	conn->user = attr->user;
	conn->agreed.local_qpn = attr->qpn;
	conn->agreed.max_dest_rd_atomic = resources;
	conn->agreed.max_rd_atomic = depth;
	return 0;
}

int cm_establish(struct cm_conn *conn, const void *private_data, uint8_t private_len,
		 uint64_t now_ns)
{
	const struct cm_mad say = {.private_data = private_data, .private_len = private_len};

	return conn_command(conn, CM_INPUT_ESTABLISH, &say, now_ns);
}

int cm_reject(struct cm_conn *conn, uint16_t reason, const void *private_data, uint8_t private_len,
	      uint64_t now_ns)
{
	const struct cm_mad say = {.rej = {.reason = reason},
				   .private_data = private_data,
				   .private_len = private_len};

	return conn_command(conn, CM_INPUT_REJECT, &say, now_ns);
}

int cm_disconnect(struct cm_conn *conn, const void *private_data, uint8_t private_len,
		  uint64_t now_ns)
{
	const struct cm_mad say = {.private_data = private_data, .private_len = private_len};

	return conn_command(conn, CM_INPUT_DISCONNECT, &say, now_ns);
}

int cm_data_arrived(struct cm_conn *conn, uint64_t now_ns)
{
	return conn_command(conn, CM_INPUT_DATA, NULL, now_ns);
}

int cm_reply(struct cm_conn *conn, const struct cm_reply_attr *attr, uint64_t now_ns)
{
	const struct cm_mad say = {
		.sidr_rep = {.status = attr->status, .qpn = attr->qpn, .qkey = attr->qkey},
		.private_data = attr->private_data,
		.private_len = attr->private_len,
	};

	return conn_command(conn, CM_INPUT_REPLY, &say, now_ns);
}

void cm_conn_destroy(struct cm_conn *conn, uint64_t now_ns)
{
	conn->owned = false;
	events_drop(conn);
	conn_leave_backlog(conn);
	conn_command(conn, CM_INPUT_DESTROY, NULL, now_ns);
}

/* Return true if the connection's user has not destroyed it, and its peer is not told yet. */
static bool is_owned(const struct cm_conn *conn)
{
	return conn->owned && !conn->abandoned;
}

/* End a connection, but keep its memory: while one thread is in exit(), another one may still
 * destroy the connection. */
static void abandon(struct cm_conn *conn, uint64_t now_ns)
{
	conn->abandoned = true;
	events_drop(conn);
	conn_leave_backlog(conn);
	conn_command(conn, CM_INPUT_DESTROY, NULL, now_ns);
}

/* Return true if the peer may wait for a DREP. */
static bool may_lack_drep(const struct cm_conn *conn)
{
	return conn->state == CM_STATE_TIMEWAIT && conn->has_answered_dreq;
}

static void end(struct cm_conn *conn, uint64_t now_ns)
{
	conn_command(conn, CM_INPUT_END, NULL, now_ns);
}

/* Find a connection. Each step may free connections, so the search starts anew after each. */
static struct cm_conn *find_in(const struct cm_bucket *bucket,
			       bool (*is_wanted)(const struct cm_conn *conn))
{
	struct cm_conn *conn;

	LIST_FOREACH (conn, bucket, by_local) {
		if (is_wanted(conn))
			return conn;
	}
	return NULL;
}

/* Do a step on each connection for which `is_wanted` is true. It must be false after the step. */
static unsigned int step_all(struct cm *cm, bool (*is_wanted)(const struct cm_conn *conn),
			     void (*step)(struct cm_conn *conn, uint64_t now_ns), unsigned int most,
			     uint64_t now_ns)
{
	unsigned int count = 0;
	struct cm_conn *conn;

	for (uint32_t i = 0; i < CM_BUCKETS; i++) {
		while (count < most && (conn = find_in(&cm->by_local[i], is_wanted)) != NULL) {
			step(conn, now_ns);
			count++;
		}
	}
	return count;
}

unsigned int cm_abandon(struct cm *cm, unsigned int most, uint64_t now_ns)
{
	const unsigned int told = step_all(cm, is_owned, abandon, most, now_ns);

	return told > 0 ? told : step_all(cm, may_lack_drep, end, most, now_ns);
}
