/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/mr.c, and through it of lib/mem/maps.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

#include "mem/key_table.h"
#include "mem/mr.h"
#include "mem/pd.h"

#define RW	   (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define HUGE_BYTES (2u << 20)

static struct {
	struct key_table *keys;
	struct pd *pd;
	size_t page;
	uint8_t *memory; /* 8 pages, read and write */
} env;

static int set_up(void **state)
{
	(void)state;
	env.page = (size_t)sysconf(_SC_PAGESIZE);
	env.memory = mmap(NULL, 8 * env.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	if (env.memory == MAP_FAILED || key_table_create(16, &env.keys) != 0)
		return -1;
	return pd_create(env.keys, &env.pd);
}

static int tear_down(void **state)
{
	(void)state;
	munmap(env.memory, 8 * env.page);
	/* Fails where a test has left a region. */
	if (pd_destroy(env.pd) != 0)
		return -1;
	key_table_destroy(env.keys);
	return 0;
}

static int reg(void *addr, size_t length, unsigned int access, struct mr **mr)
{
	return mr_register(env.pd, addr, length, (uintptr_t)addr, access, mr);
}

static void mr_register__fills_the_region_and_faults_its_pages_in(void **state)
{
	unsigned char resident[3];
	struct mr *mr;

	(void)state;
	/* From the last byte of one page to the first of the page after the next. */
	assert_int_equal(reg(env.memory + env.page - 1, env.page + 2, RW, &mr), 0);
	assert_ptr_equal(mr->pd, env.pd);
	assert_ptr_equal(mr->addr, env.memory + env.page - 1);
	assert_int_equal(mr->length, env.page + 2);
	assert_int_equal(mr->iova, (uintptr_t)env.memory + env.page - 1);
	assert_int_equal(mr->access, RW);
	assert_int_equal(env.pd->users, 1);
	assert_int_equal(mincore(env.memory, 3 * env.page, resident), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(resident[i] & 1, 1);
	assert_int_equal(env.memory[env.page], 0);
	mr_deregister(mr);
	assert_int_equal(env.pd->users, 0);
}

static void mr_register__access_is_checked(void **state)
{
	static const struct {
		unsigned int access;
		int rc;
	} cases[] = {
		{0, 0},
		{IBV_ACCESS_LOCAL_WRITE, 0},
		{IBV_ACCESS_REMOTE_READ, 0},
		{IBV_ACCESS_REMOTE_WRITE, -EINVAL},
		{IBV_ACCESS_REMOTE_ATOMIC, -EINVAL},
		{IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE, 0},
		{IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE, 0},
		{IBV_ACCESS_MW_BIND, 0},
		{IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE, -EINVAL},
		{IBV_ACCESS_HUGETLB, -EINVAL}, /* not huge pages */
		{1 << 8, -EINVAL},
		{1 << 19, -EINVAL},
		{1u << 30, -EINVAL},
		{1u << 31, -EINVAL},
		{IBV_ACCESS_RELAXED_ORDERING, 0},
		{IBV_ACCESS_OPTIONAL_RANGE, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr *mr;

		assert_int_equal(reg(env.memory, 100, cases[i].access, &mr), cases[i].rc);
		if (cases[i].rc == 0)
			mr_deregister(mr);
	}
}

static void mr_register__ranges_that_wrap_are_refused(void **state)
{
	struct mr *mr;

	(void)state;
	assert_int_equal(reg(env.memory, SIZE_MAX, RW, &mr), -EINVAL);
	assert_int_equal(reg((void *)(UINTPTR_MAX - 10), 10, RW, &mr), -EINVAL);
	assert_int_equal(
		mr_register(env.pd, env.memory, env.page, -(uint64_t)env.page + 1, RW, &mr),
		-EINVAL);
	assert_int_equal(
		mr_register(env.pd, env.memory, 2 * env.page, -(uint64_t)env.page, RW, &mr),
		-EINVAL);
}

static void mr_register__page_offsets_of_addr_and_iova_agree(void **state)
{
	struct mr *mr;

	(void)state;
	assert_int_equal(mr_register(env.pd, env.memory + 8, 8, 0x100000, RW, &mr), -EINVAL);
	assert_int_equal(mr_register(env.pd, env.memory + 8, 8, 0x100008, RW, &mr), 0);
	assert_int_equal(mr->iova, 0x100008);
	mr_deregister(mr);
}

static void mr_register__zero_based_counts_from_the_first_byte(void **state)
{
	const unsigned int access = RW | IBV_ACCESS_ZERO_BASED;
	uint8_t *addr;
	struct mr *mr;

	(void)state;
	assert_int_equal(mr_register(env.pd, env.memory + 8, 8, 0x100008, access, &mr), -EINVAL);
	assert_int_equal(mr_register(env.pd, env.memory + 8, 8, 0, access, &mr), 0);
	assert_int_equal(mr->iova, 0);
	mr_deregister(mr);
	assert_int_equal(reg(env.memory + 8, 8, access, &mr), 0);
	assert_int_equal(mr_resolve(env.pd, mr->key, 7, 1, 0, &addr), MR_OK);
	assert_ptr_equal(addr, env.memory + 15);
	assert_int_equal(mr_resolve(env.pd, mr->key, 7, 2, 0, &addr), MR_OUT_OF_RANGE);
	mr_deregister(mr);
}

static void mr_register__what_is_not_mapped_is_a_fault(void **state)
{
	struct mr *mr;

	(void)state;
	assert_int_equal(reg(NULL, 1, RW, &mr), -EFAULT);
	assert_int_equal(munmap(env.memory + 3 * env.page, env.page), 0);
	assert_int_equal(reg(env.memory, 8 * env.page, RW, &mr), -EFAULT);
	assert_int_equal(reg(env.memory + 3 * env.page - 1, 2, 0, &mr), -EFAULT);
	assert_int_equal(reg(env.memory + 3 * env.page, 1, 0, &mr), -EFAULT);
	assert_int_equal(reg(env.memory, 3 * env.page, RW, &mr), 0);
	mr_deregister(mr);
}

static void mr_register__protection_must_allow_the_access(void **state)
{
	struct mr *mr;

	(void)state;
	assert_int_equal(mprotect(env.memory + env.page, env.page, PROT_READ), 0);
	assert_int_equal(reg(env.memory, 3 * env.page, RW, &mr), -EFAULT);
	assert_int_equal(reg(env.memory, 3 * env.page, IBV_ACCESS_REMOTE_READ, &mr), 0);
	mr_deregister(mr);
	assert_int_equal(mprotect(env.memory + env.page, env.page, PROT_NONE), 0);
	assert_int_equal(reg(env.memory, 3 * env.page, 0, &mr), -EFAULT);
}

static void mr_register__pages_behind_the_end_of_a_file_are_a_fault(void **state)
{
	const int fd = memfd_create("short", MFD_CLOEXEC);
	struct mr *mr;
	void *map;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)env.page), 0);
	map = mmap(NULL, 2 * env.page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(reg(map, 2 * env.page, RW, &mr), -EFAULT);
	assert_int_equal(reg(map, env.page, RW, &mr), 0);
	mr_deregister(mr);
	munmap(map, 2 * env.page);
	close(fd);
}

/* Pages that the kernel does not fault in on request; the vDSO's stand in for a device's. */
static void mr_register__special_mappings_are_taken_as_they_are(void **state)
{
	unsigned long start = 0, end = 0;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	struct mr *mr;

	(void)state;
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (strstr(line, "[vvar]") && sscanf(line, "%lx-%lx", &start, &end) == 2)
			break;
	}
	fclose(maps);
	if (start == 0)
		skip();
	assert_int_equal(reg((void *)start, end - start, IBV_ACCESS_REMOTE_READ, &mr), 0);
	mr_deregister(mr);
	assert_int_equal(reg((void *)start, end - start, RW, &mr), -EFAULT);
}

