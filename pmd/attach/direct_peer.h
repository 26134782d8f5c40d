/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Another isolated process of the same owner, with which this one has a direct memif. The other
 * process is not trusted: its packets are checked here, as the owner checks them.
 */
#ifndef DIRECT_PEER_H
#define DIRECT_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "held.h"
#include "port/memif_caller.h"
#include "port/port.h"
#include "share/message.h"

struct link;

/* A direct memif, used by the engine's thread only. */
struct direct_peer {
	struct port port; /* the direct memif */
	/* constant */
	struct port *main; /* counts what is dropped here */
	const struct link *link;
	const void *below;  /* ops_arg of the port to the owner */
	uint32_t qpn_first; /* of the other process */
	uint32_t qpn_count;

	enum direct_state {
		DIRECT_CONNECTS,
		/* Packets to the other process that went through the owner are still in flight.
		 * Packets of the direct memif must not overtake them. */
		DIRECT_SWITCHES,
		DIRECT_OPEN,
	} state;
	struct memif_mark sent; /* DIRECT_SWITCHES: the packets in flight */
	/* The same for the packets that are received. */
	enum {
		DIRECT_HEARS_NOTHING, /* no packet has come yet */
		DIRECT_HEARS_OWNER,   /* packets that came through the owner come first */
		DIRECT_HEARS_PEER,
	} hears;
	struct memif_mark arrived; /* DIRECT_HEARS_OWNER: these packets */
	uint32_t dropped;	   /* packets that the other process did not take in time */
	struct held held;
};

/**
 * Make one from an owner's offer. It takes over the descriptors, also if it fails.
 *
 * @param fds
 *   The SHARE_MEMIF_FDS descriptors of the offer.
 * @param link
 *   This process's own port to the owner, and its addresses.
 * @param below
 *   The ops_arg of that port, a memif of a caller.
 * @return
 *   NULL: no memory or descriptors.
 */
struct direct_peer *direct_peer_create(const struct share_offer *offer, const int *fds,
				       struct link *link, const void *below);

void direct_peer_destroy(struct direct_peer *peer);

/** Close the descriptors of an offer that is not taken. The owner and the other process see that
 * the socket was shut down. MT-safe. */
void direct_peer_refuse(const int *fds);

/** Return true if the process has these queue pair numbers and packets to them go this way, or wait
 * until they can. */
bool direct_peer_takes(struct direct_peer *peer, uint32_t qpn);

/** Return true if all packets that went through the owner have reached the other process, so that
 * packets can go this way now. */
bool direct_peer_is_open(struct direct_peer *peer);

/** Return true if packets to the process have to wait. */
static inline bool direct_peer_waits(const struct direct_peer *peer)
{
	return peer->held.count > 0;
}

/** Send held packets, or drop them if the process has taken none for too long. */
void direct_peer_send_held(struct direct_peer *peer);

/** Send packets, or hold them. Those for which there is no room are dropped. */
void direct_peer_send(struct direct_peer *peer, struct rte_mbuf **mbufs, uint16_t n);

/** Receive up to `n` packets, without those that the other process may not send. */
uint16_t direct_peer_receive(struct direct_peer *peer, struct rte_mbuf **mbufs, uint16_t n);

#endif
