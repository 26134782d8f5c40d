/* SPDX-License-Identifier: BSD-3-Clause */
/* Every packet that a Linux peer sent: parse it, check its ICRC, and build it again byte for byte.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "pcap.h"
#include "wire/build.h"
#include "wire/packet.h"
#include "test.h"

#define ETHER_LEN 14
#define VLAN_LEN  4
#define UDP_LEN	  8

/* The number of RoCE packets in each capture, as another program counts them; there are no
 * others. */
static const struct capture {
	const char *name;
	unsigned int packets;
} captures[] = {
	{"cm_rej", 2},	     {"cm_rping", 29},	 {"cm_sidr", 8},      {"cm_ucmatose", 17},
	{"loss_atomic", 11}, {"loss_cm", 34},	 {"loss_cm_rep", 30}, {"loss_read_req", 16},
	{"loss_req", 146},   {"loss_resp", 184}, {"loss_write", 25},  {"rc_atomic", 8},
	{"rc_inv", 6},	     {"rc_ipv6", 22},	 {"rc_mix", 96},      {"rc_nak_perm", 2},
	{"rc_nak_rkey", 4},  {"rc_read", 14},	 {"rc_rnr", 146},     {"rc_send", 18},
	{"rc_send_256", 18}, {"rc_write", 17},	 {"uc", 11},	      {"ud", 4},
	{"vlan5", 26},
};

#define CAPTURES (sizeof(captures) / sizeof(captures[0]))

static void open_capture(struct pcap *pcap, const struct capture *capture)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/wire/%s.pcap", TEST_DATA, capture->name);
	assert_int_equal(pcap_open(pcap, path), 0);
}

/* Call `check` with every frame of every capture; returns how often it said that a frame is RoCE.
 */
static unsigned int each_frame(bool (*check)(const struct pcap_frame *frame))
{
	struct pcap_frame frame;
	unsigned int total = 0;
	struct pcap pcap;
	size_t i;
	int ret;

	for (i = 0; i < CAPTURES; i++) {
		unsigned int roce = 0, frames = 0;

		open_capture(&pcap, &captures[i]);
		while ((ret = pcap_next(&pcap, &frame)) > 0) {
			roce += check(&frame);
			frames++;
		}
		assert_int_equal(ret, 0);
		assert_int_equal(frames, captures[i].packets);
		assert_int_equal(roce, captures[i].packets);
		total += roce;
		pcap_close(&pcap);
	}
	return total;
}

