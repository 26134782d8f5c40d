/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs: the state machine of ibv_modify_qp, which joins queues, memory and the transport
 * roles.
 *
 * Functions marked "Engine" are called by the thread that runs the engine: one thread at a time.
 * Application threads call the posting functions at any time. Functions marked "Control" are called
 * with the engine stopped.
 */
#ifndef QP_QP_H
#define QP_QP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "transport/cc.h"
#include "transport/sack.h"
#include "transport/sink.h"
#include "wire/build.h"

struct comp_cntrs;
struct counters;
struct cq;
struct device_engine;
struct ooo_pool;
struct packet;
struct pass_link;
struct pd;
struct qp;
struct queue_domain;
struct rq;
struct send_wqe;
struct sq;
struct srq;

/* Queue pairs that wait for pages of on-demand regions, in the order in which they began to wait.
 * Engine's thread or lock. */
TAILQ_HEAD(qp_waiting, qp);

/* Fields of the engine in each queue pair; the queue pair never reads them. */
struct qp_sched {
	TAILQ_ENTRY(qp) ready_link;
	TAILQ_ENTRY(qp) timer_link;
	uint64_t ready_ns; /* time at which it was put on the ready list */
	uint64_t timer_slot;
	struct qp *kick_next;
	bool kicked; /* atomic */
	bool is_ready;
	bool is_timed;
	/* Acknowledgements leave at once: the peer has refused a request that takes a receive. Its
	 * program may post one only when its own request is acknowledged. Set by this room. */
	bool acks_at_once;
};

struct qp_init {
	struct pd *pd;
	struct cq *send_cq;
	struct cq *recv_cq;
	struct srq *srq;		   /* shared receive queue, or NULL for an own one */
	const struct queue_domain *queues; /* of its own queues; used by qp_create; NULL for none */
	/* XRC_RECV: return the shared receive queue with this number in a domain, or NULL; engine's
	 * thread. */
	struct srq *(*find_srq)(void *domain, uint32_t number);
	void *domain;
	/* XRC_RECV: struct pass.find, with `user`; NULL: no other process has queues of the domain
	 */
	int (*find_link)(void *user, uint32_t srqn, struct pass_link **link);
	/* XRC_RECV: it stands in for this queue pair of another process, whose number its
	 * completions have; 0: for none */
	uint32_t target_qpn;
	struct ibv_qp_cap cap;
	enum ibv_qp_type type;
	bool sig_all;
	uint32_t qpn;
	struct device_engine *home; /* the engine that it belongs to; not read here */
	struct counters *counters;
	struct qp_waiting *waiting; /* list for the time that it waits for pages; NULL: its pager
				       never makes it wait */
	struct ooo_pool *ooo;  /* buffers for packets that came out of order; NULL: such packets
				      are dropped */
	uint8_t max_rd_atomic; /* the device's limits */
	uint8_t max_dest_rd_atomic;
	uint16_t window_max; /* most packets in flight (transport/loss.h); 0: the default */
	enum sack_use sack;  /* RC and XRC: selective acknowledgements between uroce peers, if
				packets are kept (doc/developer/loss.md) */
	uint32_t max_rate_kbps;
	struct cc_attr cc;     /* congestion control; UD has none */
	enum ibv_mtu port_mtu; /* the largest path MTU that the port carries */
	/* Report an affiliated asynchronous event; engine's or control's thread. */
	void (*event)(void *user, enum ibv_event_type type);
	void *user;
};

/** Return the engine's fields, with which every queue pair begins. */
static inline struct qp_sched *qp_sched(struct qp *qp)
{
	return (struct qp_sched *)(void *)qp;
}

/** Create a queue pair in RESET. MT-safe. 0, -EINVAL, -ENOMEM, -EOPNOTSUPP for an unsupported type.
 * *cap is what was granted. */
int qp_create(const struct qp_init *init, struct ibv_qp_cap *cap, struct qp **qp);

/** Retire a queue pair before qp_destroy: return what it uses of the device, unbind its windows of
 * type 2, and drop its completions that nobody has polled. The engine cannot find it any more.
 * Engine's lock. */
void qp_retire(struct qp *qp);

/** Destroy a retired queue pair. Outstanding work vanishes without completions. */
void qp_destroy(struct qp *qp);

/**
 * Control: do ibv_modify_qp(3).
 *
 * @param path
 *   The resolved primary path, with its UDP source port, if the mask has IBV_QP_AV; else not used.
 * @return
 *   0 or -EINVAL; on failure nothing has changed.
 */
