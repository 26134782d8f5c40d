/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/device/device_receive.c. A stand-in for qp_receive keeps what arrives. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "device/device.h"
#include "qp/qp.h"
#include "wire/build.h"
#include "wire/headers.h"
#include "wire/opcode.h"
#include "wire/packet.h"
#include "test.h"

#define NOW_NS 12345

static const uint8_t our_ipv4[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
static const uint8_t our_ipv6[16] = {0xfd, [15] = 1};
static const uint8_t peer_ipv4[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
static const uint8_t peer_ipv6[16] = {0xfd, [15] = 2};

static char object;
#define THE_QP ((struct qp *)&object)

static struct {
	struct device *device;
	uint32_t qpn;
	uint8_t frame[PACKET_FRAME_MAX];
	/* what the queue pair was given */
	int received;
	struct qp *qp;
	struct packet packet;
	uint64_t now_ns;
	const struct qp *prefetched;
	bool prefetched_request;
	bool quiet;    /* it wants nothing more */
	bool expects;  /* it finds each packet to be from its peer */
	int continued; /* packets that it was given without a look at their addresses */
} env;

void qp_prefetch_receive(const struct qp *qp, bool request)
{
	env.prefetched = qp;
	env.prefetched_request = request;
}

bool qp_receive(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	env.received++;
	env.qp = qp;
	env.packet = *packet;
	env.now_ns = now_ns;
	return !env.quiet;
}

bool qp_expects(const struct qp *qp, const struct packet *packet)
{
	(void)qp, (void)packet;
	return env.expects;
}

bool qp_receive_expected(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	env.continued++;
	return qp_receive(qp, packet, now_ns);
}

static int add_gid(const uint8_t raw[16], int32_t vlan_id)
{
	union ibv_gid gid;

	memcpy(gid.raw, raw, sizeof(gid.raw));
	return device_add_gid(env.device, &gid, vlan_id, 0);
}

static int set_up(TEST_STATE)
{
	const struct device_config config = {.name = "uroce0", .port_mtu_bytes = 9000};

	memset(&env, 0, sizeof(env));
	if (device_create(&config, &env.device) != 0)
		return -1;
	env.qpn = (uint32_t)device_alloc_qpn(device_first(env.device));
	device_set_qp(env.device, env.qpn, THE_QP);
	return add_gid(our_ipv4, -1) == 0 && add_gid(our_ipv6, -1) == 1 ? 0 : -1;
}

static int tear_down(TEST_STATE)
{
	device_destroy(env.device);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static struct path_attr path_to(const uint8_t sgid[16], const uint8_t dgid[16])
{
	struct path_attr attr = {.vlan_tci = -1, .hop_limit = 64, .udp_sport = 0xc000};

	memcpy(attr.sgid, sgid, sizeof(attr.sgid));
	memcpy(attr.dgid, dgid, sizeof(attr.dgid));
	return attr;
}

static struct bth_fields bth_to(uint32_t qpn)
{
	return (struct bth_fields){.opcode = OPCODE_RC | OPCODE_SEND_ONLY,
				   .migrated = true,
				   .pkey = WIRE_PKEY_DEFAULT,
				   .dest_qpn = qpn,
				   .psn = {7}};
}

/* A SEND of ten bytes in env.frame; its length. */
static size_t build(const struct path_attr *attr, const struct bth_fields *bth)
{
	static const uint8_t payload[10] = "ten bytes";
	struct packet_out out = {.frame = env.frame};
	struct path path;

	assert_int_equal(path_init(&path, attr), 0);
	packet_begin(&out, &path, bth);
	assert_int_equal(packet_payload(&out, FRAG_COPY, payload, sizeof(payload)), 0);
	return packet_seal(&out);
}

static size_t build_good(void)
{
	const struct path_attr attr = path_to(peer_ipv4, our_ipv4);
	const struct bth_fields bth = bth_to(env.qpn);

	return build(&attr, &bth);
}

static bool receive(size_t len)
{
	struct qp *qp = (struct qp *)1;
	const bool taken = device_receive(device_first(env.device), env.frame, len, 0, NOW_NS, &qp);

	assert_ptr_equal(qp, env.received ? THE_QP : NULL);
	return taken;
}

/* The frame is RoCE, reaches nobody, and moves this counter alone. */
static void assert_dropped(size_t len, enum counter reason)
{
	const struct counters before = device_first(env.device)->counters;

	assert_true(receive(len));
	assert_int_equal(env.received, 0);
	for (int i = 0; i < COUNTER_COUNT; i++) {
		const uint64_t moved = device_counter(env.device, (enum counter)i) -
				       counters_get(&before, (enum counter)i);

		if (i == (int)reason || i == COUNTER_rx_packets)
			assert_int_equal(moved, 1);
		else if (i != COUNTER_rx_bytes)
			assert_int_equal(moved, 0);
	}
}

TEST(device_receive__a_good_packet_reaches_its_queue_pair)
{
	const size_t len = build_good();

	assert_true(receive(len));
	assert_int_equal(env.received, 1);
	assert_ptr_equal(env.qp, THE_QP);
	assert_int_equal(env.now_ns, NOW_NS);
	assert_int_equal(env.packet.dest_qpn, env.qpn);
	assert_int_equal(env.packet.psn.v, 7);
	assert_int_equal(env.packet.payload_len, 10);
	assert_string_equal((const char *)env.packet.payload, "ten bytes");
	assert_int_equal(device_counter(env.device, COUNTER_rx_packets), 1);
	assert_int_equal(device_counter(env.device, COUNTER_rx_bytes), len);
	assert_int_equal(device_counter(env.device, COUNTER_rx_loopback_packets), 0);
}

TEST(device_receive__ipv6_reaches_it_too)
{
	const struct path_attr attr = path_to(peer_ipv6, our_ipv6);
	const struct bth_fields bth = bth_to(env.qpn);

	assert_true(receive(build(&attr, &bth)));
	assert_int_equal(env.received, 1);
}

TEST(device_receive__what_is_not_roce_is_left_to_others)
{
	const size_t len = build_good();

	env.frame[14 + 20 + 2] ^= 0xff; /* UDP destination port */
	assert_false(receive(len));
	build_good();
	env.frame[12] = 0x08;
	env.frame[13] = 0x06; /* ARP */
	assert_false(receive(len));
	assert_false(receive(0));
	assert_int_equal(env.received, 0);
	for (int i = 0; i < COUNTER_COUNT; i++)
		assert_int_equal(device_counter(env.device, (enum counter)i), 0);
}

TEST(device_receive__contradicting_lengths_are_malformed)
{
	const size_t len = build_good();

	assert_dropped(len - 1, COUNTER_rx_malformed);
	/* TVER is not 0, and the ICRC is not even looked at. */
	env.frame[14 + 20 + 8 + 1] |= 1;
	assert_dropped(len, COUNTER_rx_malformed);
}

TEST(device_receive__a_wrong_header_checksum_counts_as_one)
{
	const size_t len = build_good();

	env.frame[14 + 10] ^= 1;
	assert_dropped(len, COUNTER_rx_checksum_errors);
}

TEST(device_receive__checksums_that_the_port_verified_are_not_verified_again)
{
	const size_t len = build_good();
	struct qp *qp;

	env.frame[14 + 10] ^= 1; /* outside the ICRC */
	assert_true(device_receive(device_first(env.device), env.frame, len, FRAME_SUMS_GOOD,
				   NOW_NS, &qp));
	assert_int_equal(env.received, 1);
	/* The ICRC still is. */
	env.frame[len - 1] ^= 1;
	assert_true(device_receive(device_first(env.device), env.frame, len, FRAME_SUMS_GOOD,
				   NOW_NS, &qp));
	assert_int_equal(env.received, 1);
	assert_null(qp);
}

TEST(device_receive__an_icrc_that_was_verified_is_not_verified_again)
{
	const size_t len = build_good();
	struct qp *qp;

	env.frame[len - 1] ^= 1;
	assert_true(device_receive(device_first(env.device), env.frame, len, FRAME_ICRC_GOOD,
				   NOW_NS, &qp));
	assert_int_equal(env.received, 1);
	assert_int_equal(device_counter(env.device, COUNTER_rx_packets), 1);
	/* The checksums still are. */
	env.frame[14 + 10] ^= 1;
	assert_true(device_receive(device_first(env.device), env.frame, len, FRAME_ICRC_GOOD,
				   NOW_NS, &qp));
	assert_int_equal(env.received, 1);
}

TEST(device_receive__every_changed_byte_of_payload_breaks_the_icrc)
{
	const size_t len = build_good();

	for (size_t i = len - 14; i < len; i++) {
		env.frame[i] ^= 0x10;
		assert_dropped(len, COUNTER_rx_icrc_errors);
		env.frame[i] ^= 0x10;
	}
	assert_true(receive(len));
	assert_int_equal(env.received, 1);
}

TEST(device_receive__a_quiet_queue_pair_wants_nothing_more)
{
	const size_t len = build_good();
	struct qp *qp = THE_QP;

	env.quiet = true;
	assert_true(device_receive(device_first(env.device), env.frame, len, 0, NOW_NS, &qp));
	assert_int_equal(env.received, 1);
	assert_null(qp);
}

TEST(device_receive__a_trusted_frame_needs_no_checksums)
{
	const size_t len = build_good();
	struct qp *qp;

	env.frame[14 + 10] ^= 1;
	env.frame[len - 1] ^= 1;
	assert_true(device_receive(device_first(env.device), env.frame, len, FRAME_TRUSTED, NOW_NS,
				   &qp));
	assert_ptr_equal(qp, THE_QP);
	assert_int_equal(env.received, 1);
	assert_int_equal(device_counter(env.device, COUNTER_rx_loopback_packets), 1);
	assert_int_equal(device_counter(env.device, COUNTER_rx_packets), 0);
	assert_int_equal(device_counter(env.device, COUNTER_rx_bytes), 0);
}

TEST(device_receive__unknown_opcodes_are_dropped)
{
	static const uint8_t unknown[] = {0x18, 0x1f, 0x46, 0xff};
	const struct path_attr attr = path_to(peer_ipv4, our_ipv4);

	for (size_t i = 0; i < sizeof(unknown); i++) {
		struct bth_fields bth = bth_to(env.qpn);

		bth.opcode = unknown[i];
		assert_dropped(build(&attr, &bth), COUNTER_rx_wrong_opcode);
	}
}

TEST(device_receive__an_address_of_others_is_dropped)
{
	static const uint8_t nobody[16] = {[10] = 0xff, 0xff, 10, 0, 0, 3};
	static const uint8_t everybody[16] = {[10] = 0xff, 0xff, 255, 255, 255, 255};
	static const uint8_t zero[16];
	const struct bth_fields bth = bth_to(env.qpn);
	struct path_attr attr;

	attr = path_to(peer_ipv4, nobody);
	assert_dropped(build(&attr, &bth), COUNTER_rx_wrong_gid);
	attr = path_to(peer_ipv4, everybody);
	assert_dropped(build(&attr, &bth), COUNTER_rx_wrong_gid);
	/* The free entries of the table are no address. */
	attr = path_to(peer_ipv6, zero);
	assert_dropped(build(&attr, &bth), COUNTER_rx_wrong_gid);
}

/* Whichever of our addresses it is, and in whichever VLAN: forged, or come back to us. */
TEST(device_receive__our_own_address_as_source_is_dropped)
{
	static const uint8_t other[16] = {[10] = 0xff, 0xff, 10, 0, 0, 3};
	const struct bth_fields bth = bth_to(env.qpn);
	struct path_attr attr;

	attr = path_to(our_ipv4, our_ipv4);
	assert_dropped(build(&attr, &bth), COUNTER_rx_own_source);
	attr = path_to(our_ipv6, our_ipv6);
	assert_dropped(build(&attr, &bth), COUNTER_rx_own_source);
	/* Not yet ours, ours in a VLAN, and no longer ours. */
	attr = path_to(other, our_ipv4);
	assert_true(receive(build(&attr, &bth)));
	assert_int_equal(env.received, 1);
	env.received = 0;
	assert_int_equal(add_gid(other, 5), 2);
	assert_dropped(build(&attr, &bth), COUNTER_rx_own_source);
	device_sync_gids(env.device, env.device->gids, 2);
	assert_true(receive(build(&attr, &bth)));
	assert_int_equal(env.received, 1);
}

/* Another program of this host has sent it. */
TEST(device_receive__our_own_address_as_source_stays_on_this_host)
{
	static const unsigned int known[] = {FRAME_TRUSTED, FRAME_SOURCE_GOOD};
	const struct path_attr attr = path_to(our_ipv4, our_ipv4);
	const struct bth_fields bth = bth_to(env.qpn);
	const size_t len = build(&attr, &bth);
	struct qp *qp;

	for (size_t i = 0; i < RTE_DIM(known); i++)
		assert_true(device_receive(device_first(env.device), env.frame, len, known[i],
					   NOW_NS, &qp));
	assert_int_equal(env.received, 2);
	/* Everything else is checked. */
	env.frame[len - 1] ^= 1;
	assert_true(device_receive(device_first(env.device), env.frame, len, FRAME_SOURCE_GOOD,
				   NOW_NS, &qp));
	assert_int_equal(device_counter(env.device, COUNTER_rx_icrc_errors), 1);
	assert_int_equal(env.received, 2);
}

TEST(device_receive__the_tag_must_be_that_of_the_address)
{
	const struct bth_fields bth = bth_to(env.qpn);
	struct path_attr attr = path_to(peer_ipv4, our_ipv4);
	struct path_attr both = path_to(peer_ipv6, our_ipv6);

	attr.vlan_tci = 5;
	assert_dropped(build(&attr, &bth), COUNTER_rx_wrong_gid);
	both.vlan_tci = 0x6005; /* priority 3, VLAN 5 */
	assert_dropped(build(&both, &bth), COUNTER_rx_wrong_gid);
	/* The same address on a VLAN besides. */
	assert_int_equal(add_gid(our_ipv6, 5), 2);
	assert_true(receive(build(&both, &bth)));
	assert_int_equal(env.received, 1);
	both.vlan_tci = -1;
	assert_true(receive(build(&both, &bth)));
	assert_int_equal(env.received, 2);
	/* A tag that only carries a priority. */
	attr.vlan_tci = 0x6000;
	assert_true(receive(build(&attr, &bth)));
	assert_int_equal(env.received, 3);
}

TEST(device_receive__the_partition_must_be_ours)
{
	const struct path_attr attr = path_to(peer_ipv4, our_ipv4);
	struct bth_fields bth = bth_to(env.qpn);

	bth.pkey = 0xfffe;
	assert_dropped(build(&attr, &bth), COUNTER_rx_wrong_pkey);
	bth.pkey = 0;
	assert_dropped(build(&attr, &bth), COUNTER_rx_wrong_pkey);
	/* A limited member may talk to a full one. */
	bth.pkey = 0x7fff;
	assert_true(receive(build(&attr, &bth)));
	assert_int_equal(env.received, 1);
}

TEST(device_receive__the_queue_pair_must_be_there)
{
	const struct path_attr attr = path_to(peer_ipv4, our_ipv4);
	const uint32_t others[] = {0, 1, 0xffffff, env.qpn ^ 1, env.qpn ^ 0x800000};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		const struct bth_fields bth = bth_to(others[i]);

		assert_dropped(build(&attr, &bth), COUNTER_rx_wrong_qpn);
	}
	device_set_qp(env.device, env.qpn, NULL);
	assert_dropped(build_good(), COUNTER_rx_wrong_qpn);
}

/* Only the thread of a queue pair's own engine may touch it. */
TEST(device_receive__a_queue_pair_of_another_engine)
{
	const struct device_config config = {
		.name = "uroce1", .port_mtu_bytes = 9000, .engines = 2};
	const struct path_attr attr = path_to(peer_ipv4, our_ipv4);
	struct device *const one = env.device;
	struct bth_fields bth;
	struct qp *qp;

	assert_int_equal(device_create(&config, &env.device), 0);
	assert_int_equal(add_gid(our_ipv4, -1), 0);
	bth = bth_to((uint32_t)device_alloc_qpn(env.device->engines[1]));
	device_set_qp(env.device, bth.dest_qpn, THE_QP);
	assert_dropped(build(&attr, &bth), COUNTER_rx_wrong_qpn);
	assert_true(device_receive(env.device->engines[1], env.frame, build(&attr, &bth), 0, NOW_NS,
				   &qp));
	assert_int_equal(env.received, 1);
	assert_ptr_equal(qp, THE_QP);
	assert_int_equal(counters_get(&env.device->engines[1]->counters, COUNTER_rx_wrong_qpn), 0);
	assert_int_equal(counters_get(&env.device->engines[1]->counters, COUNTER_rx_packets), 1);
	device_destroy(env.device);
	env.device = one;
}

static struct device_burst burst;

/* Receive frames in turn: the third one continues a flow. */
static void begin_flow(void)
{
	env.expects = true;
	device_burst_begin(&burst, device_first(env.device), NOW_NS);
}

static struct qp *receive_next(size_t len, unsigned int known)
{
	struct qp *qp = (struct qp *)1;

	assert_true(device_receive_next(&burst, env.frame, len, known, &qp));
	return qp;
}

static void receive_twice(void)
{
	const size_t len = build_good();

	begin_flow();
	for (int i = 0; i < 2; i++)
		assert_ptr_equal(receive_next(len, 0), THE_QP);
	assert_int_equal(env.continued, 0);
	env.received = 0;
}

/* What arrives behind two good packets is dropped, and moves this counter. */
static void assert_next_dropped(size_t len, enum counter reason)
{
	const uint64_t before = device_counter(env.device, reason);

	assert_null(receive_next(len, 0));
	assert_int_equal(env.received, 0);
	assert_int_equal(device_counter(env.device, reason), before + 1);
}

TEST(device_receive_next__the_third_packet_in_turn_continues_a_flow)
{
	size_t len;

	receive_twice();
	len = build_good();
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(receive_next(len, 0), THE_QP);
	assert_int_equal(env.continued, 3);
	assert_int_equal(env.received, 3);
	assert_int_equal(env.packet.psn.v, 7);
	assert_int_equal(env.now_ns, NOW_NS);
	assert_int_equal(device_counter(env.device, COUNTER_rx_packets), 5);
	assert_int_equal(device_counter(env.device, COUNTER_rx_bytes), 5 * len);
	env.quiet = true;
	assert_null(receive_next(len, 0));
	/* Not in another burst. */
	device_burst_begin(&burst, device_first(env.device), NOW_NS);
	receive_next(len, 0);
	assert_int_equal(env.continued, 4);
}

TEST(device_receive_next__a_packet_of_a_flow_needs_a_right_icrc)
{
	size_t len;

	receive_twice();
	len = build_good();
	env.frame[len - 1] ^= 1;
	assert_next_dropped(len, COUNTER_rx_icrc_errors);
	receive_twice();
	env.frame[len - 6] ^= 1;
	assert_next_dropped(len, COUNTER_rx_icrc_errors);
	assert_int_equal(env.continued, 0);
}

TEST(device_receive_next__what_is_of_no_flow_passes_all_checks)
{
	const struct path_attr good = path_to(peer_ipv4, our_ipv4);
	const struct path_attr not_ours = path_to(peer_ipv4, peer_ipv4);
	const struct path_attr own = path_to(our_ipv4, our_ipv4);
	struct bth_fields bth = bth_to(env.qpn);

	receive_twice();
	assert_next_dropped(build(&not_ours, &bth), COUNTER_rx_wrong_gid);
	receive_twice();
	assert_next_dropped(build(&own, &bth), COUNTER_rx_own_source);
	receive_twice();
	bth.pkey = 0xfffe;
	assert_next_dropped(build(&good, &bth), COUNTER_rx_wrong_pkey);
	receive_twice();
	bth = bth_to(env.qpn ^ 1);
	assert_next_dropped(build(&good, &bth), COUNTER_rx_wrong_qpn);
	receive_twice();
	bth = bth_to(env.qpn);
	bth.opcode = 0xff;
	assert_next_dropped(build(&good, &bth), COUNTER_rx_wrong_opcode);
}

/* Our own address as source, which only programs of this host may have. */
TEST(device_receive_next__a_flow_is_of_frames_of_which_the_same_is_known)
{
	const struct path_attr own = path_to(our_ipv4, our_ipv4);
	const struct bth_fields bth = bth_to(env.qpn);
	const size_t len = build(&own, &bth);

	begin_flow();
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(receive_next(len, FRAME_TRUSTED), THE_QP);
	assert_int_equal(env.continued, 1);
	assert_null(receive_next(len, 0));
	assert_int_equal(device_counter(env.device, COUNTER_rx_own_source), 1);
	assert_int_equal(device_counter(env.device, COUNTER_rx_loopback_packets), 3);
}

TEST(device_receive_next__another_packet_ends_a_flow)
{
	const struct path_attr attr = path_to(peer_ipv4, our_ipv4);
	const struct bth_fields other =
		bth_to((uint32_t)device_alloc_qpn(device_first(env.device)));

	receive_twice();
	device_set_qp(env.device, other.dest_qpn, (struct qp *)&env);
	assert_ptr_equal(receive_next(build(&attr, &other), 0), &env);
	for (int i = 0; i < 2; i++)
		assert_ptr_equal(receive_next(build_good(), 0), THE_QP);
	assert_int_equal(env.continued, 0);
	assert_ptr_equal(receive_next(build_good(), 0), THE_QP);
	assert_int_equal(env.continued, 1);
}

TEST(device_receive_next__no_flow_without_an_expected_packet)
{
	begin_flow();
	env.expects = false;
	for (int i = 0; i < 4; i++)
		assert_ptr_equal(receive_next(build_good(), 0), THE_QP);
	assert_int_equal(env.continued, 0);
	assert_int_equal(env.received, 4);
}

TEST(device_prefetch__finds_the_queue_pair_of_either_ip)
{
	const struct path_attr attr = path_to(peer_ipv6, our_ipv6);
	const struct bth_fields bth = bth_to(env.qpn);
	size_t len = build_good();

	device_prefetch(env.device, env.frame, len);
	assert_ptr_equal(env.prefetched, THE_QP);
	env.prefetched = NULL;
	len = build(&attr, &bth);
	device_prefetch(env.device, env.frame, len);
	assert_ptr_equal(env.prefetched, THE_QP);
	assert_int_equal(env.received, 0);
}

TEST(device_prefetch__tells_requests_from_responses)
{
	struct path_attr attr = path_to(peer_ipv4, our_ipv4);
	struct bth_fields bth = bth_to(env.qpn);

	bth.opcode = OPCODE_RC | OPCODE_WRITE_ONLY;
	device_prefetch(env.device, env.frame, build(&attr, &bth));
	assert_true(env.prefetched_request);
	bth.opcode = OPCODE_RC | OPCODE_ACKNOWLEDGE;
	device_prefetch(env.device, env.frame, build(&attr, &bth));
	assert_false(env.prefetched_request);
}

TEST(device_prefetch__believes_no_frame)
{
	build_good();
	/* The BTH may not be there. */
	for (size_t len = 0; len < 54; len++)
		device_prefetch(env.device, env.frame, len);
	assert_null(env.prefetched);
	memset(env.frame, 0xff, sizeof(env.frame));
	device_prefetch(env.device, env.frame, sizeof(env.frame));
	assert_null(env.prefetched);
}
