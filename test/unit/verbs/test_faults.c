/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is taken away under a region becomes an error completion, whichever side it is on. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/guard.h"

#include "talk.h"
#include "test.h"

#define PAGE 4096

static struct talk talk;

static int set_up(void **state)
{
	return talk_set_up(&talk, state);
}

static int tear_down(void **state)
{
	return talk_tear_down(&talk, state);
}

TEST_FIXTURE(set_up, tear_down);

/* The ways to take pages away; the registered range begins in the page before. */
static void unmap(uint8_t *page)
{
	assert_int_equal(munmap(page, PAGE), 0);
}

static void protect(uint8_t *page)
{
	assert_int_equal(mprotect(page, PAGE, PROT_NONE), 0);
}

static void make_read_only(uint8_t *page)
{
	assert_int_equal(mprotect(page, PAGE, PROT_READ), 0);
}

/* A file in its place, that ends before it. */
static void cut_short(uint8_t *page)
{
	const int fd = memfd_create("short", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, PAGE), 0);
	assert_ptr_equal(mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0),
			 page);
	page[0] = 1;
	assert_int_equal(ftruncate(fd, 0), 0);
	close(fd);
}

/* An operation on two pages, of which the second is taken away, and the status of its completion.
 */
struct outcome {
	enum ibv_wr_opcode opcode;
	bool at_target; /* of A's request; else the source */
	enum ibv_wc_status of_a;
	enum ibv_wc_status of_b; /* of its receive request; IBV_WC_SUCCESS for none */
	bool event;		 /* B's queue pair tells of it */
};

static void expect(void **state, void (*take)(uint8_t *page), struct outcome outcome)
{
	struct ibv_sge from = talk_source(&talk, 8, TALK_BYTES - 8);
	struct ibv_sge to = talk_target(&talk, 0, TALK_BYTES);

	/* The test framework has set its own handlers since the regions were registered. */
	assert_int_equal(guard_install(), 0);
	if (outcome.opcode == IBV_WR_SEND)
		talk_recv(&talk, &to, 1);
	take((outcome.at_target ? talk.target : talk.source) + PAGE);
	talk_post(&talk, outcome.opcode, &from, 1);
	talk_wait(talk.a.cq, outcome.of_a);
	if (outcome.of_b != IBV_WC_SUCCESS)
		talk_wait(talk.b.cq, outcome.of_b);
	if (outcome.event)
		talk_event(*state, IBV_EVENT_QP_ACCESS_ERR);
}

static const struct outcome send_source = {.opcode = IBV_WR_SEND, .of_a = IBV_WC_LOC_PROT_ERR};
static const struct outcome send_target = {.opcode = IBV_WR_SEND,
					   .at_target = true,
					   .of_a = IBV_WC_REM_OP_ERR,
					   .of_b = IBV_WC_LOC_PROT_ERR};
static const struct outcome write_source = {.opcode = IBV_WR_RDMA_WRITE,
					    .of_a = IBV_WC_LOC_PROT_ERR};
static const struct outcome write_target = {.opcode = IBV_WR_RDMA_WRITE,
					    .at_target = true,
					    .of_a = IBV_WC_REM_ACCESS_ERR,
					    .event = true};
static const struct outcome read_sink = {.opcode = IBV_WR_RDMA_READ, .of_a = IBV_WC_LOC_PROT_ERR};
static const struct outcome read_target = {.opcode = IBV_WR_RDMA_READ,
					   .at_target = true,
					   .of_a = IBV_WC_REM_ACCESS_ERR,
					   .event = true};

TEST(send__from_unmapped_memory)
{
	expect(state, unmap, send_source);
}

TEST(send__from_a_file_cut_short)
{
	expect(state, cut_short, send_source);
}

TEST(send__into_unmapped_memory)
{
	expect(state, unmap, send_target);
	/* The bytes before the hole have arrived. */
	assert_memory_equal(talk.target, talk.source + 8, 3 * 1024);
}

TEST(send__into_read_only_memory)
{
	expect(state, make_read_only, send_target);
}

TEST(write__from_protected_memory)
{
	expect(state, protect, write_source);
}

