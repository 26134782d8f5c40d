/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection manager, and a peer that the test plays. */
#include "cm_rig.h"

#include <string.h>

#include "cm_names.h"
#include "test.h"

static void keep(struct cm_sink *sink, const struct gsi_address *to, const uint8_t *mad)
{
	struct cm_rig *rig = (struct cm_rig *)sink;

	rig->mads[rig->sent % RIG_SENT_MAX].to = *to;
	memcpy(rig->mads[rig->sent % RIG_SENT_MAX].bytes, mad, MAD_LEN);
	rig->sent++;
}

static const struct gsi_address peer = {.local = {[10] = 0xff, 0xff, 10, 9, 0, 1},
					.remote = {[10] = 0xff, 0xff, 10, 9, 0, 2},
					.vlan_id = -1,
					.mac_known = true,
					.mac = {2, 2}};

void rig_init_with(struct cm_rig *rig, const struct cm_config *config)
{
	const struct cm_listen_attr attr = {
		.service_id = RIG_SERVICE, .any_address = true, .user = rig};
	const struct cm_listen_attr datagrams = {
		.service_id = RIG_DATAGRAMS, .datagrams = true, .any_address = true, .user = rig};
	struct cm_config own = *config;

	memset(rig, 0, sizeof(*rig));
	rig->sink.send = keep;
	rig->now_ns = 1000000000;
	rig->peer = peer;
	rig->other = peer;
	rig->other.remote[15] = 3;
	own.sink = &rig->sink;
	own.ca_guid = RIG_OUR_GUID;
	assert_int_equal(cm_create(&own, &rig->cm), 0);
	assert_int_equal(cm_listen(rig->cm, &attr, &rig->listener), 0);
	assert_int_equal(cm_listen(rig->cm, &datagrams, &rig->datagrams), 0);
}

void rig_init(struct cm_rig *rig)
{
	const struct cm_config config = {.ack_delay = 15};

	rig_init_with(rig, &config);
}

void rig_fini(struct cm_rig *rig)
{
	cm_destroy(rig->cm);
}

void rig_receive_from(struct cm_rig *rig, const struct gsi_address *from, const struct cm_mad *mad)
{
	uint8_t bytes[MAD_LEN];

	assert_int_equal(cm_mad_build(mad, bytes), 0);
	cm_receive(rig->cm, bytes, sizeof(bytes), from, rig->now_ns);
}

void rig_receive(struct cm_rig *rig, const struct cm_mad *mad)
{
	rig_receive_from(rig, &rig->peer, mad);
}

struct cm_mad rig_sent(const struct cm_rig *rig)
{
	struct cm_mad mad;

	assert_true(rig->sent > 0);
	assert_int_equal(
		cm_mad_parse(rig->mads[(rig->sent - 1) % RIG_SENT_MAX].bytes, MAD_LEN, &mad),
		CM_MAD_OK);
	return mad;
}

void rig_event(struct cm_rig *rig, enum cm_event_type type)
{
	assert_true(cm_next_event(rig->cm, &rig->event));
	assert_string_equal(cm_event_name(rig->event.type), cm_event_name(type));
	/* Only the end of a connection has a status. */
	if (type == CM_EVENT_REQ || type == CM_EVENT_SIDR_REQ || type == CM_EVENT_REP ||
	    type == CM_EVENT_ESTABLISHED)
		assert_int_equal(rig->event.status, 0);
}

void rig_no_event(struct cm_rig *rig)
{
	assert_false(cm_next_event(rig->cm, &rig->event));
}

static struct cm_mad a_message(enum cm_message message)
{
	return (struct cm_mad){.message = message,
			       .tid = RIG_PEER_TID,
			       .local_id = RIG_PEER_ID,
			       .private_data = (const uint8_t *)"peer",
			       .private_len = 4};
}

struct cm_mad rig_req(void)
{
	struct cm_mad mad = a_message(CM_REQ);

	mad.req = (struct cm_req){.service_id = RIG_SERVICE,
				  .ca_guid = RIG_PEER_GUID,
				  .qpn = RIG_PEER_QPN,
				  .responder_resources = 4,
				  .initiator_depth = 8,
				  .remote_response_timeout = RIG_TIME,
				  .local_response_timeout = RIG_TIME,
				  .psn = {0xabcdef},
				  .retry_count = 7,
				  .pkey = 0xffff,
				  .mtu = 5,
				  .rnr_retry_count = 6,
				  .max_cm_retries = RIG_RETRIES,
				  .primary = {.hop_limit = 64,
					      .tclass = 3,
					      .flow_label = 0x12345,
					      .ack_timeout = RIG_LIFE + 1}};
	memcpy(mad.req.primary.local_gid, peer.remote, 16);
	memcpy(mad.req.primary.remote_gid, peer.local, 16);
	return mad;
}

