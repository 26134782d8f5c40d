/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/cm/cm_request.c: which requests become connections, and what a flood costs. */
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "cm_fixture.h"

#define FLOOD 100000

TEST_FIXTURE(cm_fixture_set_up, cm_fixture_tear_down);

TEST(request__tells_all_to_the_caller)
{
	const struct cm_mad req = rig_req();
	struct cm_agreed agreed;

	rig_receive(&rig, &req);
	rig_event(&rig, CM_EVENT_REQ);
	assert_ptr_equal(rig.event.user, &rig);
	assert_int_equal(rig.event.status, 0);
	assert_false(rig.event.has_ip);
	assert_int_equal(rig.event.private_len, CM_REQ_PRIVATE);
	assert_memory_equal(rig.event.private_data, "peer", 5);
	assert_int_equal(rig.event.mad.req.responder_resources, 4);
	cm_conn_agreed(rig.event.conn, &agreed);
	assert_int_equal(agreed.remote_qpn, RIG_PEER_QPN);
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
	assert_string_equal(cm_rej_reason_name(rig_sent(&rig).rej.reason),
			    cm_rej_reason_name(reason));
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

TEST(request__that_comes_again_draws_the_same_answer)
{
	const struct cm_accept_attr accept = rig_accept_attr();
	const struct cm_mad req = rig_req();

	rig_bring(&rig, CM_STATE_REQ_RCVD);
	assert_int_equal(cm_accept(rig.conn, &accept, rig.now_ns), 0);
	rig_receive(&rig, &req);
	assert_int_equal(rig.sent, 2);
	assert_memory_equal(rig.mads[0].bytes, rig.mads[1].bytes, MAD_LEN);
	assert_int_equal(rig_sent(&rig).message, CM_REP);
	rig_no_event(&rig);
	assert_int_equal(cm_conn_count(rig.cm), 1);
	assert_int_equal(cm_stats(rig.cm)->unexpected, 0);
	assert_int_equal(cm_stats(rig.cm)->sent, 1);
	assert_int_equal(cm_stats(rig.cm)->resent, 1);
}

TEST(request__that_was_rejected_is_rejected_again)
{
	const struct cm_mad req = rig_req();

	rig_bring(&rig, CM_STATE_REQ_RCVD);
	assert_int_equal(cm_reject(rig.conn, CM_REJ_CONSUMER_DEFINED, "no", 2, rig.now_ns), 0);
	cm_conn_destroy(rig.conn, rig.now_ns);
	rig_receive(&rig, &req);
	assert_int_equal(rig.sent, 2);
	assert_memory_equal(rig.mads[0].bytes, rig.mads[1].bytes, MAD_LEN);
	rig_no_event(&rig);
	while (cm_deadline_ns(rig.cm) != UINT64_MAX)
		rig_expire(&rig);
	assert_int_equal(cm_conn_count(rig.cm), 0);
}

/* An id is in use until its connection is over. */
TEST(request__another_with_the_same_id_is_refused)
{
	struct cm_mad req = rig_req();

	rig_bring(&rig, CM_STATE_REP_SENT);
	req.req.qpn++;
	rig_receive(&rig, &req);
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_DUPLICATE_LOCAL_COMM_ID);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_REP_SENT);
	req = rig_req();
	req.tid++;
	rig_receive(&rig, &req);
	assert_int_equal(rig.sent, 3);
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_DUPLICATE_LOCAL_COMM_ID);
	/* Another host may use the same id. */
	memcpy(req.req.primary.local_gid, rig.other.remote, 16);
	rig_receive_from(&rig, &rig.other, &req);
	rig_event(&rig, CM_EVENT_REQ);
}

/* Both sides connect at once. This makes two connections, which do not affect each other. */
TEST(request__while_we_ask_the_same_peer)
{
	const struct cm_accept_attr accept = rig_accept_attr();
	struct cm_mad mad = rig_req();
	struct cm_conn *ours;

	rig_bring(&rig, CM_STATE_REQ_SENT);
	ours = rig.conn;
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_REQ);
	assert_ptr_not_equal(rig.event.conn, ours);
	assert_int_equal(cm_accept(rig.event.conn, &accept, rig.now_ns), 0);
	mad = rig_message(&rig, CM_REP);
	mad.local_id = RIG_PEER_ID + 1;
	mad.rep.qpn = RIG_PEER_QPN + 1;
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_REP);
	assert_ptr_equal(rig.event.conn, ours);
	assert_int_equal(cm_conn_state(ours), CM_STATE_REP_RCVD);
	assert_int_equal(cm_conn_count(rig.cm), 2);
}

