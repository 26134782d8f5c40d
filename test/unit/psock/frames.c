/* SPDX-License-Identifier: BSD-3-Clause */
/* RoCE frames by lib/wire. */
#include "frames.h"

#include <linux/virtio_net.h>
#include <string.h>

#include "psock/packet_run.h"
#include "wire/build.h"
#include "wire/packet.h"

#define QPN 7

static struct path_attr path_attr(const struct frame *frame)
{
	struct path_attr attr = {.src_mac = {2},
				 .dst_mac = {2},
				 .vlan_tci = frame->tagged ? 5 : -1,
				 .tclass = frame->tclass,
				 .hop_limit = 64,
				 .udp_sport = frame->source_port};

	if (frame->ipv6) {
		attr.sgid[0] = attr.dgid[0] = 0xfd;
	} else {
		memset(attr.sgid + 10, 0xff, 2);
		memset(attr.dgid + 10, 0xff, 2);
		attr.sgid[12] = attr.dgid[12] = 10;
	}
	attr.sgid[15] = frame->back ? 2 : 1;
	attr.dgid[15] = frame->back ? 1 : 2;
	attr.src_mac[5] = attr.sgid[15];
	attr.dst_mac[5] = attr.dgid[15];
	return attr;
}

uint32_t frame_make(const struct frame *frame, uint8_t at[FRAME_MAX])
{
	const struct bth_fields fields = {.opcode = OPCODE_RC | OPCODE_SEND_MIDDLE,
					  .migrated = true,
					  .pkey = 0xffff,
					  .dest_qpn = frame->qpn ? frame->qpn : QPN,
					  .psn = psn_make(frame->psn)};
	const struct path_attr attr = path_attr(frame);
	uint8_t payload[4096], room[PACKET_FRAME_MAX];
	struct packet_out out = {.frame = room};
	struct path path;
	int len;

	memset(payload, frame->fill, sizeof(payload));
	path_init(&path, &attr);
	packet_begin(&out, &path, &fields);
	out.ip_id = frame->id;
	packet_payload(&out, FRAG_COPY, payload, frame->len);
	len = packet_seal(&out);
	memcpy(at, room, (size_t)len);
	return (uint32_t)len;
}

uint32_t frame_make_run(const struct frame *first, const struct frame *second,
			uint8_t at[FRAME_RUN_MAX])
{
	struct virtio_net_hdr *offload = (void *)at;
	uint8_t frames[2][FRAME_MAX], *header = at + sizeof(*offload), *payload;
	struct frame like = *first;
	struct run run;

	run_begin(&run, frames[0], frame_make(first, frames[0]));
	like.id++;
	run_add(&run, frames[1], frame_make(&like, frames[1]));
	run_describe(&run, header, offload);
	payload = header + run.headers.len;
	memcpy(payload, frames[0] + run.headers.len, run.segment_len);
	frame_make(second, frames[1]);
	memcpy(payload + run.segment_len, frames[1] + run.headers.len, run.segment_len);
	return (uint32_t)sizeof(*offload) + run.headers.len + run.payload_len;
}

bool frame_is_right(const uint8_t *at, uint32_t bytes)
{
	struct packet packet;

	return packet_parse(at, bytes, false, &packet) == PACKET_OK && packet_icrc_ok(&packet) &&
	       packet.dest_qpn == QPN;
}
