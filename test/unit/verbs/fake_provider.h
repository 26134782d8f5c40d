/* SPDX-License-Identifier: BSD-3-Clause */
/* A device without a port: its engine counts what it is asked for, and takes packets from one queue
 * pair to the other. */
#ifndef TEST_VERBS_FAKE_H
#define TEST_VERBS_FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "test.h"
#include "verbs_internal.h"

#define FAKE_QPS_MAX 8
#define FAKE_GID_V4  0
#define FAKE_GID_V6  1
#define FAKE_MAX_CQE 4096
#define FAKE_QKEY    0x11111111u

struct qp;

struct fake {
	struct device *device;

	/* what was asked; atomic where threads ask */
	bool locked;
	uint32_t held; /* engines that are locked */
	unsigned int locks;
	unsigned int kicks;
	unsigned int polls;
	unsigned int settled;
	int found; /* completions by polls that found all they asked for */
	unsigned int waits;
	unsigned int engine_waits[DEVICE_ENGINES_MAX]; /* the same, by engine */
	unsigned int resolves;
	unsigned int detaches;
	struct qp *attached[FAKE_QPS_MAX];

	unsigned int joined; /* multicast groups */

	/* what join and resolve answer */
	int join_result;
	int resolve_result;
	uint8_t mac[6];

	/* Set if kick and poll carry packets. */
	bool carries;
};

extern struct fake fake;

/* Engines of the device, before its start; 0: one. Packets are carried for one engine only. */
extern uint32_t fake_engines;

/** The device in the list, and an open context of it. Starts the fake on the first call. */
struct ibv_context *fake_open(void);

/** Teardown: close what fake_open gave, and set the fake back but for its device. */
int fake_close(void **state);

/** Set up the context as the test's state. */
int fake_setup(void **state);

/** An address vector of ours: the peer's GID is our own. */
struct ibv_ah_attr fake_ah_attr(uint8_t sgid_index);

/* A queue pair with all it needs. */
struct fake_pair {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

struct fake_pair fake_pair_create(struct ibv_context *context);
void fake_pair_destroy(struct fake_pair *pair);

/** ibv_modify_qp as far as a state, from RESET. 0 or the error of the first step that fails. */
int fake_connect(struct ibv_qp *qp, uint32_t dest_qpn, uint8_t gid_index, enum ibv_qp_state to);

/** Let another thread run until it had every chance to do what it should not. */
void fake_yield(void);

#endif
