/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs age, by READs that are not played. */
#include "age.h"

#include <rte_common.h>

#include "sim_inside.h"
#include "mem/mr.h"
#include "qp/qp.h"
#include "queue/srq.h"
#include "sim.h"

/* The last READs are segments of our requester, because the responder remembers them. */
#define SEGMENT_PKTS  64
#define SEGMENTS      20
#define WINDOW_NARROW 8 /* packets; a loss does not narrow such a window */
/* A step of 2^23 PSNs or more would read as a step backwards. */
#define STEP_PKTS (1u << 22)

static bool may_age(const struct end *from)
{
	return (from->type == IBV_QPT_RC || from->type == IBV_QPT_XRC_SEND) &&
	       qp_state(from->qp) == IBV_QPS_RTS && qp_state(from->peer->qp) == IBV_QPS_RTS &&
	       inside_is_readable(from->peer->qp);
}

bool age_is_connected(const struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		if (sim->end[i].unconnected)
			return false;
	}
	return true;
}

bool age_is_quiet(const struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		const struct end *end = &sim->end[i];

		if (end->paused || (qp_state(end->qp) == IBV_QPS_RTS && !inside_is_done(end->qp)))
			return false;
	}
	return true;
}

/* Register all of memory, for READs of any length. They are never answered: nothing is read. */
static struct mr *open_memory(const struct host *host)
{
	struct mr *mr;

	sim_check(host->sim,
		  mr_register(host->pd, NULL, SIZE_MAX, 0,
			      IBV_ACCESS_ON_DEMAND | IBV_ACCESS_REMOTE_READ, &mr) == 0,
		  "mr_register of all memory");
	return mr;
}

/* Return the next step of the PSNs that are left: long steps first. */
static uint32_t step(uint32_t left, uint32_t longest)
{
	const uint32_t last = SEGMENTS * SEGMENT_PKTS;

	return left > last ? RTE_MIN(left - last, longest) : RTE_MIN(left, SEGMENT_PKTS);
}

static void age_end(struct end *from, uint32_t psns)
{
	struct host *host = from->host, *peer_host = from->peer->host;
	struct mr *mr = open_memory(peer_host);
	const uint32_t srqn =
		from->type == IBV_QPT_XRC_SEND ? peer_host->pools[POOL_XRC].srq->number : 0;
	uint32_t left, n;

	sim_check(host->sim, psn_eq(inside_top(from->qp), inside_expected(from->peer->qp)),
		  "qp %06x: nothing is in flight, the next PSN is %06x, and %06x is expected",
		  from->qpn, inside_top(from->qp).v, inside_expected(from->peer->qp).v);
	for (left = psns; left > 0; left -= n) {
		n = step(left, inside_longest_read(from->peer->qp));
		sim_check(host->sim, inside_age_responder(from->peer->qp, n, mr->key, srqn),
			  "qp %06x: a READ of %u PSNs is not taken", from->peer->qpn, n);
	}
	for (left = psns; left > 0; left -= n) {
		n = inside_window_is_whole(from->qp) ? step(left, STEP_PKTS)
						     : RTE_MIN(left, SEGMENT_PKTS);
		inside_age_requester(from->qp, n, host->clock->now_ns);
	}
	mr_deregister(mr);
	if (host->sim->verbose)
		printf("%12llu host %d: qp %06x is older by %u PSNs, at %06x\n",
		       (unsigned long long)host->clock->now_ns, host->number, from->qpn, psns,
		       inside_top(from->qp).v);
	if (inside_window_is_whole(from->qp))
		from->aged_window = inside_window(from->qp);
	engine_kick(from->peer);
}

void age_check(struct end *end)
{
	/* The window begins anew when the peer turns out to be SACK-capable. */
	if (inside_reports_gaps(end->qp))
		end->aged_window = 0;
	if (end->aged_window == 0 || !inside_retransmits(end->qp))
		return;
	sim_check(end->host->sim,
		  end->aged_window <= WINDOW_NARROW || inside_window(end->qp) < end->aged_window,
		  "qp %06x: a loss has not narrowed its window of %u", end->qpn, end->aged_window);
	end->aged_window = 0;
}

void age_pairs(struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->pairs && sim->variant.age != 0; i++) {
		if (rng_chance(&sim->age_rng, 500000) && may_age(&sim->end[i]))
			age_end(&sim->end[i], sim->variant.age);
	}
}
