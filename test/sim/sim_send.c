/* SPDX-License-Identifier: BSD-3-Clause */
/* What the engines of a host send: the checks of each packet, and its way to the port. */
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "device/device.h"
#include "qp/qp.h"
#include "sim.h"
#include "sim_engine.h"
#include "sim_inside.h"
#include "transport/pacer.h"
#include "wire/headers.h"
#include "wire/icrc.h"
#include "wire/packet.h"

static struct packet_out *send_get(struct packet_sink *sink)
{
	struct sim_engine *engine = container_of(sink, struct sim_engine, sink);

	sim_check(engine->host->sim, !engine->out_taken,
		  "host %d: a packet was taken and never put", engine->host->number);
	if (engine->tx_room == 0)
		return NULL;
	engine->tx_room--;
	engine->out_taken = true;
	engine->out_failed = false;
	return &engine->out;
}

/* Offer a place for every second short packet. */
static uint8_t *send_offer(struct packet_sink *sink, const struct path *path, uint32_t qpn)
{
	struct sim_engine *engine = container_of(sink, struct sim_engine, sink);

	(void)path, (void)qpn;
	sim_check(engine->host->sim, !engine->out_taken,
		  "host %d: a packet was taken and never put", engine->host->number);
	return engine->tx_room > 0 && engine->host->sim->packets % 2 == 0 ? engine->out.frame
									  : NULL;
}

/* A paced queue pair keeps to its rate over any time, except for the allowed burst. */
static void check_pace(struct end *end, const struct packet *packet, uint32_t len)
{
	const struct host *host = end->host;
	uint64_t due_ns;

	if (end->rate_kbps == 0 || !(packet->op->flags & OPCODE_REQUEST))
		return;
	if (end->paced_bytes == 0)
		end->paced_since_ns = host->clock->now_ns;
	due_ns = end->paced_bytes * 8000000 / end->rate_kbps;
	sim_check(host->sim, due_ns <= host->clock->now_ns - end->paced_since_ns + PACER_BURST_NS,
		  "qp %06x: sends faster than %u kbit/s", end->qpn, end->rate_kbps);
	end->paced_bytes += len;
}

/* A responder acknowledges only packets that it has executed. */
static void check_ack(const struct end *end, const struct packet *packet)
{
	if ((packet->opcode & OPCODE_OPERATION_MASK) != OPCODE_ACKNOWLEDGE ||
	    (packet->syndrome & AETH_KIND_MASK) != AETH_ACK)
		return;
	sim_check(end->host->sim, psn_before(packet->psn, inside_expected(end->qp)),
		  "qp %06x: acknowledges PSN %06x, and expects %06x", end->qpn, packet->psn.v,
		  inside_expected(end->qp).v);
}

/* A peer that is not uroce never sees our opcode, nor the capability bits of our responses:
 * Soft-RoCE may crash if it does. */
static void check_signs(const struct end *end, const struct packet *packet)
{
	const struct host *host = end->host;
	const struct host *to = end->peer->host;
	const bool plain =
		host->sack == SACK_NEVER || !host->keeps || to->sack == SACK_NEVER || !to->keeps;

	sim_check(host->sim,
		  packet->capability == 0 ||
			  (host->keeps && (host->sack == SACK_ALWAYS ||
					   (host->sack == SACK_INTRODUCED && !plain))),
		  "qp %06x: capability bits, although SACK is off", end->qpn);
	sim_check(host->sim, !plain || packet->opcode != OPCODE_SACK,
		  "qp %06x: a selective acknowledgement to a peer that does not understand it",
		  end->qpn);
	sim_check(host->sim,
		  (packet->capability & BTH_SACK_KIND) != BTH_SACK_RESPONSE ||
			  (!plain && !(packet->op->flags & OPCODE_REQUEST)),
		  "qp %06x: capability bits to a peer that does not understand them", end->qpn);
}

/* A peer must accept every packet that a host sends. */
static void check_frame(const struct sim_engine *engine, uint32_t len, struct packet *packet)
{
	const enum packet_status status = packet_parse(engine->out.frame, len, false, packet);
	const struct host *host = engine->host;

	sim_check(host->sim, status == PACKET_OK, "host %d: made a frame that does not parse (%d)",
		  host->number, (int)status);
	sim_check(host->sim, packet_icrc_ok(packet), "host %d: made a frame with a bad ICRC",
		  host->number);
	check_signs(engine->running, packet);
	check_pace(engine->running, packet, len);
	check_ack(engine->running, packet);
}