/* The peer's host has started anew, and uses the queue pair again. */
TEST(request__of_a_connected_queue_pair_ends_the_old_connection)
{
	struct cm_mad req = rig_req();

	rig_bring(&rig, CM_STATE_ESTABLISHED);
	req.local_id = RIG_PEER_ID + 1;
	rig_receive(&rig, &req);
	rig_no_event(&rig);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_DREQ_SENT);
	assert_int_equal(rig_sent(&rig).message, CM_DREQ);
	assert_int_equal(rig_sent(&rig).remote_id, RIG_PEER_ID);
	assert_int_equal(rig_sent(&rig).dreq_qpn, RIG_PEER_QPN);
	rig.sent--;
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_STALE_CONNECTION);
	assert_int_equal(rig_sent(&rig).remote_id, RIG_PEER_ID + 1);
}

/* Our timewait may last longer than the peer's, so the peer may use its queue pair again while we
 * are still in it. Linux accepts this, too. */
TEST(request__of_a_queue_pair_in_timewait)
{
	struct cm_mad req = rig_req();
	struct cm_conn *old;

	rig_bring(&rig, CM_STATE_DREQ_RCVD);
	old = rig.conn;
	req.local_id = RIG_PEER_ID + 1;
	rig_receive(&rig, &req);
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_STALE_CONNECTION);
	assert_int_equal(cm_disconnect(old, NULL, 0, rig.now_ns), 0);
	assert_int_equal(cm_conn_state(old), CM_STATE_TIMEWAIT);
	req.local_id++;
	rig_receive(&rig, &req);
	rig_event(&rig, CM_EVENT_REQ);
	assert_int_equal(cm_conn_state(old), CM_STATE_TIMEWAIT);
	/* The number belongs to the new connection, also after the old one's end. */
	rig_expire(&rig);
	rig_event(&rig, CM_EVENT_TIMEWAIT_EXIT);
	cm_conn_destroy(old, rig.now_ns);
	req.local_id++;
	rig_receive(&rig, &req);
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_STALE_CONNECTION);
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

/* Only the host that has the connection can end it by such a REQ. */
TEST(request__of_another_host_ends_no_connection)
{
	struct cm_mad req = rig_req();

	rig_bring(&rig, CM_STATE_ESTABLISHED);
	req.local_id = RIG_PEER_ID + 1;
	memcpy(req.req.primary.local_gid, rig.other.remote, 16);
	rig_receive_from(&rig, &rig.other, &req);
	rig_event(&rig, CM_EVENT_REQ);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_ESTABLISHED);
}

/* An id is in use with all of our addresses. The REQ is not the one that was answered. */
TEST(request__of_the_same_id_to_another_of_our_addresses)
{
	const struct cm_accept_attr accept = rig_accept_attr();
	struct gsi_address from = rig.peer;
	struct cm_mad req = rig_req();
	unsigned int sent;

	rig_bring(&rig, CM_STATE_REQ_RCVD);
	assert_int_equal(cm_accept(rig.conn, &accept, rig.now_ns), 0);
	sent = rig.sent;
	from.local[15]++;
	memcpy(req.req.primary.remote_gid, from.local, 16);
	rig_receive_from(&rig, &from, &req);
	assert_int_equal(rig.sent, sent + 1);
	assert_int_equal(rig_sent(&rig).message, CM_REJ);
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_DUPLICATE_LOCAL_COMM_ID);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_REP_SENT);
}

/* The peer gives up and asks again with the same id, before the program has read the first request.
 * The end of the first one leaves the second one as it is. */
TEST(request__again_after_the_peer_has_given_up)
{
	const struct cm_mad req = rig_req();
	struct cm_conn *first;
	struct cm_mad rej;

	rig_bring(&rig, CM_STATE_MRA_REQ_SENT);
	first = rig.conn;
	rej = rig_message(&rig, CM_REJ);
	rig_receive(&rig, &rej);
	rig_event(&rig, CM_EVENT_REJECTED);
	assert_int_equal(cm_conn_state(first), CM_STATE_IDLE);
	rig_receive(&rig, &req);
	rig_event(&rig, CM_EVENT_REQ);
	cm_conn_destroy(first, rig.now_ns);
	rig_receive(&rig, &req);
	rig_no_event(&rig);
	assert_int_equal(cm_conn_count(rig.cm), 1);
	assert_int_equal(rig_sent(&rig).message, CM_MRA);
}

