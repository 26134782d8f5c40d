/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of an attacker who knows no PSN, and late packets of earlier connections. */
#include "forge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "sim_inside.h"
#include "qp/qp.h"
#include "queue/srq.h"
#include "sim.h"
#include "wire/headers.h"
#include "wire/packet.h"

/* A requester's usual window, and the PSNs of the READ segment that closes it: the most that can be
 * in flight behind the expected PSN. */
#define WINDOW_USUAL 256
#define SEGMENT_PSNS 64
/* PSNs; responders once kept packets that were less far ahead. */
#define REACH_ONCE 16384

static bool connected(const struct end *end)
{
	const enum ibv_qp_state state = qp_state(end->qp);

	return (end->type == IBV_QPT_RC || end->type == IBV_QPT_XRC_SEND ||
		end->type == IBV_QPT_XRC_RECV) &&
	       (state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD);
}

/* Return true if no request with this PSN can be in flight to an end, or be sent to it soon. */
static bool misses_responder(const struct end *to, struct psn psn)
{
	const uint32_t window = to->host->sim->variant.window;
	const uint32_t usual = (window > WINDOW_USUAL ? window : WINDOW_USUAL) + SEGMENT_PSNS;
	const uint32_t reach = inside_reach(to->qp);
	const uint32_t most = usual > reach ? usual : reach;
	const struct psn expected = inside_expected(to->qp);
	const int32_t ahead = psn_diff(psn, expected);

	if (ahead >= 0)
		return (uint32_t)ahead > most;
	/* The requester may still wait for the response to a request that was executed. */
	return qp_state(to->peer->qp) != IBV_QPS_RTS || psn_diff(psn, inside_una(to->peer->qp)) < 0;
}

/* Return true if a response with this PSN answers nothing that is in flight. */
static bool misses_requester(const struct end *to, struct psn psn)
{
	/* A sequence NAK for the next PSN acknowledges all that is in flight. */
	return psn_diff(psn, inside_una(to->qp)) < 0 || psn_diff(psn, inside_top(to->qp)) > 0;
}

static bool misses(const struct end *to, bool request, struct psn psn)
{
	return request ? misses_responder(to, psn) : misses_requester(to, psn);
}

/* Receive a frame now, without the link, so that no PSN moves before. */
static void inject(struct end *to, const uint8_t *bytes, uint32_t len, bool request, struct psn psn)
{
	struct sim *sim = to->host->sim;

	if (sim->verbose) {
		struct link link = {.clock = &sim->clock, .from = -1, .to = to->host->number};

		trace_frame(&link, LINK_GHOST, bytes, len);
	}
	sim->stats_forged++;
	sim->forger.ahead += request && psn_diff(psn, inside_expected(to->qp)) > 0;
	engines_inject(to->host, bytes, len);
}

/* Choose any PSN, or one near those in flight. The caller drops those that might hit. */
static struct psn choose_psn(struct rng *rng, const struct end *to, bool request)
{
	const struct psn base = request ? inside_expected(to->qp) : inside_una(to->qp);

	switch (rng_below(rng, 5)) {
	case 0:
		return psn_make((uint32_t)rng_next(rng));
	case 1:
		return psn_add(base, -(int32_t)rng_range(rng, 1, 2000));
	case 2:
		return psn_add(base, (int32_t)rng_range(rng, 0, 2 * REACH_ONCE));
	default:
		return psn_add(base, (int32_t)rng_range(rng, 0, 2000));
	}
}

static uint8_t choose_opcode(struct rng *rng, const struct end *to)
{
	const uint8_t service = to->type == IBV_QPT_RC ? OPCODE_RC : OPCODE_XRC;

	if (rng_chance(rng, 50000))
		return OPCODE_SACK;
	for (;;) {
		const uint8_t opcode =
			(uint8_t)(service | rng_below(rng, OPCODE_OPERATION_MASK + 1));

		if (opcode_info(opcode)->flags & OPCODE_KNOWN)
			return opcode;
	}
}

/* Choose some memory of the host that receives a packet, and its key. */
static void choose_memory(struct rng *rng, const struct host *host, uint64_t *iova, uint32_t *key)
{
	const struct region *region = host->memory.regions;

	for (uint64_t skip = rng_below(rng, 20); region->next != NULL && skip > 0; skip--)
		region = region->next;
	*iova = region->iova + (rng_below(rng, region->size) & ~7ull);
	*key = region->key;
}

static void put32(struct packet_out *out, uint32_t v)
{
	const rte_be32_t be = rte_cpu_to_be_32(v);

	memcpy(packet_extend(out, sizeof(be)), &be, sizeof(be));
}

