/* SPDX-License-Identifier: BSD-3-Clause */
/* The flows of an experiment. */
#include "traffic.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Ethernet, IPv4, UDP, BTH and ICRC of a packet in the middle of a message. */
#define HEADERS_BYTES (14 + 20 + 8 + 12 + 4)
#define FLOW_FIRST    1000	      /* ns; time 0 means "not yet" */
#define GREETING_NS   UINT64_C(50000) /* between two greetings */

/* A connection of two hosts that one flow at a time uses. */
struct duo {
	struct duo *next_idle;
	struct duo *next;
	struct conn from;
	struct conn to;
};

static void *must_calloc(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (memory == NULL) {
		perror("net: traffic");
		exit(1);
	}
	return memory;
}

static double uniform(struct rng *rng)
{
	return (double)(rng_next(rng) >> 11) / (double)(1ull << 53);
}

/*
 * The sizes of IRN's default workload (arXiv 1806.08159, 4.1): half of the flows are single packets
 * of 32 bytes to 1 KB, 15 % are of 200 KB to 3 MB and carry most of the bytes, and the others lie
 * between. Within a class the logarithm of the size is uniform.
 */
static const struct {
	uint32_t percent;
	double from;
	double to;
} sizes[] = {{50, 32, 1000}, {35, 1000, 200e3}, {15, 200e3, 3e6}};

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static double mean_size(void)
{
	double mean = 0;

	for (size_t i = 0; i < SIZES; i++)
		mean += sizes[i].percent / 100.0 * (sizes[i].to - sizes[i].from) /
			log(sizes[i].to / sizes[i].from);
	return mean;
}

static uint32_t draw_size(struct rng *rng)
{
	uint64_t percent = rng_below(rng, 100);
	size_t i = 0;

	while (percent >= sizes[i].percent)
		percent -= sizes[i++].percent;
	return (uint32_t)(sizes[i].from * pow(sizes[i].to / sizes[i].from, uniform(rng)));
}

static uint32_t draw_other(struct rng *rng, uint32_t hosts, uint32_t host)
{
	return (host + 1 + (uint32_t)rng_below(rng, hosts - 1)) % hosts;
}

static void plan_poisson(struct traffic *traffic)
{
	const struct topology *topology = traffic->topology;
	/* Flows in a nanosecond, of all hosts together. */
	const double rate = (double)topology->attr.mbps / 8000 * topology->hosts *
			    traffic->attr.load_percent / 100 / mean_size();
	double at = FLOW_FIRST;

	for (uint32_t i = 0; i < traffic->flows; i++) {
		struct flow *flow = &traffic->flow[i];

		at += -log(1 - uniform(&traffic->rng)) / rate;
		flow->from = (uint32_t)rng_below(&traffic->rng, topology->hosts);
		flow->to = draw_other(&traffic->rng, topology->hosts, flow->from);
		flow->bytes = draw_size(&traffic->rng);
		flow->begin_ns = (uint64_t)at;
	}
}

/* Each round has one receiver, and other hosts that send to it, in random order; with more senders
 * than hosts, hosts send more than once. */
static void plan_incast(struct traffic *traffic)
{
	const uint32_t hosts = traffic->topology->hosts, senders = traffic->attr.senders;

	const uint32_t greetings = traffic->attr.greets ? senders : 0;
	const uint64_t first_ns = FLOW_FIRST + greetings * GREETING_NS;

	for (uint32_t round = 0; round < traffic->attr.rounds; round++) {
		const uint32_t to = (uint32_t)rng_below(&traffic->rng, hosts);
		const uint32_t first = (uint32_t)rng_below(&traffic->rng, hosts - 1);

		for (uint32_t i = 0; i < greetings; i++)
			traffic->flow[i] =
				(struct flow){.from = (to + 1 + (first + i) % (hosts - 1)) % hosts,
					      .to = to,
					      .bytes = 1,
					      .begin_ns = FLOW_FIRST + i * GREETING_NS};
		for (uint32_t i = 0; i < senders; i++)
			traffic->flow[greetings + round * senders + i] = (struct flow){
				.from = (to + 1 + (first + i) % (hosts - 1)) % hosts,
				.to = to,
				.bytes = (uint32_t)(traffic->attr.bytes / senders),
				.begin_ns = first_ns + (i < 2 ? i : 2) * traffic->attr.stagger_ns};
	}
}

