/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/huge.c, of maps_check_huge, which older kernels leave it to, and of
 * mr_has_huge_pages. */
#include <stdio.h>
#include <stdlib.h>

#include <linux/memfd.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "env.h"
#include "huge.h"
#include "ioctl_instead.h"
#include "maps.h"
#include "open_fds.h"
#include "skipped.h"
#include "test.h"

static int tear_down(void **state)
{
	ioctl_instead = NULL;
	return env_tear_down(state);
}

TEST_FIXTURE(env_set_up, tear_down);

#define MB ((size_t)1 << 20)
#define GB ((size_t)1 << 30)

#define NOT_RESERVED (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

/* Check both ways to ask; they must agree. */
static void expect(const void *addr, size_t length, int rc)
{
	assert_int_equal(huge_check((uintptr_t)addr, length), rc);
	assert_int_equal(maps_check_huge((uintptr_t)addr, length), rc);
}

/* Address space of huge pages, of which none need exist. */
static uint8_t *reserve(size_t length, int flags)
{
	void *map = mmap(NULL, length, PROT_READ | PROT_WRITE, NOT_RESERVED | MAP_HUGETLB | flags,
			 -1, 0);

	if (map == MAP_FAILED) {
		skipped_for("this kernel or CPU has no huge pages of that size");
		skip();
	}
	return map;
}

TEST(huge_check__takes_pages_of_2_mib)
{
	uint8_t *map = reserve(4 * MB, 21 << MAP_HUGE_SHIFT);

	expect(map, 4 * MB, 0);
	expect(map + 1, 1, 0);
	expect(map + 2 * MB - 1, 2, 0);
	munmap(map, 4 * MB);
}

TEST(huge_check__takes_pages_of_1_gib)
{
	uint8_t *map = reserve(GB, 30 << MAP_HUGE_SHIFT);

	expect(map, GB, 0);
	expect(map + 17, 3, 0);
	munmap(map, GB);
}

TEST(huge_check__takes_a_memory_file_of_huge_pages)
{
	const int fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB);
	void *map;

	if (fd < 0)
		skip();
	assert_int_equal(ftruncate(fd, 2 * MB), 0);
	map = mmap(NULL, 2 * MB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	expect(map, 2 * MB, 0);
	munmap(map, 2 * MB);
	close(fd);
}

TEST(huge_check__refuses_ordinary_pages)
{
	expect(env.memory, 1, -EINVAL);
	expect(env.memory, ENV_PAGES * env.page, -EINVAL);
}

