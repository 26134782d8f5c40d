/* SPDX-License-Identifier: BSD-3-Clause */
/* The manager beside Linux's own: it takes Linux's requests, and sends the same ones. */
#include <stdio.h>
#include <string.h>

#include "cm_fixture.h"
#include "pcap.h"
#include "wire/packet.h"

static uint8_t bytes[MAD_LEN]; /* the first message of this kind in a capture */
static struct gsi_address from;

TEST_FIXTURE(cm_fixture_set_up, cm_fixture_tear_down);

static struct cm_mad load(const char *capture, enum cm_message message)
{
	struct pcap_frame frame;
	struct packet packet;
	struct pcap pcap;
	char path[512];
	struct cm_mad mad = {0};

	snprintf(path, sizeof(path), "%s/wire/%s.pcap", TEST_DATA, capture);
	assert_int_equal(pcap_open(&pcap, path), 0);
	while (mad.message != message && pcap_next(&pcap, &frame) == 1) {
		assert_int_equal(packet_parse(frame.data, frame.len, false, &packet), PACKET_OK);
		if (packet.dest_qpn == GSI_QPN && packet.payload[17] == message)
			mad.message = message;
	}
	assert_int_equal(mad.message, message);
	memcpy(bytes, packet.payload, MAD_LEN);
	from = (struct gsi_address){.vlan_id = -1, .mac_known = true};
	memcpy(from.local, packet.dgid, sizeof(from.local));
	memcpy(from.remote, packet.sgid, sizeof(from.remote));
	pcap_close(&pcap);
	assert_int_equal(cm_mad_parse(bytes, MAD_LEN, &mad), CM_MAD_OK);
	return mad;
}

/* The PSN of the first request of an rping to who has sent the message that was loaded. */
static struct psn first_request_psn(void)
{
	struct pcap_frame frame;
	struct packet packet;
	struct pcap pcap;

	assert_int_equal(pcap_open(&pcap, TEST_DATA "/wire/cm_rping.pcap"), 0);
	do {
		assert_int_equal(pcap_next(&pcap, &frame), 1);
		assert_int_equal(packet_parse(frame.data, frame.len, false, &packet), PACKET_OK);
	} while (packet.dest_qpn == GSI_QPN || packet.opcode == OPCODE_ACKNOWLEDGE ||
		 memcmp(packet.dgid, from.remote, sizeof(from.remote)) != 0);
	pcap_close(&pcap);
	return packet.psn;
}

static void listen_ip(uint64_t service_id, bool datagrams)
{
	const struct cm_listen_attr attr = {.service_id = service_id,
					    .datagrams = datagrams,
					    .ip = true,
					    .ip_version = 4,
					    .any_address = true};
	struct cm_listener *listener;

	cm_unlisten(rig.listener, rig.now_ns);
	cm_unlisten(rig.datagrams, rig.now_ns);
	assert_int_equal(cm_listen(rig.cm, &attr, &listener), 0);
}

TEST(linux_req__is_taken)
{
	const struct cm_mad req = load("cm_rping", CM_REQ);
	const struct cm_accept_attr accept = rig_accept_attr();
	struct cm_agreed agreed;

	listen_ip(req.req.service_id, false);
	cm_receive(rig.cm, bytes, sizeof(bytes), &from, rig.now_ns);
	rig_event(&rig, CM_EVENT_REQ);
	assert_true(rig.event.has_ip);
	assert_memory_equal(rig.event.ip.src, from.remote, 16);
	assert_int_equal(rig.event.private_len, 56);
	cm_conn_agreed(rig.event.conn, &agreed);
	assert_int_equal(agreed.remote_qpn, 0x22);
	assert_int_equal(agreed.ack_timeout, 19);
	assert_int_equal(agreed.retry_count, 7);
	assert_int_equal(cm_accept(rig.event.conn, &accept, rig.now_ns), 0);
	assert_true(rig_sent(&rig).tid == req.tid);
	assert_int_equal(rig_sent(&rig).remote_id, req.local_id);
}

TEST(linux_sidr_req__is_taken)
{
	const struct cm_mad req = load("cm_sidr", CM_SIDR_REQ);

	listen_ip(req.sidr_req.service_id, true);
	cm_receive(rig.cm, bytes, sizeof(bytes), &from, rig.now_ns);
	rig_event(&rig, CM_EVENT_SIDR_REQ);
	assert_true(rig.event.has_ip);
	assert_int_equal(rig.event.private_len, 180);
}

