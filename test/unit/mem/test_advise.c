/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/advise.c, and through it of lib/mem/prefetch.c. */
#include "env.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mem/advise.h"
#include "mem/mw.h"
#include "held_pages.h"
#include "sanitizer.h"
#include "skipped.h"
#include "test.h"

TEST_FIXTURE(env_set_up, env_tear_down);

#define READ	 IBV_ADVISE_MR_ADVICE_PREFETCH
#define WRITE	 IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE
#define NO_FAULT IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT
#define FLUSH	 IBV_ADVISE_MR_FLAG_FLUSH

#define ODP (RW | IBV_ACCESS_ON_DEMAND)

static struct ibv_sge sge_of(const struct mr *mr, const void *addr, uint32_t length)
{
	return (struct ibv_sge){.addr = (uintptr_t)addr, .length = length, .lkey = mr->key};
}

static int check(enum ibv_advise_mr_advice advice, struct ibv_sge sge)
{
	struct advise_range range;

	return advise_check(env.pd, advice, FLUSH, &sge, 1, &range);
}

/* Give the advice, and carry it out at once or by the thread. */
static int advise(enum ibv_advise_mr_advice advice, struct ibv_sge sge, bool later)
{
	struct advise_range range;
	int rc = advise_check(env.pd, advice, later ? 0 : FLUSH, &sge, 1, &range);

	if (rc == 0)
		rc = later ? advise_follow_later(advice, &range, 1)
			   : advise_follow(advice, &range, 1);
	return rc;
}

/* Return true if a page is mapped and in memory, as /proc/self/pagemap (proc(5)) shows it. */
static bool is_present(const void *addr)
{
	const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;

	assert_int_equal(pread(fd, &entry, sizeof(entry),
			       (off_t)((uintptr_t)addr / env.page * sizeof(entry))),
			 sizeof(entry));
	close(fd);
	return entry >> 63;
}

static unsigned int present_pages(void)
{
	unsigned int count = 0;

	for (size_t i = 0; i < ENV_PAGES; i++)
		count += is_present(env.memory + i * env.page);
	return count;
}

TEST(advise_check__advice_flags_and_list)
{
	struct mr *mr = env_region(env.page, ODP);
	struct ibv_sge sge = sge_of(mr, env.memory, 1);
	struct advise_range range;

	assert_int_equal(advise_check(env.pd, (enum ibv_advise_mr_advice)3, 0, &sge, 1, &range),
			 -EOPNOTSUPP);
	assert_int_equal(advise_check(env.pd, READ, FLUSH | 2, &sge, 1, &range), -EINVAL);
	assert_int_equal(advise_check(env.pd, READ, 0, &sge, 0, &range), -EINVAL);
	assert_int_equal(advise_check(env.pd, READ, 0, NULL, 1, &range), -EINVAL);
	assert_int_equal(advise_check(env.pd, READ, FLUSH, &sge, 1, &range), 0);
	assert_ptr_equal(range.mr, mr);
	assert_int_equal(range.addr, (uintptr_t)env.memory);
	assert_int_equal(range.length, 1);
	mr_deregister(mr);
}

TEST(advise_check__keys_of_no_on_demand_region)
{
	struct mr *pinned = env_region(env.page, RW), *null;
	struct ibv_sge stale;

	assert_int_equal(mr_create_null(env.pd, &null), 0);
	assert_int_equal(check(READ, sge_of(pinned, env.memory, 1)), -ENOENT);
	assert_int_equal(check(READ, sge_of(null, env.memory, 1)), -ENOENT);
	stale = sge_of(pinned, env.memory, 1);
	mr_deregister(pinned);
	mr_deregister(null);
	assert_int_equal(check(READ, stale), -ENOENT);
}

