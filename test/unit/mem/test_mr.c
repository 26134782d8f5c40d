/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/mr.c, and through it of lib/mem/range.c and lib/mem/maps.c. */
#include <stdio.h>

#include "env.h"

#include "base/verbs_later.h"
#include "skipped.h"
#include "test.h"

TEST_FIXTURE(env_set_up, env_tear_down);

TEST(mr_register__fills_the_region_and_faults_its_pages_in)
{
	unsigned char resident[3];
	struct mr *mr;

	/* The range begins at the last byte of one page and ends at the first byte of the third. */
	assert_int_equal(env_register(env.memory + env.page - 1, env.page + 2, RW, &mr), 0);
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

TEST(mr_register__handles_faults_again)
{
	struct mr *mr;

	env_take_handler();
	mr = env_region(env.page, RW);
	env_expect_handler();
	mr_deregister(mr);
}

TEST(mr_register__access_is_checked)
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
		{IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE, 0},
		{IBV_ACCESS_ON_DEMAND | IBV_ACCESS_REMOTE_WRITE, -EINVAL},
		{IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB, -EINVAL},
		{IBV_ACCESS_HUGETLB, -EINVAL}, /* not huge pages */
		{LATER_ACCESS_FLUSH_GLOBAL, 0},
		{LATER_ACCESS_FLUSH_PERSISTENT, -EINVAL}, /* not known to be such memory */
		{1 << 19, -EINVAL},
		{1u << 30, -EINVAL},
		{1u << 31, -EINVAL},
		{IBV_ACCESS_RELAXED_ORDERING, 0},
		{IBV_ACCESS_OPTIONAL_RANGE, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr *mr;

		assert_int_equal(env_register(env.memory, 100, cases[i].access, &mr), cases[i].rc);
		if (cases[i].rc == 0)
			mr_deregister(mr);
	}
}

TEST(mr_register__ranges_that_wrap_are_refused)
{
	struct mr *mr;

	assert_int_equal(env_register(env.memory, SIZE_MAX, RW, &mr), -EINVAL);
	assert_int_equal(env_register((void *)(UINTPTR_MAX - 10), 10, RW, &mr), -EINVAL);
	assert_int_equal(
		mr_register(env.pd, env.memory, env.page + 1, -(uint64_t)env.page, RW, &mr),
		-EINVAL);
	assert_int_equal(
		mr_register(env.pd, env.memory, 2 * env.page, -(uint64_t)env.page, RW, &mr),
		-EINVAL);
}

TEST(mr_register__page_offsets_of_addr_and_iova_agree)
{
	struct mr *mr;

	assert_int_equal(mr_register(env.pd, env.memory + 8, 8, 0x100000, RW, &mr), -EINVAL);
	assert_int_equal(mr_register(env.pd, env.memory + 8, 8, 0x100008, RW, &mr), 0);
	assert_int_equal(mr->iova, 0x100008);
	mr_deregister(mr);
}

TEST(mr_register__zero_based_counts_from_the_first_byte)
{
	const unsigned int access = RW | IBV_ACCESS_ZERO_BASED;
	uint8_t *addr;
	struct mr *mr;

	assert_int_equal(mr_register(env.pd, env.memory + 8, 8, 0x100008, access, &mr), -EINVAL);
	assert_int_equal(mr_register(env.pd, env.memory + 8, 8, 0, access, &mr), 0);
	assert_int_equal(mr->iova, 0);
	mr_deregister(mr);
	assert_int_equal(env_register(env.memory + 8, 8, access, &mr), 0);
	assert_int_equal(mr_resolve(env.pd, mr->key, 7, 1, 0, &addr), MR_OK);
	assert_ptr_equal(addr, env.memory + 15);
	assert_int_equal(mr_resolve(env.pd, mr->key, 7, 2, 0, &addr), MR_OUT_OF_RANGE);
	mr_deregister(mr);
}

