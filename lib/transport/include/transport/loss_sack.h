/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Losses that a peer reports: what its selective acknowledgements say about packets in flight,
 * and which responses are missing. The completer knows where packets begin and end, so it takes a
 * selective acknowledgement apart, and reports its parts in the order of their PSNs:
 *
 *	loss_sack_begin, loss_sack_packets and loss_sack_missing ..., loss_sack_end
 *
 * A packet that was not sent again is missing if a later one has come. One that was sent again is
 * lost again if a packet has come that was sent after it, whether for the first time or again
 * (scoreboard_lose_again).
 */
#ifndef TRANSPORT_LOSS_SACK_H
#define TRANSPORT_LOSS_SACK_H

#include "transport/loss.h"

/* Return true if what is missing can be learnt from the peer, and sent again, all of it. While the
 * requester goes back, everything is sent again anyway, and a packet that was refused goes alone.
 */
static inline bool loss_sack_applies(const struct loss *loss)
{
	return loss->peer == LOSS_PEER_SACK && psn_eq(loss->next, loss->top) &&
	       loss->state != LOSS_RNR && loss->recovery.state != RECOVERY_RNR_WAIT;
}

/** Note that everything before `psn` is complete; una < psn. For loss_advance. */
void loss_sack_passed(struct loss *loss, struct psn psn);

/** Note that the response `psn` has come, behind missing ones. */
void loss_sack_response(struct loss *loss, struct psn psn);

/** Note an answer of a SACK-capable peer: if it covers the packet that was refused and sent again
 * alone, nothing is held any more, because the answer says what the peer keeps behind it. */
void loss_sack_accepted(struct loss *loss, uint64_t now_ns);

/** Begin a report. Only if loss_sack_applies. */
void loss_sack_begin(struct loss *loss, uint64_t now_ns);

/** Note that everything before `psn` is executed, although responses before it have not come. If
 * `is_answered`, they were all sent before. */
void loss_sack_executed(struct loss *loss, struct psn psn, bool is_answered);

/** Note which of these packets the peer keeps. Those that it does not keep are missing. */
void loss_sack_packets(struct loss *loss, const struct packet *sack, struct psn from,
		       struct psn to);

/** Note that the peer keeps the READ or atomic request with this PSN. Its responses have not
 * come. */
void loss_sack_request_came(struct loss *loss, struct psn psn);

/** Note that the peer does not keep these packets, although later ones have come. */
void loss_sack_missing(struct loss *loss, struct psn from, struct psn to);

/** Note that the oldest response has come, but was not kept here until its turn. */
void loss_sack_not_kept(struct loss *loss);

/** Note that these responses have not come, unless they are kept here. */
void loss_sack_no_response(struct loss *loss, struct psn from, struct psn to);

/** Note that the peer keeps nothing from `psn` on. */
void loss_sack_ends_at(struct loss *loss, struct psn psn);

/** End a report. Return true if packets are missing now that were not known to be missing. */
bool loss_sack_end(struct loss *loss, uint64_t now_ns);

/** Send these packets again to see what the peer answers (LOSS_TIMEOUT_TAIL). */
void loss_sack_probe(struct loss *loss, struct psn from, struct psn to);

#endif
