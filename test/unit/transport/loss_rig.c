/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps that the tests of loss share. */
#include "loss_rig.h"

void refuse(uint32_t psn)
{
	EXPECT_TAKEN(OPCODE_ACKNOWLEDGE, psn, .syndrome = AETH_RNR_NAK | RNR_CODE);
	assert_int_equal(rig.loss.recovery.state, RECOVERY_RNR_WAIT);
	assert_int_equal(rig.loss.recovery.retransmit_ns, RECOVERY_NEVER);
	assert_int_equal(completer_timeout(&rig.completer, false, rig.loss.recovery.deadline_ns),
			 FAULT_NONE);
	assert_int_not_equal(rig.loss.recovery.state, RECOVERY_RNR_WAIT);
}

void run_retransmit_timer(void)
{
	assert_int_equal(completer_timeout(&rig.completer, false, rig.loss.recovery.retransmit_ns),
			 FAULT_NONE);
}