static void put64(struct packet_out *out, uint64_t v)
{
	const rte_be64_t be = rte_cpu_to_be_64(v);

	memcpy(packet_extend(out, sizeof(be)), &be, sizeof(be));
}

static uint32_t choose_syndrome(struct rng *rng)
{
	static const uint8_t kinds[] = {AETH_ACK, AETH_RNR_NAK, AETH_NAK, 0x40};
	const uint8_t kind = kinds[rng_below(rng, 4)];

	return kind | (uint8_t)rng_below(rng, kind == AETH_NAK ? 5 : AETH_VALUE_MASK + 1);
}

/* Write the extended headers, in their order in a packet (wire/opcode.h). */
static void put_headers(struct rng *rng, struct packet_out *out, const struct end *to,
			uint32_t flags, uint32_t len)
{
	uint64_t iova;
	uint32_t key;

	choose_memory(rng, to->host, &iova, &key);
	if (flags & OPCODE_HAS_XRCETH)
		put32(out, to->host->pools[POOL_XRC].in_use ? to->host->pools[POOL_XRC].srq->number
							    : (uint32_t)rng_next(rng) & 0xffffff);
	if (flags & OPCODE_HAS_FETH)
		put32(out, (uint32_t)rng_next(rng) & 0x33);
	if (flags & (OPCODE_HAS_RETH | OPCODE_HAS_ATOMICETH)) {
		put64(out, iova);
		put32(out, key);
	}
	if (flags & OPCODE_HAS_RETH)
		put32(out, flags & OPCODE_PAYLOAD && flags & OPCODE_LAST
				   ? len
				   : (uint32_t)rng_below(rng, 10000));
	if (flags & OPCODE_HAS_ATOMICETH) {
		put64(out, rng_next(rng));
		put64(out, rng_next(rng));
	}
	if (flags & OPCODE_HAS_AETH)
		put32(out, choose_syndrome(rng) << 24 | ((uint32_t)rng_next(rng) & 0xffffff));
	if (flags & OPCODE_HAS_ATOMICACKETH)
		put64(out, rng_next(rng));
	if (flags & OPCODE_HAS_IMM)
		put32(out, (uint32_t)rng_next(rng));
	if (flags & OPCODE_HAS_IETH)
		put32(out, key);
	if (flags & OPCODE_HAS_SACKETH)
		put32(out, (uint32_t)rng_next(rng) >> rng_below(rng, 32));
}

static uint32_t choose_length(struct rng *rng, const struct end *to, uint8_t opcode)
{
	const uint32_t flags = opcode_info(opcode)->flags;
	const uint32_t mtu = 128u << to->mtu;

	if (!(flags & OPCODE_PAYLOAD))
		return 0;
	if (opcode == OPCODE_SACK)
		return (uint32_t)rng_range(rng, 0, 64);
	if ((opcode & OPCODE_OPERATION_MASK) == OPCODE_ATOMIC_WRITE)
		return 8;
	return flags & OPCODE_LAST ? (uint32_t)rng_range(rng, 1, rng_chance(rng, 500000) ? 64 : mtu)
				   : mtu;
}

/* Make a packet with a valid ICRC, and send it to an end. */
static void forge_packet(struct sim *sim, struct end *to)
{
	static uint8_t frame[PACKET_FRAME_MAX], payload[WIRE_MTU_MAX];
	struct rng *rng = &sim->forge_rng;
	const uint8_t opcode = choose_opcode(rng, to);
	const uint32_t flags = opcode_info(opcode)->flags;
	const uint32_t len = choose_length(rng, to, opcode);
	struct packet_out out = {.frame = frame};
	struct bth_fields bth = {.opcode = opcode,
				 .migrated = true,
				 .solicited = rng_chance(rng, 300000),
				 .ack_byte = rng_chance(rng, 700000) ? BTH_ACK_REQ : 0,
				 .pkey = WIRE_PKEY_DEFAULT,
				 .dest_qpn = to->qpn};
	struct path path;

	bth.psn = choose_psn(rng, to, flags & OPCODE_REQUEST);
	if (!misses(to, flags & OPCODE_REQUEST, bth.psn))
		return;
	connect_path(to->peer, &path);
	packet_begin(&out, &path, &bth);
	put_headers(rng, &out, to, flags, len);
	for (uint32_t i = 0; i < len; i++)
		payload[i] = (uint8_t)rng_next(rng);
	packet_payload(&out, FRAG_OWN, payload, len);
	inject(to, frame, (uint32_t)packet_seal(&out), flags & OPCODE_REQUEST, bth.psn);
}

