/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/engine/paging.c: a page comes, and whoever waits for it is run. */
#include <dirent.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mem/pager.h"
#include "paging.h"
#include "engine_rig.h"
#include "test.h"

TEST_GROUP(rig_group_set_up, NULL);

static uint8_t *page;
static size_t page_bytes;

static int set_up(TEST_STATE)
{
	page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	page = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED || rig_begin(SETTINGS_PROGRESS_INLINE) != 0)
		return -1;
	paging_start(engine);
	return engine->device->pager ? 0 : -1;
}

static int tear_down(TEST_STATE)
{
	pager_destroy(engine->device->pager);
	engine->device->pager = NULL;
	munmap(page, page_bytes);
	return rig_tear_down(NULL);
}

TEST_FIXTURE(set_up, tear_down);

static bool look(void)
{
	struct pager *pager = engine->device->pager;

	return pager->look(pager, (uintptr_t)page, (struct mr_touch){.now = 1}, true);
}

/* A queue pair meets the page, in an engine poll, and waits. */
static void meet(void)
{
	fake_waiting = &qp;
	assert_false(look());
}

static unsigned int runs(void)
{
	return __atomic_load_n(&qp.runs, __ATOMIC_ACQUIRE);
}

static bool eventually_runs(unsigned int want)
{
	for (int i = 0; i < TIMEOUT_MS && runs() < want; i++)
		usleep(1000);
	return runs() == want;
}

static bool came(void)
{
	return __atomic_load_n(&engine->pages_came, __ATOMIC_SEQ_CST);
}

static void await_word(void)
{
	for (int i = 0; i < TIMEOUT_MS && !came(); i++)
		usleep(1000);
	assert_true(came());
}

TEST(paging_came__runs_who_waits_where_nobody_drives_the_engine)
{
	assert_true(engine_try(engine));
	meet();
	engine_release(engine);
	assert_true(eventually_runs(1));
	assert_false(came());
	assert_null(fake_waiting);
	/* The engine was given back. */
	assert_true(engine_try(engine));
	assert_true(look());
	engine_release(engine);
}

TEST(paging_came__waits_for_an_owner_that_has_looked_already)
{
	assert_true(engine_try(engine));
	meet();
	await_word();
	assert_int_equal(runs(), 0);
	engine_release(engine);
	assert_true(eventually_runs(1));
}

TEST(paging_came__leaves_it_to_the_owner_where_that_looks)
{
	assert_true(engine_try(engine));
	meet();
	await_word();
	engine_poll(engine);
	assert_false(came());
	assert_int_equal(runs(), 1);
	engine_release(engine);
	/* The page that comes next is another word. */
	usleep(10000);
	assert_int_equal(runs(), 1);
}

TEST(paging_came__ends_with_the_engine)
{
	assert_true(engine_try(engine));
	meet();
	await_word();
	__atomic_store_n(&engine->ended, true, __ATOMIC_SEQ_CST);
	/* Destroying the pager waits for threads that report a page. */
	pager_destroy(engine->device->pager);
	engine->device->pager = NULL;
	assert_int_equal(runs(), 0);
	__atomic_store_n(&engine->ended, false, __ATOMIC_SEQ_CST);
	engine_release(engine);
}

static unsigned int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n - 2;
}

/* Use on-demand memory in a child, which has none of the pager's threads and may find its lock
 * held. */
static int live_as_child(void)
{
	engine_disown(engine);
	return threads() == 1 ? 0 : 1;
}

TEST(paging__goes_on_beside_a_child)
{
	int status = -1;
	pid_t pid;

	assert_true(engine_try(engine));
	meet();
	pid = fork();
	if (pid == 0)
		_exit(live_as_child());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	engine_release(engine);
	assert_true(eventually_runs(1));
}
