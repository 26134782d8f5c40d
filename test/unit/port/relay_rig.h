/* SPDX-License-Identifier: BSD-3-Clause */
/* A relay, and the queue that its carrier's port may have for its engine. */
#ifndef RELAY_RIG_H
#define RELAY_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "port/port.h"
#include "port/relay.h"

#define SENDERS 2
#define FRAMES	4096u

extern struct relay_env {
	struct port main;
	struct port port;
	struct relay *relay;
	bool lost;
	int sent; /* calls of the carrier */
	struct rte_mbuf frames[SENDERS][FRAMES];
	/* the queue that the carrier's port has for the engine */
	struct {
		int opened, closed, destroyed;
		int refuses; /* -errno of the open */
		int fd;	     /* an eventfd */
		uint32_t number, count;
		struct rte_mbuf *waiting[8];
		uint16_t received, waits;
		uint16_t sent;
		bool unconnected;
		bool lost, given_up;
		bool full, cut;
		bool only_sends;
		bool without_fd;
		int disarmed;
		uint32_t len, qpn, ahead;
		int pushed, placed;
		uint8_t place[64], offer[64];
	} queue;
} env;

/** The queue's descriptor in the next set-up; -1: an eventfd. */
extern int relay_given_fd;

/** Functions for cmocka: a relay without a queue, with a queue, and with one in whose buffers
 * packets are built. */
int relay_set_up(void **state);
int relay_tear_down(void **state);
int relay_set_up_queue(void **state);
int relay_set_up_placing(void **state);
int relay_tear_down_placing(void **state);

/** Begin with a queue that refuses to be opened (-errno), that only sends, or that has no
 * descriptor. */
int relay_set_up_with(int refuses, bool only_sends, bool without_fd);

/** Return true if a thread that sleeps on the port's descriptor would wake. */
bool is_awake(void);

/** Let other threads give frames while this one sleeps as the helper does. A lost wake-up hangs the
 * program. */
void expect_all_to_come(void);

#endif
