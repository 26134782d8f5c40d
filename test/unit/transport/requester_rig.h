/* SPDX-License-Identifier: BSD-3-Clause */
/* A requester with a send queue and everything around it, for the tests of
 * lib/transport/requester.c. */
#ifndef TEST_TRANSPORT_REQUESTER_RIG_H
#define TEST_TRANSPORT_REQUESTER_RIG_H

#include "fixture.h"
#include "queues.h"
#include "transport/requester.h"
#include "test.h"

#define MTU	  256u
#define FIRST_PSN 0xfffffdu
#define SEED	  3u
#define MEMORY	  (300 * MTU)
#define RKEY	  0xabcd1234u
#define REMOTE	  UINT64_C(0x1122334455660000)
#define RESPONSES 2u /* the peer's responder resources */

struct requester_rig {
	struct fixture fixture;
	struct region memory;
	struct sq sq;
	struct scoreboard board;
	struct loss loss;
	struct requester requester;
	bool more; /* the newest requester_send could not send all */
};

/* There is one rig at a time. It is static, because the functions of tests have no argument for it.
 */
extern struct requester_rig rig;

/* Functions for cmocka. */
int requester_rig_set_up(void **state);
int requester_rig_tear_down(void **state);

/* Post a request; the rig fills in the remote address and key. */
void post_list(struct ibv_send_wr wr, struct ibv_sge *sge, int num_sge);
/* Post a request that uses the first `length` bytes of the memory. */
void post(enum ibv_wr_opcode opcode, uint32_t length, unsigned int flags);
/* Post a SEND of one byte with an invalid key. */
void post_bad(void);

/* Send at most so many packets. Return how many were sent. */
unsigned int send_some(unsigned int budget);
unsigned int send_all(void);

/* Do as the completer does when everything before this PSN is acknowledged: complete `pops`
 * requests. */
void acknowledge(uint32_t psn, unsigned int pops);

/* Check the i-th packet that was sent last; PSNs are counted from FIRST_PSN. */
const struct packet *packet_at(unsigned int i);
void expect_packet(unsigned int i, uint8_t operation, uint32_t psn);
/* Check that the payload is the memory's bytes from `offset` on. */
void expect_payload(unsigned int i, size_t offset, uint32_t len);
void expect_reth(unsigned int i, uint64_t offset, uint32_t length);

#endif