static void mr_register__hugetlb_is_believed_where_it_is_true(void **state)
{
	uint8_t *huge = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	struct mr *mr;

	(void)state;
	if (huge == MAP_FAILED)
		skip(); /* none free on this machine */
	assert_int_equal(reg(huge + 1, HUGE_BYTES - 1, RW | IBV_ACCESS_HUGETLB, &mr), 0);
	mr_deregister(mr);
	munmap(huge, HUGE_BYTES);
}

static void mr_register__length_0_grants_nothing(void **state)
{
	uint8_t *addr;
	struct mr *mr;

	(void)state;
	assert_int_equal(reg(NULL, 0, RW, &mr), 0);
	assert_int_equal(mr_resolve(env.pd, mr->key, 0, 1, 0, &addr), MR_OUT_OF_RANGE);
	assert_int_equal(mr_resolve(env.pd, mr->key, 0, 0, 0, &addr), MR_OK);
	mr_deregister(mr);
}

static void mr_register__a_full_table_is_enomem(void **state)
{
	struct mr *mrs[16], *mr;

	(void)state;
	for (size_t i = 0; i < 16; i++)
		assert_int_equal(reg(env.memory, 1, RW, &mrs[i]), 0);
	assert_int_equal(reg(env.memory, 1, RW, &mr), -ENOMEM);
	assert_int_equal(env.pd->users, 16);
	for (size_t i = 0; i < 16; i++)
		mr_deregister(mrs[i]);
}

