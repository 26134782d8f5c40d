/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/queue/sq_build.c. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "queue/ah.h"
#include "queue/sq_build.h"
#include "test.h"
#include "queues.h"

#define MAX_WR	   4
#define MAX_SGE	   3
#define MAX_INLINE 64

static struct sq sq;

static void create(enum ibv_qp_type type)
{
	const struct sq_attr attr = {
		.max_wr = MAX_WR, .max_sge = MAX_SGE, .max_inline = MAX_INLINE, .type = type};

	assert_int_equal(sq_init(&sq, &attr), 0);
}

static int set_up(TEST_STATE)
{
	create(IBV_QPT_RC);
	return 0;
}

static int tear_down(TEST_STATE)
{
	sq_fini(&sq);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static void start(void)
{
	sq_build_start(&sq, sq_opcodes(sq.attr.type));
}

static struct send_wqe *next(enum ibv_wr_opcode opcode)
{
	return sq_build_next(&sq, opcode, 1, 0);
}

static void sge(uint32_t length)
{
	const struct ibv_sge one = {.addr = 0x1000, .length = length, .lkey = 7};

	sq_build_sge_list(&sq, 1, &one);
}

/* Check that no request of the list was posted, and that the queue accepts the next list. */
static void expect_refused(int error)
{
	const uint32_t prod = sq_prod(&sq);

	assert_int_equal(sq_build_complete(&sq), error);
	assert_int_equal(sq_prod(&sq), prod);
	assert_true(rte_spinlock_trylock(&sq.lock.spin));
	rte_spinlock_unlock(&sq.lock.spin);
}

TEST(complete__shows_the_whole_list_at_once)
{
	const struct ibv_sge list[2] = {{1, 100, 2}, {3, 50, 4}};
	struct send_wqe *wqe;

	start();
	wqe = sq_build_next(&sq, IBV_WR_SEND, 11, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	assert_non_null(wqe);
	sq_build_sge_list(&sq, 2, list);
	wqe = sq_build_next(&sq, IBV_WR_RDMA_WRITE, 12, IBV_SEND_SOLICITED);
	assert_non_null(wqe);
	wqe->remote_addr = 0x123456789;
	wqe->rkey = 9;
	sge(10);
	assert_int_equal(sq_prod(&sq), 0);
	assert_int_equal(sq_build_complete(&sq), 0);
	assert_int_equal(sq_prod(&sq), 2);
	wqe = sq_at(&sq, 0);
	assert_int_equal(wqe->wr_id, 11);
	assert_int_equal(wqe->opcode, IBV_WR_SEND);
	assert_int_equal(wqe->flags, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	assert_int_equal(wqe->num_sge, 2);
	assert_int_equal(wqe->length, 150);
	assert_memory_equal(wqe->sge, list, sizeof(list));
	assert_false(wqe->started);
	wqe = sq_at(&sq, 1);
	assert_int_equal(wqe->wr_id, 12);
	assert_int_equal(wqe->flags, IBV_SEND_SOLICITED);
	assert_int_equal(wqe->remote_addr, 0x123456789);
	assert_int_equal(wqe->rkey, 9);
	assert_int_equal(wqe->length, 10);
}

TEST(complete__of_nothing_posts_nothing)
{
	start();
	assert_int_equal(sq_build_complete(&sq), 0);
	assert_int_equal(sq_prod(&sq), 0);
}

TEST(complete__a_message_may_have_no_data)
{
	start();
	assert_non_null(next(IBV_WR_SEND));
	assert_int_equal(sq_build_complete(&sq), 0);
	assert_int_equal(sq_at(&sq, 0)->length, 0);
	assert_int_equal(sq_at(&sq, 0)->num_sge, 0);
}

TEST(abort__forgets_the_list)
{
	start();
	assert_non_null(next(IBV_WR_SEND));
	sq_build_abort(&sq);
	assert_int_equal(sq_prod(&sq), 0);
	start();
	assert_int_equal(sq_build_complete(&sq), 0);
	assert_int_equal(sq_prod(&sq), 0);
}

TEST(next__a_full_queue_posts_nothing)
{
	start();
	for (int i = 0; i < MAX_WR; i++)
		assert_non_null(next(IBV_WR_SEND));
	assert_null(next(IBV_WR_SEND));
	assert_null(next(IBV_WR_SEND));
	expect_refused(ENOMEM);
	start();
	for (int i = 0; i < MAX_WR; i++)
		assert_non_null(next(IBV_WR_SEND));
	assert_int_equal(sq_build_complete(&sq), 0);
	start();
	assert_null(next(IBV_WR_SEND));
	expect_refused(ENOMEM);
	sq_pop(&sq);
	start();
	assert_non_null(next(IBV_WR_SEND));
	assert_int_equal(sq_build_complete(&sq), 0);
}

TEST(next__refuses_what_was_not_asked_for)
{
	sq_build_start(&sq, 1u << IBV_WR_SEND);
	assert_non_null(next(IBV_WR_SEND));
	assert_null(next(IBV_WR_RDMA_WRITE));
	assert_null(next(IBV_WR_SEND));
	expect_refused(EINVAL);
	start();
	assert_null(sq_build_next(&sq, IBV_WR_SEND, 1, IBV_SEND_IP_CSUM));
	expect_refused(EINVAL);
}

TEST(sge_list__refuses_what_is_too_long)
{
	struct ibv_sge list[MAX_SGE + 1];

	memset(list, 0, sizeof(list));
	start();
	next(IBV_WR_SEND);
	sq_build_sge_list(&sq, MAX_SGE + 1, list);
	expect_refused(EINVAL);
	list[0].length = 1u << 31;
	list[1].length = 1;
	start();
	next(IBV_WR_SEND);
	sq_build_sge_list(&sq, 2, list);
	expect_refused(EINVAL);
	start();
	next(IBV_WR_SEND);
	sq_build_sge_list(&sq, 1, list);
	assert_int_equal(sq_build_complete(&sq), 0);
}

TEST(inline__copies_at_once)
{
	char first[] = "abc", second[] = "defgh";
	const struct ibv_data_buf list[3] = {{first, 3}, {NULL, 0}, {second, 5}};

	start();
	assert_non_null(next(IBV_WR_SEND));
	sq_build_inline(&sq, 3, list);
	memset(first, 'x', 3);
	memset(second, 'x', 5);
	assert_int_equal(sq_build_complete(&sq), 0);
	assert_int_equal(sq_at(&sq, 0)->flags, IBV_SEND_INLINE);
	assert_int_equal(sq_at(&sq, 0)->length, 8);
	assert_memory_equal(sq_at(&sq, 0)->data, "abcdefgh", 8);
}

TEST(inline__refuses_what_does_not_fit)
{
	static uint8_t bytes[MAX_INLINE + 1];
	const struct ibv_data_buf fits[2] = {{bytes, MAX_INLINE - 1}, {bytes, 1}};
	const struct ibv_data_buf not [2] = {{bytes, MAX_INLINE}, {bytes, 1}};
	const struct ibv_data_buf wraps[2] = {{bytes, MAX_INLINE}, {bytes, SIZE_MAX}};

	start();
	next(IBV_WR_SEND);
	sq_build_inline(&sq, 2, not );
	expect_refused(EINVAL);
	start();
	next(IBV_WR_SEND);
	sq_build_inline(&sq, 2, wraps);
	expect_refused(EINVAL);
	start();
	next(IBV_WR_RDMA_READ);
	sq_build_inline(&sq, 2, fits);
	expect_refused(EINVAL);
	start();
	next(IBV_WR_SEND);
	sq_build_inline(&sq, 2, fits);
	assert_int_equal(sq_build_complete(&sq), 0);
}

TEST(complete__an_atomic_has_one_result)
{
	static const struct {
		uint64_t remote_addr;
		uint32_t length;
		int error;
	} cases[] = {{8, 8, 0}, {16, 100, 0}, {4, 8, 0}, {8, 7, EINVAL}, {8, 0, EINVAL}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct send_wqe *wqe;

		sq_clear(&sq);
		start();
		wqe = next(IBV_WR_ATOMIC_FETCH_AND_ADD);
		wqe->remote_addr = cases[i].remote_addr;
		if (cases[i].length > 0)
			sge(cases[i].length);
		/* The last of the list, or not. */
		if (i % 2)
			next(IBV_WR_SEND);
		assert_int_equal(sq_build_complete(&sq), cases[i].error);
		if (cases[i].error == 0) {
			assert_int_equal(sq_at(&sq, 0)->length, 8);
			assert_int_equal(sq_at(&sq, 0)->sge[0].length, 8);
		}
	}
}

/* The operands follow the entry of the result: a longer list would overwrite them, and a second
 * list of one entry would hide that. */
TEST(sq_build_sge_list__of_an_atomic_has_one_entry)
{
	const struct ibv_sge two[2] = {{.addr = 0x1000, .length = 8, .lkey = 7},
				       {.addr = 0x2000, .length = 8, .lkey = 7}};

	start();
	next(IBV_WR_ATOMIC_FETCH_AND_ADD);
	sq_build_sge_list(&sq, 2, two);
	sge(8);
	expect_refused(EINVAL);
}

TEST(atomic_write__has_its_data_and_takes_no_other)
{
	const uint8_t data[] = {1, 2, 3, 4, 5, 6, 7, 8};
	const struct ibv_data_buf other = {(void *)(uintptr_t)data, 8};
	const struct send_wqe *wqe = sq_at(&sq, 0);

	start();
	next(IBV_WR_ATOMIC_WRITE);
	sq_build_atomic_write(&sq, 0x1000, 9, data);
	assert_int_equal(sq_build_complete(&sq), 0);
	assert_int_equal(wqe->opcode, IBV_WR_ATOMIC_WRITE);
	assert_int_equal(wqe->remote_addr, 0x1000);
	assert_int_equal(wqe->rkey, 9);
	assert_int_equal(wqe->length, 8);
	assert_int_equal(wqe->flags, IBV_SEND_INLINE);
	assert_memory_equal(wqe->data, data, 8);
	start();
	next(IBV_WR_ATOMIC_WRITE);
	sq_build_atomic_write(&sq, 0x1000, 9, data);
	sge(8);
	expect_refused(EINVAL);
	start();
	next(IBV_WR_ATOMIC_WRITE);
	sq_build_atomic_write(&sq, 0x1000, 9, data);
	sq_build_inline(&sq, 1, &other);
	expect_refused(EINVAL);
	/* There is no such request, so there is nothing to describe. */
	sq_build_start(&sq, 1u << IBV_WR_SEND);
	assert_null(next(IBV_WR_ATOMIC_WRITE));
	sq_build_atomic_write(&sq, 0x1000, 9, data);
	expect_refused(EINVAL);
}

/* The window keeps its key until the list is posted, because the list may be aborted. */
TEST(bind__takes_the_lowest_byte_of_the_key)
{
	const struct ibv_mw_bind_info info = {.length = 0};
	struct ibv_mw mw = {.rkey = 0x3344};
	struct send_wqe *wqe;

	start();
	wqe = next(IBV_WR_BIND_MW);
	assert_int_equal(sq_fill_bind(wqe, &mw, 0xabcdef46, &info), 0);
	assert_int_equal(sq_build_complete(&sq), 0);
	assert_int_equal(sq_at(&sq, 0)->bind_window, 0x3344);
	assert_int_equal(sq_at(&sq, 0)->rkey, 0x3346);
	assert_int_equal(mw.rkey, 0x3344);
}

TEST(flush__says_what_and_how_far)
{
	static const struct {
		struct sq_flush flush;
		int error;
		uint32_t length;
	} cases[] = {
		{{0x1001, 100, 9, FETH_PLACE_GLOBAL, FETH_SELECT_RANGE}, 0, 100},
		{{0, 0, 9, FETH_PLACE_GLOBAL | FETH_PLACE_PERSISTENT, FETH_SELECT_RANGE}, 0, 0},
		{{0, 1u << 31, 9, FETH_PLACE_PERSISTENT, FETH_SELECT_RANGE}, 0, 1u << 31},
		{{0, SIZE_MAX, 9, FETH_PLACE_GLOBAL, FETH_SELECT_REGION}, 0, 0},
		{{0, (1u << 31) + 1, 9, FETH_PLACE_GLOBAL, FETH_SELECT_RANGE}, EINVAL, 0},
		{{0, 8, 9, 0, FETH_SELECT_RANGE}, EINVAL, 0},
		{{0, 8, 9, 4, FETH_SELECT_RANGE}, EINVAL, 0},
		{{0, 8, 9, FETH_PLACE_GLOBAL, 2}, EINVAL, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct send_wqe *wqe = sq_at(&sq, 0);

		sq_clear(&sq);
		start();
		next((enum ibv_wr_opcode)LATER_WR_FLUSH);
		sq_build_flush(&sq, &cases[i].flush);
		assert_int_equal(sq_build_complete(&sq), cases[i].error);
		if (cases[i].error != 0)
			continue;
		assert_int_equal(wqe->opcode, LATER_WR_FLUSH);
		assert_int_equal(wqe->remote_addr, cases[i].flush.remote_addr);
		assert_int_equal(wqe->rkey, 9);
		assert_int_equal(wqe->length, cases[i].length);
		assert_int_equal(wqe->flush_place, cases[i].flush.place);
		assert_int_equal(wqe->flush_select, cases[i].flush.select);
	}
	start();
	next((enum ibv_wr_opcode)LATER_WR_FLUSH);
	sq_build_flush(&sq, &cases[0].flush);
	sge(8);
	expect_refused(EINVAL);
}

TEST(complete__a_datagram_needs_an_address)
{
	struct ah ah = {.path = {.len = 42}};

	tear_down(state);
	create(IBV_QPT_UD);
	start();
	next(IBV_WR_SEND);
	expect_refused(EINVAL);
	start();
	next(IBV_WR_SEND);
	sq_build_datagram(&sq, NULL, 1, 2);
	expect_refused(EINVAL);
	start();
	next(IBV_WR_SEND);
	sq_build_datagram(&sq, &ah.ibv, 0x123456, 0x7654321);
	sge(5);
	assert_int_equal(sq_build_complete(&sq), 0);
	assert_int_equal(sq_at(&sq, 0)->remote_qpn, 0x123456);
	assert_int_equal(sq_at(&sq, 0)->remote_qkey, 0x7654321);
	assert_int_equal(sq_path(&sq, sq_at(&sq, 0))->len, 42);
	assert_int_equal(sq_at(&sq, 0)->length, 5);
}

TEST(complete__xrc_needs_a_number)
{
	tear_down(state);
	create(IBV_QPT_XRC_SEND);
	start();
	next(IBV_WR_SEND);
	expect_refused(EINVAL);
	start();
	next(IBV_WR_SEND);
	sq_build_srqn(&sq, 77);
	assert_int_equal(sq_build_complete(&sq), 0);
	assert_int_equal(sq_at(&sq, 0)->remote_srqn, 77);
}

TEST(setters__of_other_types_are_refused)
{
	struct ah ah = {.path = {.len = 42}};

	start();
	next(IBV_WR_SEND);
	sq_build_datagram(&sq, &ah.ibv, 1, 2);
	expect_refused(EINVAL);
	start();
	next(IBV_WR_SEND);
	sq_build_srqn(&sq, 1);
	expect_refused(EINVAL);
	/* Before the first request there is nothing to set. */
	start();
	sq_build_srqn(&sq, 1);
	sge(1);
	assert_int_equal(sq_build_complete(&sq), 0);
	assert_int_equal(sq_prod(&sq), 0);
}

struct poster {
	bool posted; /* atomic */
};

static void *post_thread(void *arg)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct poster *poster = arg;

	assert_int_equal(sq_post(&sq, IBV_QPT_RC, &wr, &bad), 0);
	__atomic_store_n(&poster->posted, true, __ATOMIC_SEQ_CST);
	return NULL;
}

TEST(start__keeps_others_out)
{
	struct poster poster = {.posted = false};
	pthread_t thread;

	start();
	assert_int_equal(pthread_create(&thread, NULL, post_thread, &poster), 0);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	assert_false(__atomic_load_n(&poster.posted, __ATOMIC_SEQ_CST));
	assert_non_null(next(IBV_WR_RDMA_WRITE));
	assert_int_equal(sq_build_complete(&sq), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(sq_prod(&sq), 2);
	assert_int_equal(sq_at(&sq, 0)->opcode, IBV_WR_RDMA_WRITE);
	assert_int_equal(sq_at(&sq, 1)->opcode, IBV_WR_SEND);
}
