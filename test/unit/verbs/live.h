/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A real device with a real engine, on a port without a wire: its queue pairs talk to each other,
 * while any thread calls. For what the fake device has no threads for.
 */
#ifndef TEST_VERBS_LIVE_H
#define TEST_VERBS_LIVE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <infiniband/verbs.h>

#define LIVE_WR_MAX 32 /* requests of a queue */

/* Threads may not assert. What is not so ends the program: the others would wait for ever. */
#define MUST(what)                                                                          \
	do {                                                                                \
		if (!(what)) {                                                              \
			fprintf(stderr, "%s:%d: %s: errno %d\n", __func__, __LINE__, #what, \
				errno);                                                     \
			abort();                                                            \
		}                                                                           \
	} while (0)

/* Two connected queue pairs of one domain and one completion queue. One thread at a time uses them.
 */
struct lane {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *a;
	struct ibv_qp *b;
	uint32_t psn; /* with which they are connected next */
};

/** Start the device on the first call, with a port of that MTU and as many engines as the
 * environment's LIVE_ENGINES (1); an open context, or NULL. */
struct ibv_context *live_open(const char *mtu);

/**
 * The open context of a device with a port of MTU 1500, and set-up and tear-down for cmocka's
 * groups.
 */
extern struct ibv_context *live_context;
int live_set_up(void **state);
int live_tear_down(void **state);

/* Threads may not assert: these return whether they worked. */

/**
 * Raise a queue pair from RESET to RTS, with a peer on the same device. The first PSN is the same
 * in both directions.
 */
bool live_connect(struct ibv_qp *qp, uint32_t dest_qpn, uint32_t psn);

bool lane_open(struct lane *lane, struct ibv_context *context);
bool lane_close(struct lane *lane);

/** Make both queue pairs new after an error; everything that was posted has completed. */
bool lane_again(struct lane *lane);

/** Post to A, signaled; `sge` may be NULL. */
bool lane_send(struct lane *lane, struct ibv_send_wr wr, struct ibv_sge *sge);
bool lane_recv(struct lane *lane, struct ibv_sge *sge);

/** Wait for that many completions of any status. How many were successes, or -1. */
int lane_wait(struct lane *lane, unsigned int count);

#endif
