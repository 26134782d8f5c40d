/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/pager.c and lib/mem/pages.c: pages that are not there, and come. */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/guard.h"
#include "away.h"
#include "env.h"
#include "held_pages.h"
#include "mem/pager.h"
#include "open_fds.h"
#include "test.h"

#define TIMEOUT_MS 5000 /* milliseconds */

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
	now_ns = UINT64_C(1) << 60; /* any time */
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
	/* So that a leak is found. */
	pager = NULL;
	late_arg = NULL;
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
	for (int i = 0; i < TIMEOUT_MS && __atomic_load_n(&told, __ATOMIC_SEQ_CST) < times; i++)
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

TEST(pager_look__keeps_the_cancellation_of_the_thread)
{
	int now;

	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	assert_false(look(0, true));
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &now);
	assert_int_equal(now, PTHREAD_CANCEL_ENABLE);
	await_word(1);
}

TEST(pager_look__brings_in_what_is_behind_as_well)
{
	const struct mr_touch touch = {.now = 8, .ahead = (uint32_t)(3 * env.page)};

	assert_false(pager->look(pager, (uintptr_t)env.memory, touch, true));
	await_word(1);
	for (int i = 0; i < TIMEOUT_MS && !look(3, true); i++)
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

TEST(pager_look__blames_the_last_of_several_pages)
{
	const struct mr_touch touch = {.now = (uint32_t)(2 * env.page)};

	assert_int_equal(guard_install(), 0);
	assert_int_equal(mprotect(env.memory + env.page, env.page, PROT_NONE), 0);
	assert_false(pager->look(pager, (uintptr_t)env.memory, touch, false));
	await_word(1);
	assert_true(look(1, false));
	assert_int_equal(mprotect(env.memory + env.page, env.page, PROT_READ | PROT_WRITE), 0);
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

/* The kernel is not asked for each packet. */
TEST(pager_look__remembers_for_a_moment_what_was_there)
{
	env.memory[0] = 1;
	env.memory[env.page] = 1;
	assert_true(look(0, true));
	assert_true(look(1, false));
	assert_int_equal(madvise(env.memory, 2 * env.page, MADV_DONTNEED), 0);
	now_ns += PAGER_FRESH_NS - 1;
	/* A page that can be written can be read, but not the reverse. */
	assert_true(look(0, true));
	assert_true(look(0, false));
	assert_true(look(1, false));
	assert_false(look(1, true));
	now_ns++;
	assert_false(look(0, true));
	await_word(2);
}

/* Answers about one page are not taken for those about another. */
TEST(pager_look__remembers_each_page_that_it_asked_about)
{
	const struct mr_touch touch = {.now = 8, .ahead = (uint32_t)(3 * env.page - 8)};

	for (unsigned int page = 0; page < 4; page++)
		env.memory[page * env.page] = 1;
	assert_true(pager->look(pager, (uintptr_t)env.memory, touch, true));
	assert_int_equal(madvise(env.memory, 4 * env.page, MADV_DONTNEED), 0);
	for (unsigned int page = 0; page < 3; page++)
		assert_true(look(page, true));
	/* The first look has not asked the kernel about the fourth page. */
	assert_false(look(3, true));
	await_word(1);
}

/* One question to the kernel is about so many pages, and about no more. */
TEST(pager_look__asks_about_64_pages_at_once)
{
	const size_t bytes = 66 * env.page;
	const struct mr_touch touch = {.now = 8, .ahead = (uint32_t)(bytes - 8)};
	uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_true(pager->look(pager, (uintptr_t)memory, touch, true));
	assert_int_equal(madvise(memory, bytes, MADV_DONTNEED), 0);
	assert_true(pager->look(pager, (uintptr_t)memory + 63 * env.page,
				(struct mr_touch){.now = 8}, true));
	assert_false(pager->look(pager, (uintptr_t)memory + 64 * env.page,
				 (struct mr_touch){.now = 8}, true));
	await_word(1);
	munmap(memory, bytes);
}

static bool look_at(size_t offset, uint32_t now, uint32_t ahead)
{
	return pager->look(pager, (uintptr_t)env.memory + offset,
			   (struct mr_touch){.now = now, .ahead = ahead}, true);
}

TEST(pager_look__at_the_edges_of_pages)
{
	env.memory[0] = 1;
	assert_true(look_at(env.page - 8, 8, 0));
	assert_true(look_at(env.page - 1, 1, 1));
	assert_int_equal(threads, 0);
	assert_false(look_at(env.page - 8, 9, 0));
	await_word(1);
	assert_true(look_at(env.page - 8, 9, 0));
	assert_false(look_at(env.page, (uint32_t)(2 * env.page), 0));
	await_word(2);
	assert_true(look_at(env.page, (uint32_t)(2 * env.page), 0));
}

/* Post a fetch of 8 bytes and of `ahead` bytes behind them, which nobody serves. Return true if
 * another page is being fetched with it. */
static bool is_fetched_with(uint32_t ahead, size_t page)
{
	bool is;

	never_runs = true;
	assert_false(look_at(0, 8, ahead));
	assert_int_equal(threads, 1);
	assert_false(look((unsigned int)page, true));
	is = threads == 1;
	never_runs = false;
	for (unsigned int i = threads; i > 0; i--)
		assert_int_equal(start(late_run, late_arg), 0);
	await_word(1);
	return is;
}

TEST(pager_look__starts_no_fetch_of_what_is_being_fetched)
{
	assert_true(is_fetched_with(0, 0));
}

TEST(pager_look__fetches_up_to_the_last_byte_behind)
{
	assert_true(is_fetched_with((uint32_t)(2 * env.page) - 7, 2));
}

TEST(pager_look__fetches_no_byte_more)
{
	assert_false(is_fetched_with((uint32_t)(2 * env.page) - 8, 2));
}

/* Pages that are needed come together, and those behind them one by one. */
TEST(pager_look__brings_in_nothing_behind_what_it_was_asked_for)
{
	unsigned char there;

	never_runs = true;
	assert_false(look_at(0, (uint32_t)(2 * env.page), (uint32_t)env.page));
	assert_false(look(4, true));
	never_runs = false;
	/* One thread serves both. */
	assert_int_equal(start(late_run, late_arg), 0);
	await_word(2);
	assert_int_equal(mincore(env.memory + 2 * env.page, env.page, &there), 0);
	assert_true(there & 1);
	assert_int_equal(mincore(env.memory + 3 * env.page, env.page, &there), 0);
	assert_false(there & 1);
	assert_int_equal(start(late_run, late_arg), 0);
}

/* A fetch for writing serves a reader; one for reading does not serve a writer. */
TEST(pager_look__fetches_again_for_writing)
{
	never_runs = true;
	assert_false(look(0, false));
	assert_false(look(0, true));
	assert_int_equal(threads, 2);
	assert_false(look(1, true));
	assert_false(look(1, false));
	assert_int_equal(threads, 3);
	never_runs = false;
	for (int i = 0; i < 3; i++)
		assert_int_equal(start(late_run, late_arg), 0);
	await_word(3);
}

static void want_second(void)
{
	then = NULL;
	assert_false(look(1, false));
}

/* Each of the pages behind may take long. */
TEST(pager_look__tells_of_each_page_behind_when_it_has_come)
{
	const struct mr_touch touch = {.now = 8, .ahead = (uint32_t)(3 * env.page)};

	held_pages_begin(env.memory + 2 * env.page, env.page);
	then = want_second;
	assert_false(pager->look(pager, (uintptr_t)env.memory, touch, false));
	await_word(2);
	held_pages_await();
	assert_true(look(1, false));
	assert_false(look(2, false));
	held_pages_end();
	await_word(3);
	assert_true(look(2, false));
}

static unsigned char came_first[3];

static void note_first(void)
{
	then = NULL;
	if (mincore(env.memory + env.page, 3 * env.page, came_first) != 0)
		abort();
}

TEST(pager_look__serves_the_oldest_first)
{
	never_runs = true;
	assert_false(look(2, true));
	assert_false(look(1, true));
	assert_false(look(3, true));
	never_runs = false;
	then = note_first;
	assert_int_equal(start(late_run, late_arg), 0);
	await_word(3);
	assert_int_equal(came_first[0] & 1, 0);
	assert_int_equal(came_first[1] & 1, 1);
	assert_int_equal(came_first[2] & 1, 0);
	/* The other threads that were counted. */
	for (int i = 0; i < 2; i++)
		assert_int_equal(start(late_run, late_arg), 0);
}

static bool is_present(unsigned int page)
{
	unsigned char there;

	assert_int_equal(mincore(env.memory + page * env.page, env.page, &there), 0);
	return there & 1;
}

/* A thread fetches a page and tries two behind it, which nobody asks for. Then it fetches page 5.
 */
TEST(pager_look__tells_nothing_of_pages_that_nobody_wants)
{
	const struct mr_touch touch = {.now = 8, .ahead = (uint32_t)(2 * env.page)};

	assert_int_equal(guard_install(), 0);
	assert_int_equal(mprotect(env.memory + 2 * env.page, env.page, PROT_NONE), 0);
	never_runs = true;
	assert_false(pager->look(pager, (uintptr_t)env.memory, touch, true));
	assert_false(look(5, true));
	never_runs = false;
	assert_int_equal(start(late_run, late_arg), 0);
	for (int i = 0; i < TIMEOUT_MS && !is_present(5); i++)
		usleep(1000);
	await_word(2);
	assert_int_equal(__atomic_load_n(&told, __ATOMIC_SEQ_CST), 2);
	/* The pager does not remember that page 2 failed: it asks again. */
	assert_false(look(2, true));
	await_word(3);
	assert_true(look(2, true));
	assert_int_equal(mprotect(env.memory + 2 * env.page, env.page, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(start(late_run, late_arg), 0);
}

/* Return how many threads this process has beside this one, and whether all of them sleep. */
static unsigned int other_threads(bool *sleep)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned int count = 0;
	struct dirent *task;

	*sleep = true;
	assert_non_null(tasks);
	while ((task = readdir(tasks))) {
		char path[300], state = '?';
		FILE *stat;

		if (task->d_name[0] == '.' || atoi(task->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/stat", task->d_name);
		stat = fopen(path, "re");
		if (!stat)
			continue;
		count++;
		*sleep &= fscanf(stat, "%*d (%*[^)]) %c", &state) == 1 && state == 'S';
		fclose(stat);
	}
	closedir(tasks);
	return count;
}

static void await_sleepers(unsigned int count)
{
	bool sleep = false;
	unsigned int is = count + 1;

	for (int i = 0; i < TIMEOUT_MS && (is != count || !sleep); i++) {
		is = other_threads(&sleep);
		usleep(1000);
	}
	assert_int_equal(is, count);
	assert_true(sleep);
}

TEST(pager_look__wakes_a_thread_that_sleeps)
{
	await_sleepers(0);
	/* A fetch that found no thread is nobody's work. */
	no_threads = true;
	assert_true(look(4, true));
	no_threads = false;
	for (unsigned int i = 0; i < 4; i++) {
		assert_false(look(i, true));
		await_word(i + 1);
		await_sleepers(1);
	}
	assert_int_equal(threads, 1);
}

TEST(pager_look__leaves_a_few_threads_to_sleep)
{
	await_sleepers(0);
	never_runs = true;
	for (unsigned int i = 0; i < PAGER_IDLE + 2; i++)
		assert_false(look(i, true));
	never_runs = false;
	for (unsigned int i = 0; i < PAGER_IDLE + 2; i++)
		assert_int_equal(start(late_run, late_arg), 0);
	await_word(PAGER_IDLE + 2);
	await_sleepers(PAGER_IDLE);
	/* They all end with the pager. */
	pager_destroy(pager);
	pager = NULL;
	await_sleepers(0);
}

TEST(pager_look__without_a_thread_lets_the_access_wait)
{
	no_threads = true;
	assert_true(look(0, true));
	/* Nothing of it stays. */
	no_threads = false;
	never_runs = true;
	assert_false(look(0, true));
	assert_int_equal(threads, 1);
	/* The thread that there is will serve this one, too. */
	no_threads = true;
	assert_false(look(1, true));
	never_runs = false;
	no_threads = false;
	assert_int_equal(start(late_run, late_arg), 0);
	await_word(2);
	assert_true(look(0, true));
	assert_true(look(1, true));
}

/* There is room for some of them only, and the first one goes. */
TEST(pager_look__forgets_the_oldest_of_many_that_cannot_be_touched)
{
	const unsigned int pages = PAGER_FETCHES + 1;
	uint8_t *memory =
		mmap(NULL, pages * env.page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct mr_touch touch = {.now = 8};

	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(guard_install(), 0);
	for (unsigned int i = 0; i < pages; i++) {
		assert_false(pager->look(pager, (uintptr_t)memory + i * env.page, touch, false));
		await_word(i + 1);
	}
	for (unsigned int i = 1; i < pages; i++)
		assert_true(pager->look(pager, (uintptr_t)memory + i * env.page, touch, false));
	assert_false(pager->look(pager, (uintptr_t)memory, touch, false));
	await_word(pages + 1);
	munmap(memory, pages * env.page);
}

static uint64_t clock_of(void *user)
{
	assert_ptr_equal(user, &told);
	return now_ns + 1000;
}

TEST(pager_destroy__leaves_no_descriptor)
{
	const struct pager_config config = {
		.now_ns = &now_ns, .came = came, .user = &told, .start = start};
	const unsigned int before = fds_count();

	pager_destroy(pager);
	assert_int_equal(fds_count(), before - 1);
	assert_int_equal(pager_create(&config, &pager), 0);
}

/* now_ns may be the time of an idle engine. */
TEST(pager_look__by_the_clock_of_its_config)
{
	const struct pager_config config = {
		.clock = clock_of, .came = came, .user = &told, .start = start};

	pager_destroy(pager);
	assert_int_equal(pager_create(&config, &pager), 0);
	env.memory[0] = 1;
	assert_true(look(0, false));
	assert_int_equal(madvise(env.memory, env.page, MADV_DONTNEED), 0);
	assert_true(look(0, false));
	now_ns += PAGER_FRESH_NS;
	assert_false(look(0, false));
	await_word(1);
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

/* A poll of the engine may meet very many absent pages, and takes no word of them meanwhile. */
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
		for (int j = 0; j < TIMEOUT_MS && i < PAGER_FETCHES &&
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

/* The engine asks for one more page while all fetches bring in what is behind their pages. It must
 * hear of the first that ends, or it would never ask again. */
TEST(pager_look__tells_when_a_fetch_is_free_again)
{
	const size_t bytes = (2 * PAGER_FETCHES + 1) * env.page;
	uint8_t *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct mr_touch touch = {.now = 8, .ahead = (uint32_t)(2 * env.page - 8)};

	assert_ptr_not_equal(memory, MAP_FAILED);
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	staying = 0;
	may_go = false;
	then = stay;
	for (unsigned int i = 0; i < PAGER_FETCHES; i++) {
		pager->look(pager, (uintptr_t)memory + 2 * i * env.page, touch, true);
		for (int j = 0; j < TIMEOUT_MS && __atomic_load_n(&staying, __ATOMIC_SEQ_CST) <= i;
		     j++)
			usleep(1000);
	}
	assert_false(pager->look(pager, (uintptr_t)memory + bytes - env.page,
				 (struct mr_touch){.now = 8}, true));
	__atomic_store_n(&may_go, true, __ATOMIC_SEQ_CST);
	/* Each tells a second time, because the last page waits for any of them. */
	await_word(2 * PAGER_FETCHES);
	/* The memory stays: threads still touch it. */
}

TEST(pager_destroy__waits_for_who_tells)
{
	then = tell_slowly;
	assert_false(look(1, true));
	for (int i = 0; i < TIMEOUT_MS && !__atomic_load_n(&telling, __ATOMIC_SEQ_CST); i++)
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