static void plan_permutation(struct traffic *traffic)
{
	const uint32_t hosts = traffic->topology->hosts;
	uint32_t *order = must_calloc(hosts, sizeof(*order));

	for (uint32_t i = 0; i < hosts; i++) {
		const uint32_t j = (uint32_t)rng_below(&traffic->rng, i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	/* One circle through all hosts, in random order. */
	for (uint32_t i = 0; i < hosts; i++)
		traffic->flow[i] = (struct flow){.from = order[i],
						 .to = order[(i + 1) % hosts],
						 .bytes = (uint32_t)traffic->attr.bytes,
						 .begin_ns = FLOW_FIRST};
	free(order);
}

static void plan_stream(struct traffic *traffic)
{
	for (uint32_t i = 0; i < traffic->flows; i++)
		traffic->flow[i] =
			(struct flow){.from = 0, .to = 1, .bytes = (uint32_t)traffic->attr.bytes};
}

static uint32_t count_flows(const struct traffic *traffic)
{
	switch (traffic->attr.kind) {
	case TRAFFIC_INCAST:
		return traffic->attr.senders *
		       (traffic->attr.rounds + (traffic->attr.greets ? 1 : 0));
	case TRAFFIC_PERMUTATION:
		return traffic->topology->hosts;
	case TRAFFIC_STREAM:
		return traffic->attr.rounds;
	default:
		return traffic->attr.flows;
	}
}

/* Return an unused connection of two hosts. */
static struct duo *duo_get(struct traffic *traffic, uint32_t from, uint32_t to)
{
	struct duo **idle = &traffic->idle[from * traffic->topology->hosts + to];
	struct duo *duo = *idle;

	if (duo != NULL) {
		*idle = duo->next_idle;
		return duo;
	}
	duo = must_calloc(1, sizeof(*duo));
	conn_open(&duo->from, &traffic->host[from], &duo->to, &traffic->host[to],
		  &traffic->attr.conn);
	duo->next = traffic->duos;
	traffic->duos = duo;
	traffic->conns++;
	return duo;
}

static void flow_begin(struct traffic *traffic, uint32_t i)
{
	struct flow *flow = &traffic->flow[i];

	traffic->begun++;
	flow->begin_ns = traffic->fabric->clock.now_ns;
	traffic->running[i] = duo_get(traffic, flow->from, flow->to);
	conn_receive(&traffic->running[i]->to, i, flow->bytes);
	conn_send(&traffic->running[i]->from, i, flow->bytes);
}

/* Begin the planned flow, and schedule the next. */
static void flow_timer(void *context, void *argument)
{
	struct traffic *traffic = context;
	const uint32_t i = (uint32_t)(uintptr_t)argument;

	if (i + 1 < traffic->flows)
		clock_at(&traffic->fabric->clock, traffic->flow[i + 1].begin_ns, flow_timer,
			 traffic, (void *)(uintptr_t)(i + 1));
	flow_begin(traffic, i);
}

/* Return the longest queue of a switch. */
static uint32_t longest_queue(const struct topology *topology)
{
	uint32_t longest = 0;

	for (uint32_t i = 0; i < topology->switches; i++) {
		for (uint32_t p = 0; p < topology->sw[i].ports; p++) {
			if (topology->sw[i].port[p].queued_bytes > longest)
				longest = topology->sw[i].port[p].queued_bytes;
		}
	}
	return longest;
}

static struct sample *sample_add(struct traffic *traffic)
{
	if (traffic->samples == traffic->samples_room) {
		traffic->samples_room = traffic->samples_room == 0 ? 64 : 2 * traffic->samples_room;
		traffic->sample =
			realloc(traffic->sample, traffic->samples_room * sizeof(*traffic->sample));
		if (traffic->sample == NULL) {
			perror("net: samples");
			exit(1);
		}
	}
	return &traffic->sample[traffic->samples++];
}

/* Look at all flows that run, and at the queues; and again later. */
static void sample_timer(void *context, void *argument)
{
	struct traffic *traffic = context;
	struct clock *clock = &traffic->fabric->clock;
	const double packet_bits = 8.0 * (128u << traffic->attr.conn.mtu);
	struct sample *sample = sample_add(traffic);
	double sum = 0, squares = 0;

	(void)argument;
	*sample = (struct sample){.at_ns = clock->now_ns,
				  .queue_bytes = longest_queue(traffic->topology)};
	for (uint32_t i = 0; i < traffic->begun; i++) {
		struct flow *flow = &traffic->flow[i];
		const bool was_seen = flow->seen;
		const uint32_t before = flow->seen_psn;
		double packets;

		flow->seen = flow->end_ns == 0;
		if (!flow->seen)
			continue;
		flow->seen_psn = conn_expected(&traffic->running[i]->to);
		if (!was_seen)
			continue;
		packets = (flow->seen_psn - before) & 0xffffff;
		sum += packets;
		squares += packets * packets;
		sample->flows++;
	}
	sample->gbps = sum * packet_bits / (double)traffic->attr.sample_ns;
	sample->fairness = squares == 0 ? 1 : sum * sum / (sample->flows * squares);
	clock_at(clock, clock->now_ns + traffic->attr.sample_ns, sample_timer, traffic, NULL);
}

static uint32_t round_flows(const struct traffic *traffic)
{
	return traffic->attr.kind == TRAFFIC_INCAST ? traffic->attr.senders : 1;
}

static void round_timer(void *context, void *argument)
{
	struct traffic *traffic = context;
	const uint32_t first = (uint32_t)(uintptr_t)argument;

	traffic->round_ended = 0;
	for (uint32_t i = 0; i < round_flows(traffic); i++)
		flow_begin(traffic, first + i);
}

static bool has_rounds(const struct traffic *traffic)
{
	return (traffic->attr.kind == TRAFFIC_INCAST && traffic->attr.stagger_ns == 0 &&
		!traffic->attr.greets) ||
	       traffic->attr.kind == TRAFFIC_STREAM;
}

static void flow_complete(struct host *host, const struct ibv_wc *wc)
{
	struct traffic *traffic = host->user;
	const uint32_t i = (uint32_t)wc->wr_id;
	struct flow *flow = &traffic->flow[i];
	struct duo **idle;

	if (wc->opcode == IBV_WC_RECV) {
		flow->end_ns = host->fabric->clock.now_ns;
		traffic->ended++;
		return;
	}
	traffic->acknowledged++;
	idle = &traffic->idle[flow->from * traffic->topology->hosts + flow->to];
	traffic->running[i]->next_idle = *idle;
	*idle = traffic->running[i];
	if (has_rounds(traffic) && ++traffic->round_ended == round_flows(traffic) &&
	    traffic->begun < traffic->flows)
		clock_at(&traffic->fabric->clock, traffic->fabric->clock.now_ns, round_timer,
			 traffic, (void *)(uintptr_t)traffic->begun);
}

void traffic_init(struct traffic *traffic, struct fabric *fabric, const struct topology *topology,
		  struct host *host, const struct traffic_attr *attr)
{
	*traffic = (struct traffic){.attr = *attr,
				    .fabric = fabric,
				    .topology = topology,
				    .host = host,
				    .rng = rng_fork(attr->seed, 7)};
	traffic->flows = count_flows(traffic);
	traffic->flow = must_calloc(traffic->flows, sizeof(*traffic->flow));
	traffic->running = must_calloc(traffic->flows, sizeof(*traffic->running));
	traffic->idle =
		must_calloc((size_t)topology->hosts * topology->hosts, sizeof(*traffic->idle));
	for (uint32_t i = 0; i < topology->hosts; i++) {
		host[i].complete = flow_complete;
		host[i].user = traffic;
	}
	switch (attr->kind) {
	case TRAFFIC_POISSON:
		plan_poisson(traffic);
		break;
	case TRAFFIC_INCAST:
		plan_incast(traffic);
		break;
	case TRAFFIC_PERMUTATION:
		plan_permutation(traffic);
		break;
	case TRAFFIC_STREAM:
		plan_stream(traffic);
		break;
	}
}

bool traffic_run(struct traffic *traffic, uint64_t until_ns)
{
	struct clock *clock = &traffic->fabric->clock;

	if (traffic->attr.sample_ns != 0)
		clock_at(clock, FLOW_FIRST + traffic->attr.sample_ns, sample_timer, traffic, NULL);
	clock_at(clock, FLOW_FIRST, has_rounds(traffic) ? round_timer : flow_timer, traffic, NULL);
	while (traffic->acknowledged < traffic->flows && clock->now_ns <= until_ns) {
		if (!clock_step(clock))
			return false;
	}
	return traffic->acknowledged == traffic->flows;
}

void traffic_fini(struct traffic *traffic)
{
	struct duo *next;

	for (struct duo *duo = traffic->duos; duo != NULL; duo = next) {
		next = duo->next;
		conn_close(&duo->from);
		conn_close(&duo->to);
		free(duo);
	}
	free(traffic->flow);
	free(traffic->sample);
	free(traffic->running);
	free(traffic->idle);
}

uint64_t traffic_ideal_ns(const struct traffic *traffic, const struct flow *flow)
{
	const uint32_t mtu = 128u << traffic->attr.conn.mtu;
	const uint32_t packets = flow->bytes == 0 ? 1 : (flow->bytes + mtu - 1) / mtu;
	const uint32_t last = flow->bytes - (packets - 1) * mtu;
	const struct topology_attr *attr = &traffic->topology->attr;
	const uint32_t links = topology_links(attr, flow->from, flow->to);
	const uint64_t overhead = HEADERS_BYTES + FRAME_EXTRA_BYTES;
	/* The first link carries all packets, each further one delays the last packet. */
	const uint64_t bytes = flow->bytes + packets * overhead + (links - 1) * (last + overhead);

	return bytes * 8000 / attr->mbps + links * attr->latency_ns;
}