struct cm_mad rig_sidr_req(void)
{
	struct cm_mad mad = a_message(CM_SIDR_REQ);

	mad.sidr_req = (struct cm_sidr_req){.pkey = 0xffff, .service_id = RIG_DATAGRAMS};
	return mad;
}

/* Return the id that a connection has told its peer. */
static uint32_t id_of(const struct cm_rig *rig)
{
	const struct cm_mad first = rig_sent(rig);

	return first.local_id;
}

struct cm_mad rig_message(const struct cm_rig *rig, enum cm_message message)
{
	struct cm_mad mad = a_message(message);

	if (message == CM_REQ)
		return rig_req();
	if (message == CM_SIDR_REQ)
		return rig_sidr_req();
	mad.remote_id = rig->our_id;
	switch (message) {
	case CM_REP:
		mad.rep = (struct cm_rep){.qpn = RIG_PEER_QPN,
					  .psn = {0xfedcba},
					  .responder_resources = 3,
					  .initiator_depth = 2,
					  .target_ack_delay = 14,
					  .rnr_retry_count = 5,
					  .ca_guid = RIG_PEER_GUID};
		break;
	case CM_REJ:
		mad.rej.reason = CM_REJ_CONSUMER_DEFINED;
		mad.rej.about = CM_ABOUT_OTHER;
		break;
	case CM_DREQ:
		mad.dreq_qpn = RIG_OUR_QPN;
		break;
	case CM_LAP:
		mad.lap.remote_qpn = RIG_OUR_QPN;
		break;
	case CM_SIDR_REP:
		mad.remote_id = 0;
		mad.local_id = rig->our_id;
		mad.sidr_rep =
			(struct cm_sidr_rep){.qpn = RIG_PEER_QPN, .service_id = RIG_DATAGRAMS};
		break;
	default:
		break;
	}
	return mad;
}

struct cm_connect_attr rig_connect_attr(const struct cm_rig *rig)
{
	return (struct cm_connect_attr){.to = rig->peer,
					.service_id = RIG_SERVICE,
					.qpn = RIG_OUR_QPN,
					.responder_resources = 4,
					.initiator_depth = 8,
					.retry_count = 7,
					.rnr_retry_count = 6,
					.mtu = 5,
					.packet_life_time = RIG_LIFE,
					.response_timeout = RIG_TIME,
					.max_cm_retries = RIG_RETRIES,
					.hop_limit = 64,
					.private_data = "ours",
					.private_len = 4,
					.user = (void *)rig};
}

struct cm_accept_attr rig_accept_attr(void)
{
	return (struct cm_accept_attr){.qpn = RIG_OUR_QPN,
				       .responder_resources = 16,
				       .initiator_depth = 16,
				       .rnr_retry_count = 7,
				       .private_data = "ours",
				       .private_len = 4};
}

static void connect_to_peer(struct cm_rig *rig)
{
	const struct cm_connect_attr attr = rig_connect_attr(rig);

	assert_int_equal(cm_connect(rig->cm, &attr, rig->now_ns, &rig->conn), 0);
	rig->our_id = id_of(rig);
}

static void bring_active(struct cm_rig *rig, enum cm_state state)
{
	struct cm_mad mra, rep;

	connect_to_peer(rig);
	rep = rig_message(rig, CM_REP);
	mra = rig_message(rig, CM_MRA);
	mra.mra = (struct cm_mra){.about = CM_ABOUT_REQ, .service_timeout = 22};
	if (state == CM_STATE_MRA_REQ_RCVD)
		rig_receive(rig, &mra);
	if (state == CM_STATE_REQ_SENT || state == CM_STATE_MRA_REQ_RCVD)
		return;
	rig_receive(rig, &rep);
	rig_event(rig, CM_EVENT_REP);
	if (state == CM_STATE_MRA_REP_SENT)
		rig_receive(rig, &rep);
}

