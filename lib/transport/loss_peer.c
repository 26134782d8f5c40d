/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of what a requester learns about its peer. */
#include "transport/loss_peer.h"

#include <stdint.h>

#define UNKNOWN LOSS_PEER_UNKNOWN
#define DOUBTED LOSS_PEER_DOUBTED
#define DROPS	LOSS_PEER_DROPS
#define KEEPS	LOSS_PEER_KEEPS
#define WAVERS	LOSS_PEER_WAVERS
#define SACK	LOSS_PEER_SACK

/* clang-format off */
/* A peer that once kept packets may have had no room this time, so it is judged again. One NAK for
 * the next packet may mean that two adjacent packets were lost. */
static const uint8_t transitions[LOSS_PEERS][LOSS_EVIDENCES] = {
	/*                      LEAPS  STOPS    NAK_FOLLOWS  REFUSAL_ENDS  SACK_BEGINS  SACK_ENDS */
	[LOSS_PEER_UNKNOWN] = { KEEPS, DROPS,   DOUBTED,     DOUBTED,      SACK,        UNKNOWN },
	[LOSS_PEER_DOUBTED] = { KEEPS, DROPS,   DROPS,       DROPS,        SACK,        DOUBTED },
	[LOSS_PEER_DROPS]   = { KEEPS, DROPS,   DROPS,       DROPS,        SACK,        DROPS },
	[LOSS_PEER_KEEPS]   = { KEEPS, UNKNOWN, KEEPS,       WAVERS,       SACK,        KEEPS },
	[LOSS_PEER_WAVERS]  = { KEEPS, DOUBTED, WAVERS,      KEEPS,        SACK,        WAVERS },
	[LOSS_PEER_SACK]    = { SACK,  SACK,    SACK,        SACK,         SACK,        KEEPS },
};
/* clang-format on */

enum loss_peer loss_peer_after(enum loss_peer peer, enum loss_evidence evidence)
{
	return (enum loss_peer)transitions[peer][evidence];
}
