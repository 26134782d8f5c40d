/* SPDX-License-Identifier: BSD-3-Clause */
/* The kind of a requester's peer: it keeps or drops packets behind a lost one, or reports which
 * ones it keeps. */
#ifndef TRANSPORT_LOSS_PEER_H
#define TRANSPORT_LOSS_PEER_H

#include <stdbool.h>

enum loss_peer {
	LOSS_PEER_UNKNOWN,
	LOSS_PEER_DOUBTED, /* unknown, and one answer looked like a go-back-N peer's */
	LOSS_PEER_DROPS,   /* everything must be sent again (go-back-N) */
	LOSS_PEER_KEEPS,   /* only what was lost must be sent again */
	/* The peer keeps packets behind a lost one. It once accepted a packet that it had refused,
	   and none behind that, so it may drop packets behind a refusal. */
	LOSS_PEER_WAVERS,
	LOSS_PEER_SACK, /* it keeps them, and sends SACKs: a uroce peer (transport/sack.h) */
	LOSS_PEERS,
};

/* Evidence that an answer gives. Except for the capability bits, answers to the first transmission
 * of a packet give none. */
enum loss_evidence {
	LOSS_ANSWER_LEAPS, /* it covers packets that were not sent again: the peer has kept them */
	LOSS_ANSWER_STOPS, /* it covers the packet that was sent again, and none behind it */
	LOSS_NAK_FOLLOWS,  /* it is a NAK for the packet behind the one that was sent again */
	LOSS_REFUSAL_ENDS, /* it covers a packet that was refused before, and none behind it */
	LOSS_SACK_BEGINS,  /* it has the bits of a uroce responder (BTH_SACK_RESPONSE) */
	LOSS_SACK_ENDS,	   /* it does not have them */
	LOSS_EVIDENCES,
};

/** Return what is known about the peer after an answer. */
enum loss_peer loss_peer_after(enum loss_peer peer, enum loss_evidence evidence);

/** Return true if it is not known whether the peer keeps packets behind a lost one. */
static inline bool loss_peer_is_unknown(enum loss_peer peer)
{
	return peer == LOSS_PEER_UNKNOWN || peer == LOSS_PEER_DOUBTED;
}

#endif
