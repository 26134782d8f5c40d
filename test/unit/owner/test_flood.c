/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A flood of REQs from made-up sources: an owner of a port, an attached process with a connection
 * manager of its own that accepts everything, and an honest peer that has a connection to it and
 * asks for another. Time of the connection managers is virtual.
 */
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_mbuf.h>

#include "arbiter_mads.h"
#include "cm/cm.h"
#include "forward.h"
#include "port_rig.h"
#include "server_poll.h"
#include "wire/build.h"
#include "wire/packet.h"

#define BUFFERS_MAX  256 /* of the process */
#define FLOOD	     100000u
#define STEP_NS	     UINT64_C(200000) /* between two REQs */
#define BURST	     32		      /* REQs until the process polls */
#define DATA_EVERY   50		      /* REQs between two packets of the connection */
#define RESPONSE     20		      /* 4.3 s, as Linux has it */
#define RETRIES	     15
#define HEAP_MAX     (16u << 20)
#define HONEST_QPN   0x222u
#define INBOX_MAX    64u
#define MADE_UP_TIME 31 /* the longest that a REQ can ask for */

static uint64_t now_ns;

/* The first attached process. */
static struct {
	struct cm_sink sink; /* first: the sink is the process */
	struct cm *cm;
	struct cm_listener *listener;
	struct share_ring returns;
	uint32_t qpn; /* of its first connection; the next one's is the next */
	uint32_t accepted;
	uint32_t data;	      /* packets of its connections */
	uint32_t established; /* events */
	uint32_t disconnected;
} process;

/* The honest peer, on another host. */
static struct {
	struct cm_sink sink; /* first */
	struct cm *cm;
	uint32_t sent;		    /* MADs */
	uint32_t received, arrived; /* MADs that it has taken, and that wait in */
	uint8_t inbox[INBOX_MAX][MAD_LEN];
} honest;

static int group_setup(TEST_STATE)
{
	return port_rig_start(BUFFERS_MAX);
}

TEST_GROUP(group_setup, port_rig_group_teardown);

static bool is_host(const uint8_t *gid)
{
	return memcmp(gid, host, GID_LEN) == 0;
}

/* A packet of `len` bytes of payload from one address to another. */
static struct rte_mbuf *packet(const uint8_t *from, const uint8_t *to, uint32_t dest_qpn,
			       const uint8_t *payload, uint32_t len)
{
	struct path_attr attr = {.vlan_tci = -1, .udp_sport = 0xc000, .hop_limit = 64};
	const struct bth_fields bth = {.opcode = OPCODE_RC | OPCODE_SEND_ONLY,
				       .pkey = WIRE_PKEY_DEFAULT,
				       .dest_qpn = dest_qpn};
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(server.uplink.link.port.pool);
	struct packet_out out = {.frame = rte_pktmbuf_mtod(mbuf, uint8_t *)};
	struct path path;

	memcpy(attr.src_mac, is_host(from) ? our_mac : peer_mac, sizeof(our_mac));
	memcpy(attr.dst_mac, is_host(to) ? our_mac : peer_mac, sizeof(our_mac));
	memcpy(attr.sgid, from, GID_LEN);
	memcpy(attr.dgid, to, GID_LEN);
	assert_int_equal(path_init(&path, &attr), 0);
	if (dest_qpn == GSI_QPN) {
		mad_put(&out, &path, psn_make(0), payload);
	} else {
		packet_begin(&out, &path, &bth);
		packet_payload(&out, FRAG_OWN, payload, len);
	}
	mbuf->data_len = (uint16_t)packet_seal(&out);
	mbuf->pkt_len = mbuf->data_len;
	return mbuf;
}

/* Take what the port is to send; the honest peer gets what is for it. */
static void take_sent(void)
{
	for (uint32_t i = 0; i < server.uplink.pending_count; i++) {
		struct rte_mbuf *mbuf = server.uplink.pending[i];
		struct packet parsed;

		assert_int_equal(packet_parse(rte_pktmbuf_mtod(mbuf, uint8_t *), mbuf->data_len,
					      false, &parsed),
				 PACKET_OK);
		if (memcmp(parsed.dgid, peer, GID_LEN) == 0) {
			assert_true(honest.arrived - honest.received < INBOX_MAX);
			memcpy(honest.inbox[honest.arrived++ % INBOX_MAX], parsed.payload, MAD_LEN);
		}
		rte_pktmbuf_free(mbuf);
	}
	server.uplink.pending_count = 0;
}

static void process_sends(struct cm_sink *sink, const struct gsi_address *to, const uint8_t *mad)
{
	(void)sink;
	assert_true(
		forward_send_on(&server, 0, packet(host, to->remote, GSI_QPN, mad, MAD_LEN), NULL));
	take_sent();
}

