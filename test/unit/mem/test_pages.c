/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/pages.c. */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "env.h"

#include "base/guard.h"
#include "held_pages.h"
#include "mem/pager.h"
#include "pages.h"
#include "skipped.h"
#include "test.h"

TEST_FIXTURE(env_set_up, env_tear_down);

#define NO_PAGEMAP (-1) /* mincore(2) is asked */

static uintptr_t at(size_t page)
{
	return (uintptr_t)env.memory + page * env.page;
}

static void expect(int fd, size_t first, unsigned int count, const bool *expected)
{
	bool there[ENV_PAGES];

	memset(there, 0xee, sizeof(there));
	errno = 77;
	pages_ask(fd, at(first), count, false, there);
	assert_int_equal(errno, 77);
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(there[i], expected[first + i]);
}

static unsigned int asked; /* calls of mincore */
static bool is_silent;	   /* it does not tell that a page is there */

int __real_mincore(void *addr, size_t length, unsigned char *vec);
int __wrap_mincore(void *addr, size_t length, unsigned char *vec);

int __wrap_mincore(void *addr, size_t length, unsigned char *vec)
{
	asked++;
	if (TEST_FILE_RUNS() && is_silent) {
		errno = ENOMEM;
		return -1;
	}
	return __real_mincore(addr, length, vec);
}

/* Both ways to ask agree, also about a page that is not mapped, which mincore refuses. */
TEST(pages_ask__tells_of_each_page_whether_it_is_there)
{
	static const bool expected[ENV_PAGES] = {false, true, false, true, true};
	const int fds[] = {pages_open(), NO_PAGEMAP};
	bool there[ENV_PAGES];

	assert_true(fds[0] >= 0);
	assert_int_equal(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
	for (size_t i = 0; i < ENV_PAGES; i++) {
		if (expected[i])
			*(uint8_t *)at(i) = 1;
	}
	for (size_t i = 0; i < 2; i++) {
		expect(fds[i], 0, ENV_PAGES, expected);
		expect(fds[i], 1, 1, expected);
		expect(fds[i], 2, 3, expected);
	}
	/* It was there a moment ago: no answer of before is left. */
	*(uint8_t *)at(6) = 1;
	for (size_t i = 0; i < 2; i++)
		pages_ask(fds[i], at(0), ENV_PAGES, false, there);
	assert_true(there[6]);
	assert_int_equal(munmap((void *)at(6), env.page), 0);
	for (size_t i = 0; i < 2; i++) {
		expect(fds[i], 0, ENV_PAGES, expected);
		expect(fds[i], 6, 1, expected);
	}
	pages_close(fds[0]);
}

TEST(pages_ask__asks_once_about_pages_that_are_all_mapped)
{
	bool there[ENV_PAGES];

	asked = 0;
	pages_ask(NO_PAGEMAP, at(0), ENV_PAGES, false, there);
	assert_int_equal(asked, 1);
	assert_int_equal(munmap((void *)at(6), env.page), 0);
	pages_ask(NO_PAGEMAP, at(0), ENV_PAGES, false, there);
	assert_int_equal(asked, 2 + ENV_PAGES);
}

TEST(pages_ask__of_no_more_pages_than_it_can)
{
	const size_t length = (PAGES_ASK_MAX + 1) * env.page;
	uint8_t *memory =
		mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int fds[] = {pages_open(), NO_PAGEMAP};

	assert_ptr_not_equal(memory, MAP_FAILED);
	madvise(memory, length, MADV_NOHUGEPAGE);
	memory[(PAGES_ASK_MAX - 1) * env.page] = 1;
	for (size_t i = 0; i < 2; i++) {
		bool there[PAGES_ASK_MAX + 1] = {[PAGES_ASK_MAX] = true};

		pages_ask(fds[i], (uintptr_t)memory, PAGES_ASK_MAX + 1, false, there);
		assert_false(there[PAGES_ASK_MAX - 2]);
		assert_true(there[PAGES_ASK_MAX - 1]);
		assert_true(there[PAGES_ASK_MAX]);
	}
	pages_close(fds[0]);
	munmap(memory, length);
}

/* A page behind a userfaultfd may be there for reading, while a write waits. */
TEST(pages_ask__for_writing_where_writes_wait)
{
	struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
	struct uffdio_register range = {.range = {.start = at(0), .len = 2 * env.page},
					.mode = UFFDIO_REGISTER_MODE_WP};
	struct uffdio_writeprotect protect = {.range = {.start = at(0), .len = env.page},
					      .mode = UFFDIO_WRITEPROTECT_MODE_WP};
	const int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC), fd = pages_open();
	bool there[2];

	memset(env.memory, 1, 2 * env.page);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) != 0 ||
	    ioctl(uffd, UFFDIO_REGISTER, &range) != 0 ||
	    ioctl(uffd, UFFDIO_WRITEPROTECT, &protect) != 0) {
		skipped_for("no userfaultfd here holds writes back");
		skip();
	}
	pages_ask(fd, at(0), 2, true, there);
	assert_false(there[0]);
	assert_true(there[1]);
	pages_ask(fd, at(0), 2, false, there);
	assert_true(there[0]);
	assert_true(there[1]);
	pages_close(fd);
	close(uffd);
}

