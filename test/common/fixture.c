/* SPDX-License-Identifier: BSD-3-Clause */
/* The surroundings of a transport role under test. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "mem/key_table.h"
#include "mem/pd.h"
#include "transport/cc.h"
#include "transport/loss.h"
#include "wire/headers.h"
#include "test.h"
#include "queues.h"

#define CANARY	     0xc5
#define CANARY_BYTES 64
#define CAUGHT_MAX   4096

static struct packet_out *catcher_get(struct packet_sink *sink)
{
	struct catcher *catcher = (struct catcher *)sink;

	if (catcher->room == 0)
		return NULL;
	catcher->out.frame = catcher->frame;
	return &catcher->out;
}

static int catcher_put(struct packet_sink *sink, struct packet_out *out)
{
	struct catcher *catcher = (struct catcher *)sink;
	struct caught *caught = &catcher->caught[catcher->count];
	size_t len;
	int rc;

	assert_ptr_equal(out, &catcher->out);
	assert_true(catcher->room > 0 && catcher->count < CAUGHT_MAX);
	rc = packet_seal(out);
	if (rc < 0)
		return rc;
	len = (size_t)rc;
	assert_true(len <= PACKET_FRAME_MAX);
	caught->frame = malloc(len);
	assert_non_null(caught->frame);
	memcpy(caught->frame, out->frame, len);
	assert_int_equal(packet_parse(caught->frame, len, false, &caught->packet), PACKET_OK);
	assert_true(packet_icrc_ok(&caught->packet));
	catcher->room--;
	catcher->count++;
	return 0;
}

enum cc_kind fixture_cc(void)
{
	const char *name = getenv("TEST_CC");
	const enum cc_kind kind = name == NULL ? CC_NONE : cc_find(name);

	assert_int_not_equal(kind, CC_KINDS);
	return kind;
}

void fixture_pace(struct fixture *fixture, const struct loss *loss)
{
	const struct cc_attr attr = {.kind = fixture_cc()};
	struct pacer *pacer = &fixture->pacer;

	assert_int_equal(cc_create(&attr, pacer, loss, &pacer->cc), 0);
	if (attr.kind == CC_SWIFT)
		pacer->cc->swift.cwnd = LOSS_WINDOW_LIMIT;
}

void catcher_set_up(struct catcher *catcher)
{
	catcher->sink.get = catcher_get;
	catcher->sink.put = catcher_put;
	catcher->room = CAUGHT_MAX;
	catcher->caught = calloc(CAUGHT_MAX, sizeof(catcher->caught[0]));
	assert_non_null(catcher->caught);
}

void catcher_tear_down(struct catcher *catcher)
{
	catcher_clear(catcher);
	free(catcher->caught);
}

void catcher_clear(struct catcher *catcher)
{
	for (unsigned int i = 0; i < catcher->count; i++)
		free(catcher->caught[i].frame);
	catcher->count = 0;
	catcher->room = CAUGHT_MAX;
}

const struct packet *catcher_at(const struct catcher *catcher, unsigned int i)
{
	assert_true(i < catcher->count);
	return &catcher->caught[i].packet;
}

void catcher_expect(const struct catcher *catcher, unsigned int i, uint8_t operation, uint32_t psn)
{
	const struct packet *packet = catcher_at(catcher, i);

	assert_int_equal(packet->opcode, OPCODE_RC | operation);
	assert_int_equal(packet->psn.v, psn & PSN_MASK);
	assert_int_equal(packet->dest_qpn, FIXTURE_PEER_QPN);
	assert_int_equal(packet->pkey, WIRE_PKEY_DEFAULT);
}

/* Our address is 10.0.0.1, the peer's 10.0.0.2. */
static void set_up_paths(struct fixture *fixture)
{
	struct path_attr attr = {
		.src_mac = {2, 0, 0, 0, 0, 1},
		.dst_mac = {2, 0, 0, 0, 0, 2},
		.vlan_tci = -1,
		.sgid = {[10] = 0xff, 0xff, 10, 0, 0, 1},
		.dgid = {[10] = 0xff, 0xff, 10, 0, 0, 2},
		.hop_limit = 64,
		.udp_sport = WIRE_UDP_SPORT_MIN,
	};

	assert_int_equal(path_init(&fixture->peer.path, &attr), 0);
	attr.sgid[15] = 2;
	attr.dgid[15] = 1;
	assert_int_equal(path_init(&fixture->path_back, &attr), 0);
}

void fixture_set_up(struct fixture *fixture, uint32_t mtu, uint32_t cqe)
{
	memset(fixture, 0, sizeof(*fixture));
	assert_int_equal(key_table_create(64, &fixture->keys), 0);
	assert_int_equal(pd_create(fixture->keys, &fixture->pd), 0);
	assert_int_equal(pd_create(fixture->keys, &fixture->other_pd), 0);
	assert_int_equal(cq_create(cqe, NULL, NULL, NULL, &fixture->cq), 0);
	set_up_paths(fixture);
	fixture->peer.qpn = FIXTURE_PEER_QPN;
	fixture->peer.mtu = mtu;
	fixture->peer.pkey = WIRE_PKEY_DEFAULT;
	catcher_set_up(&fixture->catcher);
}

void fixture_tear_down(struct fixture *fixture)
{
	catcher_tear_down(&fixture->catcher);
	cc_destroy(fixture->pacer.cc);
	assert_int_equal(cq_destroy(fixture->cq), 0);
	assert_int_equal(pd_destroy(fixture->other_pd), 0);
	assert_int_equal(pd_destroy(fixture->pd), 0);
	key_table_destroy(fixture->keys);
}

uint8_t pattern_byte(uint32_t seed, size_t i)
{
	return (uint8_t)(seed * 37 + i + i / 251);
}

