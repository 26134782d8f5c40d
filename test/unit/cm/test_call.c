/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/cm/call.c: what calls put into messages, and what they refuse. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "cm_fixture.h"

static const uint8_t data[256] = "data";

TEST_FIXTURE(cm_fixture_set_up, cm_fixture_tear_down);

TEST(connect__req_is_as_linux_has_it)
{
	const struct cm_connect_attr attr = rig_connect_attr(&rig);
	struct cm_conn *conn;
	struct cm_mad mad;

	assert_int_equal(cm_connect(rig.cm, &attr, rig.now_ns, &conn), 0);
	mad = rig_sent(&rig);
	assert_int_equal(mad.message, CM_REQ);
	assert_true(mad.req.service_id == RIG_SERVICE);
	assert_true(mad.req.ca_guid == RIG_OUR_GUID);
	assert_int_equal(mad.req.qpn, RIG_OUR_QPN);
	assert_int_equal(mad.req.responder_resources, 4);
	assert_int_equal(mad.req.initiator_depth, 8);
	assert_int_equal(mad.req.remote_response_timeout, RIG_TIME);
	assert_int_equal(mad.req.local_response_timeout, RIG_TIME);
	assert_int_equal(mad.req.transport, CM_TRANSPORT_RC);
	assert_int_equal(mad.req.retry_count, 7);
	assert_int_equal(mad.req.rnr_retry_count, 6);
	assert_int_equal(mad.req.pkey, 0xffff);
	assert_int_equal(mad.req.mtu, 5);
	assert_int_equal(mad.req.max_cm_retries, RIG_RETRIES);
	assert_int_equal(mad.req.primary.local_lid, 0xffff);
	assert_int_equal(mad.req.primary.remote_lid, 0xffff);
	assert_memory_equal(mad.req.primary.local_gid, rig.peer.local, 16);
	assert_memory_equal(mad.req.primary.remote_gid, rig.peer.remote, 16);
	assert_int_equal(mad.req.primary.hop_limit, 64);
	/* A packet's life is 16, our ACK delay 15: there and back, and one more. */
	assert_int_equal(mad.req.primary.ack_timeout, 17);
	assert_memory_equal(mad.private_data, "ours", 5);
	/* 12.9, as Linux: twice a packet's life, and the peer's response time. */
	assert_true(cm_deadline_ns(rig.cm) ==
		    rig.now_ns + cm_time_ns(RIG_TIME) + 2 * cm_time_ns(RIG_LIFE));
}

TEST(connect__req_names_the_transport_service)
{
	static const struct {
		enum cm_transport transport;
		uint8_t extended_type;
	} cases[] = {{CM_TRANSPORT_RC, 0},
		     {CM_TRANSPORT_UC, 0},
		     {CM_TRANSPORT_EXTENDED, CM_EXTENDED_XRC}};
	struct cm_connect_attr attr = rig_connect_attr(&rig);
	struct cm_conn *conn;

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		attr.transport = (uint8_t)cases[i].transport;
		attr.extended_type = cases[i].extended_type;
		assert_int_equal(cm_connect(rig.cm, &attr, rig.now_ns, &conn), 0);
		assert_int_equal(rig_sent(&rig).req.transport, cases[i].transport);
		assert_int_equal(rig_sent(&rig).req.extended_type, cases[i].extended_type);
	}
}

