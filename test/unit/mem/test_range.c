/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/range.c, and through it of maps_check_mapped. */

#include "env.h"

#include "base/reason.h"
#include "held_pages.h"
#include "maps.h"
#include "range.h"
#include "test.h"

TEST_FIXTURE(env_set_up, env_tear_down);

static uintptr_t at(size_t page)
{
	return (uintptr_t)env.memory + page * env.page;
}

static unsigned int present(size_t first, size_t pages)
{
	unsigned char resident[ENV_PAGES];
	unsigned int count = 0;

	assert_int_equal(mincore((void *)at(first), pages * env.page, resident), 0);
	for (size_t i = 0; i < pages; i++)
		count += resident[i] & 1;
	return count;
}

/* The page behind the last one must not be address 0. */
TEST(range_check__a_range_ends_before_the_last_page)
{
	const uintptr_t last = -(uintptr_t)env.page;

	assert_int_equal(range_check(last - 8, 8, 0, 0), 0);
	assert_int_equal(range_check(last, 0, 0, 0), 0);
	assert_int_equal(range_check(0, last, 0, 0), 0);
	assert_int_equal(range_check(last - 8, 9, 0, 0), -EINVAL);
	assert_int_equal(range_check(last + 1, 0, 0, 0), -EINVAL);
	assert_int_equal(range_check(UINTPTR_MAX, 1, 0, 0), -EINVAL);
	assert_int_equal(range_check(UINTPTR_MAX - 7, 9, 0, 0), -EINVAL);
	assert_int_equal(range_check(1, SIZE_MAX, 0, 0), -EINVAL);
}

TEST(range_check__the_iova_does_not_wrap_and_has_the_page_offset)
{
	const uint64_t last = -(uint64_t)env.page;

	assert_int_equal(range_check(at(0), env.page, last, 0), 0);
	assert_int_equal(range_check(at(0), env.page + 1, last, 0), -EINVAL);
	assert_int_equal(range_check(at(0) + env.page - 1, 1, UINT64_MAX, 0), 0);
	assert_int_equal(range_check(at(0) + env.page - 1, 0, UINT64_MAX, 0), 0);
	assert_int_equal(range_check(at(0) + env.page - 1, 2, UINT64_MAX, 0), -EINVAL);
	assert_int_equal(range_check(at(0) + 1, 1, env.page, 0), -EINVAL);
	assert_int_equal(range_check(at(0), 1, env.page + 1, 0), -EINVAL);
	assert_int_equal(range_check(at(0) + 1, 1, 0, 0), 0);
	/* A zero-based region has no other address. */
	assert_int_equal(range_check(at(0), 1, at(0), IBV_ACCESS_ZERO_BASED), 0);
	assert_int_equal(range_check(at(0), 1, at(1), IBV_ACCESS_ZERO_BASED), -EINVAL);
}

TEST(range_check_access__says_which_flags_are_unknown)
{
	reason_wanted = true;
	assert_int_equal(range_check_access(RW | 1u << 18 | IBV_ACCESS_OPTIONAL_FIRST), -EINVAL);
	assert_string_equal(reason_take(EINVAL),
			    "the access flags have 0x40000, which uroce does not know");
	reason_wanted = false;
}

TEST(range_check_mapped__every_byte_is_mapped_for_the_access)
{
	assert_int_equal(mprotect((void *)at(2), env.page, PROT_READ), 0);
	assert_int_equal(mprotect((void *)at(4), env.page, PROT_NONE), 0);
	assert_int_equal(munmap((void *)at(6), env.page), 0);
	assert_int_equal(range_check_mapped(at(0), 4 * env.page, false), 0);
	assert_int_equal(range_check_mapped(at(0), 2 * env.page, true), 0);
	assert_int_equal(range_check_mapped(at(1), env.page + 1, true), -EFAULT);
	assert_int_equal(range_check_mapped(at(3) - 1, 1, true), -EFAULT);
	assert_int_equal(range_check_mapped(at(3), env.page, true), 0);
	assert_int_equal(range_check_mapped(at(3), env.page + 1, false), -EFAULT);
	assert_int_equal(range_check_mapped(at(5), env.page, true), 0);
	assert_int_equal(range_check_mapped(at(5), env.page + 1, false), -EFAULT);
	assert_int_equal(range_check_mapped(at(6), 1, false), -EFAULT);
	assert_int_equal(range_check_mapped(at(7) - 1, 2, false), -EFAULT);
	assert_int_equal(range_check_mapped(at(5), 3 * env.page, false), -EFAULT);
	assert_int_equal(range_check_mapped(0, 1, false), -EFAULT);
	/* Behind the last mapping of all. */
	assert_int_equal(range_check_mapped(-2 * (uintptr_t)env.page, 1, false), -EFAULT);
	assert_int_equal(range_check_mapped(at(6), 0, true), 0);
}

