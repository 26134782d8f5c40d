/* SPDX-License-Identifier: BSD-3-Clause */
/* The fixture of the engine's tests: an engine on the fake's port, and two queue pairs. */
#ifndef ENGINE_RIG_H
#define ENGINE_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "fake_device.h"
#include "telemetry/counters.h"

#define TIMEOUT_MS 20000 /* for things that happen at once on an idle machine */

extern struct engine *engine;
extern struct qp qp, other;
extern const uint8_t peer_mac[6];
extern const struct engine_ops *const ops;

/** Functions for cmocka: one that runs once in a program, and skips it if EAL or a port is missing;
 * and ones that run before and after each test. */
int rig_group_set_up(void **state);
int rig_set_up(void **state);
int rig_tear_down(void **state);

/** Begin with an engine whose progress mode is not inline. Return 0 or -1. */
int rig_begin(enum settings_progress progress);

/** Give the device a second engine, after rig_set_up or rig_begin. Returns NULL if that fails. */
struct engine *rig_add_engine(void);

uint64_t rig_count(enum counter counter);

/** Have `sender` send `n` frames from now on. */
void rig_send(struct qp *sender, unsigned int n);

/** Run so many polls of the engine. Each takes the engine and releases it. */
void rig_polls(int n);

/** Wait until another thread sets a value. Return false if it does not. */
bool rig_eventually(const unsigned int *value, unsigned int want);

/** Throw away what was sent: the port's other end is this one. */
void rig_empty_port(void);

void rig_add_address(const uint8_t gid[GID_LEN]);

#endif