/* What the REP does not change is agreed on as the REQ has it. */
TEST(connect__req_is_agreed_on)
{
	struct cm_connect_attr attr = rig_connect_attr(&rig);
	struct cm_agreed agreed;
	struct cm_conn *conn;
	struct cm_mad mad;

	attr.qkey = 0x12345;
	attr.flow_label = 0x54321;
	attr.hop_limit = 63;
	attr.tclass = 9;
	attr.mtu = 4;
	attr.retry_count = 5;
	attr.srq = true;
	attr.flow_control = true;
	attr.ece = (struct cm_ece){.vendor_id = 0x15b3, .options = 7};
	assert_int_equal(cm_connect(rig.cm, &attr, rig.now_ns, &conn), 0);
	cm_conn_agreed(conn, &agreed);
	assert_int_equal(agreed.flow_label, 0x54321);
	assert_int_equal(agreed.hop_limit, 63);
	assert_int_equal(agreed.tclass, 9);
	assert_int_equal(agreed.mtu, 4);
	assert_int_equal(agreed.retry_count, 5);
	assert_int_equal(agreed.rnr_retry_count, 6);
	assert_int_equal(agreed.max_rd_atomic, 8);
	assert_int_equal(agreed.max_dest_rd_atomic, 4);
	assert_int_equal(agreed.ack_timeout, 17);
	mad = rig_sent(&rig);
	assert_int_equal(agreed.rq_psn.v, mad.req.psn.v);
	assert_int_equal(mad.req.qkey, 0x12345);
	assert_int_equal(mad.req.primary.flow_label, 0x54321);
	assert_int_equal(mad.req.primary.hop_limit, 63);
	assert_int_equal(mad.req.primary.tclass, 9);
	assert_int_equal(mad.req.mtu, 4);
	assert_int_equal(mad.req.retry_count, 5);
	assert_true(mad.req.srq);
	assert_true(mad.req.flow_control);
	assert_int_equal(mad.req.ece.vendor_id, 0x15b3);
	assert_int_equal(mad.req.ece.options, 7);
	assert_int_equal(mad.remote_id, 0);
}

/* A REJ of the peer's REP is kept for twice the time between the peer's repetitions. */
TEST(reject__of_a_rep_is_kept)
{
	rig_bring(&rig, CM_STATE_REP_RCVD);
	assert_int_equal(cm_reject(rig.conn, CM_REJ_CONSUMER_DEFINED, NULL, 0, rig.now_ns), 0);
	assert_true(cm_deadline_ns(rig.cm) ==
		    rig.now_ns + 2 * (cm_time_ns(RIG_TIME) + 2 * cm_time_ns(RIG_LIFE)));
}

TEST(connect__numbers_differ_from_one_to_the_next)
{
	const struct cm_connect_attr attr = rig_connect_attr(&rig);
	struct cm_mad mads[2];
	struct cm_conn *conn;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(cm_connect(rig.cm, &attr, rig.now_ns, &conn), 0);
		mads[i] = rig_sent(&rig);
	}
	assert_true(mads[0].local_id != mads[1].local_id);
	assert_true(mads[0].tid != mads[1].tid);
	assert_true(mads[0].req.psn.v != mads[1].req.psn.v);
}

TEST(connect__ip_header_stands_in_front)
{
	struct cm_connect_attr attr = rig_connect_attr(&rig);
	struct cm_ip ip = {.version = 4, .port = 4711}, sent;
	struct cm_conn *conn;
	struct cm_mad mad;

	memcpy(ip.src, rig.peer.local, 16);
	memcpy(ip.dst, rig.peer.remote, 16);
	attr.ip = &ip;
	attr.private_data = data;
	attr.private_len = 57;
	assert_int_equal(cm_connect(rig.cm, &attr, rig.now_ns, &conn), -EINVAL);
	attr.private_len = 56;
	assert_int_equal(cm_connect(rig.cm, &attr, rig.now_ns, &conn), 0);
	mad = rig_sent(&rig);
	assert_int_equal(cm_ip_parse(mad.private_data, mad.private_len, &sent), 0);
	assert_int_equal(sent.port, 4711);
	assert_memory_equal(mad.private_data + CM_IP_LEN, data, 56);
}

TEST(connect__with_one_byte_of_private_data)
{
	struct cm_connect_attr attr = rig_connect_attr(&rig);
	const uint8_t byte = 0x5a;
	struct cm_conn *conn;
	struct cm_mad mad;

	attr.private_data = &byte;
	attr.private_len = 1;
	assert_int_equal(cm_connect(rig.cm, &attr, rig.now_ns, &conn), 0);
	mad = rig_sent(&rig);
	assert_int_equal(mad.private_data[0], byte);
	assert_int_equal(mad.private_data[1], 0);
}

