/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions, by each of the calls that the header's macros choose from. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mem/key_table.h"
#include "mem/mr.h"

#include "fake_provider.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

static char buf[8192] __attribute__((aligned(4096)));

static const struct mr *found(const struct ibv_mr *mr)
{
	return key_table_find(fake.device->keys, mr->rkey);
}

TEST(reg_mr__fills_the_public_struct)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct ibv_mr *mr =
		ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);

	assert_non_null(mr);
	assert_ptr_equal(mr->context, *state);
	assert_ptr_equal(mr->pd, pd);
	assert_ptr_equal(mr->addr, buf);
	assert_int_equal(mr->length, sizeof(buf));
	assert_int_equal(mr->lkey, mr->rkey);
	assert_int_equal(found(mr)->iova, (uintptr_t)buf);
	assert_int_equal(found(mr)->access, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* A flag of the optional range makes the macro call ibv_reg_mr_iova2. */
TEST(reg_mr__takes_optional_access_flags)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf),
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);

	assert_non_null(mr);
	assert_int_equal(found(mr)->iova, (uintptr_t)buf);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(reg_mr_iova__has_an_address_of_its_own)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct ibv_mr *mr = ibv_reg_mr_iova(pd, buf, sizeof(buf), 0x1000, IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	assert_ptr_equal(mr->addr, buf);
	assert_int_equal(found(mr)->iova, 0x1000);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(reg_mr__sets_errno)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);

	errno = 0;
	assert_null(ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_REMOTE_WRITE));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_reg_mr(pd, NULL, 4096, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	errno = 0;
	assert_null(ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_REMOTE_ATOMIC));
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_null(ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_HUGETLB));
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_null(ibv_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_null(ibv_reg_mr_iova(pd, buf, sizeof(buf), 0x1008, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* test/unit/mem/test_dmabuf.c tests the rest, which needs a dma-buf. */
TEST(reg_dmabuf_mr__sets_errno)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	const int memory = memfd_create("no dma-buf", MFD_CLOEXEC);

	assert_int_equal(ftruncate(memory, 4096), 0);
	errno = 0;
	assert_null(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, memory, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_null(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EBADF);
	errno = 0;
	assert_null(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, memory, IBV_ACCESS_ON_DEMAND));
	assert_int_equal(errno, EINVAL);
	close(memory);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* Register as many regions as the device reports; each is found by its key. */
TEST(reg_mr__a_million_regions)
{
	struct ibv_dm *dm = ibv_alloc_dm(*state, &(struct ibv_alloc_dm_attr){.length = 64});
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct ibv_device_attr attr;
	struct ibv_mr **mrs;
	size_t count;

	assert_int_equal(ibv_query_device(*state, &attr), 0);
	assert_true(attr.max_mr >= 1048576);
	count = (size_t)attr.max_mr;
	mrs = malloc(count * sizeof(mrs[0]));
	assert_non_null(mrs);
	for (size_t i = 0; i < count; i++) {
		mrs[i] = ibv_reg_mr(pd, buf + i % sizeof(buf), 1, IBV_ACCESS_LOCAL_WRITE);
		assert_non_null(mrs[i]);
	}
	for (int i = 0; i < 2; i++) {
		errno = 0;
		assert_null(ibv_reg_mr(pd, buf, 1, IBV_ACCESS_LOCAL_WRITE));
		assert_int_equal(errno, ENOMEM);
	}
	/* The other kinds count as well. */
	errno = 0;
	assert_null(ibv_alloc_null_mr(pd));
	assert_int_equal(errno, ENOMEM);
	errno = 0;
	assert_null(ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED));
	assert_int_equal(errno, ENOMEM);
	errno = 0;
	assert_null(ibv_reg_dmabuf_mr(pd, 0, 1, 0, -1, 0));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(ibv_free_dm(dm), 0);
	for (size_t i = 0; i < count; i++) {
		assert_ptr_equal(found(mrs[i])->addr, mrs[i]->addr);
		assert_int_equal(ibv_dereg_mr(mrs[i]), 0);
	}
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	free(mrs);
}

TEST(rereg_mr__changes_the_region_with_the_engine_stopped)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct ibv_pd *other = ibv_alloc_pd(*state);
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	const uint32_t key = mr->rkey;
	const unsigned int locks = fake.locks;

	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_TRANSLATION,
				      other, buf + 4096, 4096, 0),
			 0);
	/* The first lock is for the checks, and the second for the change. */
	assert_int_equal(fake.locks, locks + 2);
	assert_ptr_equal(mr->pd, other);
	assert_ptr_equal(mr->addr, buf + 4096);
	assert_int_equal(mr->length, 4096);
	assert_int_equal(mr->lkey, key);
	assert_int_equal(mr->rkey, key);
	assert_int_equal(found(mr)->iova, (uintptr_t)buf + 4096);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_dealloc_pd(other), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
}

TEST(rereg_mr__the_old_region_is_valid_after_an_error)
{
	struct ibv_context *context = fake_open();
	struct ibv_pd *foreign = ibv_alloc_pd(context);
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	const struct ibv_mr before = *mr;

	errno = 0;
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_REMOTE_WRITE),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)4096, 1, 0),
		IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EFAULT);
	errno = 0;
	/* A domain of the same device, through another context. */
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, foreign, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	assert_memory_equal(mr, &before, sizeof(before));
	assert_int_equal(found(mr)->access, IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_dealloc_pd(foreign), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

TEST(alloc_null_mr__has_a_local_key_only)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct ibv_mr *mr = ibv_alloc_null_mr(pd);

	assert_non_null(mr);
	assert_ptr_equal(mr->context, *state);
	assert_ptr_equal(mr->pd, pd);
	assert_null(mr->addr);
	assert_int_equal(mr->length, SIZE_MAX);
	assert_int_equal(mr->rkey, 0);
	assert_null(key_table_find(fake.device->keys, mr->rkey));
	assert_non_null(key_table_find(fake.device->keys, mr->lkey));
	errno = 0;
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(dereg_mr__makes_the_key_invalid_with_the_engine_stopped)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	const uint32_t key = mr->rkey;
	const unsigned int locks = fake.locks;

	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(fake.locks, locks + 1);
	assert_null(key_table_find(fake.device->keys, key));
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}
