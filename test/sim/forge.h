/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An attacker on the network who knows addresses, queue pair numbers and even keys, but no PSN. He
 * sends his own packets in between, and packets of earlier connections arrive late. None of them
 * hits a PSN that may be in flight, so none may change memory, completions or states.
 */
#ifndef SIM_FORGE_H
#define SIM_FORGE_H

#include <stdint.h>

struct end;
struct sim;

#define FORGE_GHOSTS_MAX 64

/* A frame of the connection before RESET. */
struct ghost {
	uint8_t *bytes;
	uint32_t len;
	int to; /* number of the end that it went to */
};

struct forger {
	struct ghost ghosts[FORGE_GHOSTS_MAX];
	unsigned int ghost_count;
	uint64_t ahead; /* forged requests with a PSN ahead of the expected one */
};

/** Note that a frame leaves a host: the attacker may send a packet soon. */
void forge_sent(const struct end *from, const uint8_t *frame, uint32_t len);

/** Choose PSNs for the next connection of all queue pairs, near those of the one that was just
 * reset: its ghosts are ahead of them. */
void forge_reset(struct sim *sim);

/** Check at the end of a program that each forged packet has drawn one NAK at most. */
void forge_check(struct sim *sim);

/** Free the ghosts. */
void forge_free(struct sim *sim);

#endif
