/* SPDX-License-Identifier: BSD-3-Clause */
/* Generates a program: hosts, links, pairs of queue pairs and their attributes, from one seed. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "device/limits.h"
#include "sim.h"
#include "transport/cc.h"

#define BYTES_SMALL	 (16u << 10) /* a flow's largest message */
#define BYTES_LARGE	 (1u << 20)
#define MARK_PPM	 50000 /* packets that a switch marks, with DCQCN */
#define WORKS_SHARED_MAX 200   /* bytes of a flow with shared words */

static unsigned int mtu_bytes(enum ibv_mtu mtu)
{
	return 128u << mtu;
}

static void make_scenario(struct sim *sim)
{
	static const enum scenario choices[] = {
		SCENARIO_SOUND, SCENARIO_SOUND,	 SCENARIO_SOUND,  SCENARIO_SOUND,
		SCENARIO_SOUND, SCENARIO_MISHAP, SCENARIO_MISHAP, SCENARIO_MISHAP,
		SCENARIO_CUT,	SCENARIO_KILL,	 SCENARIO_GONE,	  SCENARIO_LOST,
	};

	sim->scenario = choices[rng_below(&sim->rng, sizeof(choices) / sizeof(choices[0]))];
	if (sim->only >= 0)
		sim->scenario = (enum scenario)sim->only;
	sim->lossless = rng_chance(&sim->rng, 300000);
	sim->tight = sim->lossless && rng_chance(&sim->rng, 300000);
	sim->twice = sim->scenario == SCENARIO_SOUND && rng_chance(&sim->rng, 150000);
	sim->abrupt = sim->twice && rng_chance(&sim->rng, 600000);
	sim->strike_after = (uint32_t)rng_below(&sim->rng, WORKS_USUAL);
}

static void make_pace(struct host_pace *pace, struct rng *rng)
{
	*pace = (struct host_pace){.poll_ns = rng_range(rng, 20, 2000),
				   .packet_ns = rng_range(rng, 10, 300),
				   .late_ns = rng_chance(rng, 500000) ? 0 : rng_below(rng, 20000),
				   .receive_burst = (uint32_t)rng_range(rng, 1, 64),
				   .transmit_burst = (uint32_t)rng_range(rng, 1, 64),
				   .budget = (uint32_t)rng_range(rng, 1, 64),
				   .app_ns = rng_range(rng, 200, 20000),
				   .wakes = (enum wakes)rng_below(rng, 3)};
}

/* Draw the engines of a host, and spread its completion queues over them. Use a separate random
 * stream, so that the rest of a seed stays as it was with one engine. */
static void make_engines(struct host *host)
{
	static const uint32_t counts[] = {1, 1, 2, 4};
	const uint32_t wanted = host->sim->variant.engines;
	struct rng rng = rng_fork(host->sim->seed, 530 + (uint64_t)host->number);

	host->engine_count = counts[rng_below(&rng, RTE_DIM(counts))];
	if (wanted != 0)
		host->engine_count = RTE_MIN(wanted, (uint32_t)HOST_ENGINES_MAX);
	for (unsigned int i = 0; i < HOST_CQS_MAX; i++)
		host->cqs[i].vector = (uint32_t)rng_next(&rng);
}

