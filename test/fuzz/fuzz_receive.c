/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fuzz target for everything that a peer can reach: parsing, the checks of received packets,
 * responder and completer of queue pairs in all states. An input is a sequence of records
 * (record.h). Most become packets with a valid ICRC, because an attacker can compute one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "device/device.h"
#include "mem/mw.h"
#include "qp/qp.h"
#include "record.h"
#include "wire/headers.h"
#include "wire/icrc.h"
#include "wire/packet.h"
#include "world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORDS_MAX 64
#define QKEY	    0x11111111

/* Return the PSN that the peer's next packet should have: of a request the expected one; of a
 * response one of a recent request, because a record's `delta` may be negative or not. */
static uint32_t expected_psn(const struct world_qp *qp, uint8_t opcode)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	qp_query(qp->qp, &attr, &init);
	return opcode_info(opcode)->flags & OPCODE_REQUEST ? attr.rq_psn : attr.sq_psn - 8;
}

/* Set the key of a region, and an address in or just outside it. */
static void aim(const struct world *world, const struct record *record, rte_be64_t *iova,
		rte_be32_t *rkey)
{
	const unsigned int choice = record->select % (WORLD_REGIONS + 1);
	const struct mr *mr = choice < WORLD_REGIONS
				      ? world->mr[choice]
				      : &world->windows[record->qp % WORLD_QPS]->view;

	*iova = rte_cpu_to_be_64(mr->iova + (rte_be_to_cpu_64(*iova) & 0x3fff) - 64);
	*rkey = rte_cpu_to_be_32(mr->key);
}

static void fix_keys(const struct world *world, const struct record *record, uint8_t opcode,
		     uint8_t *ext)
{
	const uint32_t flags = opcode_info(opcode)->flags;
	rte_be64_t iova;
	rte_be32_t rkey;

	if (flags & OPCODE_HAS_XRCETH)
		ext += 4;
	if (flags & OPCODE_HAS_FETH)
		ext += 4;
	if (flags & OPCODE_HAS_DETH) {
		const rte_be32_t qkey = rte_cpu_to_be_32(QKEY);

		memcpy(ext, &qkey, sizeof(qkey));
		return;
	}
	if (flags & OPCODE_HAS_IETH) {
		rkey = rte_cpu_to_be_32(world->windows[record->qp % WORLD_QPS]->view.key);
		memcpy(ext, &rkey, sizeof(rkey));
	}
	if (!(flags & (OPCODE_HAS_RETH | OPCODE_HAS_ATOMICETH)))
		return;
	/* Both headers begin with address and key. */
	memcpy(&iova, ext, sizeof(iova));
	memcpy(&rkey, ext + sizeof(iova), sizeof(rkey));
	aim(world, record, &iova, &rkey);
	if (flags & OPCODE_HAS_ATOMICETH)
		iova &= rte_cpu_to_be_64(~UINT64_C(7) | record->patch);
	memcpy(ext, &iova, sizeof(iova));
	memcpy(ext + sizeof(iova), &rkey, sizeof(rkey));
}

/* Change a byte of the sealed frame. Compute the ICRC again, unless it must be wrong. */
static void patch(const struct record *record, struct packet_out *out, uint32_t len)
{
	uint8_t *l3 = out->frame + out->l3_off;
	const uint32_t covered = len - out->l3_off - WIRE_ICRC_LEN;
	const uint32_t headers = (uint32_t)(out->hdr_len - out->l3_off);
	uint32_t state;

	out->frame[record->patch_at % len] ^= record->patch;
	if (record->flags & RECORD_BAD_ICRC)
		return;
	state = icrc_headers(l3, (size_t)(out->l4_off - out->l3_off), headers);
	state = icrc_update(state, l3 + headers, covered - headers);
	icrc_store(state, l3 + covered);
}

