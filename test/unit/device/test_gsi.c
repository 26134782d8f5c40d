/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/device/gsi.c, and of the way to it through device_receive. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "device/gsi.h"
#include "pcap.h"
#include "transport/sink.h"
#include "wire/build.h"
#include "wire/headers.h"
#include "wire/mad.h"
#include "wire/opcode.h"
#include "wire/packet.h"
#include "test.h"

#define NOW_NS 12345

static const struct gsi_address to_peer = {.local = {[10] = 0xff, 0xff, 10, 9, 0, 1},
					   .remote = {[10] = 0xff, 0xff, 10, 9, 0, 2},
					   .vlan_id = -1,
					   .mac_known = true,
					   .mac = {2, 1, 2, 3, 4, 5}};

static struct {
	struct packet_sink sink; /* first: the sink is this */
	struct device *device;
	struct packet_out out;
	uint8_t frame[PACKET_FRAME_MAX];
	uint32_t len;
	bool full;
	/* what was received */
	int received;
	struct gsi_address from;
	uint8_t mad[MAD_LEN];
	size_t mad_len;
	uint64_t now_ns;
} env;

static void receive(void *user, const struct gsi_address *from, const uint8_t *mad, size_t len,
		    uint64_t now_ns)
{
	assert_ptr_equal(user, &env);
	env.received++;
	env.from = *from;
	env.mad_len = len;
	memcpy(env.mad, mad, len < MAD_LEN ? len : MAD_LEN);
	env.now_ns = now_ns;
}

static const struct gsi_ops ops = {.receive = receive};

static struct packet_out *get(struct packet_sink *sink)
{
	assert_ptr_equal(sink, &env.sink);
	env.out.frame = env.frame;
	return env.full ? NULL : &env.out;
}

static int put(struct packet_sink *sink, struct packet_out *out)
{
	const int len = packet_seal(out);

	assert_ptr_equal(sink, &env.sink);
	assert_true(len > 0);
	env.len = (uint32_t)len;
	return 0;
}

static int set_up(TEST_STATE)
{
	const struct device_config config = {.name = "uroce0", .port_mtu_bytes = 1500, .mac = {2}};
	union ibv_gid gid;

	memset(&env, 0, sizeof(env));
	env.sink = (struct packet_sink){.get = get, .put = put};
	if (device_create(&config, &env.device) != 0)
		return -1;
	memcpy(gid.raw, to_peer.local, sizeof(gid.raw));
	env.device->gsi = &ops;
	env.device->gsi_user = &env;
	return device_add_gid(env.device, &gid, -1, 0);
}

static int tear_down(TEST_STATE)
{
	device_destroy(env.device);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static bool offer_known(const uint8_t *frame, size_t len, unsigned int known)
{
	struct qp *qp;
	const bool taken = device_receive(device_first(env.device), frame, len, known, NOW_NS, &qp);

	assert_null(qp);
	return taken;
}

static bool offer(const uint8_t *frame, size_t len)
{
	return offer_known(frame, len, 0);
}

/* A selective acknowledgement is of no service, and the management queue pair of none that has one.
 */
TEST(receive__a_selective_acknowledgement_is_no_mad)
{
	struct path_attr attr = {.src_mac = {2, 1, 2, 3, 4, 5},
				 .dst_mac = {2},
				 .vlan_tci = -1,
				 .hop_limit = 64,
				 .udp_sport = WIRE_UDP_SPORT_MIN};
	struct packet_out out = {.frame = env.frame};
	const struct bth_fields bth = {.opcode = OPCODE_SACK,
				       .migrated = true,
				       .ack_byte = BTH_SACK_RESPONSE,
				       .pkey = WIRE_PKEY_DEFAULT,
				       .dest_qpn = GSI_QPN};
	static const uint8_t bitmap[MAD_LEN] = {1};
	struct path path;

	memcpy(attr.sgid, to_peer.remote, sizeof(attr.sgid));
	memcpy(attr.dgid, to_peer.local, sizeof(attr.dgid));
	assert_int_equal(path_init(&path, &attr), 0);
	packet_begin(&out, &path, &bth);
	memset(packet_extend(&out, sizeof(struct sacketh)), 0, sizeof(struct sacketh));
	packet_payload(&out, FRAG_OWN, bitmap, sizeof(bitmap));
	assert_true(offer(env.frame, (size_t)packet_seal(&out)));
	assert_int_equal(env.received, 0);
	assert_int_equal(device_counter(env.device, COUNTER_rx_wrong_opcode), 1);
}

/* Linux's MADs, to our address as the capture's server has it. */
TEST(receive__linux_mads)
{
	struct pcap_frame frame;
	struct pcap pcap;
	int ret;

	assert_int_equal(pcap_open(&pcap, TEST_DATA "/wire/cm_rej.pcap"), 0);
	while ((ret = pcap_next(&pcap, &frame)) > 0)
		assert_true(offer(frame.data, frame.len));
	assert_int_equal(ret, 0);
	/* The REQ is to us; the REJ is to the peer. */
	assert_int_equal(env.received, 1);
	assert_int_equal(env.mad_len, MAD_LEN);
	assert_int_equal(env.mad[17], 0x10);
	assert_int_equal(env.now_ns, NOW_NS);
	assert_memory_equal(env.from.local, to_peer.local, 16);
	assert_memory_equal(env.from.remote, to_peer.remote, 16);
	assert_int_equal(env.from.vlan_id, -1);
	assert_true(env.from.mac_known);
	pcap_close(&pcap);
}

TEST(send__is_received_by_the_peer)
{
	static const struct gsi_address to_us = {.local = {[10] = 0xff, 0xff, 10, 9, 0, 1},
						 .remote = {[10] = 0xff, 0xff, 10, 9, 0, 1},
						 .vlan_id = -1,
						 .mac_known = true};
	uint8_t mad[MAD_LEN];

	memset(mad, 0x5a, sizeof(mad));
	assert_int_equal(gsi_send(env.device, &to_us, mad, &env.sink), 0);
	/* It did not come from the network, where our own address is no source. */
	assert_true(offer_known(env.frame, env.len, FRAME_SOURCE_GOOD));
	assert_int_equal(env.received, 1);
	assert_memory_equal(env.mad, mad, sizeof(mad));
}

TEST(send__is_as_linux_sends_it)
{
	static const uint8_t mad[MAD_LEN] = {1, 7, 2, 3};
	struct packet packet;

	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(gsi_send(env.device, &to_peer, mad, &env.sink), 0);
		assert_int_equal(packet_parse(env.frame, env.len, false, &packet), PACKET_OK);
		assert_true(packet_icrc_ok(&packet));
		assert_int_equal(packet.opcode, 0x64);
		assert_int_equal(packet.pkey, 0xffff);
		assert_int_equal(packet.dest_qpn, GSI_QPN);
		assert_int_equal(packet.src_qpn, GSI_QPN);
		assert_int_equal(packet.qkey, GSI_QKEY);
		assert_int_equal(packet.psn.v, i);
		assert_int_equal(packet.payload_len, MAD_LEN);
		assert_memory_equal(packet.dgid, to_peer.remote, 16);
		assert_memory_equal(env.frame, to_peer.mac, 6);
	}
}

