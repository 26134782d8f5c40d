/* SPDX-License-Identifier: BSD-3-Clause */
/* An owner of a port that takes nothing, and two processes that share memory with it. */
#ifndef PORT_RIG_H
#define PORT_RIG_H

#include <stdint.h>

#include "owner/arbiter.h"
#include "report/set.h"
#include "server.h"
#include "share/message.h"
#include "test.h"

#define PORT_RIG_PROCESSES 2
#define PORT_RIG_BUFFERS   64 /* of a process */

extern const uint8_t our_mac[6], peer_mac[6];

extern struct server server;			 /* what it is to send stays pending */
extern struct share_ring rx[PORT_RIG_PROCESSES]; /* what the processes receive */
extern struct share_ring tx[PORT_RIG_PROCESSES]; /* and send */
extern int sockets[PORT_RIG_PROCESSES];		 /* theirs */
extern uint32_t ids[PORT_RIG_PROCESSES];	 /* a communication id of each */
extern struct share_message welcomes[PORT_RIG_PROCESSES];

/** Start EAL, and make the pool of buffers; each process may hold so many of them. */
int port_rig_start(uint32_t buffers);
/** The same as a function for cmocka, with PORT_RIG_BUFFERS. */
int port_rig_group_setup(TEST_STATE);
int port_rig_group_teardown(TEST_STATE);

/** Find a ring of a process. */
void port_rig_find_ring(struct share_ring *ring, uint16_t n, enum share_ring_kind kind);

/** Attach the processes; they are in the slots 0 and 1. */
int port_rig_setup(TEST_STATE);

/** End them. Nothing keeps a buffer after that. */
int port_rig_teardown(TEST_STATE);

#endif