static void mr_deregister__the_key_is_dead(void **state)
{
	uint8_t *addr;
	struct mr *mr;
	uint32_t key;

	(void)state;
	assert_int_equal(reg(env.memory, 1, RW, &mr), 0);
	key = mr->key;
	mr_deregister(mr);
	addr = env.memory;
	assert_int_equal(mr_resolve(env.pd, key, (uintptr_t)env.memory, 1, 0, &addr), MR_BAD_KEY);
	assert_null(addr);
}

static void mr_resolve__bounds_are_exact_and_do_not_wrap(void **state)
{
	const uint64_t iova = 0x7000;
	static const struct {
		uint64_t offset;
		uint64_t length;
		enum mr_status status;
	} cases[] = {
		{0, 1, MR_OK},
		{0, 100, MR_OK},
		{99, 1, MR_OK},
		{50, 50, MR_OK},
		{0, 101, MR_OUT_OF_RANGE},
		{50, 51, MR_OUT_OF_RANGE},
		{100, 1, MR_OUT_OF_RANGE},
		{101, 1, MR_OUT_OF_RANGE},
		{UINT64_MAX, 1, MR_OUT_OF_RANGE}, /* one below */
		{UINT64_MAX, 2, MR_OUT_OF_RANGE},
		{1, UINT64_MAX, MR_OUT_OF_RANGE},
		{0, UINT64_MAX, MR_OUT_OF_RANGE},
		{UINT64_MAX - 0x6fff, 1, MR_OUT_OF_RANGE}, /* iova 0 */
		{UINT64_MAX - 0x7000, 1, MR_OUT_OF_RANGE}, /* the largest iova */
		{UINT64_MAX - 0x7000, 0x7002,
		 MR_OUT_OF_RANGE}, /* whose end wraps into the region */
		{1ull << 63, 1ull << 63, MR_OUT_OF_RANGE},
	};
	struct mr *mr;

	(void)state;
	assert_int_equal(mr_register(env.pd, env.memory, 100, iova, RW, &mr), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t *addr = (uint8_t *)1;

		assert_int_equal(mr_resolve(env.pd, mr->key, iova + cases[i].offset,
					    cases[i].length, IBV_ACCESS_REMOTE_WRITE, &addr),
				 cases[i].status);
		assert_ptr_equal(addr,
				 cases[i].status == MR_OK ? env.memory + cases[i].offset : NULL);
	}
	mr_deregister(mr);
}

