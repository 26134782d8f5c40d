/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of packet_parse_next: what it takes for the next packet of a flow is what packet_parse
 * finds it to be, and comes from the same sender to the same queue pair. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/build.h"
#include "wire/headers.h"
#include "wire/opcode.h"
#include "wire/packet.h"
#include "test.h"

#define QPN	 0x123456u
#define UNTAGGED (-1)
#define ETHER	 14

static const uint8_t ipv4[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
static const uint8_t ipv6[16] = {0xfd, [15] = 1};
static const uint8_t *const gids[] = {ipv4, ipv6};

static uint8_t frame[PACKET_FRAME_MAX];
static struct packet_flow flow;

/* Make a packet of `payload_len` bytes in `frame`. Returns its length. */
static size_t build(const uint8_t gid[16], int32_t vlan_tci, uint8_t opcode, uint32_t psn,
		    uint32_t payload_len)
{
	static const uint8_t payload[64] = "payload";
	const struct bth_fields bth = {.opcode = opcode,
				       .pkey = WIRE_PKEY_DEFAULT,
				       .dest_qpn = QPN,
				       .ack_byte = BTH_ACK_REQ,
				       .psn = {psn}};
	struct path_attr attr = {.vlan_tci = vlan_tci, .hop_limit = 64, .udp_sport = 0xc000};
	struct packet_out out = {.frame = frame};
	struct path path;

	memcpy(attr.sgid, gid, sizeof(attr.sgid));
	memcpy(attr.dgid, gid, sizeof(attr.dgid));
	assert_int_equal(path_init(&path, &attr), 0);
	packet_begin(&out, &path, &bth);
	if (opcode_flags(opcode) & OPCODE_HAS_RETH)
		packet_put_reth(&out, 0x123456789abc0000 + psn, 77, payload_len);
	assert_int_equal(packet_payload(&out, FRAG_COPY, payload, payload_len), 0);
	out.ip_id = (uint16_t)psn;
	return packet_seal(&out);
}

static size_t build_write(const uint8_t gid[16], uint32_t psn)
{
	return build(gid, UNTAGGED, OPCODE_RC | OPCODE_WRITE_ONLY, psn, 8);
}

static void begin(size_t len)
{
	memset(&flow, 0xa5, sizeof(flow));
	assert_int_equal(packet_parse(frame, len, false, &flow.packet), PACKET_OK);
	packet_flow_begin(&flow, frame);
}

/* Parse a copy that ends where its memory ends, so that the address sanitizer sees a read beyond.
 */
static bool next_of(const uint8_t *bytes, size_t len, bool sums_good)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct packet alone;
	bool taken;

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	taken = packet_parse_next(&flow, copy + (len ? 0 : 1), len, sums_good);
	if (taken) {
		const struct packet *next = &flow.packet;

		memset(&alone, 0, sizeof(alone));
		assert_int_equal(packet_parse(copy, len, sums_good, &alone), PACKET_OK);
		assert_ptr_equal(next->l3, alone.l3);
		assert_ptr_equal(next->payload, alone.payload);
		assert_ptr_equal(next->src_mac, alone.src_mac);
		assert_int_equal(next->payload_len, alone.payload_len);
		assert_int_equal(next->headers_len, alone.headers_len);
		assert_int_equal(next->l3_len, alone.l3_len);
		assert_int_equal(next->ipv6, alone.ipv6);
		assert_int_equal(next->tclass, alone.tclass);
		assert_int_equal(next->hop_limit, alone.hop_limit);
		assert_int_equal(next->vlan_tci, alone.vlan_tci);
		assert_int_equal(next->vlan_id, alone.vlan_id);
		assert_int_equal(next->udp_sport, alone.udp_sport);
		assert_memory_equal(next->sgid, alone.sgid, sizeof(alone.sgid));
		assert_memory_equal(next->dgid, alone.dgid, sizeof(alone.dgid));
		assert_ptr_equal(next->op, alone.op);
		assert_int_equal(next->opcode, alone.opcode);
		assert_int_equal(next->bth_flags, alone.bth_flags);
		assert_int_equal(next->ecn_byte, alone.ecn_byte);
		assert_int_equal(next->pkey, alone.pkey);
		assert_int_equal(next->ack_byte, alone.ack_byte);
		assert_int_equal(next->dest_qpn, alone.dest_qpn);
		assert_int_equal(next->psn.v, alone.psn.v);
		if (alone.op->flags & OPCODE_HAS_RETH) {
			assert_int_equal(next->iova, alone.iova);
			assert_int_equal(next->rkey, alone.rkey);
			assert_int_equal(next->dma_length, alone.dma_length);
		}
	}
	free(copy);
	return taken;
}

