/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends of a memif connection in one test. */
#ifndef MEMIF_ENDS_H
#define MEMIF_ENDS_H

#include "memif_port.h"
#include "port/port.h"

/** The connection's socket. */
extern char ends_path[64];

/** Make and remove the directory of the socket, once for all tests. */
int ends_set_up(void **state);
int ends_tear_down(void **state);

/** Open a port in a role, with more arguments, but without packet buffers: nothing is received. */
void ends_open(struct port *port, const char *role, const char *more);

/** A pool maker for port.make_pool that makes none. */
int ends_make_no_pool(struct port *port);
void ends_close(struct port *port);

/** Look as often as two ends need for all their messages, and a few times more. */
void ends_run(struct port *a, struct port *b);

/** Packets go both ways, and wake who has asked for that. */
void ends_expect_traffic(struct port *a, struct port *b);

/** Knock at the server's door. */
int ends_connect(void);

#endif
