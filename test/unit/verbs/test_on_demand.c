/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of on-demand regions whose memory is mapped, unmapped and mapped again while they are in
 * use. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/guard.h"

#include "held_pages.h"
#include "sanitizer.h"
#include "talk.h"
#include "test.h"

#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ON_DEMAND)

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

/* Let the target's region be an on-demand one. */
static void register_target(void *addr, size_t length)
{
	assert_int_equal(ibv_dereg_mr(talk.target_mr), 0);
	talk.target_mr = ibv_reg_mr(talk.b.pd, addr, length, ACCESS);
	assert_non_null(talk.target_mr);
	assert_int_equal(guard_install(), 0);
}

static void unmap_target(void)
{
	assert_int_equal(munmap(talk.target, TALK_BYTES), 0);
}

static void map_target(void)
{
	assert_ptr_equal(mmap(talk.target, TALK_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 talk.target);
}

static void write_to_target(enum ibv_wc_status status)
{
	struct ibv_sge from = talk_source(&talk, 0, TALK_BYTES);

	talk_post(&talk, IBV_WR_RDMA_WRITE, &from, 1);
	talk_wait(talk.a.cq, status);
	if (status == IBV_WC_SUCCESS)
		assert_memory_equal(talk.target, talk.source, TALK_BYTES);
}

TEST(explicit__memory_comes_after_the_region)
{
	unmap_target();
	register_target(talk.target, TALK_BYTES);
	map_target();
	write_to_target(IBV_WC_SUCCESS);
	/* Map other memory at the same place. */
	unmap_target();
	map_target();
	write_to_target(IBV_WC_SUCCESS);
	assert_int_equal(madvise(talk.target, TALK_BYTES, MADV_DONTNEED), 0);
	write_to_target(IBV_WC_SUCCESS);
}

TEST(explicit__memory_that_is_not_there_is_an_error)
{
	register_target(talk.target, TALK_BYTES);
	unmap_target();
	write_to_target(IBV_WC_REM_ACCESS_ERR);
	talk_event(*state, IBV_EVENT_QP_ACCESS_ERR);
}

/* The region of everything, as target of each kind of operation, and as local memory. */
TEST(implicit__serves_every_operation)
{
	struct ibv_sge from, to, stack;
	uint64_t local[4] = {0};

	register_target(NULL, SIZE_MAX);
	assert_null(talk.target_mr->addr);
	assert_int_equal(talk.target_mr->length, SIZE_MAX);
	write_to_target(IBV_WC_SUCCESS);
	from = talk_source(&talk, 0, 64);
	to = talk_target(&talk, 100, 64);
	talk_recv(&talk, &to, 1);
	talk_post(&talk, IBV_WR_SEND, &from, 1);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	talk_wait(talk.b.cq, IBV_WC_SUCCESS);
	assert_memory_equal(talk.target + 100, talk.source, 64);
	talk_post(&talk, IBV_WR_RDMA_READ, &from, 1);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	assert_memory_equal(talk.target, talk.source, 64);
	from.length = 8;
	talk_post(&talk, IBV_WR_ATOMIC_FETCH_AND_ADD, &from, 1);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	/* The region even covers this function's frame. */
	stack = (struct ibv_sge){
		.addr = (uintptr_t)local, .length = sizeof(local), .lkey = talk.target_mr->lkey};
	from = talk_source(&talk, 0, sizeof(local));
	talk_recv(&talk, &stack, 1);
	talk_post(&talk, IBV_WR_SEND, &from, 1);
	talk_wait(talk.b.cq, IBV_WC_SUCCESS);
	assert_memory_equal(local, talk.source, sizeof(local));
}

TEST(implicit__null_is_not_in_it)
{
	struct ibv_sge from = talk_source(&talk, 0, 8);
	uint8_t *target = talk.target;

	register_target(NULL, SIZE_MAX);
	talk.target = NULL;
	talk_post(&talk, IBV_WR_RDMA_WRITE, &from, 1);
	talk.target = target;
	talk_wait(talk.a.cq, IBV_WC_REM_ACCESS_ERR);
	talk_event(*state, IBV_EVENT_QP_ACCESS_ERR);
}

TEST(advise_mr__errors_are_values)
{
	struct ibv_sge sge;

	sge = talk_target(&talk, 0, 8);
	assert_int_equal(ibv_advise_mr(talk.b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1),
			 ENOENT);
	register_target(talk.target, TALK_BYTES);
	sge = talk_target(&talk, 0, 8);
	assert_int_equal(ibv_advise_mr(talk.a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1),
			 EPERM);
	assert_int_equal(ibv_advise_mr(talk.b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0),
			 EINVAL);
	assert_int_equal(ibv_advise_mr(talk.b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 1u << 1, &sge, 1),
			 EINVAL);
	sge = talk_target(&talk, 0, TALK_BYTES + 1);
	assert_int_equal(ibv_advise_mr(talk.b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1),
			 EFAULT);
	sge = talk_target(&talk, 0, 8);
	assert_int_equal(ibv_advise_mr(talk.b.pd, (enum ibv_advise_mr_advice)77, 0, &sge, 1),
			 EOPNOTSUPP);
	unmap_target();
	assert_int_equal(ibv_advise_mr(talk.b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				       IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1),
			 EFAULT);
	map_target();
	assert_int_equal(ibv_advise_mr(talk.b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				       IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1),
			 0);
	assert_int_equal(ibv_advise_mr(talk.b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), 0);
	write_to_target(IBV_WC_SUCCESS);
}

/* A list so long that there is no memory to note its ranges in. */
TEST(advise_mr__no_memory)
{
	const uint32_t count = 1u << 26;
	struct ibv_sge sge = talk_target(&talk, 0, 8);
	struct rlimit before, limit;
	unsigned long pages = 0;
	FILE *statm;
	int rc;

	if (ADDRESS_SANITIZER || THREAD_SANITIZER)
		skip(); /* its allocator does not fail */
	statm = fopen("/proc/self/statm", "re");
	assert_non_null(statm);
	assert_int_equal(fscanf(statm, "%lu", &pages), 1);
	fclose(statm);
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	limit = before;
	limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + (64u << 20);
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	rc = ibv_advise_mr(talk.b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, count);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(rc, ENOMEM);
}

/* A thread that ends a region in one of several ways. */
struct ending {
	struct ibv_context *context; /* of the region's own */
	struct ibv_mr *mr;
	int (*end)(const struct ending *ending);
	int rc;
	bool done; /* atomic */
};

static int end_by_dereg(const struct ending *ending)
{
	return ibv_dereg_mr(ending->mr);
}

static int end_by_rereg(const struct ending *ending)
{
	return ibv_rereg_mr(ending->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS);
}

static int end_by_closing(const struct ending *ending)
{
	return ibv_close_device(ending->context);
}

static void *run_ending(void *arg)
{
	struct ending *ending = arg;

	ending->rc = ending->end(ending);
	__atomic_store_n(&ending->done, true, __ATOMIC_SEQ_CST);
	return NULL;
}

/* Wait until the thread has stopped the engine for the last time, and started it again. */
static void await_poll_of_the_engine(unsigned int locks)
{
	while (__atomic_load_n(&fake.locks, __ATOMIC_SEQ_CST) < locks ||
	       __atomic_load_n(&fake.locked, __ATOMIC_SEQ_CST))
		sched_yield();
}

/* The page may come by RDMA. */
static void check_ending(int (*end)(const struct ending *ending))
{
	uint8_t *page =
		mmap(NULL, TALK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ending ending = {.end = end, .context = ibv_open_device(talk.a.pd->context->device)};
	struct ibv_pd *pd = ibv_alloc_pd(ending.context);
	struct ibv_sge sge = {.addr = (uintptr_t)page, .length = 1};
	unsigned int locks;
	pthread_t thread;

	assert_ptr_not_equal(page, MAP_FAILED);
	ending.mr = ibv_reg_mr(pd, page, TALK_BYTES, ACCESS);
	assert_non_null(ending.mr);
	sge.lkey = ending.mr->lkey;
	held_pages_begin(page, TALK_BYTES);
	assert_int_equal(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &sge, 1), 0);
	held_pages_await();
	locks = __atomic_load_n(&fake.locks, __ATOMIC_SEQ_CST);
	assert_int_equal(pthread_create(&thread, NULL, run_ending, &ending), 0);
	/* ibv_rereg_mr stops it for its checks, too. */
	await_poll_of_the_engine(locks + (end == end_by_rereg ? 2 : 1));
	write_to_target(IBV_WC_SUCCESS);
	assert_false(__atomic_load_n(&ending.done, __ATOMIC_SEQ_CST));
	held_pages_end();
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(ending.rc, 0);
	if (end == end_by_rereg)
		assert_int_equal(ibv_dereg_mr(ending.mr), 0);
	if (end != end_by_closing) {
		assert_int_equal(ibv_dealloc_pd(pd), 0);
		assert_int_equal(ibv_close_device(ending.context), 0);
	}
	munmap(page, TALK_BYTES);
}

TEST(dereg_mr__lets_the_engine_run_while_advice_waits_for_a_page)
{
	check_ending(end_by_dereg);
}

TEST(rereg_mr__lets_the_engine_run_while_advice_waits_for_a_page)
{
	check_ending(end_by_rereg);
}

TEST(close_device__lets_the_engine_run_while_advice_waits_for_a_page)
{
	check_ending(end_by_closing);
}