TEST(captures__each_file_is_tested)
{
	glob_t found;

	assert_int_equal(glob(TEST_DATA "/wire/*.pcap", 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, CAPTURES);
	globfree(&found);
}

static bool parses(const struct pcap_frame *frame)
{
	struct packet packet;

	if (packet_parse(frame->data, frame->len, false, &packet) != PACKET_OK)
		return false;
	/* Linux captures are not padded: the frame ends with the ICRC. */
	assert_ptr_equal(packet.payload + packet.payload_len + packet.pad + WIRE_ICRC_LEN,
			 frame->data + frame->len);
	assert_true(packet_icrc_ok(&packet));
	return true;
}

TEST(captures__every_packet_parses_and_has_a_good_icrc)
{
	assert_int_equal(each_frame(parses), 894);
}

static uint32_t flow_label(const struct packet *packet)
{
	return packet->ipv6 ? wire_get24(packet->l3 + 1) & 0xfffff : 0;
}

static void take_path(struct path *path, const uint8_t *frame, const struct packet *packet)
{
	struct path_attr attr = {
		.vlan_tci = packet->vlan_tci,
		.tclass = packet->tclass,
		.hop_limit = packet->hop_limit,
		.flow_label = flow_label(packet),
		.udp_sport = packet->udp_sport,
	};

	memcpy(attr.dst_mac, frame, sizeof(attr.dst_mac));
	memcpy(attr.src_mac, packet->src_mac, sizeof(attr.src_mac));
	memcpy(attr.sgid, packet->sgid, sizeof(attr.sgid));
	memcpy(attr.dgid, packet->dgid, sizeof(attr.dgid));
	assert_int_equal(path_init(path, &attr), 0);
}

static void put_memory_headers(struct packet_out *out, const struct packet *packet)
{
	if (packet->op->flags & OPCODE_HAS_RETH) {
		struct reth *reth = packet_extend(out, sizeof(*reth));

		reth->iova = rte_cpu_to_be_64(packet->iova);
		reth->rkey = rte_cpu_to_be_32(packet->rkey);
		reth->dma_length = rte_cpu_to_be_32(packet->dma_length);
	}
	if (packet->op->flags & OPCODE_HAS_ATOMICETH) {
		struct atomiceth *atomic = packet_extend(out, sizeof(*atomic));

		atomic->iova = rte_cpu_to_be_64(packet->iova);
		atomic->rkey = rte_cpu_to_be_32(packet->rkey);
		atomic->swap_add = rte_cpu_to_be_64(packet->swap_add);
		atomic->compare = rte_cpu_to_be_64(packet->compare);
	}
}

static void put_response_headers(struct packet_out *out, const struct packet *packet)
{
	const rte_be64_t original = rte_cpu_to_be_64(packet->atomic_original);

	if (packet->op->flags & OPCODE_HAS_AETH) {
		struct aeth *aeth = packet_extend(out, sizeof(*aeth));

		aeth->syndrome = packet->syndrome;
		wire_put24(aeth->msn, packet->msn);
	}
	if (packet->op->flags & OPCODE_HAS_ATOMICACKETH)
		memcpy(packet_extend(out, sizeof(original)), &original, sizeof(original));
}

static void put_headers(struct packet_out *out, const struct packet *packet)
{
	const rte_be32_t rkey = rte_cpu_to_be_32(packet->rkey);

	if (packet->op->flags & OPCODE_HAS_DETH) {
		struct deth *deth = packet_extend(out, sizeof(*deth));

		deth->qkey = rte_cpu_to_be_32(packet->qkey);
		deth->reserved = 0;
		wire_put24(deth->src_qpn, packet->src_qpn);
	}
	put_memory_headers(out, packet);
	put_response_headers(out, packet);
	if (packet->op->flags & OPCODE_HAS_IMM)
		memcpy(packet_extend(out, 4), &packet->imm_be, 4);
	if (packet->op->flags & OPCODE_HAS_IETH)
		memcpy(packet_extend(out, 4), &rkey, 4);
}

/* Add the payload in pieces of uneven lengths, as a gather list would have them. */
static void put_payload(struct packet_out *out, const struct packet *packet)
{
	uint32_t done = 0, len = 1;

	while (done < packet->payload_len) {
		if (len > packet->payload_len - done)
			len = packet->payload_len - done;
		assert_int_equal(packet_payload(out, FRAG_COPY, packet->payload + done, len), 0);
		done += len;
		len = len * 3 + 2;
	}
}

static uint32_t rebuild(uint8_t *buffer, const uint8_t *frame, const struct packet *packet)
{
	struct packet_out out = {.frame = buffer};
	const struct bth_fields bth = {
		.opcode = packet->opcode,
		.solicited = packet->solicited,
		.migrated = packet->migrated,
		.ack_byte = packet->ack_byte,
		.becn = packet->becn,
		.pkey = packet->pkey,
		.dest_qpn = packet->dest_qpn,
		.psn = packet->psn,
	};
	struct path path;

	take_path(&path, frame, packet);
	packet_begin(&out, &path, &bth);
	if (!packet->ipv6)
		out.ip_id = (uint16_t)(packet->l3[4] << 8 | packet->l3[5]);
	put_headers(&out, packet);
	put_payload(&out, packet);
	return packet_seal(&out);
}

/* Ones' complement sum of big-endian words, as RFC 1071 says it. */
static uint32_t sum_words(const uint8_t *p, size_t len, uint32_t sum)
{
	size_t i;

	for (i = 0; i < len; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* The peer leaves the UDP checksum over IPv6 out; ours must be there and right (RFC 8200, 8.1). */
static void check_and_clear_ipv6_checksum(uint8_t *l3, size_t len)
{
	const size_t udp_len = len - 40;
	uint8_t *checksum = l3 + 40 + 6;
	uint32_t sum;

	assert_true(checksum[0] != 0 || checksum[1] != 0);
	sum = sum_words(l3 + 8, 32, (uint32_t)udp_len + 17);
	assert_int_equal(sum_words(l3 + 40, udp_len, sum), 0xffff);
	memset(checksum, 0, 2);
}

static bool rebuilds(const struct pcap_frame *frame)
{
	uint8_t *buffer = malloc(PACKET_FRAME_MAX);
	struct packet packet;
	size_t l3_off;

	memset(buffer, 0xa5, PACKET_FRAME_MAX);
	assert_int_equal(packet_parse(frame->data, frame->len, false, &packet), PACKET_OK);
	assert_int_equal(rebuild(buffer, frame->data, &packet), frame->len);
	l3_off = (size_t)(packet.l3 - frame->data);
	if (packet.ipv6)
		check_and_clear_ipv6_checksum(buffer + l3_off, frame->len - l3_off);
	assert_memory_equal(buffer, frame->data, frame->len);
	free(buffer);
	return true;
}

TEST(captures__every_packet_is_built_again_byte_for_byte)
{
	assert_int_equal(each_frame(rebuilds), 894);
}

/* A buffer of exactly `len` bytes, so that the address sanitizer sees a read beyond. */
static uint8_t *cut(const uint8_t *frame, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, frame, len);
	return copy;
}

static bool no_truncation_parses(const struct pcap_frame *frame)
{
	struct packet packet;
	size_t len;

	for (len = 0; len < frame->len; len++) {
		uint8_t *copy = cut(frame->data, len);

		assert_int_not_equal(packet_parse(copy, len, false, &packet), PACKET_OK);
		assert_int_not_equal(packet_parse(copy, len, true, &packet), PACKET_OK);
		free(copy);
	}
	return true;
}

TEST(captures__no_truncated_packet_parses)
{
	assert_int_equal(each_frame(no_truncation_parses), 894);
}

static void put16(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* Make IP and UDP lengths agree with what is left of a frame. */
static void set_lengths(uint8_t *l3, bool ipv6, size_t l3_room)
{
	if (ipv6)
		put16(l3 + 4, l3_room - 40);
	else
		put16(l3 + 2, l3_room);
	put16(l3 + (ipv6 ? 40 : 20) + 4, l3_room - (ipv6 ? 40 : 20));
}

/* Everything that a parsed packet points to lies in the frame, and its parts add up to all of it.
 */
static void check_bounds(const struct packet *packet, const uint8_t *frame, size_t len)
{
	const uint8_t *end = packet->payload + packet->payload_len + packet->pad + WIRE_ICRC_LEN;

	assert_true(packet->l3 >= frame + ETHER_LEN && packet->l3 <= frame + ETHER_LEN + VLAN_LEN);
	assert_int_equal(packet->headers_len,
			 packet->l3_len + UDP_LEN + sizeof(struct bth) + packet->op->ext_len);
	assert_ptr_equal(packet->payload, packet->l3 + packet->headers_len);
	assert_true(end <= frame + len);
	/* Reads every byte that the ICRC covers. */
	(void)packet_icrc_ok(packet);
}

static bool shortened_packets_stay_in_bounds(const struct pcap_frame *frame)
{
	struct packet whole, packet;
	size_t len, l3_off;

	assert_int_equal(packet_parse(frame->data, frame->len, false, &whole), PACKET_OK);
	l3_off = (size_t)(whole.l3 - frame->data);
	for (len = l3_off + whole.l3_len + UDP_LEN; len < frame->len; len++) {
		uint8_t *copy = cut(frame->data, len);
		bool ok;

		set_lengths(copy + l3_off, whole.ipv6, len - l3_off);
		ok = packet_parse(copy, len, true, &packet) == PACKET_OK;
		if (ok) {
			check_bounds(&packet, copy, len);
			assert_int_equal(packet.payload_len + packet.pad + (frame->len - len),
					 whole.payload_len + whole.pad);
		}
		/* A packet without a variable payload cannot be shorter. */
		if (!(whole.op->flags & OPCODE_PAYLOAD))
			assert_false(ok);
		free(copy);
	}
	return true;
}

TEST(captures__shortened_packets_stay_in_bounds)
{
	assert_int_equal(each_frame(shortened_packets_stay_in_bounds), 894);
}

static bool damaged_headers_stay_in_bounds(const struct pcap_frame *frame)
{
	static uint32_t seed = 1;
	struct packet packet;
	unsigned int round;

	for (round = 0; round < 200; round++) {
		uint8_t *copy = cut(frame->data, frame->len);
		unsigned int flips;

		for (flips = 0; flips < 3; flips++) {
			seed = seed * 1664525 + 1013904223;
			copy[(seed >> 16) % 70 % frame->len] ^= (uint8_t)(1u << (seed >> 13 & 7));
		}
		if (packet_parse(copy, frame->len, true, &packet) == PACKET_OK)
			check_bounds(&packet, copy, frame->len);
		free(copy);
	}
	return true;
}

TEST(captures__damaged_headers_stay_in_bounds)
{
	assert_int_equal(each_frame(damaged_headers_stay_in_bounds), 894);
}