int qp_modify(struct qp *qp, const struct ibv_qp_attr *attr, int mask, const struct path *path);

/** Control: check if qp_modify would fail, without a path. 0 or -EINVAL. */
int qp_check_modify(const struct qp *qp, const struct ibv_qp_attr *attr, int mask);

/**
 * Control: forget a shared receive queue that an XRC queue pair receives for, because it is
 * destroyed.
 *
 * @param pd_too
 *   Its protection domain may be destroyed too: no other queue of the XRC domain uses it.
 */
void qp_forget_srq(struct qp *qp, const struct srq *srq, bool pd_too);

/** Let the next engine poll look for the link again that a request waits for: it can be used now,
 * or never will be. The caller makes the engine run the queue pair. Engine's thread or control. */
void qp_look_again(struct qp *qp);

/** Forget a link that will be freed. A request in flight on it fails in the next engine poll. As
 * qp_look_again. */
void qp_forget_link(struct qp *qp, const struct pass_link *link);

/** Return a number that changes whenever the queue pair with links begins anew. Engine's thread or
 * control. */
uint32_t qp_epoch(const struct qp *qp);

/** Control: count what completes from now on. The counters stay until the queue pair is retired. */
void qp_count(struct qp *qp, const struct comp_cntrs *cntrs);

/** Control: do ibv_modify_qp_rate_limit(3), in RTS. 0 or -EINVAL. The caller kicks the engine. */
int qp_limit_rate(struct qp *qp, const struct ibv_qp_rate_limit_attr *attr);

/**
 * Engine (between two engine polls) or control: change the congestion control. Packets in flight
 * stay in flight. The caller runs the queue pair.
 *
 * @return
 *   0; -EOPNOTSUPP: not for this type; -ENOMEM. On failure nothing has changed.
 */
int qp_change_cc(struct qp *qp, const struct cc_attr *attr);

/** Control: do ibv_query_qp(3). */
void qp_query(struct qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);

/* State of a queue pair that is shown to users. */
enum qp_waits {
	QP_WAITS_NOTHING,      /* no request is posted, or it may not be sent */
	QP_WAITS_ANSWER,       /* of the peer */
	QP_WAITS_ANSWER_AGAIN, /* the same, and a retry is used up */
	QP_WAITS_RECEIVE,      /* the peer had no receive request (RNR NAK) */
	QP_WAITS_PAGE,	       /* of this process's memory */
	QP_WAITS_RATE,	       /* its rate limit or congestion control holds it */
	QP_WAITS_POLL,	       /* no thread has run it since the request was posted */
	QP_WAITS_KINDS,
};

#define QP_WATCH_NS UINT64_C(2000000000)

/** Engine: call this from time to time while reasons are wanted (base/reason.h). Tell the user once
 * for each thing that the queue pair has waited for longer than QP_WATCH_NS. */
void qp_watch(struct qp *qp, uint64_t now_ns);

struct qp_view {
	uint32_t qpn;
	uint32_t dest_qpn;
	enum ibv_qp_type type;
	enum ibv_qp_state state;
	enum ibv_mtu path_mtu;
	uint32_t sq_psn; /* 0 in states that have none */
	uint32_t rq_psn;
	uint32_t sends;	   /* work requests posted and not completed */
	uint32_t receives; /* posted and not used; 0 with a shared queue */
	uint32_t pd;	   /* numbers of objects; 0: none */
	uint32_t send_cq;
	uint32_t recv_cq;
	enum cc_kind cc;
	enum qp_waits waits;
	uint8_t dgid[16];
};

/** Return what the queue pair waits for. Engine or control. */
enum qp_waits qp_waits_for(const struct qp *qp);

/** Return a name of enum qp_waits, or NULL for nothing and unknown values. MT-safe. */
const char *qp_waits_name(uint32_t waits);

/** Fill the view. Engine or control. */
void qp_look(const struct qp *qp, struct qp_view *view);

enum ibv_qp_state qp_state(const struct qp *qp);
uint32_t qp_number(const struct qp *qp);
enum ibv_qp_type qp_type(const struct qp *qp);
void *qp_user(const struct qp *qp);

/** Return the engine that the queue pair belongs to. MT-safe. */
struct device_engine *qp_home(const struct qp *qp);

