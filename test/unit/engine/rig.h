/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests of the engine begin with: an engine on the fake's port, and two queue pairs. */
#ifndef RIG_H
#define RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "fake_device.h"
#include "telemetry/counters.h"

#define PATIENCE_MS 20000 /* for things that happen at once on an idle machine */

extern struct engine *engine;
extern struct qp qp, other;
extern const uint8_t peer_mac[6];
extern const struct engine_ops *const ops;

/** Of cmocka: once a program, which is skipped where EAL and a port cannot be had; and before and
 * after each test. */
int rig_group_set_up(void **state);
int rig_set_up(void **state);
int rig_tear_down(void **state);

/** For an engine that makes progress in another way than inline. 0 or -1. */
int rig_begin(enum settings_progress progress);

uint64_t rig_count(enum counter counter);

/** Have `sender` send `n` frames from now on. */
void rig_send(struct qp *sender, unsigned int n);

/** So many turns of the engine, each of which takes it and gives it back. */
void rig_turns(int n);

/** Throw away what was sent: the port's other end is this one. */
void rig_empty_port(void);

void rig_add_address(const uint8_t gid[GID_LEN]);

#endif
