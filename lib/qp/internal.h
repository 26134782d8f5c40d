/* SPDX-License-Identifier: BSD-3-Clause */
/* What a queue pair is made of, for the files of this room only. */
#ifndef QP_INTERNAL_H
#define QP_INTERNAL_H

#include "mem/mw.h"
#include "qp/attr.h"
#include "qp/qp.h"
#include "queue/rq.h"
#include "queue/sq.h"
#include "transport/completer.h"
#include "transport/datagram.h"
#include "transport/requester.h"
#include "transport/responder.h"

/* What of its qp_init is looked at later. */
struct qp_made {
	struct pd *pd;
	struct cq *send_cq;
	struct cq *recv_cq;
	struct srq *srq;
	struct counters *counters;
	void (*event)(void *user, enum ibv_event_type type);
	void *user;
	uint32_t qpn;
	uint32_t max_rate_kbps;
	enum ibv_qp_type type;
	enum ibv_mtu port_mtu;
	bool sig_all;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
};

/*
 * There may be very many, which no cache holds: a message needs no more lines than need be, and
 * those side by side. The first twelve are a requester's, who in its turn writes to another one
 * each time; a responder of such needs sched, sq, peer, the first line of replies and two of its
 * own. What comes behind is for the setting up, for receive requests, and for what goes wrong. Only
 * the first line of either queue is written by who posts.
 */
struct qp {
	struct qp_sched sched
		__rte_cache_aligned; /* the engine's; first: qp_sched finds it there */

	struct sq sq __rte_cache_aligned;
	const struct qp_kind *kind;
	struct rq *rq;		 /* own_rq or the shared one */
	enum ibv_qp_state state; /* written by engine and control, read by posters */
	bool established;	 /* the event that tells of the first packet was raised */
	bool requests_waited;	 /* answers took the last turn's whole budget: requests first now */
	bool drained_told;	 /* the event that tells of SQD being drained was raised */
	bool met_absent;	 /* a role has met a page that was not in memory (wait.c) */
	bool woken;		 /* pages have come since */

	struct peer peer __rte_cache_aligned;
	struct flight flight;
	struct recovery recovery;
	struct pacer pacer;
	struct requester requester;
	struct completer completer;
	struct replies replies;
	struct receive receive; /* of whichever role receives */
	/* while a role waits for a page; in `waiting` of its device */
	LIST_ENTRY(qp) wait_link;
	bool is_waiting;
	struct qp_waiting *waiting; /* NULL: nobody tells when a page comes */
	union {
		struct responder responder;
		struct datagram datagram; /* UD; uses the completer for its send queue */
	};

	struct attr_kept attr;	/* as last set */
	struct mw_list windows; /* of type 2 that it has bound */
	struct qp_made init;

	struct rq own_rq __rte_cache_aligned;
	uint32_t sges;	      /* entries of sge */
	struct ibv_sge sge[]; /* receive.sge */
};

/* What the types of queue pairs differ in. */
struct qp_kind {
	enum ibv_qp_type type;
	uint8_t service; /* enum opcode_service */
	bool sends;	 /* has a send queue */
	bool receives;	 /* has receive requests of its own, or a shared queue's */
	bool answers;	 /* reliable: has a peer that acknowledges */
};

static inline bool qp_is_datagram(const struct qp *qp)
{
	return qp->kind->type == IBV_QPT_UD;
}

/* The row of a type, or NULL for one that is not built. */
const struct qp_kind *qp_kind(enum ibv_qp_type type);

/* As created: nothing posted, no peer, no timer. */
void qp_reset(struct qp *qp);

/* Engine or control. */
void qp_set_state(struct qp *qp, enum ibv_qp_state state);

/* Raise an affiliated asynchronous event. */
void qp_raise(struct qp *qp, enum ibv_event_type type);

/* A fault: completions, events and the state that follow from it, by the table in
 * transport/status.h. */
void qp_fail(struct qp *qp, enum fault fault);

/*
 * Drop what the queue pair completed and nobody has polled, as adapters do when it is reset or
 * destroyed: the application may free what a wr_id points to. Those of an XRC_RECV one are in the
 * queues of its domain, where xrcd_forget_qp drops them. Control.
 */
void qp_forget_completions(struct qp *qp);

/* Complete all that is posted to receive; a shared queue is its owner's. */
void qp_flush_receives(struct qp *qp);

/* A role may have met an absent page: note since when, and wait, if it does. Engine. */
void qp_await_pages(struct qp *qp, uint64_t now_ns);

/* Pages have come: let the roles that waited go on. Engine. */
void qp_resume(struct qp *qp, uint64_t now_ns);

/* Wait no more. Engine or control. */
void qp_stop_waiting(struct qp *qp);

/* Return true if the role that sends waits for a page. */
static inline bool qp_sends_no_page(const struct qp *qp)
{
	return qp->requester.absent || qp->recovery.page_absent;
}

/* Assert what always holds; called when the engine is done with the queue pair for now. */
#ifdef NDEBUG
static inline void qp_check(const struct qp *qp)
{
	(void)qp;
}
#else
void qp_check(const struct qp *qp);
#endif

#endif