static void make_hosts(struct sim *sim)
{
	static const uint8_t group_ipv6[16] = {0xff, 0x0e, [15] = 9};
	static const uint8_t group_ipv4[16] = {[10] = 0xff, 0xff, 239, 9, 9, 9};
	const bool ipv6 = rng_chance(&sim->rng, 400000);

	memcpy(sim->group.raw, ipv6 ? group_ipv6 : group_ipv4, sizeof(sim->group.raw));
	sim->hosts = rng_chance(&sim->rng, 200000) ? 3 : 2;
	for (unsigned int i = 0; i < sim->hosts; i++) {
		struct host *host = &sim->host[i];
		struct rng sack_rng;

		host->sim = sim;
		host->clock = &sim->clock;
		host->number = (int)i;
		host->rng = rng_fork(sim->seed, 100 + i);
		host->change_rng = rng_fork(sim->seed, 520 + i);
		host->wake_rng = rng_fork(sim->seed, 540 + i);
		host->ipv6 = ipv6;
		host->keeps = rng_chance(&host->rng, 700000);
		host->naks_behind_rnr = !host->keeps && rng_chance(&host->rng, 500000);
		/* A stream of its own, so that the rest of a seed stays as it was. */
		host->stall_rng = rng_fork(sim->seed, 550 + i);
		host->stalled_until_ns = 0;
		sack_rng = rng_fork(sim->seed, 510 + i);
		host->sack = rng_chance(&sack_rng, 250000) || sim->variant.plain != 0 ? SACK_NEVER
			     : rng_chance(&sack_rng, 500000) ? SACK_INTRODUCED
							     : SACK_ALWAYS;
		host->cq_count = (unsigned int)rng_range(&sim->rng, 1, HOST_CQS_MAX);
		/*
		 * The port's MTU has room for the largest path MTU and the headers that count
		 * against it.
		 */
		host->port_mtu = (uint32_t)rng_range(&sim->rng, 4096 + 96, 9000);
		make_pace(&host->pace, &sim->rng);
		make_engines(host);
		for (unsigned int k = 0; k < POOLS; k++)
			host->pools[k] = (struct pool){.host = host, .kind = (enum pool_kind)k};
		/* Requests that are taken from it before a reset never complete. */
		host->pools[POOL_SHARED].in_use = !sim->abrupt && rng_chance(&sim->rng, 200000);
		memcpy(host->mac, (const uint8_t[]){2, 0, 0, 0, 7, (uint8_t)(i + 1)}, 6);
		memset(&host->gid, 0, sizeof(host->gid));
		if (ipv6)
			host->gid.raw[0] = 0xfd;
		else
			memcpy(&host->gid.raw[10], (const uint8_t[]){0xff, 0xff, 10, 9, 0}, 5);
		host->gid.raw[15] = (uint8_t)(i + 1);
	}
}

static uint32_t some_ppm(struct rng *rng, uint32_t max)
{
	static const uint32_t scale[] = {0, 0, 30, 10, 3, 1};
	const uint32_t divisor = scale[rng_below(rng, 6)];

	return divisor == 0 ? 0 : (uint32_t)rng_range(rng, 1, max / divisor);
}

/* Remove the faults of a link that the variant excludes, and some of the others. Memory that two
 * processes share has none. */
static void calm_link(const struct variant *variant, struct link_attr *attr)
{
	const struct {
		enum calm calm;
		uint32_t *ppm;
	} faults[] = {
		{CALM_LOSS, &attr->loss_ppm},		{CALM_BURST, &attr->burst_ppm},
		{CALM_DUPLICATE, &attr->duplicate_ppm}, {CALM_GHOST, &attr->ghost_ppm},
		{CALM_DAMAGE, &attr->corrupt_ppm},	{CALM_REORDER, &attr->reorder_ppm},
	};

	for (unsigned int i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		if (variant->stall > 0 || (variant->calm & faults[i].calm))
			*faults[i].ppm = 0;
		if (variant->mild < 100)
			*faults[i].ppm = *faults[i].ppm * (uint64_t)(100 - variant->mild) / 100;
	}
}

static void make_links(struct sim *sim)
{
	struct link_attr attr = {.latency_ns = rng_range(&sim->rng, 100, 50000),
				 .mbps = rng_range(&sim->rng, 10000, 400000)};
	struct rng *rng = &sim->rng;

	attr.jitter_ns = rng_below(rng, attr.latency_ns);
	attr.reorder_ns = rng_range(rng, 1, 4 * attr.latency_ns);
	attr.duplicate_ppm = some_ppm(rng, 50000);
	if (!sim->lossless) {
		attr.loss_ppm = some_ppm(rng, 30000);
		attr.corrupt_ppm = some_ppm(rng, 20000);
		attr.reorder_ppm = some_ppm(rng, 50000);
		attr.ghost_ppm = some_ppm(rng, 20000);
		attr.burst_ppm = some_ppm(rng, 1000);
	}
	calm_link(&sim->variant, &attr);
	if (sim->variant.cc == CC_DCQCN || sim->variant.change > 0)
		attr.mark_ppm = MARK_PPM;
	for (unsigned int i = 0; i < sim->hosts; i++) {
		for (unsigned int j = 0; j < sim->hosts; j++) {
			struct link *link = &sim->link[i][j];

			*link = (struct link){.clock = &sim->clock,
					      .rng = rng_fork(sim->seed, 200 + 10 * i + j),
					      .attr = attr,
					      .deliver = host_deliver,
					      .receiver = &sim->host[j],
					      .trace = sim->verbose ? trace_frame : NULL,
					      .from = (int)i,
					      .to = (int)j};
			if (i == j)
				link->attr = (struct link_attr){.mbps = 400000, .inside = true};
			sim->host[i].links[j] = link;
		}
	}
}

