/* SPDX-License-Identifier: BSD-3-Clause */
/* The longest messages, on a real engine. Null regions, and regions that show the same pages again
 * and again, take no memory for them. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "live.h"
#include "long_memory.h"
#include "test.h"

#define LENGTH 0x80000000u /* IBTA 9.7.1 */
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static struct lane lane;
static struct ibv_mr *a, *b, *null;

static void fill(struct ibv_mr *mr, uint32_t seed)
{
	for (size_t i = 0; i < LONG_MEMORY_CHUNK; i++)
		((uint8_t *)mr->addr)[i] = (uint8_t)((i + seed) * 2654435761u >> 24);
}

static struct ibv_sge whole(const struct ibv_mr *mr)
{
	return (struct ibv_sge){.addr = (uintptr_t)mr->addr, .length = LENGTH, .lkey = mr->lkey};
}

static int set_up(TEST_STATE)
{
	struct ibv_context *context = live_open("4200");

	if (!context || !lane_open(&lane, context))
		return -1;
	a = ibv_reg_mr(lane.pd, long_memory(LENGTH), LENGTH, ACCESS);
	b = ibv_reg_mr(lane.pd, long_memory(LENGTH), LENGTH, ACCESS);
	null = ibv_alloc_null_mr(lane.pd);
	return a && b && null ? 0 : -1;
}

static int tear_down(TEST_STATE)
{
	return ibv_dereg_mr(a) || ibv_dereg_mr(b) || ibv_dereg_mr(null) || !lane_close(&lane);
}

TEST_GROUP(set_up, tear_down);

TEST(send__of_two_gib)
{
	const struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct ibv_sge sge = whole(null);
	struct ibv_wc wc;
	unsigned int seen = 0;

	assert_true(lane_recv(&lane, &sge));
	assert_true(lane_send(&lane, wr, &sge));
	while (seen < 2) {
		if (ibv_poll_cq(lane.cq, 1, &wc) == 0)
			continue;
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_RECV)
			assert_int_equal(wc.byte_len, LENGTH);
		seen++;
	}
}

static void expect_moved(enum ibv_wr_opcode opcode, struct ibv_mr *from, struct ibv_mr *to)
{
	const struct ibv_send_wr wr = {
		.opcode = opcode,
		.wr.rdma = {.remote_addr = (uintptr_t)b->addr, .rkey = b->rkey},
	};
	struct ibv_sge sge = whole(a);

	fill(from, opcode);
	memset(to->addr, 0, LONG_MEMORY_CHUNK);
	assert_true(lane_send(&lane, wr, &sge));
	assert_int_equal(lane_wait(&lane, 1), 1);
	assert_memory_equal(from->addr, to->addr, LONG_MEMORY_CHUNK);
}

TEST(write__of_two_gib)
{
	expect_moved(IBV_WR_RDMA_WRITE, a, b);
}

TEST(read__of_two_gib)
{
	expect_moved(IBV_WR_RDMA_READ, b, a);
}

TEST(send__of_more_is_refused)
{
	const struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct ibv_sge sge = whole(null);

	sge.length++;
	assert_false(lane_send(&lane, wr, &sge));
}