TEST(connect__what_cannot_be_is_refused)
{
	struct cm_connect_attr attr = rig_connect_attr(&rig);
	const struct cm_ip ip = {.version = 5};
	struct cm_conn *conn;

	attr.private_data = data;
	attr.private_len = CM_REQ_PRIVATE + 1;
	assert_int_equal(cm_connect(rig.cm, &attr, rig.now_ns, &conn), -EINVAL);
	attr = rig_connect_attr(&rig);
	attr.response_timeout = 32;
	assert_int_equal(cm_connect(rig.cm, &attr, rig.now_ns, &conn), -EINVAL);
	attr = rig_connect_attr(&rig);
	attr.packet_life_time = 32;
	assert_int_equal(cm_connect(rig.cm, &attr, rig.now_ns, &conn), -EINVAL);
	attr = rig_connect_attr(&rig);
	attr.ip = &ip;
	assert_int_equal(cm_connect(rig.cm, &attr, rig.now_ns, &conn), -EINVAL);
	assert_int_equal(cm_conn_count(rig.cm), 0);
	assert_int_equal(rig.sent, 0);
	attr = rig_connect_attr(&rig);
	attr.response_timeout = 31;
	attr.packet_life_time = 31;
	attr.private_data = data;
	attr.private_len = CM_REQ_PRIVATE;
	assert_int_equal(cm_connect(rig.cm, &attr, rig.now_ns, &conn), 0);
}

TEST(resolve__sidr_req_is_sent_and_answered)
{
	struct cm_mad rep;

	rig_bring(&rig, CM_STATE_SIDR_REQ_SENT);
	assert_true(rig_sent(&rig).sidr_req.service_id == RIG_DATAGRAMS);
	assert_int_equal(rig_sent(&rig).sidr_req.pkey, 0xffff);
	rep = rig_message(&rig, CM_SIDR_REP);
	rep.sidr_rep.qkey = 0x77;
	rig_receive(&rig, &rep);
	rig_event(&rig, CM_EVENT_SIDR_REP);
	assert_int_equal(rig.event.status, CM_SIDR_VALID);
	assert_int_equal(rig.event.mad.sidr_rep.qkey, 0x77);
	assert_int_equal(rig.event.private_len, CM_SIDR_REP_PRIVATE);
}

TEST(resolve__is_repeated_after_the_callers_time)
{
	struct cm_resolve_attr attr = {.to = rig.peer,
				       .service_id = RIG_DATAGRAMS,
				       .response_timeout = 18,
				       .max_cm_retries = 1,
				       .user = &rig};
	struct cm_conn *conn;

	assert_int_equal(cm_resolve(rig.cm, &attr, rig.now_ns, &conn), 0);
	assert_true(cm_deadline_ns(rig.cm) == rig.now_ns + cm_time_ns(18));
	rig_expire(&rig);
	assert_int_equal(rig.sent, 2);
	rig_expire(&rig);
	assert_int_equal(rig.sent, 2);
	rig_event(&rig, CM_EVENT_UNREACHABLE);
	assert_ptr_equal(rig.event.user, &rig);
	attr.response_timeout = 32;
	assert_int_equal(cm_resolve(rig.cm, &attr, rig.now_ns, &conn), -EINVAL);
	attr.response_timeout = 31;
	assert_int_equal(cm_resolve(rig.cm, &attr, rig.now_ns, &conn), 0);
}

TEST(resolve__ip_header_stands_in_front)
{
	struct cm_resolve_attr attr = {.to = rig.peer, .private_data = data, .private_len = 180};
	struct cm_ip ip = {.version = 4, .port = 4711}, sent;
	struct cm_conn *conn;
	struct cm_mad mad;

	memcpy(ip.src, rig.peer.local, 16);
	memcpy(ip.dst, rig.peer.remote, 16);
	attr.ip = &ip;
	assert_int_equal(cm_resolve(rig.cm, &attr, rig.now_ns, &conn), 0);
	mad = rig_sent(&rig);
	assert_int_equal(cm_ip_parse(mad.private_data, mad.private_len, &sent), 0);
	assert_memory_equal(mad.private_data + CM_IP_LEN, data, 180);
	attr.private_len++;
	assert_int_equal(cm_resolve(rig.cm, &attr, rig.now_ns, &conn), -EINVAL);
}

TEST(resolve__too_much_is_refused)
{
	struct cm_resolve_attr attr = {
		.to = rig.peer, .private_data = data, .private_len = CM_SIDR_REQ_PRIVATE + 1};
	struct cm_conn *conn;

	assert_int_equal(cm_resolve(rig.cm, &attr, rig.now_ns, &conn), -EINVAL);
	attr.private_len = CM_SIDR_REQ_PRIVATE;
	assert_int_equal(cm_resolve(rig.cm, &attr, rig.now_ns, &conn), 0);
}