static void make_end(struct end *end, struct host *host, enum ibv_mtu mtu, struct rng *rng)
{
	/* Choose a PSN near the wrap, near the sign bit, or anywhere. */
	static const uint32_t psns[] = {0, 0xfffff0, 0xffffff, 0x7ffff0, 0x800000};

	end->host = host;
	end->send_cq = (unsigned int)rng_below(rng, host->cq_count);
	end->recv_cq = (unsigned int)rng_below(rng, host->cq_count);
	end->sig_all = rng_chance(rng, 300000);
	end->access = ACCESS_ALL & ~(unsigned int)IBV_ACCESS_LOCAL_WRITE;
	end->mtu = mtu;
	end->sq_psn = rng_chance(rng, 700000) ? psns[rng_below(rng, 5)]
					      : (uint32_t)rng_below(rng, 1u << 24);
	end->cap = (struct ibv_qp_cap){
		.max_send_wr = (uint32_t)rng_range(rng, 1, rng_chance(rng, 50000) ? 300 : 32),
		.max_recv_wr = (uint32_t)rng_range(rng, 1, 64),
		.max_send_sge = (uint32_t)rng_range(rng, 1, rng_chance(rng, 500000) ? 32 : 4),
		.max_recv_sge = (uint32_t)rng_range(rng, 1, rng_chance(rng, 500000) ? 32 : 4),
		.max_inline_data = (uint32_t)rng_below(rng, 600)};
	end->max_dest_rd_atomic =
		(uint8_t)rng_range(rng, 1, rng_chance(rng, 100000) ? DEVICE_MAX_RD_ATOMIC : 16);
	/*
	 * Use infinite RNR retries if receives may be posted late; otherwise the number has no
	 * effect.
	 */
	end->rnr_retry = 7;
	end->min_rnr_timer = (uint8_t)rng_range(rng, 1, rng_chance(rng, 900000) ? 16 : 31);
	if (rng_chance(rng, 20000))
		end->min_rnr_timer = 0;
	end->retry_cnt = 7;
	if (rng_chance(rng, 120000))
		end->rate_kbps = (uint32_t)rng_range(rng, 100000, 20000000);
}

/* Post receive requests late, and too few. */
static void starve(struct flow *flow)
{
	flow->receive_gap_ns = rng_range(&flow->rng, 1, 1000ull << rng_range(&flow->rng, 0, 10));
	if (flow->to->cap.max_recv_wr > 0)
		flow->to->cap.max_recv_wr = (uint32_t)rng_range(&flow->rng, 1, 3);
	flow->to->min_rnr_timer = (uint8_t)rng_range(&flow->rng, 1, 10);
}

static void make_flow(struct sim *sim, unsigned int number)
{
	struct flow *flow = &sim->flow[number];
	struct end *end = &sim->end[number];

	memset(flow, 0, sizeof(*flow));
	flow->sim = sim;
	flow->number = (int)number;
	flow->from = end;
	flow->to = end->peer;
	flow->rng = rng_fork(sim->seed, 300 + number);
	flow->mishap_at = -1;
	flow->newest = -1;
	flow->failed = -1;
	flow->receive_failed = -1;
	if (rng_chance(&flow->rng, 300000))
		flow->receive_gap_ns = rng_range(&flow->rng, 1, 3000000);
	if (sim->variant.starve)
		starve(flow);
	end->out = flow;
	end->peer->in = flow;
}

