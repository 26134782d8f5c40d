/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs: the state machine of ibv_modify_qp, joining queues, memory and the transport roles.
 *
 * Whoever runs the engine calls the functions that say "engine": one thread at a time. The
 * application's threads call the posting functions at any time. Functions that say "control" are
 * called with the engine stopped.
 */
#ifndef QP_QP_H
#define QP_QP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "transport/sink.h"
#include "wire/build.h"

struct counters;
struct cq;
struct early_pool;
struct packet;
struct pd;
struct qp;
struct queue_domain;
struct sq;
struct srq;

/* Queue pairs that wait for pages of on-demand regions. Zeros are none. Engine's thread or lock. */
LIST_HEAD(qp_waiting, qp);

/* The engine's own marks on a queue pair; the queue pair never reads them. */
struct qp_sched {
	TAILQ_ENTRY(qp) ready_link;
	TAILQ_ENTRY(qp) timer_link;
	uint64_t ready_ns; /* when it went on the ready list */
	uint64_t timer_slot;
	struct qp *kick_next;
	bool kicked; /* atomic */
	bool is_ready;
	bool is_timed;
};

struct qp_init {
	struct pd *pd;
	struct cq *send_cq;
	struct cq *recv_cq;
	struct srq *srq;		   /* shared receive queue, or NULL for an own one */
	const struct queue_domain *queues; /* of its own queues; read by qp_create; NULL for none */
	/* XRC_RECV: the shared receive queue of a domain by its number, NULL for none; engine's
	 * thread */
	struct srq *(*find_srq)(void *domain, uint32_t number);
	void *domain;
	struct ibv_qp_cap cap;
	enum ibv_qp_type type;
	bool sig_all;
	uint32_t qpn;
	struct counters *counters;
	struct qp_waiting
		*waiting;	  /* where it waits for pages; NULL: with a pager that needs none */
	struct early_pool *early; /* where packets wait for their turn; NULL: they are dropped */
	uint8_t max_rd_atomic;	  /* the device's limits */
	uint8_t max_dest_rd_atomic;
	uint16_t window_max; /* packets in flight at most (transport/flight.h); 0: as usual */
	uint32_t max_rate_kbps;
	enum ibv_mtu port_mtu; /* the largest path MTU that the port carries */
	/* An affiliated asynchronous event; engine's or control's thread. */
	void (*event)(void *user, enum ibv_event_type type);
	void *user;
};

/** Every queue pair begins with them. */
static inline struct qp_sched *qp_sched(struct qp *qp)
{
	return (struct qp_sched *)(void *)qp;
}

/** Create in RESET. MT-safe. 0, -EINVAL, -ENOMEM, -EOPNOTSUPP for a type that is not built. *cap is
 * what was granted. */
int qp_create(const struct qp_init *init, struct ibv_qp_cap *cap, struct qp **qp);

/** Before qp_destroy: it gives back what it keeps of the device's, unbinds its windows of type 2,
 * and drops the completions of it that nobody has polled. The engine finds it no more. Engine's
 * lock. */
void qp_retire(struct qp *qp);

/** Outstanding work vanishes without completions. It is retired. */
void qp_destroy(struct qp *qp);

/**
 * Control: ibv_modify_qp(3).
 *
 * @param path
 *   The resolved primary path where mask has IBV_QP_AV; else not read.
 * @param sport
 *   UDP source port for the path is part of `path`.
 * @return
 *   0 or -EINVAL; on failure nothing has changed.
 */
int qp_modify(struct qp *qp, const struct ibv_qp_attr *attr, int mask, const struct path *path);

/** Control: whether qp_modify would refuse, which asks nobody for the path. 0 or -EINVAL. */
int qp_check_modify(const struct qp *qp, const struct ibv_qp_attr *attr, int mask);

/**
 * Control: a shared receive queue of the domain that an XRC queue pair receives for goes.
 *
 * @param pd_too
 *   So may its protection domain: no other queue of the domain is in it.
 */
void qp_forget_srq(struct qp *qp, const struct srq *srq, bool pd_too);

/** Control: ibv_modify_qp_rate_limit(3), in RTS. 0 or -EINVAL. The caller kicks the engine. */
int qp_limit_rate(struct qp *qp, const struct ibv_qp_rate_limit_attr *attr);

/** Control: ibv_query_qp(3). */
void qp_query(struct qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);

/* What is shown of a queue pair to who watches it. */
struct qp_view {
	uint32_t qpn;
	uint32_t dest_qpn;
	enum ibv_qp_type type;
	enum ibv_qp_state state;
	enum ibv_mtu path_mtu;
	uint32_t sq_psn; /* 0 where the state has none */
	uint32_t rq_psn;
	uint32_t sends;	   /* work requests posted and not completed */
	uint32_t receives; /* posted and not used; 0 with a shared queue */
	uint32_t pd;	   /* numbers of objects; 0: none */
	uint32_t send_cq;
	uint32_t recv_cq;
	uint8_t dgid[16];
};

/** Engine or control. */
void qp_look(const struct qp *qp, struct qp_view *view);

enum ibv_qp_state qp_state(const struct qp *qp);
uint32_t qp_number(const struct qp *qp);
enum ibv_qp_type qp_type(const struct qp *qp);
void *qp_user(const struct qp *qp);

/** ibv_post_send(3): MT-safe; 0 or a positive errno. The caller then kicks the engine. */
int qp_post_send(struct qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/** The send queue, for who builds a list of work requests in it (queue/sq_build.h). */
struct sq *qp_sq(struct qp *qp);

/** Post the list that was built, as qp_post_send does. 0 or a positive errno: nothing was posted.
 */
int qp_post_built(struct qp *qp);

/** ibv_post_recv(3): MT-safe; 0 or a positive errno. The caller kicks the engine if the queue pair
 * is in error. */
int qp_post_recv(struct qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/** Engine: have fetched what qp_receive will look at for a request, or else a response, or qp_run,
 * of a queue pair that was not used of late. */
void qp_prefetch_receive(const struct qp *qp, bool request);
void qp_prefetch_run(const struct qp *qp);

/** Engine: then the work itself that is posted next, of a queue pair of which that was done before.
 */
void qp_prefetch_work(const struct qp *qp);

/** Engine: a parsed packet with a good ICRC to this queue pair. Afterwards qp_run must be called,
 * unless it is quiet. */
void qp_receive(struct qp *qp, const struct packet *packet, uint64_t now_ns);

/**
 * Engine: send what can be sent, up to `budget` packets: responses first, then requests; flush if
 * in error.
 *
 * @return
 *   true while there is more to send right now (budget or sink ended it).
 */
bool qp_run(struct qp *qp, uint64_t now_ns, struct packet_sink *sink, unsigned int budget);

/** Engine: what is posted has completed, and nothing is owed: neither qp_run nor qp_timeout has
 * anything to do. */
bool qp_is_quiet(const struct qp *qp);

/** Engine: an acknowledgement is all that qp_run would send; it may wait a little. */
bool qp_owes_ack_only(const struct qp *qp);

/** Engine: pages have come. Take all queue pairs off the list, and call `each` for them: they want
 * qp_run. */
void qp_wake_waiting(struct qp_waiting *waiting, void (*each)(struct qp *qp, void *arg), void *arg);

/** Engine: when qp_timeout wants to be called at the earliest; UINT64_MAX for never. May move at
 * every other call. */
uint64_t qp_deadline_ns(const struct qp *qp);

/** Engine: the deadline is reached. Afterwards qp_run must be called. */
void qp_timeout(struct qp *qp, uint64_t now_ns);

#endif