/* A window's key is refused even where its region is on-demand. */
TEST(advise_check__the_key_of_a_window)
{
	struct mr *mr = env_region(env.page, ODP | IBV_ACCESS_MW_BIND);
	struct mw_list bound = LIST_HEAD_INITIALIZER(bound);
	struct mw_binding binding = {.lkey = mr->key,
				     .addr = (uintptr_t)env.memory,
				     .length = env.page,
				     .access = IBV_ACCESS_REMOTE_READ};
	struct mw *mw;

	assert_int_equal(mw_create(env.pd, IBV_MW_TYPE_1, &mw), 0);
	assert_int_equal(check(READ, sge_of(&mw->view, env.memory, 1)), -EINVAL);
	binding.window = mw->view.key;
	binding.rkey = ibv_inc_rkey(mw->view.key);
	assert_int_equal(mw_bind(env.pd, 1, &bound, &binding), 0);
	assert_int_equal(check(READ, sge_of(&mw->view, env.memory, 1)), -EINVAL);
	mw_destroy(mw);
	mr_deregister(mr);
}

TEST(advise_check__regions_that_are_not_for_it)
{
	struct mr *mr = env_region(env.page, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_REMOTE_READ);
	struct ibv_sge sge = sge_of(mr, env.memory, 1);
	struct advise_range range;

	assert_int_equal(advise_check(env.other_pd, READ, 0, &sge, 1, &range), -EPERM);
	assert_int_equal(check(WRITE, sge), -EPERM);
	assert_int_equal(check(READ, sge), 0);
	assert_int_equal(check(NO_FAULT, sge), 0);
	mr_deregister(mr);
}

TEST(advise_check__what_is_not_in_the_region)
{
	struct mr *mr, *implicit;
	struct ibv_sge list[2];
	struct advise_range ranges[2];

	assert_int_equal(env_register(env.memory + env.page, env.page, ODP, &mr), 0);
	assert_int_equal(check(READ, sge_of(mr, env.memory + env.page, (uint32_t)env.page)), 0);
	assert_int_equal(check(READ, sge_of(mr, env.memory + env.page, (uint32_t)env.page + 1)),
			 -EFAULT);
	assert_int_equal(check(READ, sge_of(mr, env.memory + env.page - 1, 1)), -EFAULT);
	assert_int_equal(check(READ, sge_of(mr, env.memory + 2 * env.page, 1)), -EFAULT);
	assert_int_equal(check(READ, sge_of(mr, env.memory + 2 * env.page, 0)), 0);
	assert_int_equal(check(READ, sge_of(mr, env.memory + 2 * env.page + 1, 0)), -EFAULT);
	list[0] = sge_of(mr, env.memory + env.page, 1);
	list[1] = sge_of(mr, env.memory, 1);
	assert_int_equal(advise_check(env.pd, READ, 0, list, 2, ranges), -EFAULT);
	mr_deregister(mr);
	assert_int_equal(env_register(NULL, SIZE_MAX, ODP, &implicit), 0);
	assert_int_equal(check(READ, sge_of(implicit, env.memory, 1)), 0);
	assert_int_equal(check(READ, sge_of(implicit, NULL, 1)), -EFAULT);
	mr_deregister(implicit);
}

TEST(advise_follow__pages_become_present_and_no_others)
{
	struct mr *mr = env_region(ENV_PAGES * env.page, ODP);

	assert_int_equal(present_pages(), 0);
	assert_int_equal(advise(READ, sge_of(mr, env.memory + env.page - 1, 2), false), 0);
	assert_int_equal(present_pages(), 2);
	assert_int_equal(advise(WRITE, sge_of(mr, env.memory + 4 * env.page, 1), false), 0);
	assert_int_equal(present_pages(), 3);
	assert_true(is_present(env.memory + 4 * env.page));
	mr_deregister(mr);
}

