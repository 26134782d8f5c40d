/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/cm/cm_request.c: which requests become connections or are answered. */
#include <string.h>

#include <rte_common.h>

#include "cm_fixture.h"

TEST_FIXTURE(cm_fixture_set_up, cm_fixture_tear_down);

TEST(request__tells_all_to_the_caller)
{
	struct cm_mad req = rig_req();
	struct cm_agreed agreed;

	req.req.qkey = 0x77777;
	req.req.srq = true;
	rig_receive(&rig, &req);
	rig_event(&rig, CM_EVENT_REQ);
	assert_ptr_equal(rig.event.user, &rig);
	assert_false(rig.event.has_ip);
	assert_int_equal(rig.event.private_len, CM_REQ_PRIVATE);
	assert_memory_equal(rig.event.private_data, "peer", 5);
	assert_int_equal(rig.event.mad.req.responder_resources, 4);
	cm_conn_agreed(rig.event.conn, &agreed);
	assert_int_equal(agreed.remote_qpn, RIG_PEER_QPN);
	assert_int_equal(agreed.remote_qkey, 0x77777);
	assert_true(agreed.remote_srq);
	assert_int_equal(agreed.sq_psn.v, 0xabcdef);
	assert_int_equal(agreed.max_rd_atomic, 4);
	assert_int_equal(agreed.max_dest_rd_atomic, 8);
	assert_int_equal(agreed.ack_timeout, RIG_LIFE + 1);
	assert_int_equal(agreed.retry_count, 7);
	assert_int_equal(agreed.rnr_retry_count, 6);
	assert_int_equal(agreed.mtu, 5);
	assert_int_equal(agreed.flow_label, 0x12345);
	assert_int_equal(agreed.tclass, 3);
	assert_int_equal(agreed.hop_limit, 64);
}

/* Refused, with this reason, and nothing is kept. */
static void assert_refused(const struct cm_mad *req, enum cm_rej_reason reason)
{
	rig_receive(&rig, req);
	assert_int_equal(rig_sent(&rig).rej.reason, reason);
	assert_int_equal(rig_sent(&rig).rej.about, CM_ABOUT_REQ);
	assert_int_equal(rig_sent(&rig).remote_id, req->local_id);
	assert_int_equal(rig_sent(&rig).tid, req->tid);
	assert_int_equal(cm_conn_count(rig.cm), 0);
	rig_no_event(&rig);
}

TEST(request__what_cannot_be_is_refused)
{
	struct cm_mad req = rig_req();

	req.req.service_id++;
	assert_refused(&req, CM_REJ_INVALID_SERVICE_ID);
	req = rig_req();
	req.req.service_id = RIG_DATAGRAMS;
	assert_refused(&req, CM_REJ_INVALID_SERVICE_ID);
	req = rig_req();
	req.req.transport = CM_TRANSPORT_RD;
	assert_refused(&req, CM_REJ_INVALID_TRANSPORT_TYPE);
	req.req.transport = CM_TRANSPORT_EXTENDED;
	assert_refused(&req, CM_REJ_INVALID_TRANSPORT_TYPE);
	req = rig_req();
	req.req.mtu = 0;
	assert_refused(&req, CM_REJ_INVALID_MTU);
	req.req.mtu = 6;
	assert_refused(&req, CM_REJ_INVALID_MTU);
	assert_int_equal(rig_sent(&rig).rej.info_len, 0);
	req = rig_req();
	req.req.pkey = 0x8001;
	assert_refused(&req, CM_REJ_UNSUPPORTED_REQUEST);
}

static void listen_for(enum cm_transport transport)
{
	const struct cm_listen_attr attr = {.service_id = RIG_SERVICE,
					    .any_address = true,
					    .transport = (uint8_t)transport,
					    .user = &rig};

	cm_unlisten(rig.listener, rig.now_ns);
	assert_int_equal(cm_listen(rig.cm, &attr, &rig.listener), 0);
}

/* Each listener takes REQs of its own transport service and refuses those of the others. */
TEST(request__transport_must_be_the_listeners)
{
	static const enum cm_transport transports[] = {CM_TRANSPORT_RC, CM_TRANSPORT_UC,
						       CM_TRANSPORT_EXTENDED};

	for (size_t listens = 0; listens < RTE_DIM(transports); listens++) {
		listen_for(transports[listens]);
		for (size_t asks = 0; asks < RTE_DIM(transports); asks++) {
			struct cm_mad req = rig_req();

			req.req.transport = (uint8_t)transports[asks];
			req.req.extended_type = asks == 2;
			if (asks != listens) {
				assert_refused(&req, CM_REJ_INVALID_TRANSPORT_TYPE);
				continue;
			}
			rig_receive(&rig, &req);
			rig_event(&rig, CM_EVENT_REQ);
			cm_conn_destroy(rig.event.conn, rig.now_ns);
			rig_expire(&rig);
		}
	}
}