static bool is_to_group(const uint8_t *frame)
{
	return memcmp(frame, group_mac, sizeof(group_mac)) == 0;
}

static bool is_to(const struct host *host, const uint8_t *frame)
{
	return is_to_group(frame) ? host->hears_group : memcmp(frame, host->mac, 6) == 0;
}

/* Send a frame to the other hosts. */
static void send_by_port(const struct host *host, const uint8_t *frame, uint32_t len)
{
	const struct sim *sim = host->sim;

	for (unsigned int i = 0; i < sim->hosts; i++) {
		if ((int)i != host->number && is_to(&sim->host[i], frame))
			link_send(host->links[i], frame, len);
	}
}

void engine_send(struct end *end, const uint8_t *bytes, uint32_t len)
{
	const struct host *host = end->engine->host;
	bool known = is_to_group(bytes);

	for (unsigned int i = 0; i < host->sim->hosts; i++)
		known |= is_to(&host->sim->host[i], bytes);
	sim_check(host->sim, known, "host %d: sent a frame to nobody's MAC address", host->number);
	if (is_to(host, bytes))
		link_send(host->links[host->number], bytes, len);
	if (!is_to_group(bytes) && is_to(host, bytes))
		return;
	send_by_port(host, bytes, len);
}

/* Send the sealed packet. */
static void send_sealed(struct sim_engine *engine, uint32_t len)
{
	const uint8_t *frame = engine->out.frame;
	struct packet packet;

	check_frame(engine, len, &packet);
	engine->host->sim->packets++;
	forge_sent(engine->running, frame, len);
	engine_send(engine->running, frame, len);
	if (!is_to_group(frame))
		soft_sent(engine->running, &packet);
}

/* What is built in an offered place has no ICRC, which receivers here check. */
static void send_placed(struct packet_sink *sink, uint32_t len)
{
	struct sim_engine *engine = container_of(sink, struct sim_engine, sink);
	uint8_t *frame = engine->out.frame;
	struct packet packet;
	uint32_t icrc;

	engine->tx_room--;
	sim_check(engine->host->sim,
		  len <= SINK_OFFER_BYTES && packet_parse(frame, len, false, &packet) == PACKET_OK,
		  "host %d: built a bad packet in an offered place", engine->host->number);
	icrc = icrc_headers(packet.l3, packet.l3_len, packet.headers_len);
	icrc_store(icrc_update(icrc, packet.payload, packet.payload_len + packet.pad),
		   frame + len - WIRE_ICRC_LEN);
	send_sealed(engine, len);
}

static int send_put(struct packet_sink *sink, struct packet_out *out)
{
	struct sim_engine *engine = container_of(sink, struct sim_engine, sink);
	struct sim *sim = engine->host->sim;
	const int len = packet_seal(out);

	sim_check(sim, engine->out_taken || engine->out_failed,
		  "host %d: a packet was put and not taken", engine->host->number);
	engine->out_taken = false;
	engine->out_failed = len < 0;
	if (len < 0)
		return len;
	send_sealed(engine, (uint32_t)len);
	return 0;
}

/* Return true if the wire knows what was taken: with --stall it loses nothing. SIM_BREAK=wire: it
 * tells nobody. */
static bool wire_knows(const struct sim *sim)
{
	return sim->variant.stall > 0 && (sim->breaks == NULL || strcmp(sim->breaks, "wire") != 0);
}

static enum sink_knows send_ask(struct packet_sink *sink, const struct path *path, uint32_t qpn,
				struct sink_taken *taken)
{
	const struct sim_engine *engine = container_of(sink, struct sim_engine, sink);
	const struct host *host = engine->host;
	const struct sim *sim = host->sim;

	(void)qpn;
	if (!wire_knows(sim))
		return SINK_KNOWS_NOTHING;
	for (unsigned int i = 0; i < sim->hosts; i++) {
		const struct link *link = host->links[i];

		if (!is_to(&sim->host[i], path->hdr))
			continue;
		*taken = (struct sink_taken){.given = link->given, .taken = link->taken};
		return SINK_KNOWS_TAKEN;
	}
	return SINK_KNOWS_NOTHING;
}

void send_start(struct sim_engine *engine)
{
	engine->sink = (struct packet_sink){.get = send_get,
					    .put = send_put,
					    .ask = send_ask,
					    .offer = send_offer,
					    .placed = send_placed};
	if (engine->out.frame == NULL)
		engine->out.frame = malloc(PACKET_FRAME_MAX);
	sim_check(engine->host->sim, engine->out.frame != NULL, "out of memory");
	engine->out_taken = false;
}
