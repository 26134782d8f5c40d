/* SPDX-License-Identifier: BSD-3-Clause */
/* Extended completion queues: an iterator over completions, whose fields are read by function
 * calls. */
#include <time.h>

#include <rte_cycles.h>

#include "queue/cq.h"

#include "check.h"
#include "unfold.h"
#include "verbs_internal.h"

#define TIME_FLAGS \
	(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

#define TELL_AFTER 32 /* completions of one iteration */

static struct face_cq *of_ex(struct ibv_cq_ex *ex)
{
	return (struct face_cq *)ex;
}

static int take_next(struct face_cq *cq)
{
	if (!cq_poll_stamped(cq->cq, &cq->wc, &cq->stamp_ns)) {
		/* A thread that finds nothing has time to run the engine. */
		device_engine_poll(face_home(cq));
		if (!cq_poll_stamped(cq->cq, &cq->wc, &cq->stamp_ns))
			return ENOENT;
	}
	cq->ex.wr_id = cq->wc.wr_id;
	cq->ex.status = cq->wc.status;
	cq->untold++;
	return 0;
}

/*
 * Report polling to the engine, as ibv_poll_cq does. Otherwise the helper thread would take the
 * engine from a program that always finds completions, and no engine poll would be run in between.
 */
static void tell_engine(const struct face_cq *cq, int taken)
{
	if (likely(taken > 0))
		device_engine_polled(face_home(cq), taken);
}

static int take_untold(struct face_cq *cq)
{
	const int taken = cq->untold;

	cq->untold = 0;
	return taken;
}

static void iterator_unlock(struct face_cq *cq)
{
	if (!cq->single_threaded)
		pthread_mutex_unlock(&cq->iterator_lock);
}

/* Read the wall clock once for each batch, because it can be set, and the engine's clock cannot. */
static void read_wallclock(struct face_cq *cq)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	cq->wallclock_offset_ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec -
				  device_engine_now(face_home(cq));
}

/* Begin a batch. On success the calling thread holds the iterator until end_poll. */
static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct face_cq *cq = of_ex(ex);
	int rc;

	if (attr && attr->comp_mask != 0)
		return face_errno(-EINVAL);
	if (!cq->single_threaded)
		pthread_mutex_lock(&cq->iterator_lock);
	rc = take_next(cq);
	if (rc != 0)
		iterator_unlock(cq);
	else if (cq->wants_wallclock)
		read_wallclock(cq);
	return rc;
}

/* Take the next completion of a batch. The batch ends where the queue is empty: completions that
 * arrive later are for the next start_poll. A long batch reports to the engine from time to
 * time. */
static int next_poll(struct ibv_cq_ex *ex)
{
	struct face_cq *cq = of_ex(ex);

	if (unlikely(cq->untold >= TELL_AFTER))
		tell_engine(cq, take_untold(cq));
	return cq_empty(cq->cq) ? ENOENT : take_next(cq);
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct face_cq *cq = of_ex(ex);
	const int taken = take_untold(cq);

	iterator_unlock(cq);
	tell_engine(cq, taken);
}

/* The functions of a child process (fork.c): the completions are its parent's. */

static int child_start_poll(struct ibv_cq_ex *ex __rte_unused,
			    struct ibv_poll_cq_attr *attr __rte_unused)
{
	return face_errno(-ENODEV);
}

static int child_next_poll(struct ibv_cq_ex *ex __rte_unused)
{
	return face_errno(-ENODEV);
}

static void child_end_poll(struct ibv_cq_ex *ex __rte_unused)
{
}

void cq_ex_disable(struct face_cq *cq)
{
	cq->ex.start_poll = child_start_poll;
	cq->ex.next_poll = child_next_poll;
	cq->ex.end_poll = child_end_poll;
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->wc.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->wc.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->wc.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->wc.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->wc.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->wc.src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->wc.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->wc.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->wc.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->wc.dlid_path_bits;
}

static uint64_t read_time(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->stamp_ns;
}

static uint64_t read_wallclock_ns(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->stamp_ns + of_ex(ex)->wallclock_offset_ns;
}

/*
 * Fields that no queue can have, because create_cq_ex_op refuses them. A program that reads one
 * nevertheless gets 0.
 */

static uint16_t read_no_cvlan(struct ibv_cq_ex *ex __rte_unused)
{
	return 0;
}

static uint32_t read_no_flow_tag(struct ibv_cq_ex *ex __rte_unused)
{
	return 0;
}

static void read_no_tm_info(struct ibv_cq_ex *ex __rte_unused, struct ibv_wc_tm_info *tm_info)
{
	*tm_info = (struct ibv_wc_tm_info){0};
}

static void fill_iterator(struct ibv_cq_ex *ex)
{
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_wc_flags = read_wc_flags;
	ex->read_slid = read_slid;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_dlid_path_bits;
	ex->read_completion_ts = read_time;
	ex->read_completion_wallclock_ns = read_wallclock_ns;
	ex->read_cvlan = read_no_cvlan;
	ex->read_flow_tag = read_no_flow_tag;
	ex->read_tm_info = read_no_tm_info;
}

/* Return the flags for times that a queue may have: the device of --like may have no clock. */
static uint64_t time_flags(struct ibv_context *ibv)
{
	struct ibv_device_attr_ex limits = {0};

	device_query(face_context(ibv)->device, &limits);
	return limits.completion_timestamp_mask != 0 ? TIME_FLAGS : 0;
}

/* Return -EOPNOTSUPP for what verbs define and we do not support, -EINVAL for what is not
 * defined. */
static int check_attr_ex(struct ibv_context *ibv, const struct ibv_cq_init_attr_ex *attr)
{
	const uint32_t known_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
	const uint32_t known_flags =
		IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;

	if (attr->comp_mask & ~known_mask)
		return -EINVAL;
	if (attr->wc_flags & ~(uint64_t)(IBV_WC_STANDARD_FLAGS | time_flags(ibv)))
		return -EOPNOTSUPP;
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) &&
	    (!attr->parent_domain || attr->parent_domain->context != ibv ||
	     !face_pd(attr->parent_domain)->parent))
		return -EINVAL;
	if (!(attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS))
		return 0;
	return attr->flags & ~known_flags ? -EINVAL : 0;
}

/* List the queue for fork.c. */
static void list_ex(struct face_cq *cq)
{
	struct face_context *context = face_context(cq->ibv.context);

	cq->is_ex = true;
	pthread_mutex_lock(&context->face->lock);
	LIST_INSERT_HEAD(&context->ex_cqs, cq, ex_link);
	pthread_mutex_unlock(&context->face->lock);
}

struct ibv_cq_ex *create_cq_ex_op(struct ibv_context *ibv, struct ibv_cq_init_attr_ex *attr)
{
	struct face_cq *cq;
	struct cq_wants wants = {.stamps = attr->wc_flags & TIME_FLAGS};
	int rc = check_attr_ex(ibv, attr);

	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD)
		wants.pd = attr->parent_domain;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS)
		wants.single_threaded = attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	if (rc == 0)
		rc = cq_open(face_context(ibv), attr->cqe, attr->cq_context, attr->channel,
			     attr->comp_vector, &wants, &cq);
	if (rc != 0)
		return face_null(rc);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS)
		cq->cq->ignores_overrun = attr->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	cq->wants_wallclock = attr->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	fill_iterator(&cq->ex);
	unfold_cq_ex(&cq->ex);
	check_cq_ex(&cq->ex);
	list_ex(cq);
	return &cq->ex;
}
