/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws what the specification leaves open, by the seed of --unfold (queue/unfold.h), and puts its
 * functions into the tables of calls. */
#include "unfold.h"

#include <pthread.h>
#include <time.h>

#include "base/log.h"
#include "base/mix.h"
#include "base/thread.h"
#include "qp/qp.h"
#include "queue/moderator.h"
#include "queue/unfold.h"
#include "verbs_internal.h"

#define LATE_POLLS_MAX	64	/* polls that do not find a completion yet */
#define MODERATE_MAX	8	/* completions of one event */
#define MODERATE_MAX_NS 1000000 /* how late an event may be */
#define RNR_SHORT	14	/* codes from 1 on: at most 1.28 ms */
#define TICK_MIN_NS	20000	/* how long a receive request may not be there yet */
#define TICK_MAX_NS	300000

/* What is drawn for: a queue's own number, and one of these. */
enum {
	DRAW_POLL = 1,
	DRAW_IDLE,
	DRAW_NEXT,
	DRAW_ARM,
	DRAW_EVENT,
	DRAW_RECEIVE,
	DRAW_TICK,
};

/* The operations without choices. */
static int (*plain_start_poll)(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr);
static int (*plain_next_poll)(struct ibv_cq_ex *ex);

/* While receive requests are hidden, they are posted with the engine stopped. */
static pthread_mutex_t receives = PTHREAD_MUTEX_INITIALIZER;

bool unfold_wanted;
static uint64_t seed;

/* Return the nth number of an object of the program. */
static uint64_t number(uint64_t object, uint64_t n)
{
	return mix_stream(mix(seed + (object << 32)), n);
}

static uint64_t draw(const struct face_cq *cq, uint32_t what, uint32_t *n)
{
	return number((uint64_t)cq->cq->number << 8 | what,
		      __atomic_fetch_add(n, 1, __ATOMIC_RELAXED));
}

/* Return how many of `n` completions a poll may find now, and choose their order. -1: the poll is
 * over before the queue's engine ran. */
static int find(struct face_cq *cq, int n)
{
	const uint32_t late = __atomic_load_n(&cq->unfold.late, __ATOMIC_RELAXED);
	const uint32_t armed = (uint32_t)__atomic_load_n(&cq->cq->armed, __ATOMIC_RELAXED);
	uint64_t r;

	if (cq_empty(cq->cq))
		return draw(cq, DRAW_IDLE, &cq->unfold.idle) % 4 == 0 ? -1 : n;
	/* A completion without solicitation would raise an event that was not asked for. */
	if (n <= 0 || armed == CQ_ARMED_SOLICITED)
		return n;
	if (late > 0) {
		__atomic_store_n(&cq->unfold.late, late - 1, __ATOMIC_RELAXED);
		unfold_leave(cq->cq);
		return -1;
	}
	r = draw(cq, DRAW_POLL, &cq->unfold.polls);
	unfold_order(cq->cq, r);
	if (r % 8 > 3)
		return n;
	unfold_leave(cq->cq);
	if (r % 8 > 0)
		return 1 + (int)((r >> 16) % (uint32_t)n);
	__atomic_store_n(&cq->unfold.late, (uint32_t)(r >> 8) % LATE_POLLS_MAX, __ATOMIC_RELAXED);
	return -1;
}

static int poll_cq(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
	const int found = find(face_cq(ibv), n);

	return found < 0 && n > 0 ? 0 : poll_cq_op(ibv, found < 0 ? n : found, wc);
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	const bool valid = !attr || attr->comp_mask == 0;

	return valid && find(face_cq(ibv_cq_ex_to_cq(ex)), 1) < 0 ? ENOENT
								  : plain_start_poll(ex, attr);
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct face_cq *cq = face_cq(ibv_cq_ex_to_cq(ex));

	if (cq_empty(cq->cq) || draw(cq, DRAW_NEXT, &cq->unfold.polls) % 4 > 0)
		return plain_next_poll(ex);
	unfold_leave(cq->cq);
	return ENOENT;
}

