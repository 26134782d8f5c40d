/* SPDX-License-Identifier: BSD-3-Clause */
/* A host: one device of the stack under test, run by engine polls in virtual time, and the
 * application's objects on it. */
#ifndef SIM_HOST_H
#define SIM_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "absent.h"
#include "base/psn.h"
#include "device/xrcd.h"
#include "sim_engine.h"
#include "sim_link.h"
#include "sim_memory.h"
#include "pool.h"
#include "queue/ah.h"
#include "queue/channel.h"
#include "rings.h"
#include "rng.h"
#include "transport/sack.h"

#define SIM_HOSTS_MAX	 3
#define HOST_CQS_MAX	 3
#define HOST_EVENTS	 32
#define HOST_ENGINES_MAX 4

struct cq;
struct device;
struct device_engine;
struct flow;
struct host;
struct pd;
struct qp;
struct sim;

/* A queue pair of a host, and the application's data about it. */
struct end {
	struct host *host;
	struct sim_engine *engine;
	struct end *peer;
	struct flow *out; /* the flow that it sends */
	struct flow *in;  /* the flow that its peer sends */
	struct qp *qp;
	uint32_t qpn;
	int number;		   /* index among all ends, for messages */
	struct ah ah;		   /* UD: the peer's or the group's queue pair number */
	bool in_group;		   /* UD: it is also attached to the group */
	struct xrcd_member member; /* XRC_RECV */

	/* attributes, chosen with the program */
	enum ibv_qp_type type;
	struct ibv_qp_cap cap;
	bool sig_all;
	unsigned int send_cq; /* index in host->cqs */
	unsigned int recv_cq;
	unsigned int access;
	enum ibv_mtu mtu;
	uint32_t sq_psn;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint32_t rate_kbps; /* limit of its rate; 0: none */

	/* bytes that a paced queue pair has sent since it was connected */
	uint64_t paced_bytes;
	uint64_t paced_since_ns;

	/* the engine's data */
	TAILQ_ENTRY(end) ready_link;
	bool is_ready;
	uint64_t timer_ns; /* time of the scheduled event; UINT64_MAX: none */

	struct psn newest_psn; /* one past the newest request when it was reset */

	/* its window when it aged; 0 after the first loss since then */
	uint32_t aged_window;

	bool unconnected;	      /* an event of the clock moves it to RTR or RTS later */
	bool late;		      /* the event is scheduled, or has happened */
	bool paused;		      /* SQD was requested, and RTS not yet again */
	uint32_t events[HOST_EVENTS]; /* asynchronous events seen, by enum ibv_event_type */
};

/* A completion queue, as the events of its channel name it. */
struct host_cq {
	struct host *host;
	struct cq *cq;
	uint32_t vector;	    /* its completion vector, which chooses its engine */
	struct device_engine *home; /* its engine */
	bool is_awake;		    /* the application has polled it, and has not armed it yet */
	bool early;		    /* its last arming raised the event at once */
	uint32_t unreported; /* the first completion that no event had reported at that arming */
	uint32_t newer;	     /* solicited completions from there on, polled since that arming */
};

/* The event that an application sleeps for. */
enum wakes {
	WAKES_NEVER, /* it does not sleep: it polls */
	WAKES_ANY,
	WAKES_SOLICITED, /* and it also polls now and then */
};

/* The behaviour of an engine. */
struct host_pace {
	uint64_t poll_ns; /* duration of an engine poll without packets */
	uint64_t packet_ns;
	uint64_t late_ns;	 /* latest firing of a timer after its deadline */
	uint32_t receive_burst;	 /* frames taken in one engine poll */
	uint32_t transmit_burst; /* frames sent in one engine poll */
	uint32_t budget;	 /* frames of a queue pair sent in one engine poll */
	uint64_t app_ns;	 /* time between two polls of the application */
	enum wakes wakes;
};

struct host {
	struct sim *sim;
	struct clock *clock;
	int number;
	struct rng rng;
	struct rng change_rng; /* changes of congestion control */
	struct rng stall_rng;
	uint64_t stalled_until_ns; /* it has no CPU: no engine poll and no timer runs */
	struct rng wake_rng;	   /* what the application does after an event */
	struct host_pace pace;
	bool ipv6;
	bool keeps; /* it keeps out of order packets; else it is a go-back-N peer */
	enum sack_use sack;
	bool naks_behind_rnr; /* behaves as Soft-RoCE */
	uint8_t mac[6];
	union ibv_gid gid;
	uint32_t port_mtu;
	struct link *links[SIM_HOSTS_MAX]; /* to each host; to itself: inside the device */

	struct device *device;
	struct pd *pd;
	struct memory memory;
	struct pool pools[POOLS];
	struct xrcd *xrcd;
	struct absence absence;
	struct rings rings;
	struct channel channel;
	struct host_cq cqs[HOST_CQS_MAX];
	unsigned int cq_count;

	bool hears_group;
	struct sim_engine engines[HOST_ENGINES_MAX];
	uint32_t engine_count;
};

/** Bring up the device, its address, protection domain and completion queues. */
void host_start(struct host *host, uint32_t cqe);

/** Destroy everything; the queue pairs are gone already. */
void host_stop(struct host *host);

/** Free what hosts keep from program to program. */
void host_fini(struct host *host);

/** Return the link address of a host or of the group. 0 or -ENETUNREACH. */
int host_resolve(const struct host *host, const union ibv_gid *dgid, uint8_t mac[6]);

/* The link address of the group. */
extern const uint8_t group_mac[6];

/** Receive a frame (a clock_fn: host, frame). */
void host_deliver(void *host, void *frame);

#endif