/* A page that can be read need not be one that can be written. */
TEST(advise_follow__writing_needs_pages_that_may_be_written)
{
	const int fd = memfd_create("cow", MFD_CLOEXEC);
	struct mr *mr;
	uint8_t *map;

	assert_int_equal(ftruncate(fd, (off_t)env.page), 0);
	map = mmap(NULL, env.page, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(env_register(map, env.page, ODP, &mr), 0);
	assert_int_equal(advise(READ, sge_of(mr, map, 1), false), 0);
	/* The region grants it, the mapping does not. */
	assert_int_equal(advise(WRITE, sge_of(mr, map, 1), false), -EFAULT);
	assert_int_equal(mprotect(map, env.page, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(advise(WRITE, sge_of(mr, map, 1), false), 0);
	mr_deregister(mr);
	munmap(map, env.page);
	close(fd);
}

TEST(advise_follow__no_fault_brings_nothing_in)
{
	struct mr *mr = env_region(ENV_PAGES * env.page, ODP);
	const struct ibv_sge all = sge_of(mr, env.memory, (uint32_t)(ENV_PAGES * env.page));

	assert_int_equal(advise(NO_FAULT, all, false), 0);
	assert_int_equal(advise(NO_FAULT, all, true), 0);
	assert_int_equal(mr->prefetches, 0);
	assert_int_equal(present_pages(), 0);
	mr_deregister(mr);
}

TEST(advise_follow__what_is_not_mapped_is_a_fault)
{
	struct mr *mr = env_region(ENV_PAGES * env.page, ODP);
	const struct ibv_sge all = sge_of(mr, env.memory, (uint32_t)(ENV_PAGES * env.page));

	assert_int_equal(munmap(env.memory + env.page, env.page), 0);
	assert_int_equal(advise(READ, all, false), -EFAULT);
	assert_int_equal(advise(WRITE, all, false), -EFAULT);
	assert_int_equal(advise(NO_FAULT, all, false), -EFAULT);
	mr_deregister(mr);
}

static void wait_until_followed(struct mr *mr)
{
	while (__atomic_load_n(&mr->prefetches, __ATOMIC_ACQUIRE) > 0)
		sched_yield();
}

TEST(advise_follow_later__pages_become_present)
{
	struct mr *mr = env_region(ENV_PAGES * env.page, ODP);

	for (size_t i = 0; i < ENV_PAGES; i++)
		assert_int_equal(advise(i % 2 ? READ : WRITE,
					sge_of(mr, env.memory + i * env.page, 1), true),
				 0);
	wait_until_followed(mr);
	assert_int_equal(present_pages(), ENV_PAGES);
	/* The thread may have gone, or is not a child's; another one comes. */
	assert_int_equal(advise(READ, sge_of(mr, env.memory, 1), true), 0);
	wait_until_followed(mr);
	mr_deregister(mr);
}

/* The advice was being followed by a thread of the parent, which the child does not have. */
static int follow_in_child(void)
{
	struct mr *mr = env_region(ENV_PAGES * env.page, ODP);
	int status;
	pid_t child;

	for (int i = 0; i < 100; i++)
		advise(WRITE, sge_of(mr, env.memory, (uint32_t)(ENV_PAGES * env.page)), true);
	child = fork();
	if (child == 0) {
		struct mr *own = env_region(ENV_PAGES * env.page, ODP);

		alarm(60);
		advise(WRITE, sge_of(own, env.memory, 1), true);
		wait_until_followed(own);
		_exit(0);
	}
	wait_until_followed(mr);
	mr_deregister(mr);
	return waitpid(child, &status, 0) == child ? status : -1;
}

TEST(advise_follow_later__works_in_a_child)
{
	/* ThreadSanitizer forbids threads in a forked child; with AddressSanitizer, another thread
	 * may have held the heap's lock at the fork. */
	if (THREAD_SANITIZER || ADDRESS_SANITIZER)
		skip();
	for (int i = 0; i < 20; i++)
		assert_int_equal(follow_in_child(), 0);
}

TEST(advise_follow_later__faults_are_nobodys)
{
	struct mr *mr = env_region(ENV_PAGES * env.page, ODP);

	assert_int_equal(munmap(env.memory, env.page), 0);
	assert_int_equal(advise(READ, sge_of(mr, env.memory, 1), true), 0);
	wait_until_followed(mr);
	mr_deregister(mr);
}

/* End a region. The thread may be in the middle of its pages. */
static void deregister(struct mr *mr)
{
	while (mr_deregister(mr) == -EAGAIN)
		advise_wait(mr);
}

/* The engine is stopped meanwhile, and the page may come through it. */
TEST(advise_cancel__waits_for_no_page)
{
	const struct mr_change change = {.flags = IBV_REREG_MR_CHANGE_ACCESS, .access = ODP};
	struct mr *held = env_region(2 * env.page, ODP), *other;

	assert_int_equal(env_register(env.memory + 2 * env.page, env.page, ODP, &other), 0);
	held_pages_begin(env.memory, env.page);
	assert_int_equal(advise(WRITE, sge_of(held, env.memory, 1), true), 0);
	assert_int_equal(advise(WRITE, sge_of(held, env.memory + env.page, 1), true), 0);
	assert_int_equal(advise(WRITE, sge_of(other, env.memory + 2 * env.page, 1), true), 0);
	held_pages_await();
	/* Nothing has changed, but for the advice that the thread had not begun to follow. */
	assert_int_equal(mr_deregister(held), -EAGAIN);
	assert_int_equal(mr_apply_change(held, &change), -EAGAIN);
	assert_int_equal(held->prefetches, 1);
	assert_ptr_equal(key_table_find(env.keys, held->key), held);
	/* A region whose advice the thread has not begun to follow waits for nobody. */
	assert_int_equal(mr_deregister(other), 0);
	advise_wait(other);
	held_pages_end();
	advise_wait(held);
	assert_int_equal(held->prefetches, 0);
	assert_int_equal(mr_apply_change(held, &change), 0);
	assert_int_equal(mr_deregister(held), 0);
	assert_int_equal(present_pages(), 1);
	assert_true(is_present(env.memory));
}

/* The advice was about the old memory. */
/* The thread that has begun is the parent's. */
TEST(advise_cancel__of_a_child_waits_for_nobody)
{
	struct mr *held = env_region(env.page, ODP);
	int status;
	pid_t child;

	held_pages_begin(env.memory, env.page);
	assert_int_equal(advise(WRITE, sge_of(held, env.memory, 1), true), 0);
	held_pages_await();
	child = fork();
	if (child == 0)
		_exit(advise_cancel(held) ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	held_pages_end();
	wait_until_followed(held);
	deregister(held);
}

TEST(mr_apply_change__cancels_advice)
{
	const struct mr_change change = {.flags = IBV_REREG_MR_CHANGE_TRANSLATION,
					 .addr = env.memory + 2 * env.page,
					 .length = env.page};
	struct mr *held, *moved;

	assert_int_equal(env_register(env.memory, env.page, ODP, &held), 0);
	assert_int_equal(env_register(env.memory + env.page, env.page, ODP, &moved), 0);
	held_pages_begin(env.memory, env.page);
	assert_int_equal(advise(WRITE, sge_of(held, env.memory, 1), true), 0);
	assert_int_equal(advise(WRITE, sge_of(moved, env.memory + env.page, 1), true), 0);
	held_pages_await();
	assert_int_equal(mr_apply_change(moved, &change), 0);
	assert_int_equal(moved->prefetches, 0);
	held_pages_end();
	wait_until_followed(held);
	assert_int_equal(present_pages(), 1);
	deregister(moved);
	deregister(held);
}

/* After a region is deregistered, no page of it is faulted in. */
TEST(advise_cancel__nothing_happens_after_it)
{
	const size_t length = (size_t)64 << 20;
	uint8_t *big = mmap(NULL, length, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(big, MAP_FAILED);
	for (int i = 0; i < 20; i++) {
		struct mr *mr;

		assert_int_equal(env_register(big, length, ODP, &mr), 0);
		for (int j = 0; j < 4; j++)
			assert_int_equal(advise(WRITE, sge_of(mr, big, (uint32_t)length), true), 0);
		/* Deregister before the thread has begun, or while it works. */
		while (i % 2 && !is_present(big))
			sched_yield();
		deregister(mr);
		assert_int_equal(madvise(big, length, MADV_DONTNEED), 0);
		for (int j = 0; j < 100; j++)
			sched_yield();
		assert_false(is_present(big));
		assert_false(is_present(big + length - env.page));
	}
	munmap(big, length);
}

/* Pages that may only be read: advice to write them faults, and nobody is told. */
TEST(advise_follow_later__only_writing_needs_pages_that_may_be_written)
{
	const int fd = memfd_create("cow", MFD_CLOEXEC);
	uint8_t *map;
	struct mr *mr;

	assert_int_equal(ftruncate(fd, (off_t)env.page), 0);
	map = mmap(NULL, env.page, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(env_register(map, env.page, ODP, &mr), 0);
	assert_int_equal(advise(WRITE, sge_of(mr, map, 1), true), 0);
	wait_until_followed(mr);
	assert_false(is_present(map));
	assert_int_equal(advise(READ, sge_of(mr, map, 1), true), 0);
	wait_until_followed(mr);
	assert_true(is_present(map));
	deregister(mr);
	munmap(map, env.page);
	close(fd);
}

/* More than the thread faults in at once. */
TEST(advise_follow_later__of_a_long_range)
{
	const size_t length = ((size_t)3 << 20) + 1, mapped = (size_t)8 << 20;
	uint8_t *big =
		mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mr *mr;

	assert_ptr_not_equal(big, MAP_FAILED);
	madvise(big, mapped, MADV_NOHUGEPAGE);
	assert_int_equal(env_register(big, mapped, ODP, &mr), 0);
	assert_int_equal(advise(WRITE, sge_of(mr, big, (uint32_t)length), true), 0);
	wait_until_followed(mr);
	for (size_t at = 0; at < mapped; at += env.page)
		assert_int_equal(is_present(big + at), at < length);
	deregister(mr);
	munmap(big, mapped);
}

static void *wait_when_cancelled(void *arg)
{
	pthread_cancel(pthread_self());
	advise_wait(arg);
	return arg;
}

TEST(advise_wait__a_cancelled_thread_keeps_no_lock)
{
	struct mr *held = env_region(env.page, ODP);
	pthread_t thread;
	int now;

	held_pages_begin(env.memory, env.page);
	assert_int_equal(advise(WRITE, sge_of(held, env.memory, 1), true), 0);
	held_pages_await();
	assert_int_equal(pthread_create(&thread, NULL, wait_when_cancelled, held), 0);
	usleep(10000); /* so that it waits, most likely */
	alarm(30);
	assert_int_equal(mr_deregister(held), -EAGAIN);
	held_pages_end();
	assert_int_equal(pthread_join(thread, NULL), 0);
	advise_wait(held);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &now);
	assert_int_equal(now, PTHREAD_CANCEL_ENABLE);
	assert_int_equal(mr_deregister(held), 0);
	alarm(0);
}

/* Return the signals that every other thread of this process blocks. */
static unsigned long blocked_by_others(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned long all = ~0ul;
	struct dirent *task;

	assert_non_null(tasks);
	while ((task = readdir(tasks))) {
		unsigned long blocked;
		char path[300], line[200];
		FILE *status;

		if (task->d_name[0] == '.' || atoi(task->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", task->d_name);
		status = fopen(path, "re");
		while (status && fgets(line, sizeof(line), status)) {
			if (sscanf(line, "SigBlk: %lx", &blocked) == 1)
				all &= blocked;
		}
		if (status)
			fclose(status);
	}
	closedir(tasks);
	return all;
}

/* The program's signals are for its own threads. */
TEST(advise_follow_later__its_thread_takes_no_signals)
{
	struct mr *held;
	sigset_t before, after;

	if (THREAD_SANITIZER) {
		skipped_for("ThreadSanitizer has a thread of its own");
		skip();
	}
	held = env_region(env.page, ODP);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
	held_pages_begin(env.memory, env.page);
	assert_int_equal(advise(WRITE, sge_of(held, env.memory, 1), true), 0);
	held_pages_await();
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
	assert_int_not_equal(blocked_by_others() & 1ul << (SIGTERM - 1), 0);
	assert_int_not_equal(blocked_by_others() & 1ul << (SIGUSR1 - 1), 0);
	for (int sig = 1; sig < 32; sig++)
		assert_int_equal(sigismember(&after, sig), sigismember(&before, sig));
	/* Nor did earlier tests leave one blocked. */
	assert_int_equal(sigismember(&after, SIGTERM), 0);
	held_pages_end();
	advise_wait(held);
	deregister(held);
}