/* Send a packet: its bytes from the BTH on are the record's. */
static void send_packet(struct world *world, const struct record *record, const uint8_t *bytes,
			uint32_t len)
{
	const struct world_qp *qp = &world->qps[record->qp % WORLD_QPS];
	static uint8_t frame[PACKET_FRAME_MAX];
	struct packet_out out = {.frame = frame};
	uint32_t ext, payload;
	struct path path;
	struct bth *bth;

	if (len < sizeof(*bth))
		return;
	world_peer_path(record->flags & RECORD_IPV6 || record->qp % WORLD_QPS == 3, &path);
	packet_begin(&out, &path, &(const struct bth_fields){0});
	bth = (struct bth *)(frame + out.hdr_len - sizeof(*bth));
	memcpy(bth, bytes, sizeof(*bth));
	if (!(record->flags & RECORD_KEEP_QPN))
		wire_put24(bth->dest_qpn, qp->qpn);
	if (!(record->flags & RECORD_KEEP_PSN))
		wire_put24(bth->psn, expected_psn(qp, bth->opcode) + (uint32_t)record->delta);
	ext = opcode_info(bth->opcode)->ext_len;
	len -= (uint32_t)sizeof(*bth);
	bytes += sizeof(*bth);
	if (ext > len)
		ext = 0; /* cut off in its headers */
	payload = len - ext;
	if (payload > WIRE_MTU_MAX)
		payload = WIRE_MTU_MAX;
	memcpy(packet_extend(&out, (uint16_t)ext), bytes, ext);
	if (ext > 0 && !(record->flags & RECORD_KEEP_KEY))
		fix_keys(world, record, bth->opcode, frame + out.hdr_len - ext);
	packet_payload(&out, FRAG_COPY, bytes + ext, payload);
	len = (uint32_t)packet_seal(&out);
	if (record->flags & RECORD_PATCH)
		patch(record, &out, len);
	world_receive(world, frame, len);
}

static void change(struct world *world, const struct record *record)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_ERR, IBV_QPS_SQD,
						   IBV_QPS_RTS};
	struct world_qp *qp = &world->qps[record->qp % WORLD_QPS];

	if (qp_state(qp->qp) == IBV_QPS_RESET)
		world_connect(world, qp);
	else
		world_modify(world, qp, states[record->select % 4]);
}

void record_play(struct world *world, const struct record *record, const uint8_t *bytes,
		 uint32_t len)
{
	struct world_qp *qp = &world->qps[record->qp % WORLD_QPS];

	switch (record->kind % RECORD_KINDS) {
	case RECORD_FRAME:
		world_receive(world, bytes, len);
		break;
	case RECORD_WAIT:
		world_wait(world, UINT64_C(1) << record->select % 36);
		break;
	case RECORD_POST:
		if (record->flags & 1)
			world_post_recv(world, qp, (uint16_t)(record->patch_at * 16));
		else
			world_post_send(world, qp, record->select,
					(uint16_t)(record->patch_at * 16));
		break;
	case RECORD_MODIFY:
		change(world, record);
		break;
	case RECORD_BIND:
		world_bind(world, record->qp % WORLD_QPS);
		break;
	default:
		send_packet(world, record, bytes, len);
		break;
	}
	world_poll(world, record->flags & RECORD_SMALL_ROOM ? 1 : 64);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world world;

	world_set_up(&world);
	for (int i = 0; i < RECORDS_MAX && size >= sizeof(struct record); i++) {
		struct record record;
		uint32_t len;

		memcpy(&record, data, sizeof(record));
		data += sizeof(record);
		size -= sizeof(record);
		len = (uint32_t)record.len[0] << 8 | record.len[1];
		if (len > size)
			len = (uint32_t)size;
		record_play(&world, &record, data, len);
		data += len;
		size -= len;
	}
	/* Let all timers expire. No invariant may break, whatever was received. */
	for (int i = 0; i < 8; i++) {
		world_wait(&world, UINT64_C(1) << 33);
		world_poll(&world, 64);
	}
	world_tear_down(&world);
	return 0;
}