/* A REQ that was delayed in the network comes when its connection is over. */
TEST(request__that_comes_again_in_timewait)
{
	const struct cm_mad req = rig_req();
	struct cm_mad dreq;
	uint64_t deadline_ns;

	rig_bring(&rig, CM_STATE_REP_SENT);
	dreq = rig_message(&rig, CM_DREQ);
	rig_receive(&rig, &dreq);
	rig_event(&rig, CM_EVENT_DISCONNECTED);
	assert_int_equal(cm_disconnect(rig.conn, NULL, 0, rig.now_ns), 0);
	deadline_ns = cm_deadline_ns(rig.cm);
	rig.now_ns++;
	rig_receive(&rig, &req);
	assert_int_equal(rig_sent(&rig).message, CM_REJ);
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_STALE_CONNECTION);
	assert_int_equal(rig_sent(&rig).rej.about, CM_ABOUT_REQ);
	assert_int_equal(rig_sent(&rig).remote_id, RIG_PEER_ID);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_TIMEWAIT);
	assert_true(cm_deadline_ns(rig.cm) == deadline_ns);
	rig_no_event(&rig);
}

/* Bring the passive side to timewait; the REQ has this ACK timeout. */
static void wait_after(uint8_t ack_timeout)
{
	const struct cm_accept_attr accept = rig_accept_attr();
	struct cm_mad mad = rig_req();

	mad.req.primary.ack_timeout = ack_timeout;
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_REQ);
	rig.conn = rig.event.conn;
	assert_int_equal(cm_accept(rig.conn, &accept, rig.now_ns), 0);
	rig.our_id = rig_sent(&rig).local_id;
	mad = rig_message(&rig, CM_DREQ);
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_DISCONNECTED);
	assert_int_equal(cm_disconnect(rig.conn, NULL, 0, rig.now_ns), 0);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_TIMEWAIT);
}

/* 12.9: twice a packet's life and the ACK delay, which is what the REQ calls the ACK timeout. */
TEST(request__timewait_lasts_as_long_as_its_ack_timeout)
{
	wait_after(19);
	assert_true(cm_deadline_ns(rig.cm) == rig.now_ns + cm_time_ns(19));
}

TEST(request__timewait_is_bounded)
{
	wait_after(31);
	assert_true(cm_deadline_ns(rig.cm) == rig.now_ns + cm_time_ns(22));
}

/* Receive a REQ with these two times, and reject it. */
static void reject_after(uint8_t remote_response_timeout, uint8_t ack_timeout)
{
	struct cm_mad req = rig_req();

	req.req.remote_response_timeout = remote_response_timeout;
	req.req.primary.ack_timeout = ack_timeout;
	rig_receive(&rig, &req);
	rig_event(&rig, CM_EVENT_REQ);
	assert_int_equal(cm_reject(rig.event.conn, CM_REJ_CONSUMER_DEFINED, NULL, 0, rig.now_ns),
			 0);
}

/* A REJ is kept for twice the time after which the peer repeats its REQ: our response time, and a
 * packet's life there and back. */
TEST(request__rej_is_kept_for_a_peer_that_asks_again)
{
	reject_after(18, 17);
	assert_true(cm_deadline_ns(rig.cm) ==
		    rig.now_ns + 2 * (cm_time_ns(18) + 2 * cm_time_ns(16)));
}

TEST(request__rej_of_a_peer_without_an_ack_timeout)
{
	reject_after(18, 0);
	assert_true(cm_deadline_ns(rig.cm) ==
		    rig.now_ns + 2 * (cm_time_ns(18) + 2 * cm_time_ns(0)));
}

