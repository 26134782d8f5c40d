/* SPDX-License-Identifier: BSD-3-Clause */
/* The fields of a queue pair, for the files of this room only. */
#ifndef QP_INTERNAL_H
#define QP_INTERNAL_H

#include "mem/mw.h"
#include "qp/attr.h"
#include "qp/qp.h"
#include "queue/rq.h"
#include "queue/sq.h"
#include "transport/backlog.h"
#include "transport/completer.h"
#include "transport/datagram.h"
#include "transport/pass.h"
#include "transport/requester.h"
#include "transport/responder.h"

/* The part of qp_init that is used later, and that no role keeps. */
struct qp_made {
	struct pd *pd;
	struct cq *recv_cq;
	struct srq *srq;
	struct device_engine *home;
	struct counters *counters;
	void (*event)(void *user, enum ibv_event_type type);
	void *user;
	uint32_t qpn;
	uint32_t max_rate_kbps;
	uint8_t type;	  /* enum ibv_qp_type */
	uint8_t port_mtu; /* enum ibv_mtu */
	bool sig_all;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
};

/* Reasons to leave the usual path. */
enum qp_unusual {
	QP_MET_ABSENT = 1 << 0, /* a role met a page that was not in memory (wait.c) */
	QP_OWES_CNP = 1 << 1,	/* a congestion notification is due */
	QP_SLOWED = 1 << 2,	/* congestion control limits the rate, of responses too */
	QP_KEEPS = 1 << 3,	/* the responder may keep requests behind a gap */
	QP_PASSES = 1 << 4,	/* a request is to be passed on to another process, or its answer
				   has come */
};

/*
 * There may be very many queue pairs, more than a cache holds. So a message must touch few cache
 * lines. test/unit/qp/test_qp_layout.c counts them, for builds with cache lines of 64 bytes:
 *
 * - both roles: `sched`, the two lines of `sq`, and `peer` with the beginning of `replies`
 * - a requester: from loss.una to completer.page_absent
 * - a responder: from responder.pd to responder.ooo.count
 *
 * What else there is fills the places between them, or comes last. Posting threads write only the
 * first line of each queue.
 */
struct qp {
	struct qp_sched sched __rte_cache_aligned; /* engine's; first: qp_sched finds it there */

	struct sq sq __rte_cache_aligned;
	const struct qp_kind *kind;
	uint64_t responses_ns;	 /* when held responses may be sent; UINT64_MAX: none is held */
	enum ibv_qp_state state; /* written by engine and control, read by posters */
	bool established;	 /* the event of the first packet was raised */
	bool requests_waited;	/* responses used the whole budget of the last engine poll: requests
				   first now */
	bool drained_told;	/* the event that SQD is drained was raised */
	uint8_t unusual;	/* bits of enum qp_unusual; 0: nothing slows the path down */
	struct pacer pacer;	/* of a queue pair without a limit only its begin is read */
	struct qp_watch *watch; /* watch.c; NULL: it was never watched */

	struct peer peer __rte_cache_aligned;
	struct replies replies;
	/* while a role waits for a page; in `waiting` of its device */
	TAILQ_ENTRY(qp) wait_link;

	struct mw_list windows __rte_cache_aligned; /* windows of type 2 that it has bound */
	struct qp_waiting *waiting; /* NULL: no pager reports that a page has come */
	uint32_t sges;		    /* entries of sge */
	bool is_waiting;
	bool woken; /* pages have come since a role met one that was absent */
	struct loss loss;
	struct requester requester;
	struct completer completer;
	union {
		struct responder responder;
		struct datagram datagram; /* UD; uses the completer for its send queue */
	};
	struct receive receive; /* of the role that receives */
	struct rq *rq;		/* own_rq or the shared one */

	struct backlog backlog; /* of the requester */
	struct attr_kept attr;	/* values of the last modification */
	struct qp_made init;

	struct rq own_rq __rte_cache_aligned;
	struct ibv_sge sge[]; /* receive.sge */
};