/* Everything in a REQ, but for what is drawn anew for each connection. */
TEST(connect__req_is_linuxs_byte_for_byte)
{
	const struct cm_mad req = load("cm_rping", CM_REQ);
	struct cm_connect_attr attr = {.service_id = req.req.service_id,
				       .qpn = req.req.qpn,
				       .responder_resources = 1,
				       .initiator_depth = 1,
				       .retry_count = 7,
				       .rnr_retry_count = 7,
				       .mtu = 5,
				       .packet_life_time = 18,
				       .response_timeout = 20,
				       .max_cm_retries = 15,
				       .flow_label = req.req.primary.flow_label,
				       .hop_limit = 64};
	struct cm_conn *conn;
	struct cm_mad sent;
	uint8_t ours[MAD_LEN];
	struct cm_ip ip;

	assert_int_equal(cm_ip_parse(req.private_data, req.private_len, &ip), 0);
	attr.ip = &ip;
	memcpy(attr.to.local, from.remote, 16);
	memcpy(attr.to.remote, from.local, 16);
	assert_int_equal(cm_connect(rig.cm, &attr, rig.now_ns, &conn), 0);
	sent = rig_sent(&rig);
	sent.tid = req.tid;
	sent.local_id = req.local_id;
	sent.req.psn = req.req.psn;
	sent.req.ca_guid = req.req.ca_guid;
	assert_int_equal(cm_mad_build(&sent, ours), 0);
	assert_memory_equal(ours, bytes, MAD_LEN);
}

/* The REJ of a port that nobody listens on, and the answer of a service. */
TEST(linux_answers__are_heard)
{
	struct cm_mad mad = load("cm_rej", CM_REJ);

	rig_bring(&rig, CM_STATE_REQ_SENT);
	mad.remote_id = rig.our_id;
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_REJECTED);
	assert_int_equal(rig.event.status, CM_REJ_INVALID_SERVICE_ID);
	mad = load("cm_sidr", CM_SIDR_REP);
	rig_bring(&rig, CM_STATE_SIDR_REQ_SENT);
	mad.local_id = rig.our_id;
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_SIDR_REP);
	assert_int_equal(rig.event.mad.sidr_rep.qkey, 0x01234567);
}

/* A whole connection: Linux's REP, DREQ and DREP, with our ids put in. */
TEST(linux_connection__from_rep_to_drep)
{
	struct cm_mad mad = load("cm_rping", CM_REP);
	const uint32_t their_id = mad.local_id;

	rig_bring(&rig, CM_STATE_REQ_SENT);
	mad.remote_id = rig.our_id;
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_REP);
	assert_int_equal(cm_establish(rig.conn, NULL, 0, rig.now_ns), 0);
	assert_int_equal(rig_sent(&rig).remote_id, their_id);
	assert_int_equal(cm_disconnect(rig.conn, NULL, 0, rig.now_ns), 0);
	mad = load("cm_rping", CM_DREP);
	mad.local_id = their_id;
	mad.remote_id = rig.our_id;
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_DISCONNECTED);
	assert_int_equal(rig.event.status, 0);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_TIMEWAIT);
}

/* Each side begins to send with the PSN that the other has named, not with its own. */
TEST(linux_req__names_the_psn_of_our_first_request)
{
	const struct cm_mad req = load("cm_rping", CM_REQ);
	struct cm_agreed agreed;

	listen_ip(req.req.service_id, false);
	cm_receive(rig.cm, bytes, sizeof(bytes), &from, rig.now_ns);
	rig_event(&rig, CM_EVENT_REQ);
	cm_conn_agreed(rig.event.conn, &agreed);
	assert_int_equal(agreed.sq_psn.v, first_request_psn().v);
}

TEST(linux_rep__names_the_psn_of_our_first_request)
{
	struct cm_mad rep = load("cm_rping", CM_REP);
	struct cm_agreed agreed;

	rig_bring(&rig, CM_STATE_REQ_SENT);
	rep.remote_id = rig.our_id;
	rig_receive(&rig, &rep);
	rig_event(&rig, CM_EVENT_REP);
	cm_conn_agreed(rig.conn, &agreed);
	assert_int_equal(agreed.sq_psn.v, first_request_psn().v);
}
