/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers of the library, and the registration of all kinds of memory by one call. */
#include <stdlib.h>
#include <string.h>

#include "mem/key_table.h"
#include "mem/mr.h"

#include "fake_provider.h"
#include "later.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

#define BYTES 5000 /* not a whole number of pages */

static char memory[8192] __attribute__((aligned(4096)));

static const struct mr *found(const struct ibv_mr *mr)
{
	return key_table_find(fake.device->keys, mr->rkey);
}

TEST(alloc_buf__gives_whole_pages_of_zeros)
{
	static const char zeros[BYTES];
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct later_buf *buf;
	char *base = later_alloc_buf(pd, BYTES, &buf);

	assert_non_null(base);
	assert_int_equal((uintptr_t)base % 4096, 0);
	assert_memory_equal(base, zeros, BYTES);
	memset(base, 1, BYTES);
	assert_int_equal(later_export_buf_dmabuf_fd(buf), -1);
	assert_int_equal(errno, ENODATA);
	later_free_buf(buf);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(alloc_buf__of_no_or_too_many_bytes)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct later_buf *buf;

	assert_null(later_alloc_buf(pd, 0, &buf));
	assert_int_equal(errno, EINVAL);
	assert_null(later_alloc_buf(pd, SIZE_MAX, &buf));
	assert_int_equal(errno, EINVAL);
	assert_null(later_alloc_buf(pd, SIZE_MAX / 2, &buf));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(reg_buf_mr__registers_what_lies_in_the_buffer)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state), *other = ibv_alloc_pd(*state);
	struct later_buf *buf;
	char *base = later_alloc_buf(pd, BYTES, &buf);
	struct ibv_mr *mr = later_reg_buf_mr(pd, buf, base + 1, BYTES - 1, IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	assert_int_equal(found(mr)->iova, (uintptr_t)base + 1);
	assert_int_equal(mr->length, BYTES - 1);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_null(later_reg_buf_mr(pd, buf, base + 1, BYTES, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(later_reg_buf_mr(pd, buf, base - 1, 1, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(later_reg_buf_mr(other, buf, base, 1, 0));
	assert_int_equal(errno, EINVAL);
	later_free_buf(buf);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
}

TEST(reg_mr_ex__of_memory)
{
	struct later_mr_init_attr attr = {.length = sizeof(memory),
					  .access = IBV_ACCESS_LOCAL_WRITE,
					  .comp_mask = LATER_REG_MR_ADDR,
					  .iova = 0x5000,
					  .addr = memory};
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct ibv_mr *mr = later_reg_mr_ex(pd, &attr);

	assert_non_null(mr);
	assert_ptr_equal(mr->addr, memory);
	assert_int_equal(found(mr)->iova, (uintptr_t)memory);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	attr.comp_mask |= LATER_REG_MR_IOVA;
	mr = later_reg_mr_ex(pd, &attr);
	assert_non_null(mr);
	assert_int_equal(found(mr)->iova, 0x5000);
	assert_int_equal(found(mr)->access, IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(reg_mr_ex__of_a_buffer)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct later_buf *buf;
	char *base = later_alloc_buf(pd, BYTES, &buf);
	struct later_mr_init_attr attr = {.length = BYTES,
					  .comp_mask = LATER_REG_MR_ADDR | LATER_REG_MR_BUF,
					  .addr = base,
					  .buf = buf};
	struct ibv_mr *mr = later_reg_mr_ex(pd, &attr);

	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	attr.length++;
	assert_null(later_reg_mr_ex(pd, &attr));
	assert_int_equal(errno, EINVAL);
	later_free_buf(buf);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* The address and the descriptor exclude each other, and one of them must be given. */
TEST(reg_mr_ex__refuses_wrong_fields)
{
	static const struct {
		uint64_t comp_mask;
		int error;
	} wrong[] = {
		{0, EINVAL},
		{LATER_REG_MR_IOVA, EINVAL},
		{LATER_REG_MR_ADDR | LATER_REG_MR_FD, EINVAL},
		{LATER_REG_MR_ADDR | LATER_REG_MR_FD_OFFSET, EINVAL},
		{LATER_REG_MR_BUF, EINVAL},
		{LATER_REG_MR_FD | LATER_REG_MR_BUF, EINVAL},
		{LATER_REG_MR_FD, EBADF},
		{LATER_REG_MR_ADDR | LATER_REG_MR_DMAH, EOPNOTSUPP},
		{LATER_REG_MR_ADDR | 1u << 6, EOPNOTSUPP},
	};
	struct ibv_pd *pd = ibv_alloc_pd(*state);

	for (size_t i = 0; i < RTE_DIM(wrong); i++) {
		struct later_mr_init_attr attr = {.length = sizeof(memory),
						  .comp_mask = wrong[i].comp_mask,
						  .addr = memory,
						  .fd = -1};

		assert_null(later_reg_mr_ex(pd, &attr));
		assert_int_equal(errno, wrong[i].error);
	}
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}
