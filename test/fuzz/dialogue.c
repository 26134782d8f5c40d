/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inputs that contain the packets that the attacked side expects next: every opcode of every
 * service. A dialogue is played while it is written, so that each response answers a real request.
 */
#include "dialogue.h"

#include <string.h>

#include "qp_internal.h"
#include "record.h"
#include "wire/headers.h"
#include "wire/opcode.h"
#include "world.h"

#define SRQ_NUMBER 77
#define ANSWERS	   40

struct dialogue {
	FILE *file;
	struct world world;
	unsigned int qp; /* index in the world */
	uint32_t mtu;
	uint8_t service;
	unsigned int acks; /* acknowledgements written: every second one is selective */
};

/* A queue pair for each role of each service (world.c). */
static const struct {
	unsigned int qp;
	uint8_t service;
	bool answers;
} kinds[DIALOGUES] = {
	{2, OPCODE_RC, false}, {2, OPCODE_RC, true},	{7, OPCODE_UC, false},
	{9, OPCODE_UD, false}, {10, OPCODE_XRC, false}, {11, OPCODE_XRC, true},
};

static void say(struct dialogue *dialogue, struct record record, const uint8_t *bytes, uint32_t len)
{
	record.len[0] = (uint8_t)(len >> 8);
	record.len[1] = (uint8_t)len;
	record.qp = (uint8_t)dialogue->qp;
	fwrite(&record, sizeof(record), 1, dialogue->file);
	fwrite(bytes, len, 1, dialogue->file);
	record_play(&dialogue->world, &record, bytes, len);
}

static uint8_t *put32(uint8_t *at, uint32_t v)
{
	const rte_be32_t be = rte_cpu_to_be_32(v);

	memcpy(at, &be, sizeof(be));
	return at + sizeof(be);
}

/* Address and key are made valid when the record is played. */
static uint8_t *put_extended(uint8_t *at, uint32_t flags, uint32_t length)
{
	if (flags & OPCODE_HAS_XRCETH)
		at = put32(at, SRQ_NUMBER);
	if (flags & OPCODE_HAS_DETH)
		at = put32(put32(at, 0), 5);
	if (flags & OPCODE_HAS_FETH)
		at = put32(at, FETH_PLACE_GLOBAL);
	if (flags & (OPCODE_HAS_RETH | OPCODE_HAS_ATOMICETH))
		at = put32(put32(put32(at, 0), 64), 0);
	if (flags & OPCODE_HAS_RETH)
		at = put32(at, length);
	if (flags & OPCODE_HAS_ATOMICETH)
		at = put32(put32(put32(put32(at, 1), 2), 3), 4);
	if (flags & OPCODE_HAS_AETH)
		at = put32(at, (uint32_t)(AETH_ACK | AETH_CREDIT_NONE) << 24);
	if (flags & OPCODE_HAS_ATOMICACKETH)
		at = put32(put32(at, 1), 2);
	if (flags & (OPCODE_HAS_IMM | OPCODE_HAS_IETH | OPCODE_HAS_SACKETH))
		at = put32(at, 0x11223344);
	return at;
}

/* Write a packet that carries `payload` bytes of a message of `length` bytes. */
static void packet(struct dialogue *dialogue, struct record record, uint8_t operation, uint32_t psn,
		   uint32_t length, uint32_t payload)
{
	uint8_t bytes[sizeof(struct bth) + 64 + WIRE_MTU_MAX] = {0};
	const uint8_t opcode = dialogue->service | operation;
	struct bth *bth = (struct bth *)bytes;
	uint8_t *end;

	bth->opcode = opcode;
	bth->flags = BTH_MIGRATED;
	bth->pkey = rte_cpu_to_be_16(WIRE_PKEY_DEFAULT);
	bth->ack_req = BTH_ACK_REQ;
	wire_put24(bth->psn, psn);
	end = put_extended(bytes + sizeof(*bth), opcode_info(opcode)->flags, length);
	say(dialogue, record, bytes, (uint32_t)(end - bytes) + payload);
}

static void request(struct dialogue *dialogue, uint8_t operation, uint32_t length, uint32_t payload)
{
	if (opcode_info(dialogue->service | operation)->flags & OPCODE_KNOWN)
		packet(dialogue, (struct record){.kind = RECORD_PACKET, .select = REGION_OPEN},
		       operation, 0, length, payload);
}

/* Write a message of three packets. */
static void message(struct dialogue *dialogue, uint8_t first, uint8_t middle, uint8_t last)
{
	const uint32_t mtu = dialogue->mtu;

	if (!(opcode_info(dialogue->service | last)->flags & OPCODE_KNOWN))
		return;
	say(dialogue, (struct record){.kind = RECORD_POST, .flags = 1, .patch_at = 200}, NULL, 0);
	request(dialogue, first, 2 * mtu + 4, mtu);
	request(dialogue, middle, 0, mtu);
	request(dialogue, last, 0, 4);
}

