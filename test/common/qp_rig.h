/* SPDX-License-Identifier: BSD-3-Clause */
/* Two queue pairs, the link between them, and a clock, for the tests of lib/qp. */
#ifndef TEST_COMMON_QP_RIG_H
#define TEST_COMMON_QP_RIG_H

#include "fixture.h"
#include "qp/qp.h"
#include "transport/ooo.h"
#include "queue/srq.h"

#define MTU	   256u
#define MEMORY	   (64 * MTU)
#define SEED	   1u /* key of the first end's memory; the other's is one more */
#define WRS	   16u
#define CQE	   64u
#define RETRIES	   3
#define RNR_CODE   12 /* 0.64 ms */
#define RNR_NS	   640000u
#define TIMEOUT	   8 /* 4.096 us * 2^8 */
#define TIMEOUT_NS (UINT64_C(4096) << TIMEOUT)
#define READS	   4
#define RATE_MAX   1000000 /* kbps */
#define EVENTS_MAX 16
#define REMOTE	   (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct end {
	struct qp *qp;
	struct cq *send_cq;
	struct cq *recv_cq;
	struct region memory; /* all rights */
	struct catcher catcher;
	struct path path;
	struct ibv_qp_attr attr; /* the attributes of the connection */
	uint8_t gid[16];
	unsigned int events;
	enum ibv_event_type event[EVENTS_MAX];
};

struct qp_rig {
	struct fixture fixture;
	struct end ends[2];
	uint64_t now_ns;
	struct qp_waiting waiting;
	struct cc_attr cc;    /* of both ends, unless set before end_recreate */
	struct ooo_pool *ooo; /* for both ends; NULL: none, unless set before end_recreate */
	enum sack_use sack;   /* of both ends, unless set before end_recreate */
	bool unsignaled;      /* requests have a completion only if they ask for it; the same */
	/* A packet from this end to lose, counted from 1 at the next one; 0 for none. */
	unsigned int lose[2];
};

extern struct qp_rig rig;
#define A (&rig.ends[0])
#define B (&rig.ends[1])

/* Set up two RC queue pairs in RESET, for cmocka. */
int qp_rig_set_up(void **state);
int qp_rig_tear_down(void **state);

/* Replace an end's queue pair by one of another type, or with a shared receive queue. */
void end_recreate(struct end *end, enum ibv_qp_type type, struct srq *srq);
/* The same for RC, with a queue for completions of send requests that has room for one. */
void end_recreate_with_small_cq(struct end *end);

/* Move to INIT, RTR or RTS. */
void end_raise(struct end *end, enum ibv_qp_state to);
/* Move both to RTS. */
void rig_connect(void);
int end_modify(struct end *end, enum ibv_qp_state to);
void end_expect_event(const struct end *end, unsigned int i, enum ibv_event_type type);

/* Post one request with the end's own memory; `remote` is an offset in the other end's. */
int end_send(struct end *end, uint64_t wr_id, enum ibv_wr_opcode opcode, size_t offset,
	     uint32_t length, size_t remote);
int end_receive(struct end *end, uint64_t wr_id, size_t offset, uint32_t length);

/* Run one engine poll of an end. Its catcher keeps the sent packets. Return true if there is more
 * to send. */
bool end_run(struct end *end, unsigned int budget);
/* Deliver the kept packets to the other end. */
void end_deliver(struct end *end);
/* The same, and each packet is marked by a switch on its way. Return true if the other end then
 * needs an engine poll. */
bool end_deliver_marked(struct end *end);
/* Run engine polls of both until neither sends. */
void rig_run(void);
/* Advance the time to the end's deadline, and run its timers. */
void end_time_out(struct end *end);

/* Take the oldest completion of its kind. */
struct ibv_wc end_sent(struct end *end, uint64_t wr_id, enum ibv_wc_status status);
struct ibv_wc end_received(struct end *end, uint64_t wr_id, enum ibv_wc_status status);
/* Check that nothing more has completed. */
void end_idle(struct end *end);
/* Check that the queue pair is in ERR and waits for no timer. */
void end_expect_error(const struct end *end);

/* Read a counter that both ends share. */
uint64_t rig_counter(enum counter which);

#endif
