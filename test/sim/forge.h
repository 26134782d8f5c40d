/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Somebody on the network who knows addresses, queue pair numbers and even keys, but no PSN: he
 * sends packets of his own in between, and packets of earlier connections come late. None of them
 * hits a PSN that may be in flight, and so none may change memory, completions or states.
 */
#ifndef SIM_FORGE_H
#define SIM_FORGE_H

#include <stdint.h>

struct host;
struct sim;

#define FORGE_GHOSTS_MAX 64

/* A frame of an earlier connection. */
struct ghost {
	uint8_t *bytes;
	uint32_t len;
	int to; /* number of the end that it went to */
};

struct forger {
	struct ghost ghosts[FORGE_GHOSTS_MAX];
	unsigned int ghost_count;
	uint64_t ahead; /* requests sent from ahead of what is expected */
};

/** A frame left a host: somebody may send another one. */
void forge_sent(struct host *host, const uint8_t *frame, uint32_t len);

/** All queue pairs are reset, and are to be connected again: so that what is left of now is not far
 * from what comes then. */
void forge_reset(struct sim *sim);

/** The program has ended: forged packets have drawn no more answers than one each. */
void forge_check(struct sim *sim);

/** Forget what was kept. */
void forge_free(struct sim *sim);

#endif