static int req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	struct face_cq *cq = face_cq(ibv);
	const int rc = req_notify_cq_op(ibv, solicited_only);

	if (rc == 0 && !solicited_only && cq_empty(cq->cq) &&
	    draw(cq, DRAW_ARM, &cq->unfold.arms) % 8 == 0)
		unfold_wake(cq->cq);
	return rc;
}

static int post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	const struct face_qp *qp = face_qp(ibv);
	int rc;

	pthread_mutex_lock(&receives);
	if (qp_hides_receives(qp->qp)) {
		device_lock(qp->device);
		qp_show_receives(qp->qp, true);
		rc = face_errno(-qp_post_recv(qp->qp, wr, bad));
		qp_show_receives(qp->qp, false);
		device_unlock(qp->device);
	} else {
		rc = post_recv_op(ibv, wr, bad);
	}
	pthread_mutex_unlock(&receives);
	return rc;
}

/* Hide the receive requests of some queue pairs until the next tick. Under the device's lock. */
static void change_receives(struct qp *qp, void *arg)
{
	const uint64_t tick = *(const uint64_t *)arg;
	const bool hidden = qp_hides_receives(qp);
	/* A peer that waits for long is told rarely; 0 is the longest time (655 ms), and what
	 * rdma_cm chooses. */
	const uint64_t rare = qp_min_rnr_timer(qp) - 1u < RNR_SHORT ? 4 : 256;
	const bool hide = qp_type(qp) == IBV_QPT_RC && qp_state(qp) >= IBV_QPS_RTR &&
			  qp_state(qp) <= IBV_QPS_RTS &&
			  number((uint64_t)qp_number(qp) << 8 | DRAW_RECEIVE, tick) % rare == 0;

	qp_show_receives(qp, !hide);
	if (hidden && !hide)
		device_engine_settle(qp_home(qp), qp);
}

static void visit(struct face_device *face, void *arg)
{
	pthread_mutex_lock(&receives);
	device_lock(face->device);
	device_each_qp(face->device, change_receives, arg);
	device_unlock(face->device);
	pthread_mutex_unlock(&receives);
}

static void *change_all_receives(void *arg)
{
	pthread_setname_np(pthread_self(), "uroce-unfold");
	for (uint64_t tick = 0;; tick++) {
		const uint64_t r = number(DRAW_TICK, tick);
		const struct timespec wait = {
			.tv_nsec = (long)(TICK_MIN_NS + r % (TICK_MAX_NS - TICK_MIN_NS))};

		nanosleep(&wait, NULL);
		device_list_visit(visit, &tick);
	}
	return arg;
}

/* The setting was checked when the device was opened (config/settings.h). */
static void read_seed(void)
{
	const char *text = secure_getenv("UROCE_UNFOLD");

	unfold_wanted = text != NULL;
	seed = text ? strtoull(text, NULL, 10) : 0;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool started; /* of this process */

void unfold_operations(struct verbs_context *verbs)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_seed);
	if (likely(!unfold_wanted))
		return;
	pthread_mutex_lock(&lock);
	if (!started && thread_start(change_all_receives, NULL, 0) != 0)
		log_error("unfold: there is no thread for receive requests");
	started = true;
	pthread_mutex_unlock(&lock);
	verbs->context.ops.poll_cq = poll_cq;
	verbs->context.ops.req_notify_cq = req_notify_cq;
	verbs->context.ops.post_recv = post_recv;
}

void unfold_cq_ex(struct ibv_cq_ex *ex)
{
	if (likely(!unfold_wanted))
		return;
	plain_start_poll = ex->start_poll;
	plain_next_poll = ex->next_poll;
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
}

void unfold_cq_created(struct face_cq *cq)
{
	const uint64_t r = draw(cq, DRAW_EVENT, &cq->unfold.arms);

	if (!cq->cq->channel || context_lock(face_context(cq->ibv.context)) != 0)
		return;
	cq->cq->now_ns = cq->home->now_ns;
	moderator_set(cq->cq, &cq->home->moderator, 1 + (uint32_t)(r % MODERATE_MAX),
		      (r >> 8) % MODERATE_MAX_NS);
	context_unlock(face_context(cq->ibv.context));
}

void unfold_forget(void)
{
	if (likely(!unfold_wanted))
		return;
	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&receives, NULL);
	started = false;
}
