/* SPDX-License-Identifier: BSD-3-Clause */
/* loss.c retransmits. loss_settle.c and loss_timer.c decide when, and call it by these functions.
 */
#ifndef TRANSPORT_LOSS_INTERNAL_H
#define TRANSPORT_LOSS_INTERNAL_H

#include "transport/loss.h"

/* Note what an answer shows of what the peer does with packets behind a lost one (loss_peer.h). */
void loss_learn(struct loss *loss, enum loss_evidence evidence);

/* End the retransmission: nothing more is sent again, or only what is behind `next`. */
void loss_end(struct loss *loss);

/* Go back: send everything unacknowledged again. If it was a loss, halve the window. */
void loss_go_back(struct loss *loss, enum loss_state state, bool lost);

/* Go back, because packets were lost. */
void loss_go_back_lost(struct loss *loss, enum loss_state state, uint64_t now_ns);

/* Begin a selective retransmission of what is missing before `to`. If it was lost, halve the
 * window, unless losses of the same flight have already done so. */
void loss_begin_selective(struct loss *loss, enum loss_state state, struct psn to);

/* Send only what is missing before `to` again. */
void loss_send_missing(struct loss *loss, enum loss_state state, struct psn to, uint64_t now_ns);

/* Stop the measurement if the answer came before the retransmission: it does not show how long an
 * answer to the retransmission takes. */
void loss_unmeasured(struct loss *loss);

#endif
