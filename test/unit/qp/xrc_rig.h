/* SPDX-License-Identifier: BSD-3-Clause */
/* An XRC target that passes requests for a shared receive queue of another process to a queue pair
 * there: the stand-in. */
#ifndef TEST_QP_XRC_RIG_H
#define TEST_QP_XRC_RIG_H

#include <stddef.h>
#include <stdint.h>

#include "qp_rig.h"
#include "queue/srq.h"
#include "transport/pass.h"
#include "wire/packet.h"

#define NEAR	 0x4001u /* the target's own queue */
#define FAR	 0x8001u /* the other process's */
#define NOBODYS	 0xc001u
#define ALIAS	 0x004321u
#define STAND_IN 0x008765u
#define LINK_PSN 0xfffffeu

/* A is the target, B its requester, and this is the other process. */
struct xrc_far {
	struct qp *qp;
	struct srq *srq;
	struct cq *cq;
	struct catcher catcher;
};

extern struct xrc_far xrc_far;
extern struct srq *xrc_near;
extern struct pass_link xrc_link;
extern int xrc_find_says;
extern unsigned int xrc_passed;
/* The packets between target and stand-in to lose, counted from 1 at the next one; 0: none. */
extern unsigned int xrc_lose_passed, xrc_lose_answer;
/* The same for the packets to the requester. */
extern unsigned int xrc_lose_response;

/* Functions for cmocka. */
int xrc_set_up(void **state);
int xrc_tear_down(void **state);

/** Give packets to whom they are for, but for those to lose. */
void xrc_deliver(struct catcher *catcher);

/** Return a copy of a READ request that outlives its frame. */
struct packet xrc_kept(struct catcher *catcher);

/** Run a queue pair, and deliver its packets. Returns how many there were. */
unsigned int xrc_poll(struct qp *qp, struct catcher *catcher);

/** Run all three until none sends. */
void xrc_run(void);

/** The same; the requester's timers run out until something has completed. */
void xrc_run_with_losses(void);

/** Post a receive request of A's memory. */
void xrc_post(struct srq *srq, uint64_t wr_id, size_t offset, uint32_t length);

/** Post a request of B's memory to a shared receive queue. */
void xrc_send_to(uint32_t srqn, uint64_t wr_id, enum ibv_wr_opcode opcode, size_t offset,
		 uint32_t length, size_t remote);

/** Expect this completion in the other process. */
struct ibv_wc xrc_arrived(uint64_t wr_id, enum ibv_wc_status status);

#endif