/* Send a ghost again to the end that it once went to. */
static void haunt(struct sim *sim, const struct ghost *ghost)
{
	struct end *to = &sim->end[ghost->to];
	struct packet packet;

	sim_check(sim, packet_parse(ghost->bytes, ghost->len, false, &packet) == PACKET_OK,
		  "a frame that was kept does not parse");
	if (connected(to) && misses(to, packet.op->flags & OPCODE_REQUEST, packet.psn))
		inject(to, ghost->bytes, ghost->len, packet.op->flags & OPCODE_REQUEST, packet.psn);
}

static void strike(void *context, void *argument)
{
	struct sim *sim = context;
	struct forger *forger = &sim->forger;
	struct rng *rng = &sim->forge_rng;
	struct end *to = &sim->end[rng_below(rng, 2 * sim->pairs)];

	(void)argument;
	if (sim->second && forger->ghost_count > 0 && rng_chance(rng, 400000))
		haunt(sim, &forger->ghosts[rng_below(rng, forger->ghost_count)]);
	else if (connected(to))
		forge_packet(sim, to);
}

/* Keep a frame of the first connection, for the second. */
static void keep(const struct end *from, const uint8_t *frame, uint32_t len)
{
	struct sim *sim = from->host->sim;
	struct forger *forger = &sim->forger;
	struct ghost *ghost;

	if (forger->ghost_count == FORGE_GHOSTS_MAX || !connected(from))
		return;
	ghost = &forger->ghosts[forger->ghost_count++];
	ghost->bytes = malloc(len);
	sim_check(sim, ghost->bytes != NULL, "out of memory");
	memcpy(ghost->bytes, frame, len);
	ghost->len = len;
	ghost->to = from->peer->number;
}

void forge_sent(const struct end *from, const uint8_t *frame, uint32_t len)
{
	struct sim *sim = from->host->sim;
	struct rng *rng = &sim->forge_rng;

	if (sim->variant.forge == 0)
		return;
	if (sim->twice && !sim->second && rng_chance(rng, 300000))
		keep(from, frame, len);
	if (rng_chance(rng, sim->variant.forge))
		clock_at(&sim->clock,
			 sim->clock.now_ns + rng_below(rng, 2 * sim->link[0][1].attr.latency_ns),
			 strike, sim, NULL);
}

void forge_reset(struct sim *sim)
{
	struct rng *rng = &sim->forge_rng;

	sim->second = true;
	for (unsigned int i = 0; i < 2 * sim->pairs && sim->variant.forge != 0; i++) {
		struct end *end = &sim->end[i];

		/* The ghosts are ahead of it. */
		if (rng_chance(rng, 700000))
			end->sq_psn =
				psn_add(end->newest_psn, -(int32_t)rng_range(rng, 300, 2000)).v;
	}
}

/* A forged packet ahead of the expected one may cause one sequence NAK. The retransmission for that
 * NAK may cause one more, if the responder has no room for an answer yet. The link may repeat any
 * of them. If the link loses nothing and no RNR NAK was sent, no other packet causes one. */
void forge_check(struct sim *sim)
{
	const uint64_t copies = sim->link[0][1].attr.duplicate_ppm > 0 ? 4 : 2;
	uint64_t naks = 0;

	/* After the first connection, the state of an end that connected late is unknown. */
	if (sim->twice)
		return;
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		if (sim->flow[i].window.in_use || sim->end[i].late)
			return;
	}
	for (unsigned int i = 0; i < sim->hosts; i++) {
		/* Packets that are retransmitted after a wait arrive twice. */
		if (device_counter(sim->host[i].device, COUNTER_rnr_nak_sent) > 0 ||
		    device_counter(sim->host[i].device, COUNTER_page_waits) > 0)
			return;
		naks += device_counter(sim->host[i].device, COUNTER_packet_seq_err);
	}
	sim_check(sim,
		  !sim->lossless || sim->scenario != SCENARIO_SOUND ||
			  naks <= copies * sim->forger.ahead,
		  "%llu NAKs for packets out of sequence, and nothing was lost; %llu were forged",
		  (unsigned long long)naks, (unsigned long long)sim->forger.ahead);
}

void forge_free(struct sim *sim)
{
	for (unsigned int i = 0; i < sim->forger.ghost_count; i++)
		free(sim->forger.ghosts[i].bytes);
	sim->forger = (struct forger){0};
}
