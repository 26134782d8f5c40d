/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: generates their episodes, and posts the requests that bind and close them. */
#include "window.h"

#include "mem/mw.h"
#include "sim.h"

#define WINDOW_ACCESS                                                                  \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
	 LATER_ACCESS_FLUSH_GLOBAL)

/* Bind and local invalidate are requests of the owner, in the flow of the opposite direction. */
static struct flow *user_of(const struct flow *flow, const struct work *work)
{
	return work_is_local(work) ? flow->from->in : (struct flow *)(uintptr_t)flow;
}

static struct episode *episode_of(const struct flow *flow, const struct work *work)
{
	return &user_of(flow, work)->window.episodes[work->episode];
}

static bool inside(const struct episode *episode, const struct span *remote)
{
	return remote->region == episode->span.region &&
	       (episode->whole ||
		(remote->offset >= episode->span.offset &&
		 remote->offset - episode->span.offset + remote->len <= episode->span.len));
}

static bool open_episode(struct flow *flow, const struct work *work)
{
	struct window *window = &flow->window;
	struct rng *rng = &flow->rng;
	struct episode *episode = &window->episodes[window->count];

	if (window->count == window->most || work->length == 0)
		return false;
	*episode = (struct episode){.span = work->remote,
				    .whole = rng_chance(rng, 600000),
				    .opens = -1,
				    .last_use = -1};
	/* Operands of atomics are aligned in the region. With zero-based addresses of a part of it,
	 * they are aligned only if the part's offset is. */
	episode->zero_based =
		rng_chance(rng, 300000) && (episode->whole || work->remote.offset % 8 == 0);
	window->count++;
	window->open = true;
	return true;
}

void window_use(struct flow *flow, struct work *work)
{
	struct window *window = &flow->window;
	struct rng *rng = &flow->rng;

	if (!window->in_use || work->remote.region == NULL || work->word != NULL)
		return;
	/* The owner may close the window when all requests that used it are complete. Do so only if
	 * no request can fail, because the peer may still execute a failed one. */
	if (window->open && flow->sim->scenario == SCENARIO_SOUND && rng_chance(rng, 100000)) {
		window->episodes[window->count - 1].closing = CLOSED_BY_OWNER;
		window->open = false;
	}
	if (!window->open && (!rng_chance(rng, 300000) || !open_episode(flow, work)))
		return;
	if (!inside(&window->episodes[window->count - 1], &work->remote) || rng_chance(rng, 200000))
		return;
	work->episode = (int32_t)window->count - 1;
	window->episodes[work->episode].last_use = (int32_t)(work - flow->works);
}

bool window_close(struct flow *flow, struct work *work)
{
	struct window *window = &flow->window;
	struct episode *episode;

	if (!window->in_use || !window->open || window->type != IBV_MW_TYPE_2 ||
	    !rng_chance(&flow->rng, 300000))
		return false;
	episode = &window->episodes[window->count - 1];
	window->open = false;
	episode->closing = CLOSED_BY_SEND;
	episode->last_use = (int32_t)(work - flow->works);
	work->opcode = IBV_WR_SEND_WITH_INV;
	work->episode = (int32_t)window->count - 1;
	return true;
}

bool window_plan(struct flow *user, struct work *work, int32_t index)
{
	struct window *window = &user->window;
	const unsigned int at = window->planned / 2;
	struct episode *episode = &window->episodes[at];

	if (!window->in_use || at == window->count)
		return false;
	*work = (struct work){.root = -1, .receive = -1, .episode = (int32_t)at};
	if (window->planned++ % 2 == 0) {
		work->opcode = IBV_WR_BIND_MW;
		episode->opens = index;
		return true;
	}
	/* A window of type 1 is closed by a binding of length 0, or by the next binding. */
	work->opcode = window->type == IBV_MW_TYPE_2 ? IBV_WR_LOCAL_INV : IBV_WR_BIND_MW;
	work->whole = true;
	return episode->closing == CLOSED_BY_OWNER || window_plan(user, work, index);
}

void window_start(struct flow *flow)
{
	struct window *window = &flow->window;

	if (!window->in_use)
		return;
	sim_check(flow->sim, mw_create(flow->to->host->pd, window->type, &window->mw) == 0,
		  "mw_create");
	window->ibv = (struct ibv_mw){.rkey = window->mw->view.key, .type = window->type};
}

void window_stop(struct flow *flow)
{
	if (flow->window.in_use)
		mw_destroy(flow->window.mw);
}

/* Return true if a request that others wait for is complete, with success or an error. */
static bool is_done(const struct flow *flow, int32_t index)
{
	return index < 0 || flow->closed > (uint32_t)index;
}

bool window_lets(const struct flow *flow, const struct work *work)
{
	const struct flow *user;
	const struct episode *episode;

	if (work->episode < 0)
		return true;
	user = user_of(flow, work);
	episode = episode_of(flow, work);
	if (!work_is_local(work))
		return is_done(flow->from->in, episode->opens);
	/*
	 * The request that closes a window waits for all that use it; the next binding waits for
	 * the request that closed it.
	 */
	if (work->whole)
		return is_done(user, episode->last_use);
	return work->episode == 0 || is_done(user, episode[-1].last_use);
}

void window_aim(const struct flow *flow, const struct work *work, uint64_t *addr, uint32_t *key)
{
	const struct episode *episode = episode_of(flow, work);

	*key = episode->rkey;
	if (episode->zero_based)
		*addr = work->remote.offset - (episode->whole ? 0 : episode->span.offset);
}

static void bind(struct episode *episode, struct ibv_send_wr *wr)
{
	const struct region *region = episode->span.region;
	struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;

	episode->rkey = wr->bind_mw.rkey;
	episode->mr.lkey = region->key;
	info->mr = &episode->mr;
	info->addr = region->iova + (episode->whole ? 0 : episode->span.offset);
	info->length = episode->whole ? region->size : episode->span.len;
	info->mw_access_flags = WINDOW_ACCESS;
	if (episode->zero_based)
		info->mw_access_flags |= IBV_ACCESS_ZERO_BASED;
}

void window_fill(struct flow *flow, const struct work *work, struct ibv_send_wr *wr)
{
	struct window *window = &user_of(flow, work)->window;
	struct episode *episode = episode_of(flow, work);

	if (work->opcode != IBV_WR_BIND_MW) {
		wr->invalidate_rkey = episode->rkey;
		return;
	}
	wr->bind_mw.mw = &window->ibv;
	wr->bind_mw.rkey = ibv_inc_rkey(window->ibv.rkey);
	window->ibv.rkey = wr->bind_mw.rkey;
	if (!work->whole)
		bind(episode, wr);
	if (work->mishap == MISHAP_BIND)
		episode->mr.lkey ^= 1u << rng_below(&flow->rng, 32);
}

uint32_t window_invalidates(const struct flow *flow, const struct work *work)
{
	return episode_of(flow, work)->rkey;
}