TEST(accept__rep_is_cut_to_what_was_asked_for)
{
	const struct cm_accept_attr attr = rig_accept_attr();
	struct cm_agreed agreed;
	struct cm_mad mad;

	rig_bring(&rig, CM_STATE_REQ_RCVD);
	assert_int_equal(cm_accept(rig.conn, &attr, rig.now_ns), 0);
	mad = rig_sent(&rig);
	assert_int_equal(mad.tid, RIG_PEER_TID);
	assert_int_equal(mad.remote_id, RIG_PEER_ID);
	assert_int_equal(mad.rep.qpn, RIG_OUR_QPN);
	assert_true(mad.rep.ca_guid == RIG_OUR_GUID);
	assert_int_equal(mad.rep.target_ack_delay, 15);
	assert_int_equal(mad.rep.rnr_retry_count, 7);
	assert_int_equal(mad.rep.failover, 0);
	/* 16 and 16, where the REQ had an initiator depth of 8 and responder resources of 4. */
	assert_int_equal(mad.rep.responder_resources, 8);
	assert_int_equal(mad.rep.initiator_depth, 4);
	cm_conn_agreed(rig.conn, &agreed);
	assert_int_equal(agreed.max_dest_rd_atomic, 8);
	assert_int_equal(agreed.max_rd_atomic, 4);
	assert_int_equal(agreed.local_qpn, RIG_OUR_QPN);
	assert_int_equal(agreed.rq_psn.v, mad.rep.psn.v);
	assert_true(cm_deadline_ns(rig.cm) == rig.now_ns + cm_time_ns(RIG_TIME));
}

/* The program may allow less than the peer has asked for. */
TEST(accept__rep_is_no_more_than_the_program_allows)
{
	struct cm_accept_attr attr = rig_accept_attr();
	struct cm_agreed agreed;
	struct cm_mad mad;

	attr.responder_resources = 2;
	attr.initiator_depth = 1;
	attr.rnr_retry_count = 3;
	attr.qkey = 0x98765;
	attr.srq = true;
	attr.flow_control = true;
	attr.ece = (struct cm_ece){.vendor_id = 0x15b3, .options = 7};
	attr.user = &agreed;
	rig_bring(&rig, CM_STATE_REQ_RCVD);
	assert_int_equal(cm_accept(rig.conn, &attr, rig.now_ns), 0);
	mad = rig_sent(&rig);
	assert_int_equal(mad.rep.responder_resources, 2);
	assert_int_equal(mad.rep.initiator_depth, 1);
	assert_int_equal(mad.rep.rnr_retry_count, 3);
	assert_int_equal(mad.rep.qkey, 0x98765);
	assert_int_equal(mad.rep.eecn, 0);
	assert_true(mad.rep.srq);
	assert_true(mad.rep.flow_control);
	assert_int_equal(mad.rep.ece.vendor_id, 0x15b3);
	assert_int_equal(mad.rep.ece.options, 7);
	assert_memory_equal(mad.private_data, "ours", 4);
	cm_conn_agreed(rig.conn, &agreed);
	assert_int_equal(agreed.max_dest_rd_atomic, 2);
	assert_int_equal(agreed.max_rd_atomic, 1);
	rig.our_id = mad.local_id;
	mad = rig_message(&rig, CM_RTU);
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_ESTABLISHED);
	assert_ptr_equal(rig.event.user, &agreed);
}

/* A second call changes nothing of what the first one has agreed on. */
TEST(accept__twice_changes_nothing)
{
	struct cm_accept_attr attr = rig_accept_attr();
	struct cm_agreed before, after;

	rig_bring(&rig, CM_STATE_REP_SENT);
	cm_conn_agreed(rig.conn, &before);
	attr.qpn = 0x999;
	attr.responder_resources = 1;
	attr.initiator_depth = 1;
	assert_int_equal(cm_accept(rig.conn, &attr, rig.now_ns), -EINVAL);
	cm_conn_agreed(rig.conn, &after);
	assert_memory_equal(&before, &after, sizeof(before));
}

