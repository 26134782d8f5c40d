/* SPDX-License-Identifier: BSD-3-Clause */
/* The passive side of a test: serves what one active side asks for, and checks what it gets. */
#ifndef TESTROCE_PASSIVE_H
#define TESTROCE_PASSIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "endpoint.h"
#include "plan.h"

struct control_message;
struct mode;

struct passive {
	struct nic *nic;
	bool open; /* from OPEN to CLOSE: what follows is set */
	struct plan plan;
	const struct mode *mode;
	struct endpoint endpoint;
	struct endpoint_facts peer;
	struct slots slots;
	uint32_t connected; /* queue pairs */
	uint64_t *expected; /* of each queue pair: the count of its next message, where it sees them
			     */
	uint64_t messages;  /* seen */
	uint64_t sent_by_peer; /* told at CLOSE */
	uint64_t wrong;
	void *state; /* the mode's, from malloc */
	int failed;  /* -errno: a queue has failed, nothing more is served */
};

void passive_init(struct passive *passive, struct nic *nic);

/** Do what a message asks for, and make it the answer. */
void passive_answer(struct passive *passive, struct control_message *message);

/** Serve once; waits for nothing. */
void passive_turn(struct passive *passive);

/** End the test, if there is one. */
void passive_close(struct passive *passive);

/* State that modes have in common. */

/** Post a queue pair's receive requests, or those of the shared queue; the slots are theirs. 0 or
 * -errno. */
int passive_post_receives(struct passive *passive, unsigned int qp);

/**
 * Take received messages, give `each` (or NULL) its queue pair and bytes, and post their requests
 * again. 0 or -errno.
 */
int passive_receive(struct passive *passive,
		    void (*each)(struct passive *passive, uint32_t qp, void *bytes));

/** A message has come whose content is a pattern: check it and its place in the order. */
void passive_check_message(struct passive *passive, uint32_t qp, void *bytes);

/** At the end: as many have come as were sent. */
void passive_count_messages(struct passive *passive);

#endif
