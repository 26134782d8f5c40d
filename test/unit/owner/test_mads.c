/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/mads.c: packets to QP 1 of an owner's port, from the wire and from processes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "arbiter_mads.h"
#include "event.h"
#include "forward.h"
#include "mads.h"
#include "owner/arbiter.h"
#include "port_rig.h"
#include "report/set.h"
#include "share/message.h"
#include "slot.h"
#include "test.h"
#include "server_poll.h"
#include "wire/build.h"
#include "wire/packet.h"

#define FLOOD 2000

TEST_GROUP(port_rig_group_setup, port_rig_group_teardown);
TEST_FIXTURE(port_rig_setup, port_rig_teardown);

static void serve(uint16_t slot, uint16_t port)
{
	struct cm_port_claim claim = {
		.space = CM_PS_TCP, .port = port, .any_address = true, .vlan_id = -1};
	uint32_t id;

	assert_int_equal(arbiter_claim(server.gsi.arbiter, slot, &claim, &id), 0);
	assert_int_equal(arbiter_listen(server.gsi.arbiter, slot, id), 0);
}

/* The fields of a packet. */
struct wish {
	bool from_us;
	bool to_peer;
	bool unsealed;
	uint32_t qkey, src_qpn;
	uint16_t pkey;
	uint8_t opcode;
	uint32_t len;
};

static const struct wish from_peer = {
	.qkey = GSI_QKEY,
	.src_qpn = GSI_QPN,
	.pkey = WIRE_PKEY_DEFAULT,
	.opcode = OPCODE_UD | OPCODE_SEND_ONLY,
	.len = MAD_LEN,
};

static struct rte_mbuf *packet(const struct wish *wish, const struct cm_mad *mad)
{
	struct path_attr attr = {.vlan_tci = -1, .udp_sport = 0xc000, .hop_limit = 64};
	const struct bth_fields bth = {
		.opcode = wish->opcode, .pkey = wish->pkey, .dest_qpn = GSI_QPN};
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(server.uplink.link.port.pool);
	struct packet_out out = {.frame = rte_pktmbuf_mtod(mbuf, uint8_t *)};
	uint8_t bytes[MAD_LEN];
	struct path path;

	assert_int_equal(cm_mad_build(mad, bytes), 0);
	memcpy(attr.dst_mac, wish->to_peer ? peer_mac : our_mac, sizeof(our_mac));
	memcpy(attr.src_mac, wish->from_us ? our_mac : peer_mac, sizeof(our_mac));
	memcpy(attr.sgid, wish->from_us ? host : peer, GID_LEN);
	memcpy(attr.dgid, wish->to_peer ? peer : host, GID_LEN);
	assert_int_equal(path_init(&path, &attr), 0);
	packet_begin(&out, &path, &bth);
	if ((wish->opcode & OPCODE_SERVICE_MASK) == OPCODE_UD) {
		struct deth *deth = packet_extend(&out, sizeof(*deth));

		deth->qkey = rte_cpu_to_be_32(wish->qkey);
		deth->reserved = 0;
		wire_put24(deth->src_qpn, wish->src_qpn);
	}
	packet_payload(&out, FRAG_OWN, bytes, wish->len);
	out.unsealed = wish->unsealed;
	mbuf->data_len = (uint16_t)packet_seal(&out);
	mbuf->pkt_len = mbuf->data_len;
	return mbuf;
}

static void come(const struct wish *wish, struct cm_mad mad)
{
	mads_input(&server, packet(wish, &mad), 0);
}

/* Take the next packet of a process; false where it has none. Its buffer comes back at its end. */
static bool take(uint16_t n, struct cm_mad *mad, struct packet *parsed)
{
	static uint8_t frame[PACKET_FRAME_MAX];
	struct share_packet word;
	const uint8_t *data;
	uint64_t value;

	if (share_ring_take(&rx[n], &value, 1) == 0)
		return false;
	word = share_unpack(value);
	data = server.arena.memory + (size_t)word.buffer * server.arena.stride + word.offset;
	memcpy(frame, data, word.len);
	assert_int_equal(packet_parse(frame, word.len, word.flags & SHARE_FLAG_LOCAL, parsed),
			 PACKET_OK);
	if (!(word.flags & SHARE_FLAG_LOCAL))
		assert_true(packet_icrc_ok(parsed));
	assert_int_equal(cm_mad_parse(parsed->payload, parsed->payload_len, mad), CM_MAD_OK);
	return true;
}