static void only(struct dialogue *dialogue, uint8_t operation)
{
	say(dialogue, (struct record){.kind = RECORD_POST, .flags = 1, .patch_at = 200}, NULL, 0);
	request(dialogue, operation, 8, 8);
}

static void ask(struct dialogue *dialogue)
{
	message(dialogue, OPCODE_SEND_FIRST, OPCODE_SEND_MIDDLE, OPCODE_SEND_LAST);
	message(dialogue, OPCODE_SEND_FIRST, OPCODE_SEND_MIDDLE, OPCODE_SEND_LAST_IMM);
	message(dialogue, OPCODE_WRITE_FIRST, OPCODE_WRITE_MIDDLE, OPCODE_WRITE_LAST);
	message(dialogue, OPCODE_WRITE_FIRST, OPCODE_WRITE_MIDDLE, OPCODE_WRITE_LAST_IMM);
	only(dialogue, OPCODE_SEND_ONLY);
	only(dialogue, OPCODE_SEND_ONLY_IMM);
	only(dialogue, OPCODE_WRITE_ONLY);
	only(dialogue, OPCODE_WRITE_ONLY_IMM);
	request(dialogue, OPCODE_READ_REQUEST, 3 * dialogue->mtu, 0);
	request(dialogue, OPCODE_COMPARE_SWAP, 8, 0);
	request(dialogue, OPCODE_FETCH_ADD, 8, 0);
	request(dialogue, OPCODE_FLUSH, 100, 0);
	request(dialogue, OPCODE_ATOMIC_WRITE, 8, 8);
	/* Each SEND with invalidate closes a window. */
	only(dialogue, OPCODE_SEND_ONLY_INV);
	say(dialogue, (struct record){.kind = RECORD_BIND}, NULL, 0);
	message(dialogue, OPCODE_SEND_FIRST, OPCODE_SEND_MIDDLE, OPCODE_SEND_LAST_INV);
}

static uint8_t read_response(bool first, bool last)
{
	if (first)
		return last ? OPCODE_READ_RESPONSE_ONLY : OPCODE_READ_RESPONSE_FIRST;
	return last ? OPCODE_READ_RESPONSE_LAST : OPCODE_READ_RESPONSE_MIDDLE;
}

/* Write the packet that the oldest request waits for. Return false if no request is in flight. */
static bool answer(struct dialogue *dialogue)
{
	const struct record record = {.kind = RECORD_PACKET, .flags = RECORD_KEEP_PSN};
	const struct qp *qp = dialogue->world.qps[dialogue->qp].qp;
	const struct send_wqe *wqe;
	uint8_t operation = OPCODE_ACKNOWLEDGE;
	uint32_t done, psn, payload = 0;

	if (qp->sq.cons == sq_prod(&qp->sq))
		return false;
	wqe = sq_at(&qp->sq, qp->sq.cons);
	if (!wqe->started || sq_is_local((enum ibv_wr_opcode)wqe->opcode))
		return false;
	done = (uint32_t)psn_diff(qp->loss.una, wqe->first_psn);
	psn = qp->loss.una.v;
	if (wqe->opcode == IBV_WR_RDMA_READ) {
		const bool last = psn_eq(qp->loss.una, wqe->last_psn);

		operation = read_response(done == 0, last);
		payload = last ? wqe->length - done * dialogue->mtu : dialogue->mtu;
	} else if (sq_is_atomic((enum ibv_wr_opcode)wqe->opcode)) {
		operation = OPCODE_ATOMIC_ACKNOWLEDGE;
	} else if (requester_wants_empty_read(wqe)) {
		operation = OPCODE_READ_RESPONSE_ONLY;
	} else if (dialogue->service == OPCODE_RC && dialogue->acks++ % 2 == 0) {
		/* Everything before the PSN is executed, and nothing behind it is kept. */
		operation = OPCODE_SACK;
		psn = psn_add(wqe->last_psn, 1).v;
		payload = 4;
	} else {
		psn = wqe->last_psn.v;
	}
	packet(dialogue, record, operation, psn, 0, payload);
	return true;
}

void dialogue_write(unsigned int which, FILE *file)
{
	struct dialogue dialogue = {
		.file = file, .qp = kinds[which].qp, .service = kinds[which].service};

	world_set_up(&dialogue.world);
	dialogue.mtu =
		dialogue.service == OPCODE_UD ? 64 : dialogue.world.qps[dialogue.qp].qp->peer.mtu;
	if (kinds[which].answers)
		for (int i = 0; i < ANSWERS && answer(&dialogue); i++)
			continue;
	else
		ask(&dialogue);
	world_tear_down(&dialogue.world);
}