/* Operation, PSN, length and identification differ from packet to packet. */
TEST(packet_parse_next__takes_what_follows)
{
	for (size_t i = 0; i < RTE_DIM(gids); i++) {
		for (int sums_good = 0; sums_good < 2; sums_good++) {
			begin(build_write(gids[i], 1));
			assert_true(next_of(frame, build_write(gids[i], 2), sums_good));
			assert_true(next_of(frame,
					    build(gids[i], UNTAGGED, OPCODE_RC | OPCODE_WRITE_LAST,
						  0xffffff, 33),
					    sums_good));
			assert_true(next_of(
				frame, build(gids[i], UNTAGGED, OPCODE_RC | OPCODE_SEND_ONLY, 0, 0),
				sums_good));
			assert_true(next_of(
				frame,
				build(gids[i], UNTAGGED, OPCODE_RC | OPCODE_READ_REQUEST, 4, 0),
				sums_good));
		}
	}
}

/* The same packet with one bit changed: where a packet of the flow may have another one is taken
 * only as packet_parse takes it (next_of). Elsewhere it is not taken. */
TEST(packet_parse_next__no_bit_of_the_way_may_differ)
{
	for (size_t i = 0; i < RTE_DIM(gids); i++) {
		const size_t len = build_write(gids[i], 1);
		const size_t ip_len = gids[i] == ipv4 ? 20 : 40;
		const size_t udp = ETHER + ip_len, bth = udp + 8;
		struct packet before, alone;

		begin(len);
		before = flow.packet;
		for (size_t bit = 0; bit < 8 * len; bit++) {
			bool taken;

			flow.packet = before;
			frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
			taken = next_of(frame, len, true);
			if (bit / 8 < bth && taken) {
				/* IPv4 identification and checksums */
				assert_true((ip_len == 20 &&
					     (bit / 8 == ETHER + 4 || bit / 8 == ETHER + 5 ||
					      bit / 8 == ETHER + 10 || bit / 8 == ETHER + 11)) ||
					    bit / 8 == udp + 6 || bit / 8 == udp + 7);
			}
			/* partition, congestion, queue pair */
			if (bit / 8 >= bth + 2 && bit / 8 < bth + 8)
				assert_false(taken);
			/* What remains is taken if it is a good packet of the service. */
			if (bit / 8 >= bth + 8 || bit / 8 == bth + 1 ||
			    (bit / 8 == bth && bit % 8 < 5))
				assert_int_equal(taken, packet_parse(frame, len, true, &alone) ==
								PACKET_OK);
			frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
}

TEST(packet_parse_next__checks_sums_that_are_not_known_to_be_good)
{
	size_t len = build_write(ipv4, 1);

	begin(len);
	frame[ETHER + 10] ^= 1;
	assert_true(next_of(frame, len, true));
	assert_false(next_of(frame, len, false));
	len = build_write(ipv6, 1);
	begin(len);
	frame[ETHER + 40 + 6] ^= 1;
	assert_true(next_of(frame, len, true));
	assert_false(next_of(frame, len, false));
}

TEST(packet_parse_next__frames_that_are_cut_off)
{
	for (size_t i = 0; i < RTE_DIM(gids); i++) {
		const size_t len = build_write(gids[i], 1);

		for (size_t shorter = 0; shorter < len; shorter++) {
			begin(len);
			assert_false(next_of(frame, shorter, true));
		}
		/* Ethernet padding is no payload. */
		begin(len);
		assert_true(next_of(frame, len + 7, true));
	}
}

TEST(packet_parse_next__another_family_and_another_service)
{
	begin(build_write(ipv4, 1));
	assert_false(next_of(frame, build_write(ipv6, 2), true));
	begin(build_write(ipv6, 1));
	assert_false(next_of(frame, build_write(ipv4, 2), true));
	begin(build_write(ipv4, 1));
	assert_false(
		next_of(frame, build(ipv4, UNTAGGED, OPCODE_UC | OPCODE_WRITE_ONLY, 2, 8), true));
}

TEST(packet_flow_begin__no_flow_has_a_tag)
{
	begin(build(ipv4, 5, OPCODE_RC | OPCODE_WRITE_ONLY, 1, 8));
	assert_false(flow.begun);
	begin(build_write(ipv4, 1));
	assert_true(flow.begun);
}