/* The kernel may split them. */
TEST(huge_check__refuses_transparent_huge_pages)
{
	uint8_t *map =
		mmap(NULL, 8 * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(map, MAP_FAILED);
	madvise(map, 8 * MB, MADV_HUGEPAGE);
	memset(map, 1, 8 * MB);
	expect(map, 8 * MB, -EINVAL);
	munmap(map, 8 * MB);
}

/* Huge pages, ordinary ones behind them, nothing behind those. */
TEST(huge_check__looks_at_every_mapping)
{
	uint8_t *map = reserve(6 * MB, 21 << MAP_HUGE_SHIFT);

	assert_int_equal(munmap(map + 2 * MB, 4 * MB), 0);
	assert_ptr_equal(
		mmap(map + 2 * MB, MB, PROT_READ | PROT_WRITE, NOT_RESERVED | MAP_FIXED, -1, 0),
		map + 2 * MB);
	expect(map, 2 * MB, 0);
	expect(map, 2 * MB + 1, -EINVAL);
	expect(map + 3 * MB, 1, -EFAULT);
	assert_int_equal(munmap(map + 2 * MB, MB), 0);
	expect(map, 2 * MB + 1, -EFAULT);
	munmap(map, 2 * MB);
}

static bool has_huge_pages(void *addr, size_t length, unsigned int access)
{
	const struct mr mr = {.addr = addr, .length = length, .access = access};

	return mr_has_huge_pages(&mr);
}

/* Programs such as SPDK register huge pages without the flag. */
TEST(mr_has_huge_pages__finds_them_without_the_flag)
{
	uint8_t *map = reserve(6 * MB, 21 << MAP_HUGE_SHIFT);

	assert_true(has_huge_pages(map, 6 * MB, 0));
	assert_true(has_huge_pages(map + 12345, 2 * MB, IBV_ACCESS_LOCAL_WRITE));
	assert_false(has_huge_pages(map, 2 * MB - 1, 0));
	assert_true(has_huge_pages(map, 1, IBV_ACCESS_HUGETLB));
	assert_int_equal(munmap(map + 2 * MB, 2 * MB), 0);
	assert_false(has_huge_pages(map, 4 * MB, 0));
	munmap(map, 6 * MB);
	map = mmap(NULL, 4 * MB, PROT_READ | PROT_WRITE, NOT_RESERVED, -1, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_false(has_huge_pages(map, 4 * MB, 0));
	munmap(map, 4 * MB);
}

TEST(huge_check__leaves_no_descriptor)
{
	const unsigned int before = fds_count();

	expect(env.memory, env.page, -EINVAL);
	assert_int_equal(fds_count(), before);
}

TEST(huge_check__of_nothing_promises_nothing)
{
	expect(NULL, 0, 0);
}

/* A program may have closed its standard input. */
TEST(huge_check__takes_the_first_descriptor)
{
	const int input = dup(STDIN_FILENO);

	close(STDIN_FILENO);
	errno = ENOMEM;
	expect(env.memory, env.page, -EINVAL);
	dup2(input, STDIN_FILENO);
	close(input);
}

/* The check needs a descriptor. Without one it cannot tell, so the error is not EINVAL. */
TEST(huge_check__without_descriptors_is_enomem)
{
	const rlim_t before = env_limit_descriptors(0);

	expect(env.memory, env.page, -ENOMEM);
	env_limit_descriptors(before);
	expect(env.memory, env.page, -EINVAL);
}

static int query_error;
static unsigned int queries;

/* Answer a query of a mapping with an error, or let it have huge pages up to the last address. */
static int answer_query(int fd, unsigned long request, void *arg)
{
	uint64_t *mapping = arg;

	(void)fd;
	assert_int_equal(_IOC_TYPE(request), 'f');
	assert_int_equal(_IOC_NR(request), 17);
	assert_int_equal(mapping[0], _IOC_SIZE(request));
	queries++;
	if (query_error != 0) {
		errno = query_error;
		return -1;
	}
	mapping[4] = UINT64_MAX;
	mapping[6] = 2 * MB;
	return 0;
}

/* The list of all mappings, which takes long, is for kernels that do not know the query. */
TEST(huge_check__believes_the_query_where_there_is_one)
{
	static const struct {
		int error;
		int rc;
	} cases[] = {
		{0, 0},
		{ENOENT, -EFAULT},
		{ENOMEM, -ENOMEM},
		{ENOTTY, -EINVAL}, /* as the list says */
		{EPERM, -EINVAL},
	};

	ioctl_instead = answer_query;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		queries = 0;
		query_error = cases[i].error;
		assert_int_equal(huge_check((uintptr_t)env.memory, env.page), cases[i].rc);
		assert_int_equal(queries, 1);
	}
	query_error = ENOTTY;
	assert_int_equal(huge_check(env.page, env.page), -EFAULT); /* nothing is mapped there */
}

/* Another thread prepares in this call of getpid, counted from 1 at the next one; 0: in none. */
static unsigned int other_thread_in;

pid_t __real_getpid(void);
pid_t __wrap_getpid(void);

pid_t __wrap_getpid(void)
{
	if (TEST_FILE_RUNS() && other_thread_in > 0 && --other_thread_in == 0)
		huge_prepare();
	return __real_getpid();
}

/* The second thread comes when the first one has stored its descriptor, and not yet said so. */
TEST(huge_prepare__in_two_threads_keeps_one_descriptor)
{
	const unsigned int before = fds_count();

	other_thread_in = 2;
	huge_prepare();
	assert_int_equal(fds_count(), before + 1);
}

TEST(huge_prepare__in_a_child_replaces_the_parents_descriptor)
{
	unsigned int before;
	int status;
	pid_t child;

	huge_prepare();
	child = fork();
	if (child == 0) {
		before = fds_count();
		huge_prepare();
		_exit(fds_count() == before ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* Ask in a child of a prepared process, which does not have the child's pages. */
static void ask_without_proc(void)
{
	char root[] = "/tmp/test-huge-XXXXXX";
	void *map = mmap(NULL, 2 * MB, PROT_READ | PROT_WRITE,
			 NOT_RESERVED | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT, -1, 0);
	int before, beyond, after, status;

	mr_prepare();
	if (map == MAP_FAILED || !mkdtemp(root) || chroot(root) != 0)
		_exit(1);
	before = huge_check((uintptr_t)map, 2 * MB);
	beyond = huge_check((uintptr_t)map, 2 * MB + 1);
	after = huge_check((uintptr_t)env.memory, env.page);
	/* A child's memory is another one. */
	if (fork() == 0)
		_exit(huge_check((uintptr_t)map, 2 * MB) == -EINVAL ? 0 : 1);
	wait(&status);
	_exit(before == 0 && beyond == -EINVAL && after == -EINVAL && status == 0 ? 0 : 2);
}

TEST(huge_check__needs_no_proc_once_it_is_prepared)
{
	int status;
	pid_t child;

	if (geteuid() != 0)
		skip();
	munmap(reserve(2 * MB, 21 << MAP_HUGE_SHIFT), 2 * MB);
	huge_prepare();
	child = fork();
	if (child == 0)
		ask_without_proc();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}
