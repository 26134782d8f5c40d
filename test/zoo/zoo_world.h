/* SPDX-License-Identifier: BSD-3-Clause */
/* Two queue pairs of one device, connected to each other, for wrong programs of verbs. */
#ifndef ZOO_WORLD_H
#define ZOO_WORLD_H

#include <errno.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "rc.h"
#include "zoo.h"

#define BYTES	4096
#define INIT_UD (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define REMOTE	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define ALL	(IBV_ACCESS_LOCAL_WRITE | REMOTE | IBV_ACCESS_MW_BIND)
#define QKEY	0x11111111

/* `a` sends. A case changes what it wants before they are connected. */
extern struct world {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *from, *to;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr_a, attr_b;
	struct ibv_qp *a, *b;
	uint32_t cqe;
} world;

extern uint8_t memory[2][2 * BYTES];

/** Create the queue pairs, which are then in RESET. */
void make(void);

/** Move a queue pair to a state. Return what ibv_modify_qp says. */
int move(struct ibv_qp *qp, struct ibv_qp_attr *attr, enum ibv_qp_state state, int mask);

/** Move a queue pair, or create both and move them, to RTS. */
void connect_one(struct ibv_qp *qp, struct ibv_qp_attr *attr);
void connect_both(void);

/** Return a request of the whole source, to the beginning of the destination. Its list is the
 * newest one's. */
struct ibv_send_wr request(enum ibv_wr_opcode opcode);
int post(struct ibv_send_wr wr);

/** Post a receive request. */
void receive(uint32_t bytes);

/** Poll so many completions. Those of a right program are successful. */
void await(int count);

/** Post a request, and await so many completions. */
void run(struct ibv_send_wr wr, int completions);

#endif