static void mr_resolve__a_region_at_the_top_of_iova_space_ends_there(void **state)
{
	const uint64_t iova = -(uint64_t)env.page;
	uint8_t *addr;
	struct mr *mr;

	(void)state;
	/* The last byte of all cannot be part of it, as iova + length must be a number. */
	assert_int_equal(mr_register(env.pd, env.memory, env.page - 1, iova, RW, &mr), 0);
	assert_int_equal(mr_resolve(env.pd, mr->key, UINT64_MAX - 1, 1, 0, &addr), MR_OK);
	assert_int_equal(mr_resolve(env.pd, mr->key, UINT64_MAX - 1, 2, 0, &addr), MR_OUT_OF_RANGE);
	assert_int_equal(mr_resolve(env.pd, mr->key, UINT64_MAX, 1, 0, &addr), MR_OUT_OF_RANGE);
	assert_int_equal(mr_resolve(env.pd, mr->key, 0, 1, 0, &addr), MR_OUT_OF_RANGE);
	assert_int_equal(mr_resolve(env.pd, mr->key, iova - 1, 1, 0, &addr), MR_OUT_OF_RANGE);
	mr_deregister(mr);
}

static void mr_resolve__all_needed_access_must_be_granted(void **state)
{
	const uintptr_t iova = (uintptr_t)env.memory;
	uint8_t *addr;
	struct mr *mr;

	(void)state;
	assert_int_equal(reg(env.memory, 100, IBV_ACCESS_REMOTE_READ, &mr), 0);
	assert_int_equal(mr_resolve(env.pd, mr->key, iova, 1, 0, &addr), MR_OK);
	assert_int_equal(mr_resolve(env.pd, mr->key, iova, 1, IBV_ACCESS_REMOTE_READ, &addr),
			 MR_OK);
	assert_int_equal(mr_resolve(env.pd, mr->key, iova, 1, IBV_ACCESS_LOCAL_WRITE, &addr),
			 MR_NO_ACCESS);
	assert_int_equal(mr_resolve(env.pd, mr->key, iova, 1,
				    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC, &addr),
			 MR_NO_ACCESS);
	/* The order of the checks: access before range. */
	assert_int_equal(mr_resolve(env.pd, mr->key, iova, 101, IBV_ACCESS_REMOTE_WRITE, &addr),
			 MR_NO_ACCESS);
	mr_deregister(mr);
}

static void mr_resolve__a_key_of_another_domain_is_refused(void **state)
{
	struct pd *other;
	uint8_t *addr;
	struct mr *mr;

	(void)state;
	assert_int_equal(pd_create(env.keys, &other), 0);
	assert_int_equal(reg(env.memory, 100, RW, &mr), 0);
	assert_int_equal(mr_resolve(other, mr->key, (uintptr_t)env.memory, 1, 0, &addr),
			 MR_WRONG_PD);
	mr_deregister(mr);
	assert_int_equal(pd_destroy(other), 0);
}

/* IBTA C9-88. */
static void mr_resolve__no_key_is_checked_for_length_0(void **state)
{
	uint8_t *addr = env.memory;

	(void)state;
	assert_int_equal(mr_resolve(env.pd, 0xdeadbeef, 1, 0, IBV_ACCESS_REMOTE_WRITE, &addr),
			 MR_OK);
	assert_null(addr);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(mr_register__fills_the_region_and_faults_its_pages_in),
		TEST(mr_register__access_is_checked),
		TEST(mr_register__ranges_that_wrap_are_refused),
		TEST(mr_register__page_offsets_of_addr_and_iova_agree),
		TEST(mr_register__zero_based_counts_from_the_first_byte),
		TEST(mr_register__what_is_not_mapped_is_a_fault),
		TEST(mr_register__protection_must_allow_the_access),
		TEST(mr_register__pages_behind_the_end_of_a_file_are_a_fault),
		TEST(mr_register__special_mappings_are_taken_as_they_are),
		TEST(mr_register__hugetlb_is_believed_where_it_is_true),
		TEST(mr_register__length_0_grants_nothing),
		TEST(mr_register__a_full_table_is_enomem),
		TEST(mr_deregister__the_key_is_dead),
		TEST(mr_resolve__bounds_are_exact_and_do_not_wrap),
		TEST(mr_resolve__a_region_at_the_top_of_iova_space_ends_there),
		TEST(mr_resolve__all_needed_access_must_be_granted),
		TEST(mr_resolve__a_key_of_another_domain_is_refused),
		TEST(mr_resolve__no_key_is_checked_for_length_0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