static void honest_sends(struct cm_sink *sink, const struct gsi_address *to, const uint8_t *mad)
{
	(void)sink;
	honest.sent++;
	forward_input(&server, packet(peer, to->remote, GSI_QPN, mad, MAD_LEN));
	take_sent();
}

/* Give the attached process its connection manager, with a listener. */
static void process_listens(void)
{
	const struct cm_listen_attr attr = {
		.service_id = cm_service_id(CM_PS_TCP, PORT), .any_address = true, .backlog = 128};
	const struct cm_config config = {.sink = &process.sink,
					 .id_value = welcomes[0].welcome.id_value,
					 .id_mask = IDS_MASK};
	struct cm_port_claim claim = {
		.space = CM_PS_TCP, .port = PORT, .any_address = true, .vlan_id = -1};
	uint32_t id;

	process.qpn = welcomes[0].welcome.qpn_first + 1;
	process.sink.send = process_sends;
	port_rig_find_ring(&process.returns, 0, SHARE_RING_RETURN);
	assert_int_equal(cm_create(&config, &process.cm), 0);
	assert_int_equal(cm_listen(process.cm, &attr, &process.listener), 0);
	assert_int_equal(arbiter_claim(server.gsi.arbiter, 0, &claim, &id), 0);
	assert_int_equal(arbiter_listen(server.gsi.arbiter, 0, id), 0);
}

static int setup(void **state)
{
	const struct cm_config config = {.sink = &honest.sink};

	memset(&process, 0, sizeof(process));
	memset(&honest, 0, sizeof(honest));
	now_ns = 1000000000;
	port_rig_setup(state);
	process_listens();
	honest.sink.send = honest_sends;
	return cm_create(&config, &honest.cm);
}

static int teardown(void **state)
{
	cm_destroy(process.cm);
	cm_destroy(honest.cm);
	return port_rig_teardown(state);
}

TEST_FIXTURE(setup, teardown);

/* The application takes each request at once, and ends each connection that its peer has ended. */
static void process_hears(void)
{
	struct cm_accept_attr accept = {0};
	struct cm_event event;

	while (cm_next_event(process.cm, &event)) {
		accept.qpn = process.qpn + process.accepted;
		if (event.type == CM_EVENT_REQ) {
			cm_conn_take(event.conn);
			process.accepted += cm_accept(event.conn, &accept, now_ns) == 0;
		}
		process.established += event.type == CM_EVENT_ESTABLISHED;
		process.disconnected += event.type == CM_EVENT_DISCONNECTED &&
					cm_disconnect(event.conn, NULL, 0, now_ns) == 0;
	}
}

static void process_receives(const struct share_packet *word)
{
	const uint8_t *frame =
		server.arena.memory + (size_t)word->buffer * server.arena.stride + word->offset;
	struct gsi_address from = {.vlan_id = -1, .mac_known = true};
	struct packet parsed;

	assert_int_equal(packet_parse(frame, word->len, false, &parsed), PACKET_OK);
	if (parsed.dest_qpn != GSI_QPN) {
		process.data++;
		return;
	}
	memcpy(from.local, parsed.dgid, GID_LEN);
	memcpy(from.remote, parsed.sgid, GID_LEN);
	memcpy(from.mac, parsed.src_mac, sizeof(from.mac));
	cm_receive(process.cm, parsed.payload, parsed.payload_len, &from, now_ns);
	process_hears();
}

static void process_polls(void)
{
	struct share_packet word;
	uint64_t value;

	while (share_ring_take(&rx[0], &value, 1) > 0) {
		word = share_unpack(value);
		process_receives(&word);
		assert_int_equal(share_ring_put(&process.returns, &value, 1), 1);
	}
	if (cm_deadline_ns(process.cm) <= now_ns)
		cm_expire(process.cm, now_ns);
	process_hears();
}

static void honest_polls(void)
{
	struct gsi_address from = {.vlan_id = -1, .mac_known = true};
	struct cm_event event;

	memcpy(from.local, peer, GID_LEN);
	memcpy(from.remote, host, GID_LEN);
	while (honest.received != honest.arrived)
		cm_receive(honest.cm, honest.inbox[honest.received++ % INBOX_MAX], MAD_LEN, &from,
			   now_ns);
	if (cm_deadline_ns(honest.cm) <= now_ns)
		cm_expire(honest.cm, now_ns);
	while (cm_next_event(honest.cm, &event)) {
		if (event.type == CM_EVENT_REP)
			assert_int_equal(cm_establish(event.conn, NULL, 0, now_ns), 0);
	}
}

static void all_poll(void)
{
	for (int i = 0; i < 4; i++) {
		process_polls();
		server_poll_run(&server);
		honest_polls();
	}
}

