/* SPDX-License-Identifier: BSD-3-Clause */
/* A completer with a requester that sends, and everything around them. */
#ifndef TEST_COMMON_COMPLETER_RIG_H
#define TEST_COMMON_COMPLETER_RIG_H

#include <stddef.h>
#include <stdint.h>

#include "fixture.h"
#include "transport/completer.h"
#include "transport/requester.h"
#include "wire/headers.h"
#include "test.h"

#define MTU	   256u
#define FIRST_PSN  0xfffffeu
#define SEED	   3u
#define MEMORY	   (100 * MTU)
#define CQE	   16u
#define NOW_NS	   UINT64_C(1000000)
#define TIMEOUT_NS 5000u
#define RETRIES	   2
#define RNR_CODE   14 /* 1.28 ms */
#define RNR_NS	   1280000u
#define ACK	   (AETH_ACK | AETH_CREDIT_NONE)
#define SIGNALED   IBV_SEND_SIGNALED

struct completer_rig {
	struct fixture fixture;
	struct region memory;
	struct region readable; /* memory that may not be written */
	struct sq sq;
	struct loss loss;
	struct scoreboard board;
	struct requester requester;
	struct completer completer;
	struct ooo_pool *pool; /* the completer's pool, or NULL */
};

/* There is one rig at a time. It is static, because the functions of tests have no argument for it.
 */
extern struct completer_rig completer_rig;
/* The names are as short as in other tests; one library holds all their rigs. */
#define rig completer_rig

/* Functions for cmocka. */
int completer_rig_set_up(void **state);
int completer_rig_tear_down(void **state);

/* Post to the send queue. */
void post_list(uint64_t wr_id, enum ibv_wr_opcode opcode, unsigned int flags, struct ibv_sge *sge,
	       int num_sge);
/* Post signaled requests of the memory's first `length` bytes. */
void post(uint64_t wr_id, enum ibv_wr_opcode opcode, uint32_t length);
/* Send at most so many packets. Return how many were sent. */
unsigned int send_some(unsigned int budget);
unsigned int send_all(void);

/* Receive a response; its PSN is counted from FIRST_PSN. */
enum fault take(struct packet_fields fields);
#define EXPECT_FAULT(fault, op, number, ...)                                                  \
	assert_int_equal(                                                                     \
		take((struct packet_fields){.opcode = (op), .psn = (number), ##__VA_ARGS__}), \
		fault)
#define EXPECT_TAKEN(...) EXPECT_FAULT(FAULT_NONE, __VA_ARGS__)

void acknowledge(uint32_t psn);
/* Receive a NAK for a PSN sequence error. */
void nak(uint32_t psn);

struct ibv_wc expect_success(uint64_t wr_id);
void expect_none(void);
/* Give the completer a pool, so that it keeps responses that come out of order. */
void let_keep(void);

/* Check una and next; PSNs are counted from FIRST_PSN. */
void expect_flight(uint32_t una, uint32_t next);
/* Check that the payload of the response with this PSN is at `offset`. */
void expect_stored(size_t offset, uint32_t psn, uint32_t len);

#endif