/* The differences between types of queue pairs. */
struct qp_kind {
	enum ibv_qp_type type;
	uint8_t service; /* enum opcode_service */
	/* The service of packets that need no further look. With congestion control, and for an XRC
	 * target, it is QP_LOOKS: all packets are looked at. */
	uint8_t plain;
	bool sends;    /* has a send queue */
	bool receives; /* has receive requests of its own, or a shared queue's */
	bool answers;  /* reliable: its peer acknowledges */
};

#define QP_LOOKS 0xff /* no packet's service */

static inline bool qp_is_datagram(const struct qp *qp)
{
	return qp->kind->type == IBV_QPT_UD;
}

/* Return the row of a type, or NULL for an unsupported type. */
const struct qp_kind *qp_kind(enum ibv_qp_type type, enum cc_kind cc);

/* Return true if queue pairs of a type can have this congestion control. */
bool qp_may_have_cc(enum ibv_qp_type type, const struct cc_attr *attr);

/* Tell congestion control of the path to the peer, and let its packets be marked if congestion
 * control obeys marks. */
void qp_connect_cc(struct qp *qp);

/* Return to the initial state: nothing posted, no peer, no timer. */
void qp_reset(struct qp *qp);

/* Engine or control. */
void qp_set_state(struct qp *qp, enum ibv_qp_state state);

/* Raise an affiliated asynchronous event. */
void qp_raise(struct qp *qp, enum ibv_event_type type);

/* Handle a fault: completions, events and the new state follow from the table in
 * transport/status.h. */
void qp_fail(struct qp *qp, enum fault fault);

/* Tell the user why it fails. Only if reasons are wanted (base/reason.h). Before the completion of
 * a send request that fails; that of a receive request may have been polled already. */
void qp_explain(const struct qp *qp, enum fault fault);

#define QP_EXPLAIN_REQUEST_MAX 192

/* Write what the oldest send request is, and whom it goes to; the queue pair if there is none. */
void qp_explain_oldest(const struct qp *qp, char text[QP_EXPLAIN_REQUEST_MAX]);

/*
 * Drop completions that nobody has polled, as adapters do when a queue pair is reset or destroyed:
 * the application may then free what a wr_id points to. Completions of an XRC_RECV queue pair are
 * in the queues of its domain, where xrcd_forget_qp drops them. Control.
 */
void qp_forget_completions(struct qp *qp);

/* Complete all posted receive requests with an error, except those of a shared queue. */
void qp_flush_receives(struct qp *qp);

/* If a role met an absent page, note the time and wait. Engine. */
void qp_await_pages(struct qp *qp, uint64_t now_ns);

/* Resume the roles that waited for pages, because pages have come. Engine. */
void qp_resume(struct qp *qp, uint64_t now_ns);

/* Stop waiting. Engine or control. */
void qp_stop_waiting(struct qp *qp);

/* Return true if the state lets the receiving role work. */
static inline bool qp_receives(const struct qp *qp)
{
	return qp->state >= IBV_QPS_RTR && qp->state != IBV_QPS_ERR;
}

/* Return true if a request is to be passed on to another process. */
static inline bool qp_owes_pass(struct qp *qp)
{
	if (qp->responder.pass == NULL || !qp->responder.pass->due)
		return false;
	qp->unusual |= QP_PASSES;
	return true;
}

/* Return true if the state lets the requester send and receive. */
static inline bool qp_requests(const struct qp *qp)
{
	return qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD;
}

/* Return true if all posted requests have completed: the requester has nothing to send, and no
 * timer. */
static inline bool qp_has_no_requests(const struct qp *qp)
{
	return qp->state == IBV_QPS_RTS && qp->sq.cons == sq_prod(&qp->sq);
}

/* Return true if neither role has anything to send, and no timer runs. */
static __rte_always_inline bool qp_has_nothing_to_do(const struct qp *qp)
{
	return qp_has_no_requests(qp) && !replies_due(&qp->replies);
}

/* Return true if the sending role waits for a page. */
static inline bool qp_sends_no_page(const struct qp *qp)
{
	return qp->requester.absent || qp->completer.page_absent;
}

/* Assert the queue pair's invariants; called when the engine has finished with it for now. */
#ifdef NDEBUG
static inline void qp_check(const struct qp *qp)
{
	(void)qp;
}
#else
void qp_check(const struct qp *qp);
#endif

#endif
