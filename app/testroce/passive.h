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
	bool open; /* true from OPEN to CLOSE; the members below are valid then */
	struct plan plan;
	const struct mode *mode;
	struct endpoint endpoint;
	struct endpoint_facts peer;
	struct slots slots;
	uint32_t connected;    /* queue pairs */
	uint64_t *expected;    /* of each queue pair: the count of its next message, if the mode can
				  count */
	uint64_t messages;     /* seen */
	uint64_t sent_by_peer; /* told at CLOSE */
	uint64_t wrong;
	void *state; /* the mode's, from malloc */
	int failed;  /* -errno: a queue has failed, and the test is served no more */
};

void passive_init(struct passive *passive, struct nic *nic);

/** Execute a request and turn the message into its answer. */
void passive_answer(struct passive *passive, struct control_message *message);

/** Serve the test once, without waiting. */
void passive_poll(struct passive *passive);

/** End the test, if there is one. */
void passive_close(struct passive *passive);

/* Functions that several modes use. */

/** Post all receive requests of a queue pair or of the shared receive queue; each request owns one
 * slot. Returns 0 or -errno. */
int passive_post_receives(struct passive *passive, unsigned int qp);

/** Poll received messages, let the mode check each if messages are verified, and repost its receive
 * request. Returns 0 or -errno. */
int passive_receive(struct passive *passive);

/** Check the pattern of a received message and its place in the order. */
void passive_check_message(struct passive *passive, uint32_t qp, void *bytes);

/** Check at the end that all sent messages were received. */
void passive_count_messages(struct passive *passive);

#endif
