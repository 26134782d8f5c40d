/* SPDX-License-Identifier: BSD-3-Clause */
/* A responder that keeps packets, and a region with relaxed ordering. */
#ifndef TEST_TRANSPORT_RESPONDER_OOO_RIG_H
#define TEST_TRANSPORT_RESPONDER_OOO_RIG_H

#include <stdint.h>

#include "responder_rig.h"
#include "test.h"

#define RELAXED_SEED 21u
#define NAK_SEQUENCE (AETH_NAK | NAK_PSN_SEQUENCE)

extern struct region relaxed;
#define TO_RELAXED .iova = region_iova(&relaxed, 0), .rkey = relaxed.mr->key

/* Functions for cmocka. */
int responder_ooo_set_up(void **state);
int responder_ooo_tear_down(void **state);

uint64_t counted(enum counter counter);

#endif