TEST(mr_register__what_is_not_mapped_is_a_fault)
{
	struct mr *mr;

	assert_int_equal(env_register(NULL, 1, RW, &mr), -EFAULT);
	assert_int_equal(munmap(env.memory + 3 * env.page, env.page), 0);
	assert_int_equal(env_register(env.memory, 8 * env.page, RW, &mr), -EFAULT);
	assert_int_equal(env_register(env.memory + 3 * env.page - 1, 2, 0, &mr), -EFAULT);
	assert_int_equal(env_register(env.memory + 3 * env.page, 1, 0, &mr), -EFAULT);
	assert_int_equal(env_register(env.memory, 3 * env.page, RW, &mr), 0);
	mr_deregister(mr);
}

TEST(mr_register__protection_must_allow_the_access)
{
	struct mr *mr;

	assert_int_equal(mprotect(env.memory + env.page, env.page, PROT_READ), 0);
	assert_int_equal(env_register(env.memory, 3 * env.page, RW, &mr), -EFAULT);
	assert_int_equal(env_register(env.memory, 3 * env.page, IBV_ACCESS_REMOTE_READ, &mr), 0);
	mr_deregister(mr);
	assert_int_equal(mprotect(env.memory + env.page, env.page, PROT_NONE), 0);
	assert_int_equal(env_register(env.memory, 3 * env.page, 0, &mr), -EFAULT);
}

TEST(mr_register__pages_behind_the_end_of_a_file_are_a_fault)
{
	const int fd = memfd_create("short", MFD_CLOEXEC);
	struct mr *mr;
	void *map;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)env.page), 0);
	map = mmap(NULL, 2 * env.page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(env_register(map, 2 * env.page, RW, &mr), -EFAULT);
	assert_int_equal(env_register(map, env.page, RW, &mr), 0);
	mr_deregister(mr);
	munmap(map, 2 * env.page);
	close(fd);
}

/* Pages that the kernel does not fault in on request; the vDSO's stand in for a device's. */
TEST(mr_register__special_mappings_are_taken_as_they_are)
{
	unsigned long start = 0, end = 0;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	struct mr *mr;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (strstr(line, "[vvar]") && sscanf(line, "%lx-%lx", &start, &end) == 2)
			break;
	}
	fclose(maps);
	if (start == 0)
		skip();
	assert_int_equal(env_register((void *)start, end - start, IBV_ACCESS_REMOTE_READ, &mr), 0);
	mr_deregister(mr);
	assert_int_equal(env_register((void *)start, end - start, RW, &mr), -EFAULT);
}

TEST(mr_register__on_demand_pages_need_not_exist)
{
	const unsigned int access = RW | IBV_ACCESS_ON_DEMAND;
	unsigned char resident;
	uint8_t *addr;
	struct mr *mr;

	assert_int_equal(env_register(env.memory, env.page, access, &mr), 0);
	assert_int_equal(mincore(env.memory, env.page, &resident), 0);
	assert_int_equal(resident & 1, 0);
	mr_deregister(mr);
	assert_int_equal(munmap(env.memory, env.page), 0);
	assert_int_equal(env_register(env.memory, env.page, access, &mr), 0);
	assert_int_equal(mr_resolve(env.pd, mr->key, (uintptr_t)env.memory, 1, RW, &addr), MR_OK);
	assert_ptr_equal(addr, env.memory);
	mr_deregister(mr);
	/* IBV_ACCESS_HUGETLB promises huge pages, which can be checked. */
	assert_int_equal(env_register(env.memory, env.page, access | IBV_ACCESS_HUGETLB, &mr),
			 -EFAULT);
}

TEST(mr_register__on_demand_huge_pages)
{
	uint8_t *huge = mmap(NULL, ENV_HUGE_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_HUGETLB, -1, 0);
	struct mr *mr;

	if (huge == MAP_FAILED) {
		skipped_for("this kernel has no huge pages");
		skip();
	}
	assert_int_equal(env_register(huge, ENV_HUGE_BYTES,
				      RW | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB, &mr),
			 0);
	mr_deregister(mr);
	munmap(huge, ENV_HUGE_BYTES);
}