TEST(write__into_unmapped_memory)
{
	expect(state, unmap, write_target);
}

TEST(write__into_read_only_memory)
{
	expect(state, make_read_only, write_target);
}

TEST(write__into_a_file_cut_short)
{
	expect(state, cut_short, write_target);
}

TEST(read__into_unmapped_memory)
{
	expect(state, unmap, read_sink);
}

TEST(read__of_unmapped_memory)
{
	expect(state, unmap, read_target);
	assert_memory_equal(talk.target, talk.source + 8, 3 * 1024);
}

TEST(read__of_a_file_cut_short)
{
	expect(state, cut_short, read_target);
}

TEST(atomic__on_unmapped_memory)
{
	struct ibv_sge result = talk_source(&talk, 0, 8);

	assert_int_equal(guard_install(), 0);
	unmap(talk.target);
	talk_post(&talk, IBV_WR_ATOMIC_FETCH_AND_ADD, &result, 1);
	talk_wait(talk.a.cq, IBV_WC_REM_ACCESS_ERR);
	talk_event(*state, IBV_EVENT_QP_ACCESS_ERR);
}

TEST(atomic__on_read_only_memory)
{
	struct ibv_sge result = talk_source(&talk, 0, 8);

	assert_int_equal(guard_install(), 0);
	make_read_only(talk.target);
	talk_post(&talk, IBV_WR_ATOMIC_CMP_AND_SWP, &result, 1);
	talk_wait(talk.a.cq, IBV_WC_REM_ACCESS_ERR);
	talk_event(*state, IBV_EVENT_QP_ACCESS_ERR);
}

TEST(atomic__with_its_result_into_unmapped_memory)
{
	struct ibv_sge result = talk_source(&talk, 0, 8);

	assert_int_equal(guard_install(), 0);
	unmap(talk.source);
	talk_post(&talk, IBV_WR_ATOMIC_FETCH_AND_ADD, &result, 1);
	talk_wait(talk.a.cq, IBV_WC_LOC_PROT_ERR);
	/* The atomic was executed nevertheless, once. */
	assert_int_equal(*(uint64_t *)(void *)talk.target, 1);
}

TEST(atomic_write__on_unmapped_memory)
{
	struct ibv_sge word = talk_source(&talk, 0, 8);

	assert_int_equal(guard_install(), 0);
	unmap(talk.target);
	talk_post(&talk, IBV_WR_ATOMIC_WRITE, &word, 1);
	talk_wait(talk.a.cq, IBV_WC_REM_ACCESS_ERR);
	talk_event(*state, IBV_EVENT_QP_ACCESS_ERR);
}

TEST(send__by_a_shared_queue_into_unmapped_memory)
{
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(talk.b.pd, &srq_init);
	struct ibv_qp *b = talk_shared(&talk, srq);
	struct ibv_sge from = talk_source(&talk, 0, 8), to = talk_target(&talk, 0, 8);
	struct ibv_recv_wr wr = {.sg_list = &to, .num_sge = 1}, *bad;

	assert_int_equal(guard_install(), 0);
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	unmap(talk.target);
	talk_post(&talk, IBV_WR_SEND, &from, 1);
	talk_wait(talk.a.cq, IBV_WC_REM_OP_ERR);
	talk_wait(talk.b.cq, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_destroy_qp(b), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* Requests before the one at fault complete, those behind it are flushed. */
TEST(send__fails_in_its_turn)
{
	struct ibv_sge good = talk_source(&talk, 0, 64), bad = talk_source(&talk, PAGE, 64);

	assert_int_equal(guard_install(), 0);
	unmap(talk.source + PAGE);
	fake.carries = false;
	talk_post(&talk, IBV_WR_RDMA_WRITE, &good, 1);
	talk_post(&talk, IBV_WR_RDMA_WRITE, &bad, 1);
	talk_post(&talk, IBV_WR_RDMA_WRITE, &good, 1);
	fake.carries = true;
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	talk_wait(talk.a.cq, IBV_WC_LOC_PROT_ERR);
	talk_wait(talk.a.cq, IBV_WC_WR_FLUSH_ERR);
	assert_memory_equal(talk.source, talk.target, 64);
}
