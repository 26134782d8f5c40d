/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/pager.c and lib/mem/pages.c: pages that are not there, and come. */
#include <pthread.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/guard.h"
#include "away.h"
#include "env.h"
#include "mem/pager.h"
#include "test.h"

#define PATIENCE 5000 /* milliseconds */

static struct pager *pager;
static uint64_t now_ns;
static unsigned int told;    /* atomic */
static unsigned int threads; /* that were started */
static bool no_threads;
static bool never_runs;		     /* a thread that is started, */
static void *(*late_run)(void *arg); /* until this is called */
static void *late_arg;

static void (*then)(void); /* what else is done when a page has come */

static void came(void *user)
{
	if (then)
		then();
	__atomic_add_fetch((unsigned int *)user, 1, __ATOMIC_SEQ_CST);
}

static int start(void *(*run)(void *arg), void *arg)
{
	pthread_t thread;

	if (no_threads)
		return -EAGAIN;
	threads++;
	if (never_runs) {
		late_run = run;
		late_arg = arg;
		return 0;
	}
	return -pthread_create(&thread, NULL, run, arg) | -pthread_detach(thread);
}

static int set_up(TEST_STATE)
{
	const struct pager_config config = {
		.now_ns = &now_ns, .came = came, .user = &told, .start = start};

	if (env_set_up(state) != 0)
		return -1;
	now_ns = 1000000;
	told = 0;
	threads = 0;
	no_threads = false;
	never_runs = false;
	then = NULL;
	return pager_create(&config, &pager);
}