TEST(request__extended_transport_is_xrc)
{
	struct cm_mad req = rig_req();

	listen_for(CM_TRANSPORT_EXTENDED);
	req.req.transport = CM_TRANSPORT_EXTENDED;
	for (uint8_t type = 0; type < 8; type++) {
		req.req.extended_type = type;
		if (type != CM_EXTENDED_XRC)
			assert_refused(&req, CM_REJ_INVALID_TRANSPORT_TYPE);
	}
}

/* Nobody can listen for RD, so the reason is the transport, whoever listens. */
TEST(request__of_rd_is_refused_for_its_transport)
{
	struct cm_mad req = rig_req();

	req.req.service_id++;
	assert_refused(&req, CM_REJ_INVALID_SERVICE_ID);
	req.req.transport = CM_TRANSPORT_RD;
	assert_refused(&req, CM_REJ_INVALID_TRANSPORT_TYPE);
}

/* A connection leads to who has asked for it, not to somebody else. */
TEST(request__for_another_host_is_refused)
{
	struct cm_mad req = rig_req();

	memcpy(req.req.primary.local_gid, rig.other.remote, 16);
	assert_refused(&req, CM_REJ_INVALID_GID);
	assert_int_equal(rig_sent(&rig).rej.info_len, 16);
	assert_memory_equal(rig_sent(&rig).rej.info, rig.peer.local, 16);
	req = rig_req();
	req.req.primary.remote_gid[15]++;
	assert_refused(&req, CM_REJ_INVALID_GID);
}

static void listen_ip(void)
{
	const struct cm_listen_attr attr = {
		.service_id = RIG_SERVICE, .ip = true, .any_address = true};

	cm_unlisten(rig.listener, rig.now_ns);
	assert_int_equal(cm_listen(rig.cm, &attr, &rig.listener), 0);
}

static struct cm_mad ip_req(const struct cm_ip *ip, uint8_t *data)
{
	struct cm_mad req = rig_req();

	assert_int_equal(cm_ip_build(ip, data), 0);
	memcpy(data + CM_IP_LEN, "user", 4);
	req.private_data = data;
	req.private_len = CM_IP_LEN + 4;
	return req;
}

TEST(request__ip_header_is_not_private_data)
{
	struct cm_ip ip = {.version = 4, .port = 4711};
	uint8_t data[CM_REQ_PRIVATE] = {0};
	struct cm_mad req;

	listen_ip();
	memcpy(ip.src, rig.peer.remote, 16);
	memcpy(ip.dst, rig.peer.local, 16);
	req = ip_req(&ip, data);
	rig_receive(&rig, &req);
	rig_event(&rig, CM_EVENT_REQ);
	assert_true(rig.event.has_ip);
	assert_int_equal(rig.event.ip.port, 4711);
	assert_memory_equal(rig.event.ip.src, rig.peer.remote, 16);
	assert_int_equal(rig.event.private_len, 56);
	assert_memory_equal(rig.event.private_data, "user", 5);
}

TEST(request__ip_header_of_another_host_is_refused)
{
	struct cm_ip ip = {.version = 4, .port = 4711};
	uint8_t data[CM_REQ_PRIVATE] = {0};
	struct cm_mad req;

	listen_ip();
	memcpy(ip.src, rig.other.remote, 16);
	memcpy(ip.dst, rig.peer.local, 16);
	req = ip_req(&ip, data);
	assert_refused(&req, CM_REJ_INVALID_GID);
	data[0] = 0x10; /* a header of another version */
	assert_refused(&req, CM_REJ_CONSUMER_DEFINED);
}

TEST(request__each_mtu)
{
	struct cm_mad req = rig_req();

	for (uint8_t mtu = 1; mtu <= 5; mtu++) {
		req.req.mtu = mtu;
		req.local_id++;
		req.req.qpn++;
		rig_receive(&rig, &req);
		rig_event(&rig, CM_EVENT_REQ);
	}
}

static const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

/* Listen on 127.0.0.1 in both services. */
static void listen_at_loopback(void)
{
	struct cm_listen_attr attr = {.service_id = RIG_SERVICE, .ip = true, .ip_version = 4};

	memcpy(attr.address, loopback, sizeof(attr.address));
	cm_unlisten(rig.listener, rig.now_ns);
	cm_unlisten(rig.datagrams, rig.now_ns);
	assert_int_equal(cm_listen(rig.cm, &attr, &rig.listener), 0);
	attr.service_id = RIG_DATAGRAMS;
	attr.datagrams = true;
	assert_int_equal(cm_listen(rig.cm, &attr, &rig.datagrams), 0);
}

/* Return a REQ from `from` whose IP header has these addresses. */
static struct cm_mad req_between(const struct gsi_address *from, const uint8_t *src,
				 const uint8_t *dst, uint8_t *data)
{
	struct cm_ip ip = {.version = 4, .port = 4711};
	struct cm_mad req;

	memcpy(ip.src, src, 16);
	memcpy(ip.dst, dst, 16);
	req = ip_req(&ip, data);
	memcpy(req.req.primary.local_gid, from->remote, 16);
	memcpy(req.req.primary.remote_gid, from->local, 16);
	return req;
}

