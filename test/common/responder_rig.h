/* SPDX-License-Identifier: BSD-3-Clause */
/* A responder with everything around it, and short names for the actions of its tests. */
#ifndef TEST_COMMON_RESPONDER_RIG_H
#define TEST_COMMON_RESPONDER_RIG_H

#include "fixture.h"
#include "transport/responder.h"
#include "wire/headers.h"

#define MTU	  256u
#define RESOURCES 2u
#define RNR_TIMER 14u
#define CQE	  8u
#define FIRST_PSN 0xfffffdu /* messages of four packets wrap */
#define ACK	  (AETH_ACK | AETH_CREDIT_NONE)
#define REMOTE	  (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define MEMORY	  4096u
#define INBOX	  (8 * MTU)
#define SEED	  9u

struct responder_rig {
	struct fixture fixture;
	struct region memory; /* MEMORY bytes with all rights */
	struct region inbox;  /* memory of the receive requests: INBOX bytes */
	struct replies replies;
	struct responder responder;
	struct receive receive;
	struct ibv_sge sge[PACKET_FRAGS_MAX];
	struct rq rq;
};

/* There is one rig at a time. It is static, because the functions of tests have no argument for it.
 */
extern struct responder_rig rig;

/* Functions for cmocka. */
int responder_rig_set_up(void **state);
int responder_rig_tear_down(void **state);
/* Restore the state at the start of a test. */
void responder_rig_renew(void);

/* Give the responder a packet, and check its invariants. */
enum fault rig_receive(const struct packet *packet);

/* Receive a packet from the peer; its PSN is counted from FIRST_PSN. */
enum fault rig_take(struct packet_fields fields);
#define EXPECT_FAULT(fault, op, number, ...)                                                      \
	assert_int_equal(                                                                         \
		rig_take((struct packet_fields){.opcode = (op), .psn = (number), ##__VA_ARGS__}), \
		fault)
#define EXPECT_TAKEN(...) EXPECT_FAULT(FAULT_NONE, __VA_ARGS__)
#define TO_MEMORY	  .iova = region_iova(&rig.memory, 0), .rkey = rig.memory.mr->key

/* Send the owed answers. Return how many packets they were. */
unsigned int rig_answers(void);
void expect_answer(unsigned int i, uint8_t operation, uint32_t psn);
void expect_no_answer(void);
/* Send the owed answers, and check that they are one acknowledgement or NAK. */
void expect_aeth(uint8_t syndrome, uint32_t psn, uint32_t msn);

void expect_memory_untouched(void);
/* Check that the pattern of the packet with this PSN is at `at`. */
void expect_payload(const uint8_t *at, uint32_t psn, uint32_t len);

/* Post a receive request of one entry. */
void rig_post(uint64_t wr_id, struct ibv_sge sge);
/* Return how many receive requests are left. */
uint32_t rig_posted(void);

/* Receive READs that use so many PSNs from `from` on, and send their responses. */
void rig_read_on(uint32_t from, uint32_t psns);

#endif
