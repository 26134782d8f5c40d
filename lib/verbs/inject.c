/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the faults of rules happen: in calls, in work requests, and as events. */
#include "inject.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rte_common.h>

#include "base/log.h"
#include "base/verbs_later.h"
#include "qp/qp.h"
#include "queue/sq_build.h"
#include "verbs_internal.h"

#define ERROR_MAX	512
#define EVENTS_LOOK_NS	20000000 /* how late an event may be that a program asks for */
#define BAD_KEY		0	 /* no region has this key */
#define RECEIVE_SGE_MAX 32

/* The operations without rules. They are the same in every context. */
static struct verbs_context plain;

intptr_t inject_failure(enum inject_call call, int error, bool is_int)
{
	errno = error;
	switch (call) {
	case INJECT_ibv_get_async_event:
	case INJECT_ibv_get_cq_event:
	case INJECT_ibv_get_pkey_index:
	case INJECT_ibv_query_gid:
	case INJECT_ibv_query_gid_type:
	case INJECT_ibv_query_pkey:
	case INJECT_poll_cq:
		return -1;
	case INJECT__ibv_query_gid_table:
		return -error;
	default:
		return is_int ? error : 0;
	}
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

/* Post the part of a list from `first` to before `end`. */
static int post_part(struct ibv_qp *qp, struct ibv_send_wr *first, struct ibv_send_wr *end,
		     struct ibv_send_wr **bad)
{
	struct ibv_send_wr *last = first;
	int rc;

	if (first == end)
		return 0;
	while (last->next != end)
		last = last->next;
	last->next = NULL;
	rc = plain.context.ops.post_send(qp, first, bad);
	last->next = end;
	return rc;
}

static int operation_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const struct face_qp *qp = face_qp(ibv);
	struct ibv_send_wr *first = wr;
	int rc = inject_into_call(INJECT_post_send);

	*bad = wr;
	if (rc != 0)
		return INJECT_FAILURE(int, post_send, rc);
	for (; wr; wr = wr->next) {
		const enum ibv_wc_status status =
			inject_into_work(op_of((uint8_t)wr->opcode), ibv->qp_num, wr->wr_id);

		if (status == IBV_WC_SUCCESS)
			continue;
		rc = post_part(ibv, first, wr, bad);
		if (rc != 0)
			return rc;
		*bad = wr;
		rc = qp_post_failure(qp->qp, wr->wr_id, status);
		if (rc != 0)
			return face_errno(-rc);
		device_engine_kick(qp->home, qp->qp);
		first = wr->next;
	}
	return post_part(ibv, first, NULL, bad);
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
	for (int i = 0; i < wr->num_sge && i < RECEIVE_SGE_MAX; i++) {
		sge[i] = wr->sg_list[i];
		sge[i].lkey = BAD_KEY;
	}
	wr->sg_list = sge;
}

/* Post a list of receive requests one by one, each as a rule says. */
static int post_receives(enum inject_call call, uint32_t qpn, void *queue,
			 int (*post)(void *queue, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad),
			 struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct ibv_sge sge[RECEIVE_SGE_MAX];
	int rc = inject_into_call(call);

	*bad = wr;
	if (rc != 0)
		return (int)inject_failure(call, rc, true);
	for (; wr && rc == 0; wr = wr->next) {
		struct ibv_recv_wr one = *wr, *ignored;

		one.next = NULL;
		if (inject_into_work(INJECT_RECV, qpn, wr->wr_id) != IBV_WC_SUCCESS)
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
	return post_receives(INJECT_post_recv, qp->qp_num, qp, post_one_recv, wr, bad);
}

static int post_one_srq_recv(void *queue, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return plain.context.ops.post_srq_recv(queue, wr, bad);
}

static int operation_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
				   struct ibv_recv_wr **bad)
{
	return post_receives(INJECT_post_srq_recv, 0, srq, post_one_srq_recv, wr, bad);
}

/* Let a queue pair fail that the rule is for. Under the device's lock. */
static void break_qp(struct qp *qp, void *arg)
{
	const struct inject_rule *rule = arg;

	if (qp && (rule->qpn == 0 || rule->qpn == qp_number(qp)) && qp_break(qp, rule->event))
		device_engine_settle(qp_home(qp), qp);
}

static void raise_event(struct face_device *face, void *arg)
{
	struct inject_rule *rule = arg;

	if (rule->event == IBV_EVENT_QP_FATAL || rule->event == IBV_EVENT_QP_REQ_ERR ||
	    rule->event == IBV_EVENT_QP_ACCESS_ERR) {
		device_lock(face->device);
		device_each_qp(face->device, break_qp, rule);
		device_unlock(face->device);
	} else {
		event_raise_device(face, rule->event);
	}
}

/* Raise the events of rules when they are due. It also looks for rules that the program adds. */
static void *raise_events(void *arg)
{
	while (true) {
		uint64_t wait_ns;
		const struct inject_rule *rule = inject_take_event(&wait_ns);
		struct inject_rule copy;
		struct timespec wait = {.tv_nsec =
						(long)RTE_MIN(wait_ns, (uint64_t)EVENTS_LOOK_NS)};

		if (!rule) {
			nanosleep(&wait, NULL);
			continue;
		}
		copy = *rule;
		device_list_visit(raise_event, &copy);
	}
	return arg;
}

static void start_events(void)
{
	sigset_t all, before;
	pthread_t thread;

	/* Signals are for the program's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, raise_events, NULL) == 0) {
		pthread_setname_np(thread, "uroce-inject");
		pthread_detach(thread);
	} else {
		log_error("inject: there is no thread for events");
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void inject_operations(struct verbs_context *verbs)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool started;

	if (likely(!inject_wanted))
		return;
	pthread_mutex_lock(&lock);
	if (!started) {
		plain = *verbs;
		start_events();
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

int inject_api_add(const char *rule)
{
	char error[ERROR_MAX];
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
