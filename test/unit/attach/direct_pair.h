/* SPDX-License-Identifier: BSD-3-Clause */
/* Two isolated processes of one owner, which the test plays, and a direct channel between them. */
#ifndef TEST_ATTACH_DIRECT_PAIR_H
#define TEST_ATTACH_DIRECT_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "client.h"
#include "memif/server_end.h"
#include "net/link.h"
#include "test.h"

#define SIDES  2
#define ROUNDS 40
#define BURST  32
#define RING   DIRECT_SLOTS

/* A process, and what the owner has of it. */
extern struct pair_side {
	struct share_client client; /* first */
	struct link link;
	uint32_t qpn_first;
	int called_fd; /* the socket to the owner, until the port takes it; -1 */
	int called_doorbell_fd;
	int owner_fd; /* the owner's end of that socket */
	struct memif_server owner;
	uint32_t passed; /* packets that the owner has passed on to it */
} pair_sides[SIDES];

/* The fields of a frame. */
struct pair_wish {
	uint8_t opcode;
	uint32_t src_qpn, dest_qpn;
	const uint8_t *src_mac;
	const char *from;
};

/** Make and end it: fixtures of each test. */
int pair_set_up(TEST_STATE);
int pair_tear_down(TEST_STATE);

/** Handle all that has happened to the connections. */
void pair_run(void);

/** Offer a process, on this side of it, a direct channel with a process that has these numbers. */
void pair_offer_to(struct pair_side *side, uint16_t at, uint32_t qpn_first, int memory_fd,
		   int doorbell_fd);

/** Make the memory of a channel. */
int pair_make_memory(void);

/** Offer both a direct channel, and return the owner's descriptor of it. */
int pair_offer(void);

/** The first channel of a process; NULL: it has none. */
struct client_direct *pair_channel(const struct pair_side *side);

/** How many channels a process has. */
uint32_t pair_count_channels(const struct pair_side *side);

/** The fields of a packet that the other process takes. */
struct pair_wish pair_wish_from(const struct pair_side *side);

/** Build a frame, which has a number in its payload. Returns its length. */
size_t pair_build(uint8_t *frame, const struct pair_wish *wish, uint8_t number);

/** Send a packet in an mbuf. Return false if it must wait. */
bool pair_try_wish(struct pair_side *side, const struct pair_wish *wish, uint8_t number);
bool pair_try_send(struct pair_side *side, uint8_t number);

/** Pass on what a process has sent through the owner. Returns how many packets there were. */
uint32_t pair_owner_pass(struct pair_side *from);

/** Receive once. Returns how many packets there were, and their numbers. */
uint16_t pair_receive(struct pair_side *side, uint8_t *numbers);

/** Receive one packet, which has this number. */
void pair_expect_one(struct pair_side *side, uint8_t number);

#endif