TEST(request__rej_is_kept_for_a_bounded_time)
{
	reject_after(31, 31);
	assert_true(cm_deadline_ns(rig.cm) ==
		    rig.now_ns + 2 * (cm_time_ns(22) + 2 * cm_time_ns(22)));
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

static void listen_with(uint32_t backlog)
{
	const struct cm_listen_attr attr = {
		.service_id = RIG_SERVICE, .any_address = true, .backlog = backlog};

	cm_unlisten(rig.listener, rig.now_ns);
	assert_int_equal(cm_listen(rig.cm, &attr, &rig.listener), 0);
}

/* The i-th of many hosts. */
static struct gsi_address address_of(uint32_t i)
{
	struct gsi_address from = rig.peer;

	memcpy(from.remote + 12, &i, sizeof(i));
	return from;
}

/* Receive the first REQ of peer `i`. */
static void receive_of(uint32_t i)
{
	const struct gsi_address from = address_of(i);
	struct cm_mad req = rig_req();

	memcpy(req.req.primary.local_gid, from.remote, 16);
	rig_receive_from(&rig, &from, &req);
}

/* A request keeps its place until the program has seen it, and the peer of another one hears
 * nothing, so that it asks again. */
TEST(backlog__full_drops)
{
	struct cm_conn *conn;

	listen_with(1);
	receive_of(1);
	receive_of(2);
	rig_event(&rig, CM_EVENT_REQ);
	conn = rig.event.conn;
	receive_of(2);
	rig_no_event(&rig);
	assert_int_equal(cm_stats(rig.cm)->full, 2);
	assert_int_equal(cm_conn_count(rig.cm), 1);
	cm_conn_take(conn);
	receive_of(2);
	rig_event(&rig, CM_EVENT_REQ);
	receive_of(3);
	assert_int_equal(cm_stats(rig.cm)->full, 3);
	assert_int_equal(rig.sent, 0);
	/* The first one's place is not given back twice. */
	cm_conn_take(conn);
	cm_conn_destroy(conn, rig.now_ns);
	receive_of(3);
	assert_int_equal(cm_stats(rig.cm)->full, 4);
}

/* The i-th host gives its REQ up before it knows our id. */
static void give_up_of(uint32_t i)
{
	const struct gsi_address from = address_of(i);
	const rte_be64_t guid = rte_cpu_to_be_64(RIG_PEER_GUID);
	const struct cm_mad rej = {.message = CM_REJ,
				   .local_id = RIG_PEER_ID,
				   .rej = {.about = CM_ABOUT_REQ,
					   .reason = CM_REJ_TIMEOUT,
					   .info = (const uint8_t *)&guid,
					   .info_len = sizeof(guid)}};

	rig_receive_from(&rig, &from, &rej);
}

/* Such a request is not half open any more, but it still uses memory. It keeps its place in the
 * backlog until the program has read its event. */
TEST(backlog__request_that_its_peer_has_given_up)
{
	struct cm_conn *conn;

	listen_with(4);
	receive_of(0);
	rig_event(&rig, CM_EVENT_REQ);
	conn = rig.event.conn;
	for (uint32_t i = 0; i < 100; i++) {
		receive_of(i);
		give_up_of(i);
	}
	assert_int_equal(cm_conn_state(conn), CM_STATE_IDLE);
	assert_int_equal(cm_conn_count(rig.cm), 4);
	cm_conn_destroy(conn, rig.now_ns);
	receive_of(200);
	assert_int_equal(cm_conn_count(rig.cm), 4);
}

TEST(backlog__full_rejects_datagrams)
{
	const struct cm_listen_attr attr = {
		.service_id = RIG_SERVICE, .any_address = true, .datagrams = true, .backlog = 1};
	struct cm_mad req = rig_sidr_req();
	struct cm_listener *listener;

	assert_int_equal(cm_listen(rig.cm, &attr, &listener), 0);
	req.sidr_req.service_id = RIG_SERVICE;
	rig_receive(&rig, &req);
	rig_event(&rig, CM_EVENT_SIDR_REQ);
	assert_int_equal(rig.sent, 0);
	req.local_id++;
	rig_receive(&rig, &req);
	assert_int_equal(rig_sent(&rig).sidr_rep.status, CM_SIDR_REJECTED);
	cm_conn_destroy(rig.event.conn, rig.now_ns);
	rig_receive(&rig, &req);
	rig_event(&rig, CM_EVENT_SIDR_REQ);
}

/* Receive the first REQ of each peer from `first` to `last`. */
static void receive_of_all(uint32_t first, uint32_t last)
{
	for (uint32_t i = first; i <= last; i++)
		receive_of(i);
}

/* All of the backlog is for peers that ask once, as with Linux. A quarter on top of it is for peers
 * that ask again. */
TEST(backlog__peers_beyond_it_must_ask_twice)
{
	listen_with(8);
	receive_of_all(1, 8);
	assert_int_equal(cm_conn_count(rig.cm), 8);
	receive_of_all(9, 20);
	assert_int_equal(cm_conn_count(rig.cm), 8);
	receive_of(9);
	assert_int_equal(cm_conn_count(rig.cm), 9);
	receive_of(10);
	assert_int_equal(cm_conn_count(rig.cm), 10);
	receive_of(11);
	assert_int_equal(cm_conn_count(rig.cm), 10);
	assert_int_equal(cm_stats(rig.cm)->full, 13);
	assert_int_equal(rig.sent, 0);
}

/* A peer that asks again gets no more than another one as long as the backlog is not full. */
TEST(backlog__small_one_has_no_quarter_on_top)
{
	listen_with(3);
	receive_of_all(1, 5);
	receive_of_all(4, 5);
	assert_int_equal(cm_conn_count(rig.cm), 3);
}

/* No program accepts while 100,000 made-up hosts send one REQ each. Then one more host sends a REQ
 * and repeats it. An established connection goes on meanwhile. */
TEST(flood__leaves_room_for_who_asks_again)
{
	struct cm_conn *established;
	struct cm_mad dreq;

	listen_with(256);
	rig_bring(&rig, CM_STATE_ESTABLISHED);
	established = rig.conn;
	for (uint32_t i = 0; i < FLOOD; i++) {
		receive_of(i + 1000000);
		rig.now_ns += 10000;
	}
	assert_in_range(cm_conn_count(rig.cm), 1 + 256, 1 + 256 + 64);
	assert_int_equal(cm_conn_state(established), CM_STATE_ESTABLISHED);
	/* A slow server: most of the requests still wait, and the backlog stays full. */
	for (int i = 0; i < 10; i++) {
		rig_event(&rig, CM_EVENT_REQ);
		cm_conn_destroy(rig.event.conn, rig.now_ns);
	}
	receive_of(1);
	rig.now_ns += cm_time_ns(RIG_TIME);
	receive_of(1);
	while (cm_next_event(rig.cm, &rig.event)) {
		if (memcmp(rig.event.mad.req.primary.local_gid + 12, "\1\0\0\0", 4) == 0)
			break;
	}
	assert_int_equal(rig.event.type, CM_EVENT_REQ);
	dreq = rig_message(&rig, CM_DREQ);
	rig_receive(&rig, &dreq);
	assert_int_equal(cm_conn_state(established), CM_STATE_DREQ_RCVD);
}

/* A server that accepts whatever comes: half-open connections are bounded, and end by their timers.
 */
TEST(flood__half_open_connections_are_bounded)
{
	const struct cm_config config = {.half_open_max = 100, .lingering_max = 10};
	const struct cm_accept_attr accept = rig_accept_attr();
	const struct cm_stats *stats;
	uint64_t accepted = 0;

	rig_fini(&rig);
	rig_init_with(&rig, &config);
	for (uint32_t i = 0; i < FLOOD; i++) {
		receive_of(i);
		while (cm_next_event(rig.cm, &rig.event)) {
			assert_int_equal(cm_accept(rig.event.conn, &accept, rig.now_ns), 0);
			accepted++;
		}
	}
	/* Peers that repeat their requests get all places; then there is no room for anybody. */
	for (uint32_t i = 0; cm_conn_count(rig.cm) < 100; i++) {
		receive_of(i);
		if (!cm_next_event(rig.cm, &rig.event))
			continue;
		assert_int_equal(cm_accept(rig.event.conn, &accept, rig.now_ns), 0);
		accepted++;
	}
	receive_of(FLOOD);
	stats = cm_stats(rig.cm);
	assert_true(stats->no_room > 0);
	assert_int_equal(stats->full, 0);
	assert_true(stats->received == accepted + stats->no_room + stats->grey);
	assert_in_range(cm_conn_count(rig.cm), 75, 100);
	while (cm_deadline_ns(rig.cm) != UINT64_MAX) {
		rig_expire(&rig);
		while (cm_next_event(rig.cm, &rig.event)) {
			assert_int_equal(rig.event.type, CM_EVENT_UNREACHABLE);
			cm_conn_destroy(rig.event.conn, rig.now_ns);
		}
	}
	assert_int_equal(cm_conn_count(rig.cm), 0);
}
