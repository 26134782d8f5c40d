/* SPDX-License-Identifier: BSD-3-Clause */
/* A host of the simulated network: a device with the real transport, and a NIC that serves its
 * queue pairs in turn. */
#ifndef NET_HOST_H
#define NET_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "../sim/rng.h"
#include "fabric.h"
#include "telemetry/counters.h"
#include "transport/cc.h"
#include "transport/sink.h"
#include "wire/build.h"

struct cq;
struct device;
struct host;
struct mr;
struct pd;
struct qp;

/* What receivers do with packets that come out of order. */
enum conn_peer {
	CONN_PEER_DROPS, /* go-back-N */
	CONN_PEER_KEEPS,
	CONN_PEER_UROCE, /* keeps them, and tells of them */
};

/* Attributes of every queue pair. */
struct conn_attr {
	enum ibv_mtu mtu;
	uint16_t window_max; /* packets in flight; 0: the default */
	uint8_t timeout;     /* 4.096 us * 2^timeout */
	enum conn_peer peer;
	enum cc_kind cc; /* congestion control */
};

/* One end of a connection. */
struct conn {
	TAILQ_ENTRY(conn) ready; /* in the host's list, while is_ready */
	struct host *host;
	struct qp *qp;
	uint32_t qpn;
	bool is_ready;
	uint64_t timer_ns; /* of the event that is scheduled; UINT64_MAX: none */
};

/* How slow hosts are, as emulated machines: when a packet comes to a host that has nothing to do,
 * it wakes up after an exponentially distributed time. Then each packet takes a time. */
struct host_delay {
	uint64_t wake_ns; /* mean; 0: at once */
	uint64_t packet_ns;
};

struct host {
	uint32_t number;
	struct fabric *fabric;
	struct port port;
	struct device *device;
	struct pd *pd;
	struct cq *cq;
	struct mr *mr; /* the null region: payloads are zeros */
	TAILQ_HEAD(, conn) ready;
	bool turns; /* host_turn runs */
	struct packet_sink sink;
	struct packet_out out;
	uint8_t *received; /* owned; the frame that the transport looks at */
	struct host_delay delay;
	struct rng rng;		 /* of its delays */
	struct frame_queue came; /* and not looked at; not empty: an event is scheduled */
	/* A work request has completed. */
	void (*complete)(struct host *host, const struct ibv_wc *wc);
	void *user;
};

void host_init(struct host *host, struct fabric *fabric, uint32_t number, uint64_t mbps,
	       enum cc_kind cc, const struct host_delay *delay);
void host_fini(struct host *host);

/** Connect a queue pair of each host. */
void conn_open(struct conn *a, struct host *host_a, struct conn *b, struct host *host_b,
	       const struct conn_attr *attr);
void conn_close(struct conn *conn);

/** Return the PSN that this end expects next: it counts the packets that have come, in order. */
uint32_t conn_expected(const struct conn *conn);

/** Post a SEND of `bytes` zeros, and the receive request for one. */
void conn_send(struct conn *conn, uint64_t wr_id, uint32_t bytes);
void conn_receive(struct conn *conn, uint64_t wr_id, uint32_t bytes);

uint64_t host_counted(const struct host *host, enum counter counter);

#endif
