/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that get lost on request: what a port has received is dropped at random before the engine
 * sees it. */
#ifndef TESTROCE_LOSS_H
#define TESTROCE_LOSS_H

#include <stdint.h>

struct port;

#define LOSS_REFUSED "packets can be lost on request only on a port of one's own"
#define LOSS_PPM_MAX 200000

/**
 * Drop so many of a million RoCE packets from here on; 0: none. Only while the engine is held.
 *
 * @return
 *   0; or -ENOTSUP: the port is another process's.
 */
int loss_set(struct port *port, uint64_t per_million, uint64_t seed);

#endif