/* Another host cannot reach a listener on 127.0.0.1, whatever it writes into its request. */
TEST(request__loopback_from_another_host_reaches_nobody)
{
	uint8_t data[CM_SIDR_REQ_PRIVATE] = {0};
	struct cm_mad req, sidr = rig_sidr_req();

	listen_at_loopback();
	req = req_between(&rig.peer, loopback, loopback, data);
	assert_refused(&req, CM_REJ_INVALID_SERVICE_ID);
	sidr.private_data = data;
	sidr.private_len = sizeof(data);
	rig_receive(&rig, &sidr);
	assert_int_equal(rig_sent(&rig).sidr_rep.status, CM_SIDR_UNSUPPORTED_SERVICE);
	req = req_between(&rig.peer, rig.peer.remote, loopback, data);
	assert_refused(&req, CM_REJ_INVALID_SERVICE_ID);
	rig_receive(&rig, &sidr);
	assert_int_equal(rig_sent(&rig).sidr_rep.status, CM_SIDR_UNSUPPORTED_SERVICE);
	req = req_between(&rig.peer, rig.peer.remote, rig.peer.local, data);
	assert_refused(&req, CM_REJ_INVALID_SERVICE_ID);
	rig_no_event(&rig);
}

/* A listener of any address refuses it, too: its program would take the peer for its own host. */
TEST(request__loopback_from_another_host_is_refused)
{
	uint8_t data[CM_REQ_PRIVATE] = {0};
	struct cm_mad req;

	listen_ip();
	req = req_between(&rig.peer, rig.peer.remote, loopback, data);
	assert_refused(&req, CM_REJ_INVALID_GID);
	req = req_between(&rig.peer, loopback, rig.peer.local, data);
	assert_refused(&req, CM_REJ_INVALID_GID);
	req = req_between(&rig.peer, loopback, loopback, data);
	assert_refused(&req, CM_REJ_INVALID_GID);
}

/* A packet of this host to itself has one address twice, in any VLAN. */
TEST(request__loopback_of_this_host_reaches_its_listener)
{
	struct gsi_address own = rig.peer;
	uint8_t data[CM_REQ_PRIVATE] = {0};
	struct cm_mad req;

	listen_at_loopback();
	memcpy(own.remote, own.local, 16);
	own.vlan_id = 5;
	req = req_between(&own, own.local, loopback, data);
	rig_receive_from(&rig, &own, &req);
	rig_event(&rig, CM_EVENT_REQ);
	assert_memory_equal(rig.event.ip.dst, loopback, 16);
	/* A request to the device's own address is another listener's. */
	req = req_between(&own, own.local, own.local, data);
	req.local_id++;
	req.req.qpn++;
	rig_receive_from(&rig, &own, &req);
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_INVALID_SERVICE_ID);
	rig_no_event(&rig);
}

TEST(sidr_request__is_answered)
{
	const struct cm_reply_attr reply = {
		.qpn = 0x333, .qkey = 0x44, .private_data = "ours", .private_len = 4};
	struct cm_mad sent;

	rig_bring(&rig, CM_STATE_SIDR_REQ_RCVD);
	assert_int_equal(cm_reply(rig.conn, &reply, rig.now_ns), 0);
	sent = rig_sent(&rig);
	assert_int_equal(sent.local_id, RIG_PEER_ID);
	assert_int_equal(sent.tid, RIG_PEER_TID);
	assert_int_equal(sent.sidr_rep.status, CM_SIDR_VALID);
	assert_int_equal(sent.sidr_rep.qpn, 0x333);
	assert_int_equal(sent.sidr_rep.qkey, 0x44);
	assert_true(sent.sidr_rep.service_id == RIG_DATAGRAMS);
	assert_memory_equal(sent.private_data, "ours", 4);
}

/* The SIDR_REP is kept for twice Linux's response time, and longer if the peer repeats its
 * SIDR_REQ. */
TEST(sidr_request__answer_is_kept)
{
	const struct cm_mad req = rig_sidr_req();

	rig_bring(&rig, CM_STATE_SIDR_REP_SENT);
	assert_true(cm_deadline_ns(rig.cm) == rig.now_ns + 2 * cm_time_ns(20));
	rig.now_ns += cm_time_ns(20);
	rig_receive(&rig, &req);
	assert_int_equal(rig.sent, 2);
	assert_memory_equal(rig.mads[0].bytes, rig.mads[1].bytes, MAD_LEN);
	assert_true(cm_deadline_ns(rig.cm) == rig.now_ns + 2 * cm_time_ns(20));
}

TEST(sidr_request__for_nobody_is_refused)
{
	struct cm_mad req = rig_sidr_req();

	req.sidr_req.service_id = RIG_SERVICE;
	rig_receive(&rig, &req);
	assert_int_equal(rig_sent(&rig).sidr_rep.status, CM_SIDR_UNSUPPORTED_SERVICE);
	assert_int_equal(rig_sent(&rig).local_id, req.local_id);
	assert_int_equal(rig_sent(&rig).tid, req.tid);
	assert_true(rig_sent(&rig).sidr_rep.service_id == RIG_SERVICE);
	assert_int_equal(cm_conn_count(rig.cm), 0);
}