static int tear_down(TEST_STATE)
{
	pager_destroy(pager);
	return env_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

static bool look(unsigned int page, bool write)
{
	return pager->look(pager, (uintptr_t)env.memory + page * env.page,
			   (struct mr_touch){.now = 8}, write);
}

static void await_word(unsigned int times)
{
	for (int i = 0; i < PATIENCE && __atomic_load_n(&told, __ATOMIC_SEQ_CST) < times; i++)
		usleep(1000);
	assert_in_range(__atomic_load_n(&told, __ATOMIC_SEQ_CST), times, UINT32_MAX);
}

TEST(pager_look__of_a_page_that_is_there_needs_no_thread)
{
	env.memory[0] = 1;
	assert_true(look(0, true));
	assert_true(look(0, false));
	assert_int_equal(threads, 0);
}

TEST(pager_look__has_an_absent_page_brought_in_and_tells)
{
	assert_false(look(1, true));
	await_word(1);
	assert_true(look(1, true));
	assert_int_equal(env.memory[env.page], 0);
	assert_int_equal(threads, 1);
}

TEST(pager_look__brings_in_what_is_behind_as_well)
{
	const struct mr_touch touch = {.now = 8, .ahead = (uint32_t)(3 * env.page)};

	assert_false(pager->look(pager, (uintptr_t)env.memory, touch, true));
	await_word(1);
	for (int i = 0; i < PATIENCE && !look(3, true); i++)
		usleep(1000);
	assert_true(look(3, true));
}

TEST(pager_look__lets_go_on_what_cannot_be_touched)
{
	/* Registration does the same; cmocka sets its own handler before each test. */
	assert_int_equal(guard_install(), 0);
	assert_int_equal(mprotect(env.memory, env.page, PROT_NONE), 0);
	assert_false(look(0, false));
	await_word(1);
	/* The access itself finds out, now or when an answer has come that was dropped before. */
	assert_true(look(0, false));
	assert_true(look(0, false));
	/* The page may be there later. */
	now_ns += PAGER_FAILED_NS;
	assert_false(look(0, false));
	await_word(2);
	assert_int_equal(mprotect(env.memory, env.page, PROT_READ | PROT_WRITE), 0);
}

/* The second page was not tried, and may take long. */
TEST(pager_look__blames_the_page_that_cannot_be_touched)
{
	const struct mr_touch touch = {.now = (uint32_t)(2 * env.page)};

	assert_int_equal(guard_install(), 0);
	assert_int_equal(mprotect(env.memory, env.page, PROT_NONE), 0);
	assert_false(pager->look(pager, (uintptr_t)env.memory, touch, false));
	await_word(1);
	assert_false(look(1, false));
	await_word(2);
	assert_true(pager->look(pager, (uintptr_t)env.memory, touch, false));
	assert_int_equal(mprotect(env.memory, env.page, PROT_READ | PROT_WRITE), 0);
}

/* A list may name the same page more than once, or several such pages. */
TEST(mr_reach__ends_for_a_list_of_pages_that_cannot_be_touched)
{
	static const unsigned int pages[] = {0, 1, 0, 2};
	unsigned int rounds = 0, reached;
	uint8_t *addr;
	struct mr *mr;

	assert_int_equal(guard_install(), 0);
	env.pd->pager = pager;
	assert_int_equal(env_register(env.memory, 3 * env.page, RW | IBV_ACCESS_ON_DEMAND, &mr), 0);
	assert_int_equal(mprotect(env.memory, 3 * env.page, PROT_NONE), 0);
	do {
		for (reached = 0; reached < RTE_DIM(pages); reached++) {
			if (mr_reach(env.pd, mr->key,
				     (uintptr_t)env.memory + pages[reached] * env.page, 8, 0,
				     (struct mr_touch){.now = 8}, &addr) != MR_OK)
				break;
		}
		assert_in_range(++rounds, 1, RTE_DIM(pages));
		if (reached < RTE_DIM(pages))
			await_word(rounds);
	} while (reached < RTE_DIM(pages));
	assert_int_equal(mprotect(env.memory, 3 * env.page, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(mr_deregister(mr), 0);
}

static void want_third(void)
{
	then = NULL;
	assert_false(look(2, false));
}

/* Three pages are brought in one by one. A failure of the second says nothing about the third. */
TEST(pager_look__waits_for_what_is_behind_a_page_that_cannot_be_touched)
{
	const struct mr_touch touch = {.now = 8, .ahead = (uint32_t)(2 * env.page)};

	assert_int_equal(guard_install(), 0);
	assert_int_equal(mprotect(env.memory + env.page, env.page, PROT_NONE), 0);
	then = want_third;
	assert_false(pager->look(pager, (uintptr_t)env.memory, touch, false));
	await_word(2);
	assert_false(look(2, false));
	await_word(3);
	assert_true(look(2, false));
	assert_int_equal(mprotect(env.memory + env.page, env.page, PROT_READ | PROT_WRITE), 0);
}

TEST(pager_look__forgets_soon_what_was_there)
{
	env.memory[0] = 1;
	assert_true(look(0, false));
	assert_int_equal(madvise(env.memory, env.page, MADV_DONTNEED), 0);
	now_ns += PAGER_FRESH_NS;
	assert_false(look(0, false));
	await_word(1);
}

TEST(pager_look__without_a_thread_lets_the_access_wait)
{
	no_threads = true;
	assert_true(look(0, true));
}

/* The thread that waits for it, behind a userfaultfd perhaps, is not woken. */
TEST(pager_look__lets_go_on_what_was_unmapped_meanwhile)
{
	never_runs = true;
	assert_false(look(1, false));
	assert_false(look(1, false));
	assert_int_equal(munmap(env.memory + env.page, env.page), 0);
	assert_true(look(1, false));
	assert_int_equal(guard_install(), 0);
	never_runs = false;
	assert_int_equal(start(late_run, late_arg), 0);
	await_word(1);
}

/* The queue pair is not woken either when other memory is mapped there. */
TEST(pager_look__tries_again_what_takes_long)
{
	never_runs = true;
	assert_false(look(1, false));
	now_ns += PAGER_AGAIN_NS - 1;
	assert_false(look(1, false));
	assert_int_equal(threads, 1);
	now_ns++;
	assert_false(look(1, false));
	assert_int_equal(threads, 2);
	/* The number of tries is bounded. */
	now_ns += 2 * PAGER_AGAIN_NS - 1;
	assert_false(look(1, false));
	assert_int_equal(threads, 2);
	now_ns++;
	assert_false(look(1, false));
	assert_int_equal(threads, 3);
	never_runs = false;
	for (int i = 0; i < 3; i++)
		assert_int_equal(start(late_run, late_arg), 0);
	await_word(3);
	assert_true(look(1, false));
}

static unsigned int telling; /* atomic */

static void tell_slowly(void)
{
	__atomic_store_n(&telling, 1, __ATOMIC_SEQ_CST);
	usleep(20000);
}

static unsigned int staying; /* atomic */
static bool may_go;	     /* atomic */

static void stay(void)
{
	__atomic_add_fetch(&staying, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&may_go, __ATOMIC_SEQ_CST))
		usleep(1000);
}

/* A turn of the engine may meet very many absent pages, and takes no word of them meanwhile. */
TEST(pager_look__starts_no_more_threads_than_there_are_fetches)
{
	const unsigned int pages = PAGER_FETCHES + 6;
	uint8_t *memory = mmap(NULL, pages * env.page, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int absent = 0, started;

	assert_ptr_not_equal(memory, MAP_FAILED);
	madvise(memory, pages * env.page, MADV_NOHUGEPAGE);
	staying = 0;
	may_go = false;
	then = stay;
	for (unsigned int i = 0; i < pages; i++) {
		absent += !pager->look(pager, (uintptr_t)memory + i * env.page,
				       (struct mr_touch){.now = 8}, true);
		for (int j = 0; j < PATIENCE && i < PAGER_FETCHES &&
				__atomic_load_n(&staying, __ATOMIC_SEQ_CST) <= i;
		     j++)
			usleep(1000);
	}
	started = threads;
	__atomic_store_n(&may_go, true, __ATOMIC_SEQ_CST);
	assert_int_equal(absent, pages);
	assert_int_equal(started, PAGER_FETCHES);
	await_word(pages);
	munmap(memory, pages * env.page);
}

TEST(pager_destroy__waits_for_who_tells)
{
	then = tell_slowly;
	assert_false(look(1, true));
	for (int i = 0; i < PATIENCE && !__atomic_load_n(&telling, __ATOMIC_SEQ_CST); i++)
		usleep(1000);
	pager_destroy(pager);
	pager = NULL;
	assert_int_equal(__atomic_load_n(&told, __ATOMIC_SEQ_CST), 1);
	/* Let the pager's thread end. */
	usleep(20000);
}

TEST(mr_reach__asks_for_on_demand_regions_alone)
{
	uint8_t *addr;
	struct mr *mr;

	env.pd->pager = pager;
	assert_int_equal(env_register(env.memory, env.page, RW | IBV_ACCESS_ON_DEMAND, &mr), 0);
	assert_int_equal(mr_reach(env.pd, mr->key, (uintptr_t)env.memory, 8, IBV_ACCESS_LOCAL_WRITE,
				  (struct mr_touch){.now = 8}, &addr),
			 MR_ABSENT);
	assert_ptr_equal(addr, env.memory);
	/* The address alone is had at once, and checks come first. */
	assert_int_equal(mr_resolve(env.pd, mr->key, (uintptr_t)env.memory, 8, 0, &addr), MR_OK);
	assert_int_equal(mr_reach(env.pd, mr->key, (uintptr_t)env.memory, env.page + 1, 0,
				  (struct mr_touch){.now = 8}, &addr),
			 MR_OUT_OF_RANGE);
	await_word(1);
	assert_int_equal(mr_reach(env.pd, mr->key, (uintptr_t)env.memory, 8, IBV_ACCESS_LOCAL_WRITE,
				  (struct mr_touch){.now = 8}, &addr),
			 MR_OK);
	assert_int_equal(mr_deregister(mr), 0);
	assert_int_equal(env_register(env.memory, env.page, RW, &mr), 0);
	assert_int_equal(madvise(env.memory, env.page, MADV_DONTNEED), 0);
	now_ns += PAGER_FRESH_NS;
	assert_int_equal(mr_reach(env.pd, mr->key, (uintptr_t)env.memory, 8, IBV_ACCESS_LOCAL_WRITE,
				  (struct mr_touch){.now = 8}, &addr),
			 MR_OK);
	assert_int_equal(mr_deregister(mr), 0);
}

/* A list's entry may be longer than the region, and a touch beyond it reach a device. */
TEST(mr_reach__asks_for_nothing_behind_a_region)
{
	struct mr_touch touch = {.now = 8, .ahead = UINT32_MAX - 8};
	uint8_t *addr;
	struct mr *mr;

	away_begin(env.pd);
	assert_int_equal(env_register(env.memory, env.page, RW | IBV_ACCESS_ON_DEMAND, &mr), 0);
	assert_int_equal(mr_reach(env.pd, mr->key, (uintptr_t)env.memory + 16, 8, 0, touch, &addr),
			 MR_OK);
	assert_int_equal(away.touch.now, 8);
	assert_int_equal(away.touch.ahead, env.page - 24);
	assert_int_equal(mr_deregister(mr), 0);
}