/* Annex A14: the target queue pair of XRC, which receives by shared queues alone. */
TEST(accept__xrc_has_its_queue_pair_in_place_of_the_ee_context)
{
	const struct cm_accept_attr attr = rig_accept_attr();
	const struct cm_listen_attr listen = {.service_id = RIG_SERVICE,
					      .any_address = true,
					      .transport = CM_TRANSPORT_EXTENDED,
					      .user = &rig};
	struct cm_mad mad = rig_req();

	cm_unlisten(rig.listener, rig.now_ns);
	assert_int_equal(cm_listen(rig.cm, &listen, &rig.listener), 0);
	mad.req.transport = CM_TRANSPORT_EXTENDED;
	mad.req.extended_type = 1;
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_REQ);
	assert_int_equal(cm_accept(rig.event.conn, &attr, rig.now_ns), 0);
	mad = rig_sent(&rig);
	assert_int_equal(mad.rep.qpn, 0);
	assert_int_equal(mad.rep.eecn, RIG_OUR_QPN);
	assert_true(mad.rep.srq);
}

TEST(accept__alternate_path_is_not_taken)
{
	const struct cm_accept_attr attr = rig_accept_attr();
	struct cm_mad req = rig_req();

	memset(req.req.alternate.local_gid, 0xfe, 16);
	rig_receive(&rig, &req);
	rig_event(&rig, CM_EVENT_REQ);
	assert_int_equal(cm_accept(rig.event.conn, &attr, rig.now_ns), 0);
	assert_int_equal(rig_sent(&rig).rep.failover, 1);
}

/* A REQ cannot demand retries that last for hours. */
TEST(accept__retries_are_at_most_17_s_apart)
{
	const struct cm_accept_attr attr = rig_accept_attr();
	struct cm_mad req = rig_req();

	req.req.local_response_timeout = 31;
	rig_receive(&rig, &req);
	rig_event(&rig, CM_EVENT_REQ);
	assert_int_equal(cm_accept(rig.event.conn, &attr, rig.now_ns), 0);
	assert_true(cm_deadline_ns(rig.cm) == rig.now_ns + cm_time_ns(22));
}

TEST(establish__rtu_has_both_ids_and_the_tid)
{
	struct cm_mad req, rtu;

	rig_bring(&rig, CM_STATE_REQ_SENT);
	req = rig_sent(&rig);
	rtu = rig_message(&rig, CM_REP);
	rig_receive(&rig, &rtu);
	assert_int_equal(cm_establish(rig.conn, "rtu", 3, rig.now_ns), 0);
	rtu = rig_sent(&rig);
	assert_int_equal(rtu.message, CM_RTU);
	assert_true(rtu.tid == req.tid);
	assert_int_equal(rtu.local_id, req.local_id);
	assert_int_equal(rtu.remote_id, RIG_PEER_ID);
	assert_memory_equal(rtu.private_data, "rtu", 3);
}

TEST(disconnect__dreq_names_the_peers_queue_pair)
{
	rig_bring(&rig, CM_STATE_ESTABLISHED);
	assert_int_equal(cm_disconnect(rig.conn, data, CM_DREQ_PRIVATE, rig.now_ns), 0);
	assert_int_equal(rig_sent(&rig).dreq_qpn, RIG_PEER_QPN);
	assert_memory_equal(rig_sent(&rig).private_data, data, CM_DREQ_PRIVATE);
}

TEST(destroy__leaves_no_event)
{
	struct cm_mad mad;

	rig_bring(&rig, CM_STATE_ESTABLISHED);
	mad = rig_message(&rig, CM_DREQ);
	rig_receive(&rig, &mad);
	cm_conn_destroy(rig.conn, rig.now_ns);
	rig_no_event(&rig);
	assert_int_equal(rig_sent(&rig).message, CM_DREP);
}

/* The peer has lost the DREP. When it repeats its DREQ, the process has ended. */
TEST(abandon__answers_a_dreq_once_more)
{
	struct cm_mad dreq;
	unsigned int sent;

	rig_bring(&rig, CM_STATE_ESTABLISHED);
	dreq = rig_message(&rig, CM_DREQ);
	rig_receive(&rig, &dreq);
	assert_int_equal(cm_disconnect(rig.conn, NULL, 0, rig.now_ns), 0);
	cm_conn_destroy(rig.conn, rig.now_ns);
	sent = rig.sent;
	assert_int_equal(cm_abandon(rig.cm, 0, rig.now_ns), 0);
	assert_int_equal(cm_abandon(rig.cm, 7, rig.now_ns), 1);
	assert_int_equal(rig.sent, sent + 1);
	assert_int_equal(rig_sent(&rig).message, CM_DREP);
	assert_true(rig_sent(&rig).tid == dreq.tid);
	assert_int_equal(rig_sent(&rig).remote_id, dreq.local_id);
	assert_int_equal(cm_conn_count(rig.cm), 0);
	assert_int_equal(cm_abandon(rig.cm, 7, rig.now_ns), 0);
}