/* Choose the types of a pair's queue pairs: the first one's, and the second one's. */
static void make_types(const struct sim *sim, struct end *ends, struct rng *rng)
{
	const uint64_t drawn = rng_below(rng, 100);

	ends[0].type = IBV_QPT_RC;
	if (drawn < 18)
		ends[0].type = IBV_QPT_UC;
	else if (drawn < 33)
		ends[0].type = IBV_QPT_UD;
	else if (drawn < 48 && !sim->abrupt)
		ends[0].type = IBV_QPT_XRC_SEND;
	ends[1].type = ends[0].type == IBV_QPT_XRC_SEND ? IBV_QPT_XRC_RECV : ends[0].type;
	for (unsigned int i = 0; i < 2; i++) {
		if (ends[i].type == IBV_QPT_UD) {
			ends[i].mtu = IBV_MTU_4096;
			ends[i].in_group = rng_chance(rng, 300000);
		}
		/* An XRC_RECV queue pair has no queues of its own. */
		if (ends[i].type == IBV_QPT_XRC_RECV) {
			ends[i].cap = (struct ibv_qp_cap){0};
			ends[i].host->pools[POOL_XRC].in_use = true;
		}
	}
}

/* One direction of a connection may use a window. The other direction, generated after it, binds
 * the window. */
static void make_window(const struct sim *sim, struct flow *flow)
{
	const uint32_t ppm = sim->variant.local ? 1000000 : 400000;

	flow->window.in_use = flow->from->type == IBV_QPT_RC && sim->scenario != SCENARIO_GONE &&
			      !sim->twice && rng_chance(&flow->rng, ppm);
	flow->window.most = sim->variant.local ? EPISODES_MAX : EPISODES_USUAL;
	flow->window.type = rng_chance(&flow->rng, 700000) ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1;
}

/* Choose the pool of the flow's receives, if they are not in its own queue. */
static struct pool *choose_pool(const struct flow *flow)
{
	struct pool *pools = flow->to->host->pools;

	if (flow->to->type == IBV_QPT_XRC_RECV)
		return &pools[POOL_XRC];
	return pools[POOL_SHARED].in_use && flow->to->type != IBV_QPT_XRC_SEND ? &pools[POOL_SHARED]
									       : NULL;
}

static void make_pair(struct sim *sim, unsigned int pair)
{
	const enum ibv_mtu mtu = (enum ibv_mtu)rng_range(&sim->rng, IBV_MTU_256, IBV_MTU_4096);
	const unsigned int first = (unsigned int)rng_below(&sim->rng, sim->hosts);
	unsigned int second = (first + 1) % sim->hosts;
	struct end *ends = &sim->end[2 * pair];

	/* Two queue pairs of one device communicate without the link. */
	if (rng_chance(&sim->rng, 150000))
		second = first;
	for (unsigned int i = 0; i < 2; i++) {
		memset(&ends[i], 0, sizeof(ends[i]));
		ends[i].number = (int)(2 * pair + i);
		ends[i].peer = &ends[1 - i];
		make_end(&ends[i], &sim->host[i == 0 ? first : second], mtu, &sim->rng);
	}
	make_types(sim, ends, &sim->rng);
	for (unsigned int i = 0; i < 2; i++) {
		/* No more READs and atomics than the peer has resources for (IBTA 9.4.4). */
		ends[i].max_rd_atomic =
			(uint8_t)rng_range(&sim->rng, 1, ends[i].peer->max_dest_rd_atomic);
		make_flow(sim, 2 * pair + i);
		sim->flow[2 * pair + i].pool = choose_pool(&sim->flow[2 * pair + i]);
	}
	make_window(sim, &sim->flow[2 * pair]);
	for (unsigned int i = 0; i < 2; i++)
		sim->flow[2 * pair + i].group =
			ends[1 - i].in_group && rng_chance(&sim->rng, 500000);
}

static void make_words(struct sim *sim)
{
	struct host *host = &sim->host[rng_below(&sim->rng, sim->hosts)];

	sim->words = 0;
	/*
	 * The contents of receives are known only if every request's are, and are found slowly if
	 * there are many.
	 */
	if (sim->scenario != SCENARIO_SOUND || sim->abrupt || sim->variant.works > WORKS_SHARED_MAX)
		return;
	sim->word_region =
		memory_add_region(&host->memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC |
							 IBV_ACCESS_REMOTE_READ);
	while (sim->words < SIM_WORDS_MAX) {
		sim->word[sim->words] = (struct word){
			.span = region_take(sim->word_region, 8, 8, &sim->rng),
			.adds = sim->words == 0,
		};
		sim->words++;
	}
}

