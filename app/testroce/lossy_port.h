/* SPDX-License-Identifier: BSD-3-Clause */
/* Packet loss on request: received packets are dropped at random before the engine sees them. */
#ifndef TESTROCE_LOSSY_PORT_H
#define TESTROCE_LOSSY_PORT_H

#include <stdint.h>

struct port;

#define LOSS_REFUSED "packets can be lost on request only on a port of one's own"
#define LOSS_PPM_MAX 200000

/**
 * Drop `per_million` of a million RoCE packets that the port of an engine receives from now on, by
 * the seed (impair/impair_path.h); 0 drops none. Only one device can lose packets. The caller must
 * hold all engines of the device.
 *
 * @return
 *   0; -ENOTSUP: the port is another process's; or -ENOMEM.
 */
int lossy_port_set(struct port *port, uint32_t engine, uint64_t per_million, uint64_t seed);

#endif