static struct cm_conn *connect_honestly(uint32_t qpn)
{
	struct cm_connect_attr attr = {.to = {.vlan_id = -1, .mac_known = true},
				       .service_id = cm_service_id(CM_PS_TCP, PORT),
				       .qpn = qpn,
				       .mtu = 3,
				       .packet_life_time = 16,
				       .response_timeout = RESPONSE,
				       .max_cm_retries = RETRIES};
	struct cm_conn *conn;

	memcpy(attr.to.local, peer, GID_LEN);
	memcpy(attr.to.remote, host, GID_LEN);
	assert_int_equal(cm_connect(honest.cm, &attr, now_ns, &conn), 0);
	return conn;
}

/* A REQ that is right, from a source that there is not. */
static void come_made_up(uint32_t number)
{
	const uint32_t random = number * 2654435761u + 1;
	uint8_t source[GID_LEN] = {[10] = 0xff, 0xff, 10, 9};
	struct cm_mad mad = req_to(PORT, random);
	uint8_t bytes[MAD_LEN];

	/* The address is neither ours nor the honest peer's. */
	source[13] = (uint8_t)(1 + random % 250);
	memcpy(source + 14, &number, 2);
	mad.tid = random;
	mad.req.qpn = 2 + random % 0xfffff0;
	mad.req.mtu = 3;
	mad.req.pkey = WIRE_PKEY_DEFAULT;
	mad.req.max_cm_retries = RETRIES;
	mad.req.local_response_timeout = MADE_UP_TIME;
	mad.req.remote_response_timeout = MADE_UP_TIME;
	mad.req.primary.ack_timeout = MADE_UP_TIME;
	memcpy(mad.req.primary.local_gid, source, GID_LEN);
	memcpy(mad.req.primary.remote_gid, host, GID_LEN);
	assert_int_equal(cm_mad_build(&mad, bytes), 0);
	forward_input(&server, packet(source, host, GSI_QPN, bytes, sizeof(bytes)));
	take_sent();
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A part of the flood, and packets of a connection in it. Returns the CPU time that it took. */
static uint64_t flood(uint32_t first, uint32_t count, uint32_t *sent)
{
	const uint8_t payload[64] = {0};
	const uint64_t begun_ns = cpu_ns();

	for (uint32_t i = first; i < first + count; i++) {
		come_made_up(i);
		if (i % DATA_EVERY == 0) {
			forward_input(&server,
				      packet(peer, host, process.qpn, payload, sizeof(payload)));
			(*sent)++;
		}
		now_ns += STEP_NS;
		if (i % BURST == 0)
			all_poll();
	}
	all_poll();
	return cpu_ns() - begun_ns;
}

TEST(flood__costs_little_and_disturbs_nobody)
{
	struct cm_conn *before, *meanwhile;
	uint32_t data = 0, asked;
	uint64_t first_ns, second_ns;
	size_t heap;

	before = connect_honestly(HONEST_QPN);
	all_poll();
	assert_int_equal(cm_conn_state(before), CM_STATE_ESTABLISHED);
	assert_int_equal(process.established, 1);

	heap = mallinfo2().uordblks;
	first_ns = flood(0, FLOOD / 2, &data);
	asked = honest.sent;
	meanwhile = connect_honestly(HONEST_QPN + 1);
	second_ns = flood(FLOOD / 2, FLOOD / 2, &data);
	heap = mallinfo2().uordblks - heap;
	print_message("%u REQs: %llu and %llu ns each in either half, %zu bytes, %u connections; "
		      "an honest REQ got through after %u MADs\n",
		      FLOOD, (unsigned long long)(first_ns / (FLOOD / 2)),
		      (unsigned long long)(second_ns / (FLOOD / 2)), heap,
		      cm_conn_count(process.cm), honest.sent - asked);

	/* Made-up sources have a bounded part, and the second half costs no more than the first. */
	assert_true(heap < HEAP_MAX);
	assert_true(second_ns < 3 * first_ns);
	assert_int_equal(server.totals.mads_dropped, 0);
	/* Honest: all packets of its connection arrived, and it has another. */
	assert_int_equal(process.data, data);
	assert_int_equal(cm_conn_state(before), CM_STATE_ESTABLISHED);
	assert_int_equal(cm_conn_state(meanwhile), CM_STATE_ESTABLISHED);
	assert_int_equal(process.established, 2);
	assert_int_equal(process.disconnected, 0);
	assert_int_equal(cm_disconnect(before, NULL, 0, now_ns), 0);
	all_poll();
	assert_int_equal(cm_conn_state(before), CM_STATE_TIMEWAIT);
	assert_int_equal(process.disconnected, 1);
}
