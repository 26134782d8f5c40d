/* SPDX-License-Identifier: BSD-3-Clause */
/* A rig of its own for each test of a file: `TEST_FIXTURE(cm_fixture_set_up,
 * cm_fixture_tear_down);`. */
#ifndef TEST_COMMON_CM_FIXTURE_H
#define TEST_COMMON_CM_FIXTURE_H

#include "cm_rig.h"
#include "test.h"

extern struct cm_rig rig;

/* Functions for cmocka. */
int cm_fixture_set_up(void **state);
int cm_fixture_tear_down(void **state);

#endif
