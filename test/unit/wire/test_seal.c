/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of wire/seal.h: packet_seal_piece makes the frame that packet_seal makes of an unsealed
 * packet. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "wire/opcode.h"
#include "wire/packet.h"
#include "wire/seal.h"
#include "test.h"

static const uint8_t ipv4[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
static const uint8_t ipv6[16] = {0xfd, [15] = 1};
static const uint8_t *const gids[] = {ipv4, ipv6};

static uint8_t payload[200];

static void begin(struct packet_out *out, uint8_t *frame, const uint8_t gid[16],
		  const struct packet_frag *frag)
{
	const struct bth_fields bth = {.opcode = OPCODE_RC | OPCODE_WRITE_ONLY,
				       .pkey = WIRE_PKEY_DEFAULT,
				       .dest_qpn = 0x123456,
				       .psn = {7}};
	struct path_attr attr = {.vlan_tci = -1, .hop_limit = 64, .udp_sport = 0xc000};
	struct path path;

	memcpy(attr.sgid, gid, sizeof(attr.sgid));
	memcpy(attr.dgid, gid, sizeof(attr.dgid));
	assert_int_equal(path_init(&path, &attr), 0);
	memset(frame, 0xa5, PACKET_FRAME_MAX);
	out->frame = frame;
	packet_begin(out, &path, &bth);
	packet_put_reth(out, 0x1000, 77, frag->len);
	packet_payload_whole(out, frag);
	out->unsealed = true;
}

TEST(packet_seal_piece__does_what_packet_seal_does)
{
	static uint8_t one[PACKET_FRAME_MAX], other[PACKET_FRAME_MAX];
	struct packet_out out;
	struct packet packet;

	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i + 1);
	for (size_t i = 0; i < RTE_DIM(gids); i++) {
		for (int kind = FRAG_COPY; kind <= FRAG_ZERO; kind++) {
			for (uint32_t len = 1; len <= sizeof(payload); len++) {
				const struct packet_frag frag = {
					.addr = payload, .len = len, .kind = (enum frag_kind)kind};
				int bytes;

				begin(&out, one, gids[i], &frag);
				bytes = packet_seal(&out);
				assert_true(bytes > 0);
				begin(&out, other, gids[i], &frag);
				assert_int_equal(packet_seal_piece(&out), bytes);
				assert_memory_equal(one, other, bytes);
				assert_int_equal(packet_parse(other, (size_t)bytes, true, &packet),
						 PACKET_OK);
				assert_int_equal(packet.payload_len, len);
			}
		}
	}
}

TEST(packet_seal_piece__memory_that_is_not_mapped)
{
	static uint8_t frame[PACKET_FRAME_MAX];
	uint8_t *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct packet_out out;

	assert_ptr_not_equal(gone, MAP_FAILED);
	assert_int_equal(guard_install(), 0);
	for (uint32_t len = 1; len <= 16; len++) {
		const struct packet_frag frag = {.addr = gone, .len = len, .kind = FRAG_COPY};

		begin(&out, frame, ipv6, &frag);
		assert_int_equal(packet_seal_piece(&out), -EFAULT);
	}
	munmap(gone, 4096);
}