/* The program has closed our descriptor, and got its number for a file of its own. */
TEST(pages_close__leaves_what_is_not_ours)
{
	const int ours = pages_open(), zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	bool there;

	*(uint8_t *)at(0) = 1;
	pages_ask(zeros, at(0), 1, false, &there);
	assert_true(there);
	assert_true(pages_are_reported(zeros));
	pages_close(zeros);
	assert_int_equal(fcntl(zeros, F_GETFD), FD_CLOEXEC);
	close(zeros);
	pages_close(ours);
	assert_int_equal(fcntl(ours, F_GETFD), -1);
	pages_close(NO_PAGEMAP);
}

TEST(pages_are_reported__either_way)
{
	const int fd = pages_open();

	assert_true(pages_are_reported(fd));
	assert_true(pages_are_reported(NO_PAGEMAP));
	pages_close(fd);
}

TEST(pager_create__not_where_nobody_tells)
{
	const struct pager_config config = {0};
	const rlim_t before = env_limit_descriptors(0);
	struct pager *pager;
	int rc;

	is_silent = true;
	rc = pager_create(&config, &pager);
	is_silent = false;
	env_limit_descriptors(before);
	assert_int_equal(rc, -EOPNOTSUPP);
}

TEST(pages_is_mapped__whether_or_not_the_page_is_there)
{
	assert_int_equal(munmap((void *)at(1), env.page), 0);
	*(uint8_t *)at(0) = 1;
	errno = ENOMEM; /* of an earlier call */
	assert_true(pages_is_mapped(at(0)));
	assert_true(pages_is_mapped(at(2)));
	assert_int_equal(errno, ENOMEM);
	errno = 77;
	assert_false(pages_is_mapped(at(1)));
	assert_int_equal(errno, 77);
}

static unsigned int present(void)
{
	bool there[ENV_PAGES];
	unsigned int mask = 0;

	pages_ask(NO_PAGEMAP, at(0), ENV_PAGES, false, there);
	for (unsigned int i = 0; i < ENV_PAGES; i++)
		mask |= (unsigned int)there[i] << i;
	return mask;
}

/* The kernel brings them in, or, if it cannot, an access to each. */
TEST(pages_touch__each_page_of_the_range_and_no_other)
{
	uintptr_t failed;

	assert_int_equal(guard_install(), 0);
	for (unsigned int refused = 0; refused < 2; refused++) {
		for (unsigned int write = 0; write < 2; write++) {
			held_pages_refuse(EINVAL, refused);
			assert_int_equal(pages_touch(at(2) - 1, env.page + 2, write, &failed), 0);
			assert_int_equal(present(), 0xe);
			held_pages_refuse(EINVAL, refused);
			assert_int_equal(pages_touch(at(5), env.page, write, &failed), 0);
			assert_int_equal(present(), 0x2e);
			assert_int_equal(madvise(env.memory, ENV_PAGES * env.page, MADV_DONTNEED),
					 0);
		}
	}
}

TEST(pages_touch__changes_no_byte)
{
	uintptr_t failed;

	assert_int_equal(guard_install(), 0);
	memset(env.memory, 0xa5, 2 * env.page);
	held_pages_refuse(EINVAL, 1);
	assert_int_equal(pages_touch(at(0), 2 * env.page, true, &failed), 0);
	for (size_t i = 0; i < 2 * env.page; i++)
		assert_int_equal(env.memory[i], 0xa5);
}

TEST(pages_touch__names_the_page_that_cannot_be_accessed)
{
	uintptr_t failed = 0;

	assert_int_equal(guard_install(), 0);
	assert_int_equal(mprotect((void *)at(1), env.page, PROT_READ), 0);
	for (unsigned int refused = 0; refused < 2; refused++) {
		held_pages_refuse(EINVAL, refused);
		assert_int_equal(pages_touch(at(0) + 8, 3 * env.page - 8, true, &failed), -EFAULT);
		assert_int_equal(failed, at(1));
		/* What is behind it was not accessed. */
		assert_int_equal(present() & 4, 0);
		held_pages_refuse(EINVAL, refused);
		assert_int_equal(pages_touch(at(1), 1, false, &failed), 0);
	}
}