/* A DREQ that waits for the program is answered at the end, and once more in the next step. */
TEST(abandon__answers_a_dreq_that_the_program_has_not)
{
	struct cm_mad dreq;
	unsigned int sent;

	rig_bring(&rig, CM_STATE_ESTABLISHED);
	dreq = rig_message(&rig, CM_DREQ);
	rig_receive(&rig, &dreq);
	sent = rig.sent;
	for (unsigned int step = 1; step <= 2; step++) {
		assert_int_equal(cm_abandon(rig.cm, 7, rig.now_ns), 1);
		assert_int_equal(rig.sent, sent + step);
		assert_int_equal(rig_sent(&rig).message, CM_DREP);
	}
	assert_int_equal(cm_abandon(rig.cm, 7, rig.now_ns), 0);
}

/* The peer has answered our DREQ: it waits for nothing. */
TEST(abandon__leaves_a_connection_that_we_have_ended)
{
	struct cm_mad drep;
	unsigned int sent;

	rig_bring(&rig, CM_STATE_ESTABLISHED);
	assert_int_equal(cm_disconnect(rig.conn, NULL, 0, rig.now_ns), 0);
	drep = rig_message(&rig, CM_DREP);
	rig_receive(&rig, &drep);
	cm_conn_destroy(rig.conn, rig.now_ns);
	sent = rig.sent;
	assert_int_equal(cm_abandon(rig.cm, 7, rig.now_ns), 0);
	assert_int_equal(rig.sent, sent);
}

/* A request that the program has not read gives its place back. */
TEST(abandon__empties_the_backlog)
{
	uint32_t waiting = 0;
	const struct cm_listen_attr attr = {
		.service_id = RIG_SERVICE, .any_address = true, .waiting = &waiting};
	const struct cm_mad req = rig_req();

	cm_unlisten(rig.listener, rig.now_ns);
	assert_int_equal(cm_listen(rig.cm, &attr, &rig.listener), 0);
	rig_receive(&rig, &req);
	assert_int_equal(waiting, 1);
	assert_int_equal(cm_abandon(rig.cm, 7, rig.now_ns), 1);
	assert_int_equal(waiting, 0);
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_CONSUMER_DEFINED);
	rig_no_event(&rig);
	cm_unlisten(rig.listener, rig.now_ns);
}

/* No message has caused the event. */
TEST(data_arrived__establishes)
{
	rig_bring(&rig, CM_STATE_REP_SENT);
	assert_int_equal(cm_data_arrived(rig.conn, rig.now_ns), 0);
	rig_event(&rig, CM_EVENT_ESTABLISHED);
	assert_int_equal(rig.event.status, 0);
	assert_false(rig.event.has_mad);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_ESTABLISHED);
}

TEST(abandon__each_peer_is_told)
{
	rig_bring(&rig, CM_STATE_ESTABLISHED);
	assert_int_equal(cm_abandon(rig.cm, 0, rig.now_ns), 0);
	assert_int_equal(cm_abandon(rig.cm, 7, rig.now_ns), 1);
	assert_int_equal(cm_abandon(rig.cm, 7, rig.now_ns), 0);
	assert_int_equal(rig_sent(&rig).message, CM_DREQ);
	rig_no_event(&rig);
}

/* A thread calls exit() while another one destroys its connections. */
TEST(abandon__a_connection_can_still_be_destroyed)
{
	rig_bring(&rig, CM_STATE_REQ_SENT);
	assert_int_equal(cm_abandon(rig.cm, 7, rig.now_ns), 1);
	cm_conn_destroy(rig.conn, rig.now_ns);
	rig_no_event(&rig);
}

TEST(abandon__an_established_connection_can_still_be_destroyed)
{
	rig_bring(&rig, CM_STATE_ESTABLISHED);
	assert_int_equal(cm_abandon(rig.cm, 7, rig.now_ns), 1);
	cm_conn_destroy(rig.conn, rig.now_ns);
	rig_no_event(&rig);
}