TEST(send__what_cannot_be_sent)
{
	struct gsi_address to = to_peer;
	const uint8_t mad[MAD_LEN] = {0};

	to.mac_known = false;
	assert_int_equal(gsi_send(env.device, &to, mad, &env.sink), -EDESTADDRREQ);
	to = to_peer;
	to.local[15]++;
	assert_int_equal(gsi_send(env.device, &to, mad, &env.sink), -EADDRNOTAVAIL);
	to = to_peer;
	to.vlan_id = 7;
	assert_int_equal(gsi_send(env.device, &to, mad, &env.sink), -EADDRNOTAVAIL);
	to = to_peer;
	to.remote[10] = 0; /* IPv6, from an IPv4 address */
	assert_int_equal(gsi_send(env.device, &to, mad, &env.sink), -EADDRNOTAVAIL);
	env.full = true;
	assert_int_equal(gsi_send(env.device, &to_peer, mad, &env.sink), -EAGAIN);
	assert_int_equal(env.len, 0);
}

/* A datagram to QP 1 of the device itself, changed in one place. */
static uint32_t build(uint8_t opcode, uint32_t qkey, uint32_t src_qpn)
{
	const struct path_attr attr = {.vlan_tci = -1,
				       .hop_limit = 64,
				       .sgid = {[10] = 0xff, 0xff, 10, 9, 0, 2},
				       .dgid = {[10] = 0xff, 0xff, 10, 9, 0, 1}};
	const struct bth_fields bth = {.opcode = opcode, .pkey = 0xffff, .dest_qpn = GSI_QPN};
	static const uint8_t mad[MAD_LEN];
	struct packet_out out = {.frame = env.frame};
	struct path path;

	assert_int_equal(path_init(&path, &attr), 0);
	packet_begin(&out, &path, &bth);
	if (opcode_info(opcode)->flags & OPCODE_HAS_DETH) {
		struct deth *deth = packet_extend(&out, sizeof(*deth));

		deth->qkey = rte_cpu_to_be_32(qkey);
		deth->reserved = 0;
		wire_put24(deth->src_qpn, src_qpn);
	}
	if (opcode_info(opcode)->flags & OPCODE_HAS_IMM)
		memset(packet_extend(&out, 4), 0, 4);
	assert_int_equal(packet_payload(&out, FRAG_OWN, mad, sizeof(mad)), 0);
	return (uint32_t)packet_seal(&out);
}

static void assert_dropped(uint32_t len, enum counter reason)
{
	const uint64_t before = device_counter(env.device, reason);

	assert_true(offer(env.frame, len));
	assert_int_equal(env.received, 0);
	assert_int_equal(device_counter(env.device, reason), before + 1);
}

TEST(receive__wrong_ones_are_dropped)
{
	const uint8_t send_only = OPCODE_UD | OPCODE_SEND_ONLY;

	assert_dropped(build(send_only, GSI_QKEY + 1, GSI_QPN), COUNTER_rx_wrong_qkey);
	assert_dropped(build(send_only, GSI_QKEY, 2), COUNTER_rx_wrong_qkey);
	assert_dropped(build(OPCODE_UD | OPCODE_SEND_ONLY_IMM, GSI_QKEY, GSI_QPN),
		       COUNTER_rx_wrong_opcode);
	assert_dropped(build(OPCODE_RC | OPCODE_SEND_ONLY, 0, 0), COUNTER_rx_wrong_opcode);
	env.device->gsi = NULL;
	assert_dropped(build(send_only, GSI_QKEY, GSI_QPN), COUNTER_rx_wrong_qpn);
}
