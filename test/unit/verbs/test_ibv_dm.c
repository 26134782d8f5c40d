/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory: got, copied to, registered, and used by every kind of operation (ibv_alloc_dm(3)).
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mem/dm.h"

#include "talk.h"
#include "test.h"

#define DM_BYTES 4096
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED)

static struct talk talk;
static struct ibv_dm *dm;
static struct ibv_mr *local;  /* of device memory, in A's domain */
static struct ibv_mr *remote; /* the same memory, in B's */

static struct ibv_dm *alloc(struct ibv_context *context, size_t length, uint32_t log_align)
{
	struct ibv_alloc_dm_attr attr = {.length = length, .log_align_req = log_align};

	errno = 0;
	return ibv_alloc_dm(context, &attr);
}

static int set_up(void **state)
{
	talk_set_up(&talk, state);
	dm = alloc(*state, DM_BYTES, 3);
	if (!dm)
		return -1;
	local = ibv_reg_dm_mr(talk.a.pd, dm, 0, DM_BYTES, ACCESS);
	remote = ibv_reg_dm_mr(talk.b.pd, dm, 64, DM_BYTES - 64, ACCESS);
	return local && remote ? 0 : -1;
}

static int tear_down(void **state)
{
	assert_int_equal(ibv_dereg_mr(local), 0);
	assert_int_equal(ibv_dereg_mr(remote), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(fake.device->dm_pool.used_bytes, 0);
	return talk_tear_down(&talk, state);
}

TEST_FIXTURE(set_up, tear_down);

static void expect_dm(uint64_t offset, const void *bytes, size_t length)
{
	uint8_t found[DM_BYTES];

	assert_int_equal(ibv_memcpy_from_dm(found, dm, offset, length), 0);
	assert_memory_equal(found, bytes, length);
}

/* A's request to B's region of device memory, at an offset in it. */
static void reach(enum ibv_wr_opcode opcode, uint64_t offset, uint32_t length,
		  enum ibv_wc_status status)
{
	struct ibv_sge sge = talk_source(&talk, 0, length);
	struct ibv_mr *own_mr = talk.target_mr;
	uint8_t *own = talk.target;

	talk.target_mr = remote;
	talk.target = (uint8_t *)(uintptr_t)offset;
	talk_post(&talk, opcode, &sge, 1);
	talk.target_mr = own_mr;
	talk.target = own;
	talk_wait(talk.a.cq, status);
}

TEST(alloc_dm__fills_the_public_struct)
{
	assert_ptr_equal(dm->context, *state);
	assert_int_equal(dm->comp_mask, 0);
	assert_non_null(dm->memcpy_to_dm);
	assert_non_null(dm->memcpy_from_dm);
}

TEST(alloc_dm__sets_errno)
{
	struct ibv_alloc_dm_attr attr = {.length = 1, .comp_mask = 1};
	struct ibv_device_attr_ex device;
	struct ibv_dm *rest;

	assert_int_equal(ibv_query_device_ex(*state, NULL, &device), 0);
	assert_true(device.max_dm_size >= 1 << 20);
	assert_null(alloc(*state, 0, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(alloc(*state, device.max_dm_size + 1, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(alloc(*state, 1, 40));
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_null(ibv_alloc_dm(*state, &attr));
	assert_int_equal(errno, EINVAL);
	/* Part of the memory is taken already. */
	assert_null(alloc(*state, device.max_dm_size, 0));
	assert_int_equal(errno, ENOMEM);
	rest = alloc(*state, device.max_dm_size - DM_BYTES, 0);
	assert_non_null(rest);
	assert_null(alloc(*state, 1, 0));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(ibv_free_dm(rest), 0);
}

TEST(memcpy_dm__is_what_was_put_there)
{
	uint8_t found[8] = {0};

	assert_int_equal(ibv_memcpy_to_dm(dm, 100, talk.source, 8), 0);
	assert_int_equal(ibv_memcpy_from_dm(found, dm, 100, 8), 0);
	assert_memory_equal(found, talk.source, 8);
	assert_int_equal(ibv_memcpy_to_dm(dm, DM_BYTES - 7, talk.source, 8), EINVAL);
	assert_int_equal(ibv_memcpy_from_dm(found, dm, DM_BYTES, 1), EINVAL);
	assert_int_equal(ibv_memcpy_from_dm(found, dm, UINT64_MAX, 2), EINVAL);
	assert_memory_equal(found, talk.source, 8);
}

TEST(reg_dm_mr__fills_the_public_struct)
{
	assert_ptr_equal(remote->context, *state);
	assert_ptr_equal(remote->pd, talk.b.pd);
	assert_null(remote->addr);
	assert_int_equal(remote->length, DM_BYTES - 64);
	assert_int_equal(remote->lkey, remote->rkey);
	assert_int_equal(ibv_dealloc_pd(talk.b.pd), EBUSY);
}

TEST(reg_dm_mr__sets_errno)
{
	struct ibv_context *other = fake_open();
	struct ibv_pd *pd = ibv_alloc_pd(other);

	errno = 0;
	assert_null(ibv_reg_dm_mr(talk.a.pd, dm, 0, DM_BYTES, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_null(ibv_reg_dm_mr(talk.a.pd, dm, 0, DM_BYTES,
				  IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE));
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_null(ibv_reg_dm_mr(talk.a.pd, dm, 1, DM_BYTES, ACCESS));
	assert_int_equal(errno, EINVAL);
	/* A domain of another context. */
	errno = 0;
	assert_null(ibv_reg_dm_mr(pd, dm, 0, DM_BYTES, ACCESS));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

TEST(rereg_mr__is_refused)
{
	errno = 0;
	assert_int_equal(ibv_rereg_mr(local, IBV_REREG_MR_CHANGE_PD, talk.b.pd, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	assert_ptr_equal(local->pd, talk.a.pd);
}

TEST(free_dm__is_busy_while_a_region_is_on_it)
{
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	reach(IBV_WR_RDMA_WRITE, 0, 8, IBV_WC_SUCCESS);
	expect_dm(64, talk.source, 8);
}

TEST(write__and_read_reach_it)
{
	reach(IBV_WR_RDMA_WRITE, 4, DM_BYTES - 68, IBV_WC_SUCCESS);
	expect_dm(68, talk.source, DM_BYTES - 68);
	assert_int_equal(ibv_memcpy_to_dm(dm, 64, "device memory, 16", 16), 0);
	reach(IBV_WR_RDMA_READ, 0, 13, IBV_WC_SUCCESS);
	assert_memory_equal(talk.source, "device memory", 13);
}

TEST(write__past_its_end_is_refused)
{
	reach(IBV_WR_RDMA_WRITE, 1, DM_BYTES - 64, IBV_WC_REM_ACCESS_ERR);
	talk_event(*state, IBV_EVENT_QP_ACCESS_ERR);
}

TEST(atomic__operates_on_it)
{
	uint64_t value = 41;

	assert_int_equal(ibv_memcpy_to_dm(dm, 64 + 8, &value, sizeof(value)), 0);
	reach(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 8, IBV_WC_SUCCESS);
	assert_memory_equal(talk.source, &value, sizeof(value));
	value = 42;
	expect_dm(64 + 8, &value, sizeof(value));
}

TEST(send__from_it_and_into_it)
{
	struct ibv_sge from = {.addr = 0, .length = 100, .lkey = local->lkey};
	struct ibv_sge to = {.addr = 1000, .length = 100, .lkey = remote->lkey};

	assert_int_equal(ibv_memcpy_to_dm(dm, 0, talk.source, 100), 0);
	talk_recv(&talk, &to, 1);
	talk_post(&talk, IBV_WR_SEND, &from, 1);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	talk_wait(talk.b.cq, IBV_WC_SUCCESS);
	expect_dm(1064, talk.source, 100);
}

TEST(calls__work_in_a_child)
{
	const pid_t pid = fork();
	uint32_t word = 0x12345678, found = 0;
	int status;

	if (pid == 0) {
		struct ibv_dm *own = alloc(*state, 4, 0);
		bool right = own && ibv_memcpy_to_dm(own, 0, &word, 4) == 0;

		right &= ibv_memcpy_from_dm(&found, own, 0, 4) == 0 && found == word;
		right &= ibv_free_dm(own) == 0;
		/* The parent's device memory stays out of reach. */
		right &= !ibv_reg_dm_mr(talk.a.pd, dm, 0, 1, ACCESS) && errno == ENODEV;
		_exit(!right);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