/* Choose the number of a flow's requests. */
static uint32_t count_works(struct flow *flow, bool large)
{
	const struct variant *variant = &flow->sim->variant;
	uint32_t works = (uint32_t)rng_range(&flow->rng, 1,
					     variant->works != 0 ? variant->works : WORKS_USUAL);

	if (rng_chance(&flow->rng, 150000))
		works = 0;
	if (large)
		works = works < 4 ? 4 : works / 4;
	if (variant->first != 0 && works > variant->first)
		works = variant->first;
	if (flow->from->type == IBV_QPT_XRC_RECV || (variant->idle >> flow->number & 1))
		works = 0;
	return works;
}

/* Generate requests for every flow; sometimes one flow has large messages. */
static void make_works(struct sim *sim)
{
	const uint32_t usual = sim->variant.bytes != 0 ? sim->variant.bytes : BYTES_SMALL;
	const bool any_large = rng_chance(&sim->rng, 40000) && sim->variant.bytes == 0;
	const unsigned int large_flow = (unsigned int)rng_below(&sim->rng, 2 * sim->pairs);

	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		struct flow *flow = &sim->flow[i];
		const bool large = any_large && i == large_flow && flow->pool == NULL &&
				   flow->from->type != IBV_QPT_XRC_RECV;

		flow_make(flow, count_works(flow, large), large ? BYTES_LARGE : usual);
	}
}

/* Choose memory of the victim that its own or its peer's requests use. */
static struct region *choose_lost(const struct end *end, struct rng *rng)
{
	const uint64_t which = rng_below(rng, 2);

	switch (rng_below(rng, 4)) {
	case 0:
		return end->in->target[which];
	case 1:
		return end->in->inbox;
	case 2:
		return end->out->landing;
	default:
		return end->out->source[which].region;
	}
}

static void make_strike(struct sim *sim)
{
	struct end *end = &sim->end[rng_below(&sim->rng, 2 * sim->pairs)];

	sim->victim = end;
	sim->struck_ns = 0;
	if (sim->scenario == SCENARIO_LOST) {
		sim->lost = choose_lost(end, &sim->rng);
		sim->lost->alone = true;
	}
	if (sim->scenario == SCENARIO_KILL || sim->scenario == SCENARIO_GONE ||
	    sim->scenario == SCENARIO_LOST) {
		end->out->loose = true;
		end->in->loose = true;
	} else if (sim->scenario == SCENARIO_CUT) {
		for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
			const struct flow *flow = &sim->flow[i];

			/* Other pairs of the same two hosts are affected, too. */
			sim->flow[i].loose = (flow->from->host == end->host &&
					      flow->to->host == end->peer->host) ||
					     (flow->to->host == end->host &&
					      flow->from->host == end->peer->host);
		}
	}
}

static void make_mishap(struct sim *sim)
{
	/* Not every flow has a request that the mishap fits: try a few. */
	for (int attempt = 0; attempt < 20; attempt++) {
		struct flow *flow = &sim->flow[rng_below(&sim->rng, 2 * sim->pairs)];
		const enum mishap mishap =
			(enum mishap)rng_range(&sim->rng, MISHAP_NONE + 1, MISHAPS - 1);

		if (!mishap_inflict(flow, mishap, &flow->rng))
			continue;
		flow->from->in->loose = true;
		/* A peer that fails does not answer again. A lost NAK stays lost, and so does one
		 * that comes while an earlier answer waits for its page. */
		flow->may_give_up = (!sim->lossless || sim->variant.absent > 0) &&
				    mishap_info(mishap)->peer_fails;
		return;
	}
	sim->scenario = SCENARIO_SOUND;
}

/*
 * Choose a timeout that holds for everything in flight, so that only seven losses in a row could
 * exhaust the retries. That happens to none of billions of programs.
 */