static void bring_passive(struct cm_rig *rig, enum cm_state state)
{
	const struct cm_accept_attr accept = rig_accept_attr();
	struct cm_mad mad = rig_req();

	rig_receive(rig, &mad);
	rig_event(rig, CM_EVENT_REQ);
	rig->conn = rig->event.conn;
	if (state == CM_STATE_MRA_REQ_SENT) {
		rig_receive(rig, &mad);
		rig->our_id = id_of(rig);
	}
	if (state == CM_STATE_REQ_RCVD || state == CM_STATE_MRA_REQ_SENT)
		return;
	assert_int_equal(cm_accept(rig->conn, &accept, rig->now_ns), 0);
	rig->our_id = id_of(rig);
	mad = rig_message(rig, CM_MRA);
	mad.mra = (struct cm_mra){.about = CM_ABOUT_REP, .service_timeout = 22};
	if (state == CM_STATE_MRA_REP_RCVD)
		rig_receive(rig, &mad);
}

static void bring_established(struct cm_rig *rig, enum cm_state state)
{
	struct cm_mad dreq;

	bring_active(rig, CM_STATE_REP_RCVD);
	assert_int_equal(cm_establish(rig->conn, NULL, 0, rig->now_ns), 0);
	dreq = rig_message(rig, CM_DREQ);
	if (state == CM_STATE_DREQ_SENT)
		assert_int_equal(cm_disconnect(rig->conn, NULL, 0, rig->now_ns), 0);
	if (state != CM_STATE_DREQ_RCVD && state != CM_STATE_TIMEWAIT)
		return;
	rig_receive(rig, &dreq);
	rig_event(rig, CM_EVENT_DISCONNECTED);
	if (state == CM_STATE_TIMEWAIT)
		assert_int_equal(cm_disconnect(rig->conn, NULL, 0, rig->now_ns), 0);
}

static void bring_sidr(struct cm_rig *rig, enum cm_state state)
{
	const struct cm_resolve_attr attr = {.to = rig->peer,
					     .service_id = RIG_DATAGRAMS,
					     .response_timeout = RIG_TIME,
					     .max_cm_retries = RIG_RETRIES};
	const struct cm_reply_attr reply = {.qpn = RIG_OUR_QPN};
	const struct cm_mad req = rig_sidr_req();

	if (state == CM_STATE_SIDR_REQ_SENT) {
		assert_int_equal(cm_resolve(rig->cm, &attr, rig->now_ns, &rig->conn), 0);
		rig->our_id = id_of(rig);
		return;
	}
	rig_receive(rig, &req);
	rig_event(rig, CM_EVENT_SIDR_REQ);
	rig->conn = rig->event.conn;
	if (state == CM_STATE_SIDR_REP_SENT)
		assert_int_equal(cm_reply(rig->conn, &reply, rig->now_ns), 0);
}

static void bring_to_end(struct cm_rig *rig, enum cm_state state)
{
	struct cm_mad rej;

	if (state == CM_STATE_REJ_SENT) {
		bring_passive(rig, CM_STATE_REP_SENT);
		while (cm_conn_state(rig->conn) == CM_STATE_REP_SENT)
			rig_expire(rig);
		rig_event(rig, CM_EVENT_UNREACHABLE);
		return;
	}
	connect_to_peer(rig);
	rej = rig_message(rig, CM_REJ);
	rej.rej.about = CM_ABOUT_REQ;
	rig_receive(rig, &rej);
	rig_event(rig, CM_EVENT_REJECTED);
}

void rig_bring(struct cm_rig *rig, enum cm_state state)
{
	switch (state) {
	case CM_STATE_REQ_SENT:
	case CM_STATE_MRA_REQ_RCVD:
	case CM_STATE_REP_RCVD:
	case CM_STATE_MRA_REP_SENT:
		bring_active(rig, state);
		break;
	case CM_STATE_REQ_RCVD:
	case CM_STATE_MRA_REQ_SENT:
	case CM_STATE_REP_SENT:
	case CM_STATE_MRA_REP_RCVD:
		bring_passive(rig, state);
		break;
	case CM_STATE_ESTABLISHED:
	case CM_STATE_DREQ_SENT:
	case CM_STATE_DREQ_RCVD:
	case CM_STATE_TIMEWAIT:
		bring_established(rig, state);
		break;
	case CM_STATE_SIDR_REQ_SENT:
	case CM_STATE_SIDR_REQ_RCVD:
	case CM_STATE_SIDR_REP_SENT:
		bring_sidr(rig, state);
		break;
	default:
		bring_to_end(rig, state);
		break;
	}
	assert_string_equal(cm_state_name(cm_conn_state(rig->conn)), cm_state_name(state));
	rig_no_event(rig);
}

void rig_expire(struct cm_rig *rig)
{
	assert_true(cm_deadline_ns(rig->cm) != UINT64_MAX);
	rig->now_ns = cm_deadline_ns(rig->cm);
	cm_expire(rig->cm, rig->now_ns);
}