static void put_request_headers(struct packet_out *out, const struct packet_fields *fields,
				uint32_t flags)
{
	if (flags & OPCODE_HAS_DETH) {
		struct deth *deth = packet_extend(out, sizeof(*deth));

		deth->qkey = rte_cpu_to_be_32(fields->qkey);
		deth->reserved = 0;
		wire_put24(deth->src_qpn, fields->src_qpn);
	}
	if (flags & OPCODE_HAS_FETH) {
		const struct feth feth = {rte_cpu_to_be_32(fields->feth)};

		memcpy(packet_extend(out, sizeof(feth)), &feth, sizeof(feth));
	}
	if (flags & OPCODE_HAS_RETH) {
		struct reth *reth = packet_extend(out, sizeof(*reth));

		reth->iova = rte_cpu_to_be_64(fields->iova);
		reth->rkey = rte_cpu_to_be_32(fields->rkey);
		reth->dma_length = rte_cpu_to_be_32(fields->dma_length);
	}
	if (flags & OPCODE_HAS_ATOMICETH) {
		struct atomiceth *atomic = packet_extend(out, sizeof(*atomic));

		atomic->iova = rte_cpu_to_be_64(fields->iova);
		atomic->rkey = rte_cpu_to_be_32(fields->rkey);
		atomic->swap_add = rte_cpu_to_be_64(fields->swap_add);
		atomic->compare = rte_cpu_to_be_64(fields->compare);
	}
	if (flags & OPCODE_HAS_IMM)
		memcpy(packet_extend(out, 4), &fields->imm_be, 4);
	if (flags & OPCODE_HAS_IETH) {
		const rte_be32_t rkey = rte_cpu_to_be_32(fields->rkey);

		memcpy(packet_extend(out, 4), &rkey, 4);
	}
}

static void put_response_headers(struct packet_out *out, const struct packet_fields *fields,
				 uint32_t flags)
{
	if (flags & OPCODE_HAS_AETH) {
		struct aeth *aeth = packet_extend(out, sizeof(*aeth));

		aeth->syndrome = fields->syndrome;
		wire_put24(aeth->msn, fields->msn);
	}
	if (flags & OPCODE_HAS_ATOMICACKETH) {
		const rte_be64_t original = rte_cpu_to_be_64(fields->original);

		memcpy(packet_extend(out, 8), &original, 8);
	}
	if (flags & OPCODE_HAS_SACKETH) {
		const rte_be32_t serial = rte_cpu_to_be_32(fields->serial);

		memcpy(packet_extend(out, 4), &serial, 4);
	}
}

const struct packet *fixture_packet(struct fixture *fixture, const struct packet_fields *fields)
{
	const uint32_t flags = opcode_info(fields->opcode)->flags;
	const struct bth_fields bth = {
		.opcode = fields->opcode,
		.solicited = fields->solicited,
		.migrated = true,
		.ack_byte = (uint8_t)((fields->ack_req ? BTH_ACK_REQ : 0) | fields->capability),
		.pkey = WIRE_PKEY_DEFAULT,
		.dest_qpn = FIXTURE_QPN,
		.psn = psn_make(fields->psn),
	};
	struct packet_out out = {.frame = fixture->frame};
	uint8_t pattern[WIRE_MTU_MAX];
	uint32_t len;

	packet_begin(&out, &fixture->path_back, &bth);
	put_request_headers(&out, fields, flags);
	put_response_headers(&out, fields, flags);
	for (uint32_t i = 0; i < fields->len; i++)
		pattern[i] = fields->payload ? fields->payload[i] : pattern_byte(fields->psn, i);
	assert_int_equal(packet_payload(&out, FRAG_COPY, pattern, fields->len), 0);
	len = packet_seal(&out);
	assert_int_equal(packet_parse(fixture->frame, len, false, &fixture->packet), PACKET_OK);
	return &fixture->packet;
}

static void expect_canary(const uint8_t *bytes)
{
	for (size_t i = 0; i < CANARY_BYTES; i++)
		assert_int_equal(bytes[i], CANARY);
}

void region_set_up(struct region *region, struct pd *pd, size_t length, unsigned int access,
		   uint32_t seed)
{
	region->block =
		aligned_alloc(CANARY_BYTES, (length + 3 * CANARY_BYTES) & ~(CANARY_BYTES - 1ul));
	assert_non_null(region->block);
	memset(region->block, CANARY, length + 2 * CANARY_BYTES);
	region->bytes = region->block + CANARY_BYTES;
	region->length = length;
	for (size_t i = 0; i < length; i++)
		region->bytes[i] = pattern_byte(seed, i);
	assert_int_equal(mr_register(pd, region->bytes, length, (uintptr_t)region->bytes, access,
				     &region->mr),
			 0);
}

void region_tear_down(struct region *region)
{
	expect_canary(region->block);
	expect_canary(region->bytes + region->length);
	region_deregister(region);
	free(region->block);
}

void region_deregister(struct region *region)
{
	if (region->mr)
		mr_deregister(region->mr);
	region->mr = NULL;
}

void region_expect_pattern(const struct region *region, size_t from, size_t len, uint32_t seed)
{
	for (size_t i = from; i < from + len; i++)
		assert_int_equal(region->bytes[i], pattern_byte(seed, i));
}

struct ibv_sge region_sge(const struct region *region, size_t offset, uint32_t len)
{
	return (struct ibv_sge){
		.addr = region_iova(region, offset), .length = len, .lkey = region->mr->key};
}

struct ibv_wc fixture_completion(struct cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	assert_int_equal(cq_poll(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
	return wc;
}

void fixture_no_completion(struct cq *cq)
{
	struct ibv_wc wc;

	assert_int_equal(cq_poll(cq, 1, &wc), 0);
}