TEST(mr_register__implicit_is_all_addresses_but_the_first_page)
{
	static const unsigned int refused[] = {
		0,
		RW,
		RW | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB,
		RW | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED,
	};
	uint8_t *addr;
	struct mr *mr;

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_int_equal(env_register(NULL, SIZE_MAX, refused[i], &mr), -EINVAL);
	assert_int_equal(mr_register(env.pd, NULL, SIZE_MAX, 4096, RW | IBV_ACCESS_ON_DEMAND, &mr),
			 -EINVAL);
	assert_int_equal(env_register(NULL, SIZE_MAX, RW | IBV_ACCESS_ON_DEMAND, &mr), 0);
	assert_int_equal(mr_resolve(env.pd, mr->key, (uintptr_t)env.memory + 5, 100, RW, &addr),
			 MR_OK);
	assert_ptr_equal(addr, env.memory + 5);
	assert_int_equal(mr_resolve(env.pd, mr->key, env.page, 1, RW, &addr), MR_OK);
	assert_ptr_equal(addr, (uint8_t *)env.page);
	assert_int_equal(mr_resolve(env.pd, mr->key, 0, 1, RW, &addr), MR_OUT_OF_RANGE);
	assert_int_equal(mr_resolve(env.pd, mr->key, env.page - 1, 2, RW, &addr), MR_OUT_OF_RANGE);
	assert_int_equal(mr_resolve(env.pd, mr->key, UINT64_MAX, 2, RW, &addr), MR_OUT_OF_RANGE);
	assert_int_equal(mr_resolve(env.other_pd, mr->key, env.page, 1, RW, &addr), MR_WRONG_PD);
	mr_deregister(mr);
}

TEST(mr_register__iova_0_is_zero_based)
{
	uint8_t *addr;
	struct mr *mr;

	assert_int_equal(mr_register(env.pd, env.memory + 8, 8, 0, RW, &mr), 0);
	assert_int_equal(mr_resolve(env.pd, mr->key, 0, 8, RW, &addr), MR_OK);
	assert_ptr_equal(addr, env.memory + 8);
	mr_deregister(mr);
}

TEST(mr_register__hugetlb_is_believed_where_it_is_true)
{
	uint8_t *huge = mmap(NULL, ENV_HUGE_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	struct mr *mr;

	if (huge == MAP_FAILED) {
		skipped_for("no huge page is free: config/setup.sh hugepages");
		skip();
	}
	assert_int_equal(env_register(huge + 1, ENV_HUGE_BYTES - 1, RW | IBV_ACCESS_HUGETLB, &mr),
			 0);
	mr_deregister(mr);
	munmap(huge, ENV_HUGE_BYTES);
}

TEST(mr_register__length_0_grants_nothing)
{
	uint8_t *addr;
	struct mr *mr;

	assert_int_equal(env_register(NULL, 0, RW, &mr), 0);
	assert_int_equal(mr_resolve(env.pd, mr->key, 0, 1, 0, &addr), MR_OUT_OF_RANGE);
	assert_int_equal(mr_resolve(env.pd, mr->key, 0, 0, 0, &addr), MR_OK);
	mr_deregister(mr);
}

TEST(mr_register__a_full_table_is_enomem)
{
	struct mr *mrs[16], *mr;

	for (size_t i = 0; i < 16; i++)
		assert_int_equal(env_register(env.memory, 1, RW, &mrs[i]), 0);
	assert_int_equal(env_register(env.memory, 1, RW, &mr), -ENOMEM);
	assert_int_equal(env.pd->users, 16);
	for (size_t i = 0; i < 16; i++)
		mr_deregister(mrs[i]);
}

TEST(mr_deregister__the_key_is_dead)
{
	uint8_t *addr;
	struct mr *mr;
	uint32_t key;

	assert_int_equal(env_register(env.memory, 1, RW, &mr), 0);
	key = mr->key;
	mr_deregister(mr);
	addr = env.memory;
	assert_int_equal(mr_resolve(env.pd, key, (uintptr_t)env.memory, 1, 0, &addr), MR_BAD_KEY);
	assert_null(addr);
}
