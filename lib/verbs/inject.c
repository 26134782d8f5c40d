/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the faults of rules happen: in calls, in work requests, and as events. */
#include "inject.h"

#include <pthread.h>
#include <time.h>

#include <rte_common.h>

#include "base/log.h"
#include "base/thread.h"
#include "device/limits.h"
#include "qp/qp.h"
#include "queue/sq_build.h"
#include "verbs_internal.h"

#define EVENTS_LOOK_NS 20000000 /* how late an event may be that a program asks for */
#define BAD_KEY	       0	/* no region has this key */

/* The operations without rules. They are the same in every context. */
static struct verbs_context plain;

intptr_t inject_failure(enum inject_call call, int error)
{
	errno = error;
	switch (inject_way(call)) {
	case INJECT_ERRNO:
		return error;
	case INJECT_MINUS_1:
		return -1;
	case INJECT_NEGATIVE:
		return -error;
	case INJECT_REREG:
		return IBV_REREG_MR_ERR_INPUT;
	case INJECT_NULL:
	case INJECT_NEVER:
		break;
	}
	return 0;
}

#define OPERATION(type, table, member, parameters, arguments)                     \
	static type operation_##member parameters                                 \
	{                                                                         \
		const int error = inject_into_call(INJECT_##member);              \
                                                                                  \
		return unlikely(error != 0) ? INJECT_FAILURE(type, member, error) \
					    : plain.table member arguments;       \
	}
#include "inject/operations.def"
#undef OPERATION

static enum inject_op op_of(uint8_t opcode)
{
	switch (opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		return INJECT_SEND;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_ATOMIC_WRITE:
		return INJECT_WRITE;
	case IBV_WR_RDMA_READ:
		return INJECT_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return INJECT_ATOMIC;
	default:
		return 0;
	}
}

/* Post one request of a list, as a rule says. The program may free the request as soon as it is
 * complete, so its list is not changed. */
static int post_one_send(struct ibv_qp *ibv, const struct ibv_send_wr *wr)
{
	const struct face_qp *qp = face_qp(ibv);
	struct ibv_send_wr one = *wr, *ignored;
	const enum ibv_wc_status status =
		inject_into_work(op_of((uint8_t)wr->opcode), ibv->qp_num, wr->wr_id);
	int rc;

	one.next = NULL;
	if (status == IBV_WC_SUCCESS)
		return plain.context.ops.post_send(ibv, &one, &ignored);
	rc = qp_post_failure(qp->qp, wr, status);
	if (rc == 0)
		device_engine_kick(qp->home, qp->qp);
	return face_errno(-rc);
}

static int operation_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_send_wr *next;
	int rc = inject_into_call(INJECT_post_send);

	*bad = wr;
	if (rc != 0)
		return INJECT_FAILURE(int, post_send, rc);
	if (!inject_has_work_rules())
		return plain.context.ops.post_send(qp, wr, bad);
	for (; wr && rc == 0; wr = next) {
		next = wr->next;
		*bad = wr;
		rc = post_one_send(qp, wr);
	}
	return rc;
}

void inject_built(struct ibv_qp_ex *ex)
{
	const struct face_qp *qp = face_qp(&ex->qp_base);
	struct send_wqe *wqe;

	for (uint32_t i = 0; (wqe = sq_build_at(qp->build_sq, i)) != NULL; i++) {
		const enum ibv_wc_status status =
			inject_into_work(op_of(wqe->opcode), ex->qp_base.qp_num, wqe->wr_id);

		if (status != IBV_WC_SUCCESS)
			qp_fail_built(wqe, status);
	}
}

/* Give a receive request a key that no region has, so that it fails when a message comes. */
static void spoil(struct ibv_recv_wr *wr, struct ibv_sge *sge)
{
	for (int i = 0; i < wr->num_sge; i++) {
		sge[i] = wr->sg_list[i];
		sge[i].lkey = BAD_KEY;
	}
	wr->sg_list = sge;
}

/* Return true if a receive request has a list that can be spoiled. */
static bool has_list(const struct ibv_recv_wr *wr)
{
	return wr->sg_list && wr->num_sge > 0 && wr->num_sge <= DEVICE_MAX_SGE;
}

/* Post a list of receive requests one by one, each as a rule says. */
static int post_receives(uint32_t qpn, void *queue,
			 int (*post)(void *queue, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad),
			 struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct ibv_sge sge[DEVICE_MAX_SGE];
	struct ibv_recv_wr *next, *ignored;
	int rc = 0;

	if (!inject_has_work_rules())
		return post(queue, wr, bad);
	for (; wr && rc == 0; wr = next) {
		struct ibv_recv_wr one = *wr;

		next = wr->next;
		one.next = NULL;
		if (has_list(wr) && inject_into_work(INJECT_RECV, qpn, wr->wr_id) != IBV_WC_SUCCESS)
			spoil(&one, sge);
		*bad = wr;
		rc = post(queue, &one, &ignored);
	}
	return rc;
}