/** Do ibv_post_send(3). MT-safe. 0 or a positive errno. The caller then kicks the engine. */
int qp_post_send(struct qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/** Post a send request that fails with this status when its turn comes. MT-safe. As qp_post_send;
 * EINVAL if no send request can have this status or opcode. */
int qp_post_failure(struct qp *qp, const struct ibv_send_wr *wr, enum ibv_wc_status status);

/** Let a request of a list that is being built (queue/sq_build.h) fail in this way. */
void qp_fail_built(struct send_wqe *wqe, enum ibv_wc_status status);

/** Let a queue pair that receives or sends go to the error state, and raise an event of it. Return
 * false if it is in another state. The caller then lets its engine run it. Engine or control. */
bool qp_break(struct qp *qp, enum ibv_event_type event);

/** Return the send queue, to build a list of work requests in it (queue/sq_build.h). */
struct sq *qp_sq(struct qp *qp);

/** Return its own receive queue, or NULL with a shared one. */
const struct rq *qp_rq(const struct qp *qp);

/** Show or hide the requests of its own receive queue (queue/unfold.h), if it has one. The engine
 * is stopped. */
void qp_show_receives(struct qp *qp, bool show);
bool qp_hides_receives(const struct qp *qp);

/** Return the code of the time that its RNR NAKs ask for. */
uint8_t qp_min_rnr_timer(const struct qp *qp);

/** Post the built list, as qp_post_send does. 0 or a positive errno: nothing was posted. */
int qp_post_built(struct qp *qp);

/** Do ibv_post_recv(3). MT-safe. 0 or a positive errno. The caller kicks the engine if the queue
 * pair is in error. */
int qp_post_recv(struct qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/** Engine: prefetch what qp_receive (of a request, or of a response) or qp_run will read of a queue
 * pair that was not used recently. */
void qp_prefetch_receive(const struct qp *qp, bool request);
void qp_prefetch_run(const struct qp *qp);

/** Engine: prefetch the work that is posted next, after the prefetch of the queue pair itself. */
void qp_prefetch_work(const struct qp *qp);

/** Engine: process a parsed packet with a right ICRC for this queue pair. Return true if the queue
 * pair now needs qp_run. */
bool qp_receive(struct qp *qp, const struct packet *packet, uint64_t now_ns);

/** Engine: return true if a packet is of the queue pair's service, and from its peer. Until the
 * queue pair or its path is modified, this holds for all packets with these addresses and of this
 * service. */
bool qp_expects(const struct qp *qp, const struct packet *packet);

/** Engine: do what qp_receive does, with a packet of which qp_expects holds. */
bool qp_receive_expected(struct qp *qp, const struct packet *packet, uint64_t now_ns);

/**
 * Engine: send what can be sent, up to `budget` packets. If the queue pair is in error, flush.
 *
 * @return
 *   True while there is more to send at once (the budget or the sink ended the engine poll).
 */
bool qp_run(struct qp *qp, uint64_t now_ns, struct packet_sink *sink, unsigned int budget);

/** Engine: return true if all posted work has completed and no answer is owed: qp_run and
 * qp_timeout have nothing to do. */
bool qp_is_quiet(const struct qp *qp);

/** Engine: return true if an acknowledgement is all that qp_run would send; it may be delayed a
 * little. */
bool qp_owes_ack_only(const struct qp *qp);

/** Engine: return true if the packets of a connected queue pair go to a MAC address. */
bool qp_sends_to(const struct qp *qp, const uint8_t mac[6]);

/** Engine: return the number of the queue pair to which a connected queue pair sends. */
uint32_t qp_peer_qpn(const struct qp *qp);

/** Engine: call this when pages have come. Empty the list, and call `each` for its queue pairs,
 * which need qp_run. */
void qp_wake_waiting(struct qp_waiting *waiting, void (*each)(struct qp *qp, void *arg), void *arg);

/** Engine: return the earliest time at which qp_timeout must be called; UINT64_MAX for never. Every
 * other call may change it. */
uint64_t qp_deadline_ns(const struct qp *qp);

/** Engine: packets reach other hosts again, after a time in which none could. What may be lost is
 * sent again soon, by the peer, too: the time between its probes has doubled again and again. Call
 * qp_run afterwards. */
void qp_hasten(struct qp *qp, uint64_t now_ns);

/** Engine: handle the deadline, which has come. `sink` is only asked what it knows. First receive
 * all packets that had come before. Call qp_run afterwards. */
void qp_timeout(struct qp *qp, uint64_t now_ns, struct packet_sink *sink);

#endif