static void make_timeouts(struct sim *sim)
{
	const struct link_attr *attr = &sim->link[0][1].attr;
	uint64_t bytes = 0, packets = 0, poll_ns = 0, patience_ns;

	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		const struct flow *flow = &sim->flow[i];

		for (uint32_t w = 0; w < flow->work_count; w++) {
			bytes += flow->works[w].length;
			packets += 2 + flow->works[w].length / mtu_bytes(flow->from->mtu);
		}
	}
	for (unsigned int i = 0; i < sim->hosts; i++)
		poll_ns += 2 * sim->host[i].pace.poll_ns + sim->host[i].pace.packet_ns;
	sim->est_ns = 2 * (attr->latency_ns + attr->jitter_ns + attr->reorder_ns) +
		      bytes * 8000 / attr->mbps + 2 * packets * poll_ns + 100000;
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		if (sim->end[i].rate_kbps != 0)
			sim->est_ns += (bytes + packets * PACKET_HDR_MAX) * 8000000 /
				       sim->end[i].rate_kbps;
	}
	/* If nothing is lost, all retries together may take so long. */
	patience_ns = sim->tight ? sim->est_ns / 4 : 2 * sim->est_ns;
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		struct end *end = &sim->end[i];

		end->timeout = 1;
		while ((4096ull << end->timeout) < patience_ns)
			end->timeout++;
		if (!sim->tight)
			end->timeout += (uint8_t)rng_below(&sim->rng, 3);
		/* Use no timer, on links without losses. A request that waits for a page may be
		 * dropped and retransmitted, as if it were lost. */
		if (sim->lossless && !sim->tight && sim->scenario == SCENARIO_SOUND &&
		    rng_chance(&sim->rng, 100000) && sim->variant.absent == 0)
			end->timeout = 0;
	}
	for (unsigned int i = 0; i < SIM_HOSTS_MAX * SIM_HOSTS_MAX; i++) {
		struct link_attr *each = &sim->link[i / SIM_HOSTS_MAX][i % SIM_HOSTS_MAX].attr;

		each->burst_ns = sim->est_ns;
		each->ghost_ns = 20 * sim->est_ns;
	}
}

/* Set what is promised for unreliable flows nevertheless. */
static void make_promises(struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		struct flow *flow = &sim->flow[i];
		const struct link_attr *attr =
			&sim->link[flow->from->host->number][flow->to->host->number].attr;

		if (flow_reliable(flow))
			continue;
		flow->ordered =
			attr->duplicate_ppm == 0 && attr->ghost_ppm == 0 && attr->reorder_ppm == 0;
		flow->exact = flow->ordered && attr->loss_ppm == 0 && attr->corrupt_ppm == 0 &&
			      attr->burst_ppm == 0 && flow->pool == NULL && !flow->loose &&
			      !flow->to->in_group && flow->mishap_at < 0 && !sim->abrupt &&
			      sim->variant.absent == 0;
		if (!flow->exact)
			continue;
		/* Each message finds its receive request posted. */
		flow->receive_gap_ns = 0;
		flow->to->cap.max_recv_wr = flow->receive_count + 1;
	}
}

void program_make(struct sim *sim)
{
	make_scenario(sim);
	make_hosts(sim);
	make_links(sim);
	sim->pairs = (unsigned int)rng_range(&sim->rng, 1,
					     rng_chance(&sim->rng, 300000) ? SIM_PAIRS_MAX : 2);
	for (unsigned int i = 0; i < sim->pairs; i++)
		make_pair(sim, i);
	make_words(sim);
	make_works(sim);
	for (unsigned int i = 0; i < POOLS * sim->hosts; i++) {
		struct pool *pool = &sim->host[i / POOLS].pools[i % POOLS];

		if (pool->in_use)
			pool_make(pool);
	}
	make_strike(sim);
	if (sim->scenario == SCENARIO_MISHAP)
		make_mishap(sim);
	make_promises(sim);
	make_timeouts(sim);
	for (unsigned int i = 0; i < sim->hosts; i++)
		memory_lay_out(&sim->host[i].memory, (int)i, &sim->host[i].rng);
}

void program_free(struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		struct flow *flow = &sim->flow[i];

		for (uint32_t w = 0; w < flow->work_count; w++) {
			free(flow->works[w].bytes);
			free(flow->works[w].old);
		}
		free(flow->works);
		free(flow->receives);
		free(flow->spans);
		free(flow->roots);
	}
	for (unsigned int i = 0; i < POOLS * sim->hosts; i++)
		pool_free(&sim->host[i / POOLS].pools[i % POOLS]);
	clock_fini(&sim->clock);
}