/* Such a failure says nothing about the range. */
TEST(maps_no_answer__of_each_resource_is_enomem)
{
	assert_int_equal(maps_no_answer(EMFILE), -ENOMEM);
	assert_int_equal(maps_no_answer(ENFILE), -ENOMEM);
	assert_int_equal(maps_no_answer(ENOMEM), -ENOMEM);
	assert_int_equal(maps_no_answer(ENOENT), -ENOSYS);
}

TEST(range_check_mapped__without_descriptors_is_enomem)
{
	const rlim_t before = env_limit_descriptors(0);

	assert_int_equal(range_check_mapped(at(0), 1, false), -ENOMEM);
	env_limit_descriptors(before);
}

TEST(range_populate__brings_in_each_page_of_the_range)
{
	assert_int_equal(range_populate(at(1) - 1, env.page + 2, true), 0);
	assert_int_equal(present(0, 3), 3);
	assert_int_equal(range_populate(at(5), env.page, false), 0);
	assert_int_equal(present(5, 1), 1);
	assert_int_equal(present(0, ENV_PAGES), 4);
	assert_int_equal(munmap((void *)at(7), env.page), 0);
	assert_int_equal(range_populate(at(7), 0, true), 0);
	assert_int_equal(range_populate(at(7), 1, true), -EFAULT);
}

/* A signal came, memory is short, or the kernel or the memory cannot do it. */
TEST(range_populate__understands_what_the_kernel_answers)
{
	held_pages_refuse(EINTR, 2);
	assert_int_equal(range_populate(at(0), 1, true), 0);
	assert_int_equal(present(0, ENV_PAGES), 1);
	/* What is mapped need not be present then. */
	held_pages_refuse(EINVAL, 1);
	assert_int_equal(range_populate(at(1), 1, true), 0);
	assert_int_equal(present(0, ENV_PAGES), 1);
	held_pages_refuse(EAGAIN, 1);
	assert_int_equal(range_populate(at(1), 1, true), -ENOMEM);
	held_pages_refuse(ENOMEM, 1);
	assert_int_equal(range_populate(at(1), 1, true), -ENOMEM);
	held_pages_refuse(EFAULT, 1);
	assert_int_equal(range_populate(at(1), 1, true), -EFAULT);
	assert_int_equal(mprotect((void *)at(1), env.page, PROT_READ), 0);
	held_pages_refuse(EINVAL, 1);
	assert_int_equal(range_populate(at(1), 1, true), -EFAULT);
	held_pages_refuse(EINVAL, 1);
	assert_int_equal(range_populate(at(1), 1, false), 0);
	held_pages_refuse(EAGAIN, 1);
	assert_int_equal(range_populate(at(1), 1, true), -EFAULT);
	held_pages_refuse(EAGAIN, 1);
	assert_int_equal(range_populate(at(1), 1, false), -ENOMEM);
}

TEST(range_make_present__only_what_the_access_needs)
{
	assert_int_equal(range_make_present(at(0), env.page, RW | IBV_ACCESS_ON_DEMAND), 0);
	assert_int_equal(present(0, ENV_PAGES), 0);
	assert_int_equal(range_make_present(at(0), env.page, RW | IBV_ACCESS_HUGETLB), -EINVAL);
	assert_int_equal(present(0, ENV_PAGES), 0);
	assert_int_equal(range_make_present(at(0), env.page, RW), 0);
	assert_int_equal(present(0, ENV_PAGES), 1);
	assert_int_equal(mprotect((void *)at(0), env.page, PROT_READ), 0);
	assert_int_equal(range_make_present(at(0), env.page, 0), 0);
	assert_int_equal(range_make_present(at(0), env.page, IBV_ACCESS_LOCAL_WRITE), -EFAULT);
}
