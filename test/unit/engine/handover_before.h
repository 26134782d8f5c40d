/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hand-over as it was before it was written down as states, for the test of the checker: an
 * owner did not look at what it left when it gave the engine back, and of two threads that wanted
 * the helper the second relied on the first to ring.
 */
#ifndef HANDOVER_BEFORE_H
#define HANDOVER_BEFORE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/handover.h"

void before_kick(struct engine *engine, struct qp *qp);
void before_release(struct engine *engine);
uint64_t before_idle_sleep(struct engine *engine, uint64_t now_ns, uint64_t limit_ns);
void before_sleep(struct engine *engine, uint64_t ns);
enum helper_call before_take_call(struct engine *engine);

void before_reset(void);
uint64_t before_digest(void);

#endif