static int post_one_recv(void *queue, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return plain.context.ops.post_recv(queue, wr, bad);
}

static int operation_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	const int error = inject_into_call(INJECT_post_recv);

	*bad = wr;
	return error != 0 ? INJECT_FAILURE(int, post_recv, error)
			  : post_receives(qp->qp_num, qp, post_one_recv, wr, bad);
}

static int post_one_srq_recv(void *queue, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return plain.context.ops.post_srq_recv(queue, wr, bad);
}

static int operation_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
				   struct ibv_recv_wr **bad)
{
	const int error = inject_into_call(INJECT_post_srq_recv);

	*bad = wr;
	return error != 0 ? INJECT_FAILURE(int, post_srq_recv, error)
			  : post_receives(0, srq, post_one_srq_recv, wr, bad);
}

/* An event of a rule, and whether somebody has got it. */
struct raising {
	const struct inject_rule *rule;
	bool reached;
};

/* Let a queue pair fail that the rule is for. Under the device's lock. */
static void break_qp(struct qp *qp, void *arg)
{
	struct raising *raising = arg;
	const struct inject_rule *rule = raising->rule;

	if (!qp || (rule->qpn != 0 && rule->qpn != qp_number(qp)) || !qp_break(qp, rule->event))
		return;
	raising->reached = true;
	device_engine_settle(qp_home(qp), qp);
}

static bool has_context(struct face_device *face)
{
	bool has;

	pthread_mutex_lock(&face->lock);
	has = !TAILQ_EMPTY(&face->contexts);
	pthread_mutex_unlock(&face->lock);
	return has;
}

static void raise_event(struct face_device *face, void *arg)
{
	struct raising *raising = arg;

	if (inject_is_of_qp(raising->rule->event)) {
		device_lock(face->device);
		device_each_qp(face->device, break_qp, raising);
		device_unlock(face->device);
	} else if (has_context(face)) {
		event_raise_device(face, raising->rule->event);
		raising->reached = true;
	}
}

/* Raise the events of rules when they are due. It also looks for rules that the program adds, and
 * for contexts and queue pairs of an event that nobody could get yet. */
static void *raise_events(void *arg)
{
	pthread_setname_np(pthread_self(), "uroce-inject");
	while (true) {
		uint64_t wait_ns;
		struct raising raising = {.rule = inject_take_event(&wait_ns)};
		const struct timespec wait = {
			.tv_nsec = (long)RTE_MIN(wait_ns, (uint64_t)EVENTS_LOOK_NS)};

		if (raising.rule) {
			device_list_visit(raise_event, &raising);
			if (raising.reached) {
				log_error("injected: an event (%s)", raising.rule->text);
				continue;
			}
			inject_return_event(raising.rule);
		}
		nanosleep(&wait, NULL);
	}
	return arg;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool started; /* of this process */

void inject_operations(struct verbs_context *verbs)
{
	if (likely(!inject_wanted))
		return;
	pthread_mutex_lock(&lock);
	if (!started) {
		plain = *verbs;
		if (thread_start(raise_events, NULL, 0) != 0)
			log_error("inject: there is no thread for events");
	}
	started = true;
	pthread_mutex_unlock(&lock);
#define OPERATION(type, table, member, parameters, arguments) \
	verbs->table member = operation_##member;
#include "inject/operations.def"
#undef OPERATION
	verbs->context.ops.post_send = operation_post_send;
	verbs->context.ops.post_recv = operation_post_recv;
	verbs->context.ops.post_srq_recv = operation_post_srq_recv;
}

void inject_forget(void)
{
	if (likely(!inject_wanted))
		return;
	pthread_mutex_init(&lock, NULL);
	started = false;
	inject_after_fork();
}

int inject_api_add(const char *rule)
{
	char error[INJECT_ERROR_MAX];
	int rc;

	if (!inject_wanted)
		return -ENOSYS;
	rc = inject_add(rule, error, sizeof(error));
	if (rc < 0)
		log_error("%s", error);
	return rc;
}

int inject_api_end(int rule)
{
	return inject_wanted ? inject_end(rule) : -ENOSYS;
}

int64_t inject_api_count(int rule)
{
	return inject_wanted ? inject_count(rule) : -ENOSYS;
}