static bool takes(uint16_t n, enum cm_message message)
{
	struct packet parsed;
	struct cm_mad mad;

	return take(n, &mad, &parsed) && mad.message == message;
}

static bool takes_nothing(uint16_t n)
{
	return share_ring_count(&rx[n]) == 0;
}

TEST(mads_input__gives_a_request_to_who_listens)
{
	serve(1, PORT);
	come(&from_peer, req_to(PORT, PEER_ID));
	assert_true(takes(1, CM_REQ));
	assert_true(takes_nothing(0));
	assert_int_equal(server.uplink.pending_count, 0);
	assert_int_equal(server.totals.mads, 1);
}

TEST(mads_input__answers_for_nobody)
{
	struct packet parsed;
	struct cm_mad mad;

	come(&from_peer, req_to(PORT, PEER_ID));
	assert_int_equal(server.uplink.pending_count, 1);
	assert_int_equal(packet_parse(rte_pktmbuf_mtod(server.uplink.pending[0], uint8_t *),
				      server.uplink.pending[0]->data_len, false, &parsed),
			 PACKET_OK);
	assert_true(packet_icrc_ok(&parsed));
	assert_memory_equal(parsed.dgid, peer, GID_LEN);
	assert_memory_equal(parsed.sgid, host, GID_LEN);
	assert_memory_equal(rte_pktmbuf_mtod(server.uplink.pending[0], uint8_t *), peer_mac, 6);
	assert_int_equal(parsed.dest_qpn, GSI_QPN);
	assert_int_equal(parsed.src_qpn, GSI_QPN);
	assert_int_equal(parsed.qkey, GSI_QKEY);
	assert_int_equal(cm_mad_parse(parsed.payload, parsed.payload_len, &mad), CM_MAD_OK);
	assert_int_equal(mad.message, CM_REJ);
	assert_int_equal(mad.rej.reason, CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(server.totals.mads_answered, 1);
}

TEST(mads_input__gives_the_rest_by_id)
{
	come(&from_peer, mad_of(CM_RTU, PEER_ID, ids[0]));
	assert_true(takes(0, CM_RTU));
	come(&from_peer, mad_of(CM_RTU, PEER_ID, ids[1]));
	assert_true(takes(1, CM_RTU));
	come(&from_peer, mad_of(CM_RTU, PEER_ID, ids[1] ^ 0x80000000));
	assert_true(takes_nothing(0) && takes_nothing(1));
	assert_int_equal(server.totals.mads_dropped, 1);
	assert_int_equal(server.uplink.pending_count, 0);
}

static void dropped(struct wish wish)
{
	const uint64_t before = server.totals.mads_dropped;

	come(&wish, req_to(PORT, PEER_ID));
	assert_int_equal(server.totals.mads_dropped, before + 1);
	assert_true(takes_nothing(0) && takes_nothing(1));
	assert_int_equal(server.uplink.pending_count, 0);
}

TEST(mads_input__drops_what_is_no_management_datagram)
{
	struct wish wish;

	serve(0, PORT);
	wish = from_peer;
	wish.qkey = 0x11111111;
	dropped(wish);
	wish = from_peer;
	wish.src_qpn = 7;
	dropped(wish);
	wish = from_peer;
	wish.pkey = 0x1234;
	dropped(wish);
	wish = from_peer;
	wish.opcode = OPCODE_RC | OPCODE_SEND_ONLY;
	dropped(wish);
	wish = from_peer;
	wish.len = MAD_LEN - 4;
	dropped(wish);
	/* The ICRC is wrong. */
	wish = from_peer;
	wish.unsealed = true;
	dropped(wish);
}

TEST(mads_input__is_for_addresses_of_ours)
{
	struct address kept = server.uplink.link.addresses.list[0];

	serve(0, PORT);
	server.uplink.link.addresses.list[0].gid[GID_LEN - 1]++;
	dropped(from_peer);
	server.uplink.link.addresses.list[0] = kept;
	server.uplink.link.addresses.list[0].vlan = 5;
	dropped(from_peer);
	server.uplink.link.addresses.list[0] = kept;
}

static void send_on(uint16_t from, struct cm_mad mad)
{
	struct wish wish = from_peer;

	wish.from_us = true;
	/* Processes that trust each other send without an ICRC. */
	wish.unsealed = true;
	assert_true(forward_send_on(&server, from, packet(&wish, &mad), NULL));
}

static bool may_ask(struct cm_mad mad)
{
	struct wish wish = from_peer;
	struct rte_mbuf *mbuf;
	bool may;

	wish.from_us = true;
	mbuf = packet(&wish, &mad);
	may = mads_may_ask(&server, 0, rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len);
	rte_pktmbuf_free(mbuf);
	return may;
}

/* Other messages belong to connections that it has asked for. */
TEST(mads_may_ask__limits_requests_of_a_tenant)
{
	struct tenants_limits *limits = &server.tenants.all[server.slots.all[0].tenant].limits;

	for (int i = 0; i < 10; i++)
		assert_true(may_ask(req_to(PORT, ids[0])));
	limits->connection_rate = 2;
	for (int i = 0; i < 4; i++)
		assert_int_equal(may_ask(req_to(PORT, ids[0])), i < 2);
	assert_true(may_ask(mad_of(CM_RTU, ids[0], ids[1])));
	limits->connection_rate = 0;
}

TEST(mads_send_on__goes_from_process_to_process)
{
	struct packet parsed;
	struct cm_mad mad;

	serve(1, PORT);
	send_on(0, req_to(PORT, ids[0]));
	assert_true(take(1, &mad, &parsed));
	assert_int_equal(mad.message, CM_REQ);
	assert_int_equal(mad.local_id, ids[0]);
	mad = mad_of(CM_REP, ids[1], ids[0]);
	mad.rep.qpn = QPN;
	send_on(1, mad);
	assert_true(takes(0, CM_REP));
	assert_int_equal(server.uplink.pending_count, 0);
	/* A connection makes no direct channel. Its packets do. */
	assert_int_equal(server.directs.handed[0][1], 0);
}

TEST(mads_send_on__goes_back_to_its_process)
{
	serve(0, PORT);
	send_on(0, req_to(PORT, ids[0]));
	assert_true(takes(0, CM_REQ));
	assert_true(takes_nothing(1));
}

TEST(mads_send_on__is_answered_where_nobody_listens)
{
	struct packet parsed;
	struct cm_mad mad;

	send_on(1, req_to(PORT, ids[1]));
	assert_true(take(1, &mad, &parsed));
	assert_int_equal(mad.message, CM_REJ);
	assert_int_equal(mad.remote_id, ids[1]);
	assert_true(takes_nothing(0));
	assert_int_equal(server.uplink.pending_count, 0);
}

/* The connections of a process that has ended are nobody's. */
TEST(mads_input__answers_for_a_process_that_has_ended)
{
	struct cm_mad dreq = mad_of(CM_DREQ, PEER_ID, ids[1]);
	struct packet parsed;
	struct cm_mad mad;

	dreq.dreq_qpn = QPN;
	serve(1, PORT);
	slot_end(&server, 1);
	come(&from_peer, req_to(PORT, PEER_ID));
	come(&from_peer, dreq);
	assert_int_equal(server.uplink.pending_count, 2);
	assert_int_equal(packet_parse(rte_pktmbuf_mtod(server.uplink.pending[1], uint8_t *),
				      server.uplink.pending[1]->data_len, false, &parsed),
			 PACKET_OK);
	assert_int_equal(cm_mad_parse(parsed.payload, parsed.payload_len, &mad), CM_MAD_OK);
	assert_int_equal(mad.message, CM_DREP);
	assert_true(takes_nothing(0));
}

/* A process that takes nothing has no more buffers than it may hold. What its queue has no room for
 * is lost, and counted. */
TEST(mads_input__of_a_flood_costs_what_a_process_may_hold)
{
	serve(0, PORT);
	for (uint32_t i = 0; i < MAD_QUEUE_MAX + FLOOD; i++)
		come(&from_peer, req_to(PORT, i));
	assert_int_equal(server.arena.ownership.held[0], PORT_RIG_BUFFERS);
	assert_int_equal(server.totals.mads, PORT_RIG_BUFFERS);
	assert_int_equal(server.slots.all[0].mads.count, MAD_QUEUE_MAX);
	assert_int_equal(server.totals.mads_dropped, FLOOD - PORT_RIG_BUFFERS);
	assert_int_equal(server.slots.all[0].rx_dropped, FLOOD - PORT_RIG_BUFFERS);
	come(&from_peer, mad_of(CM_RTU, PEER_ID, ids[1]));
	assert_true(takes(1, CM_RTU));
}

/* Send a MAD of process 0 to the same host. Its sender waits while the owner says so. */
static void send_patiently(struct cm_mad mad)
{
	struct wish wish = from_peer;
	struct rte_mbuf *mbuf;

	wish.from_us = wish.unsealed = true;
	mbuf = packet(&wish, &mad);
	while (!forward_send_on(&server, 0, mbuf, NULL))
		server.now_ns += TRANSMIT_TIMEOUT_NS;
}

/* Take what a process has, give the buffers back, and expect REQs that follow each other. */
static uint32_t take_requests(uint16_t n, uint32_t next)
{
	struct share_packet word;
	const uint8_t *frame;
	struct packet parsed;
	struct cm_mad mad;
	uint64_t value;

	while (share_ring_take(&rx[n], &value, 1) == 1) {
		word = share_unpack(value);
		frame = server.arena.memory + (size_t)word.buffer * server.arena.stride +
			word.offset;
		assert_int_equal(packet_parse(frame, word.len, true, &parsed), PACKET_OK);
		assert_int_equal(cm_mad_parse(parsed.payload, parsed.payload_len, &mad), CM_MAD_OK);
		assert_int_equal(mad.local_id, next);
		next++;
		assert_true(ownership_take(&server.arena.ownership, word.buffer, n));
		rte_pktmbuf_free(server.arena.mbufs[word.buffer]);
	}
	return next;
}

/* The receiver takes nothing until all are sent, for longer than senders wait for room. */
TEST(mads_send_on__loses_none_of_a_storm)
{
	uint32_t taken = 0;

	server.now_ns = event_now_ns();
	serve(1, PORT);
	for (uint32_t i = 0; i < FLOOD; i++)
		send_patiently(req_to(PORT, i));
	for (uint32_t i = 0; i < FLOOD && taken < FLOOD; i++) {
		taken = take_requests(1, taken);
		server_poll_run(&server);
	}
	assert_int_equal(taken, FLOOD);
	assert_int_equal(server.totals.mads, FLOOD);
	assert_int_equal(server.totals.handed_over, FLOOD);
	assert_int_equal(server.totals.mads_dropped, 0);
	assert_int_equal(server.slots.all[1].rx_dropped, 0);
	assert_null(server.slots.all[1].mads.all);
}

/* A process has taken some, so there is room: what comes then is still behind those that wait. */
TEST(mads_input__keeps_the_order_of_those_that_wait)
{
	uint32_t taken;

	server.now_ns = event_now_ns();
	serve(1, PORT);
	for (uint32_t i = 0; i < FLOOD; i++)
		come(&from_peer, req_to(PORT, i));
	taken = take_requests(1, 0);
	assert_int_equal(taken, PORT_RIG_BUFFERS);
	come(&from_peer, req_to(PORT, FLOOD));
	send_patiently(req_to(PORT, FLOOD + 1));
	for (uint32_t i = 0; i < FLOOD && taken < FLOOD + 2; i++) {
		taken = take_requests(1, taken);
		server_poll_run(&server);
	}
	assert_int_equal(taken, FLOOD + 2);
}

/* The peers of a process that takes nothing for longer have given up. */
TEST(mad_queue_serve__drops_what_nobody_waits_for)
{
	server.now_ns = event_now_ns();
	serve(1, PORT);
	for (uint32_t i = 0; i < FLOOD; i++)
		send_patiently(req_to(PORT, i));
	assert_int_equal(mad_queue_longest_ms(&server, 50), 1);
	server.now_ns += MAD_QUEUE_NS - 1;
	mad_queue_serve(&server, 1);
	assert_int_equal(server.totals.mads_dropped, 0);
	server.now_ns++;
	mad_queue_serve(&server, 1);
	assert_int_equal(server.totals.mads_dropped, FLOOD - PORT_RIG_BUFFERS);
	assert_int_equal(server.totals.mads, PORT_RIG_BUFFERS);
	assert_null(server.slots.all[1].mads.all);
	assert_int_equal(mad_queue_longest_ms(&server, 50), 50);
}

TEST(slot_end__drops_what_waits_for_the_process)
{
	serve(1, PORT);
	for (uint32_t i = 0; i < FLOOD; i++)
		come(&from_peer, req_to(PORT, i));
	slot_end(&server, 1);
	assert_int_equal(server.totals.mads_dropped, FLOOD - PORT_RIG_BUFFERS);
	assert_null(server.slots.all[1].mads.all);
}

/* Let the peer connect to a process. */
static void connect_peer(uint16_t n)
{
	struct wish wish = from_peer;
	struct cm_mad rep = mad_of(CM_REP, ids[n], PEER_ID);

	serve(n, PORT);
	come(&from_peer, req_to(PORT, PEER_ID));
	assert_true(takes(n, CM_REQ));
	rep.rep.qpn = QPN;
	wish.from_us = wish.to_peer = true;
	assert_true(forward_send_on(&server, n, packet(&wish, &rep), NULL));
	assert_int_equal(server.uplink.pending_count, 1);
	rte_pktmbuf_free(server.uplink.pending[0]);
	server.uplink.pending_count = 0;
}

TEST(mads_disconnect_orphans__tells_a_peer_beyond_the_port)
{
	struct packet parsed;
	struct cm_mad mad;

	connect_peer(0);
	mads_disconnect_orphans(&server);
	assert_int_equal(server.uplink.pending_count, 0);
	slot_end(&server, 0);
	mads_disconnect_orphans(&server);
	assert_int_equal(server.uplink.pending_count, 1);
	assert_int_equal(packet_parse(rte_pktmbuf_mtod(server.uplink.pending[0], uint8_t *),
				      server.uplink.pending[0]->data_len, false, &parsed),
			 PACKET_OK);
	assert_true(packet_icrc_ok(&parsed));
	assert_memory_equal(rte_pktmbuf_mtod(server.uplink.pending[0], uint8_t *), peer_mac, 6);
	assert_memory_equal(parsed.dgid, peer, GID_LEN);
	assert_memory_equal(parsed.sgid, host, GID_LEN);
	assert_int_equal(cm_mad_parse(parsed.payload, parsed.payload_len, &mad), CM_MAD_OK);
	assert_int_equal(mad.message, CM_DREQ);
	assert_int_equal(mad.remote_id, PEER_ID);
	assert_int_equal(mad.dreq_qpn, QPN);
	mads_disconnect_orphans(&server);
	assert_int_equal(server.uplink.pending_count, 1);
	assert_int_equal(server.totals.mads_farewell, 1);
}

static void connect_both(void)
{
	struct cm_mad rep = mad_of(CM_REP, ids[1], ids[0]);

	serve(1, PORT);
	send_on(0, req_to(PORT, ids[0]));
	assert_true(takes(1, CM_REQ));
	rep.rep.qpn = QPN;
	send_on(1, rep);
	assert_true(takes(0, CM_REP));
}

TEST(mads_disconnect_orphans__tells_a_process_of_ours)
{
	struct packet parsed;
	struct cm_mad mad;

	connect_both();
	slot_end(&server, 0);
	mads_disconnect_orphans(&server);
	assert_int_equal(server.uplink.pending_count, 0);
	assert_true(take(1, &mad, &parsed));
	assert_int_equal(mad.message, CM_DREQ);
	assert_int_equal(mad.local_id, ids[0]);
	assert_int_equal(mad.remote_id, ids[1]);
	/* The peer's answer ends the repetitions. */
	send_on(1, mad_of(CM_DREP, ids[1], ids[0]));
	assert_int_equal(arbiter_due_ns(server.gsi.arbiter), UINT64_MAX);
}

TEST(mads_disconnect_orphans__of_both_sides_ends_at_once)
{
	connect_both();
	slot_end(&server, 0);
	slot_end(&server, 1);
	mads_disconnect_orphans(&server);
	assert_int_equal(server.uplink.pending_count, 0);
	assert_int_equal(arbiter_due_ns(server.gsi.arbiter), UINT64_MAX);
}
