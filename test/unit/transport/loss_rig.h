/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps that the tests of loss share, for the rig of completer_rig.h. */
#ifndef TEST_TRANSPORT_LOSS_RIG_H
#define TEST_TRANSPORT_LOSS_RIG_H

#include "completer_rig.h"
#include "test.h"

/* Receive an RNR NAK for this PSN, and let the RNR timer run out. */
void refuse(uint32_t psn);

/* Let the timer of the retransmission or the probe run out. */
void run_retransmit_timer(void);

#endif
