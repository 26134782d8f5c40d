/* SPDX-License-Identifier: BSD-3-Clause */
/* What the examples share: a device, and two queue pairs of it that are connected with each other.
 * If a call fails, the program ends with one line. */
#ifndef EXAMPLES_LOOP_H
#define EXAMPLES_LOOP_H

#include <stddef.h>

#include <infiniband/verbs.h>

struct loop {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *a; /* connected to b */
	struct ibv_qp *b;
};

/** Print that `what` failed, with the text of errno, and end the program. */
void loop_fail(const char *what) __attribute__((noreturn));

/** Open the first device. */
struct ibv_context *loop_open(void);

/** Create two connected queue pairs in a protection domain, and a completion queue if loop->cq is
 * NULL. loop_disconnect destroys all three. */
void loop_connect(struct loop *loop, struct ibv_pd *pd);
void loop_disconnect(struct loop *loop);

/** Post a receive request or a send request. Only WRITE and READ use the last two arguments. */
void loop_recv(struct ibv_qp *qp, struct ibv_sge *list, int count);
void loop_send(struct ibv_qp *qp, enum ibv_wr_opcode opcode, struct ibv_sge *list, int count,
	       const void *remote_addr, uint32_t rkey);

/** Wait until `count` requests have completed successfully. */
void loop_wait(const struct loop *loop, int count);

#endif
