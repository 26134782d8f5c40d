/* SPDX-License-Identifier: BSD-3-Clause */
/* Second contexts, and second handles of what belongs to the first. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "talk.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

#define assert_refused(call, error)             \
	do {                                    \
		errno = 0;                      \
		assert_null(call);              \
		assert_int_equal(errno, error); \
	} while (0)

static struct ibv_context *import(struct ibv_context *context)
{
	struct ibv_context *imported = ibv_import_device(dup(context->cmd_fd));

	assert_non_null(imported);
	return imported;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) != -1;
}

TEST(open_device__has_a_command_descriptor)
{
	struct ibv_context *context = *state, *other = fake_open();
	const int fd = other->cmd_fd;

	assert_true(is_open(context->cmd_fd));
	assert_true(fcntl(context->cmd_fd, F_GETFD) & FD_CLOEXEC);
	assert_int_not_equal(context->cmd_fd, fd);
	assert_int_equal(ibv_close_device(other), 0);
	assert_false(is_open(fd));
}

TEST(import_device__refuses_what_is_not_a_contexts)
{
	const int memory = memfd_create("other", MFD_CLOEXEC), file = open("/dev/null", O_RDWR);
	struct ibv_context *context = *state, *closed = fake_open();
	const int of_closed = dup(closed->cmd_fd);

	assert_int_equal(ibv_close_device(closed), 0);
	assert_refused(ibv_import_device(-1), EINVAL);
	assert_refused(ibv_import_device(memory), EINVAL);
	assert_refused(ibv_import_device(file), EINVAL);
	assert_refused(ibv_import_device(context->async_fd), EINVAL);
	assert_refused(ibv_import_device(of_closed), EINVAL);
	/* A refused descriptor stays with its owner. */
	assert_true(is_open(memory) && is_open(file) && is_open(of_closed));
	close(memory);
	close(file);
	close(of_closed);
}

TEST(import_device__takes_the_descriptor)
{
	struct ibv_context *context = *state, *imported;
	struct ibv_device_attr attr;
	const int fd = dup(context->cmd_fd);

	imported = ibv_import_device(fd);
	assert_non_null(imported);
	assert_ptr_not_equal(imported, context);
	assert_ptr_equal(imported->device, context->device);
	assert_int_equal(imported->cmd_fd, fd);
	assert_int_equal(ibv_query_device(imported, &attr), 0);
	assert_int_equal(ibv_close_device(imported), 0);
	assert_false(is_open(fd));
	assert_true(is_open(context->cmd_fd));
	assert_int_equal(ibv_query_device(context, &attr), 0);
}

TEST(import_device__outlives_the_first_context)
{
	struct ibv_context *first = fake_open(), *second = import(first), *third;
	struct ibv_pd *pd = ibv_alloc_pd(first), *imported;

	assert_int_equal(ibv_close_device(first), 0);
	third = import(second);
	imported = ibv_import_pd(third, pd->handle);
	assert_non_null(imported);
	assert_int_equal(ibv_close_device(second), 0);
	assert_int_equal(ibv_dealloc_pd(imported), 0);
	ibv_unimport_pd(pd);
	assert_int_equal(ibv_close_device(third), 0);
}

TEST(import_dm__keeps_the_memory)
{
	struct ibv_context *context = *state, *imported = import(context), *other = fake_open();
	struct ibv_alloc_dm_attr attr = {.length = 64};
	struct ibv_dm *dm = ibv_alloc_dm(context, &attr), *same, *again;
	uint64_t word = 77, found = 0;

	assert_non_null(dm);
	assert_refused(ibv_import_dm(imported, dm->handle + 1000), ENOENT);
	assert_refused(ibv_import_dm(other, dm->handle), ENOENT);
	same = ibv_import_dm(imported, dm->handle);
	assert_non_null(same);
	assert_ptr_equal(same->context, imported);
	assert_int_equal(same->handle, dm->handle);
	assert_int_equal(ibv_memcpy_to_dm(dm, 8, &word, 8), 0);
	assert_int_equal(ibv_memcpy_from_dm(&found, same, 8, 8), 0);
	assert_int_equal(found, 77);
	again = ibv_import_dm(context, dm->handle);
	/* Destroyed once, by whoever; the others keep the bytes until they let go. */
	assert_int_equal(ibv_free_dm(again), 0);
	assert_int_equal(ibv_free_dm(dm), EINVAL);
	assert_refused(ibv_import_dm(imported, dm->handle), ENOENT);
	found = 0;
	assert_int_equal(ibv_memcpy_from_dm(&found, same, 8, 8), 0);
	assert_int_equal(found, 77);
	ibv_unimport_dm(same);
	found = 0;
	assert_int_equal(ibv_memcpy_from_dm(&found, dm, 8, 8), 0);
	assert_int_equal(found, 77);
	ibv_unimport_dm(dm);
	assert_int_equal(ibv_close_device(imported), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

TEST(import_pd__finds_the_contexts_own)
{
	struct ibv_context *context = *state, *imported = import(context), *other = fake_open();
	struct ibv_pd *pd = ibv_alloc_pd(context), *of_imported = ibv_alloc_pd(imported);
	struct ibv_pd *a, *b;

	assert_int_not_equal(pd->handle, of_imported->handle);
	assert_refused(ibv_import_pd(imported, pd->handle + 1000), ENOENT);
	assert_refused(ibv_import_pd(other, pd->handle), ENOENT);
	a = ibv_import_pd(imported, pd->handle);
	assert_non_null(a);
	assert_ptr_equal(a->context, imported);
	assert_int_equal(a->handle, pd->handle);
	b = ibv_import_pd(context, of_imported->handle);
	assert_non_null(b);
	ibv_unimport_pd(a);
	ibv_unimport_pd(b);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_dealloc_pd(of_imported), 0);
	assert_int_equal(ibv_close_device(imported), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

TEST(import_pd__is_the_same_domain)
{
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	struct ibv_context *context = import(*state);
	struct ibv_pd *pd = ibv_import_pd(context, talk.a.pd->handle);
	struct ibv_mr *mr = ibv_reg_mr(pd, talk.source, TALK_BYTES, 0);
	struct ibv_sge sge = talk_source(&talk, 0, 100);

	sge.lkey = mr->lkey;
	talk_post(&talk, IBV_WR_RDMA_WRITE, &sge, 1);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	assert_memory_equal(talk.target, talk.source, 100);
	/* A domain that is in use outlives both handles. */
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	ibv_unimport_pd(pd);
	/* Objects made with a handle that is gone live on and end as always. */
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_close_device(context), 0);
	talk_end(&talk);
}

TEST(dealloc_pd__through_any_handle_once)
{
	struct ibv_context *context = import(*state);
	struct ibv_pd *pd = ibv_alloc_pd(*state), *imported = ibv_import_pd(context, pd->handle);
	const uint32_t handle = pd->handle;

	assert_int_equal(ibv_dealloc_pd(imported), 0);
	assert_refused(ibv_import_pd(context, handle), ENOENT);
	assert_int_equal(ibv_dealloc_pd(pd), EINVAL);
	ibv_unimport_pd(pd);
	assert_int_equal(ibv_close_device(context), 0);
}

TEST(unimport_pd__leaves_the_domain)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state), *again;
	const uint32_t handle = pd->handle;

	/* The domain can be imported even when no handle is left. */
	ibv_unimport_pd(pd);
	again = ibv_import_pd(*state, handle);
	assert_non_null(again);
	ibv_unimport_pd(again);
	again = ibv_import_pd(*state, handle);
	assert_int_equal(ibv_dealloc_pd(again), 0);
	assert_refused(ibv_import_pd(*state, handle), ENOENT);
}

TEST(unimport_pd__is_not_for_parent_domains)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent, *imported;
	struct ibv_parent_domain_init_attr attr = {.pd = pd};

	parent = ibv_alloc_parent_domain(*state, &attr);
	/* A parent domain has the handle of its protection domain. */
	imported = ibv_import_pd(*state, parent->handle);
	assert_non_null(imported);
	ibv_unimport_pd(imported);
	ibv_unimport_pd(parent);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(import_mr__finds_the_contexts_own)
{
	struct ibv_context *context = import(*state), *other = fake_open();
	struct ibv_pd *pd = ibv_alloc_pd(*state), *imported_pd = ibv_import_pd(context, pd->handle);
	struct ibv_pd *pd_of_other = ibv_alloc_pd(other);
	char buf[64];
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_mr *imported;

	assert_refused(ibv_import_mr(imported_pd, mr->handle + 1), ENOENT);
	assert_refused(ibv_import_mr(imported_pd, mw->rkey), ENOENT);
	assert_refused(ibv_import_mr(pd_of_other, mr->handle), ENOENT);
	imported = ibv_import_mr(imported_pd, mr->handle);
	assert_non_null(imported);
	assert_ptr_equal(imported->context, context);
	assert_ptr_equal(imported->pd, imported_pd);
	assert_null(imported->addr);
	assert_int_equal(imported->length, sizeof(buf));
	assert_int_equal(imported->lkey, mr->lkey);
	assert_int_equal(imported->rkey, mr->rkey);
	assert_int_equal(imported->handle, mr->handle);
	ibv_unimport_mr(imported);
	ibv_unimport_pd(imported_pd);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_dealloc_pd(pd_of_other), 0);
	assert_int_equal(ibv_close_device(context), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

TEST(import_mr__of_a_null_region)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	struct ibv_mr *mr = ibv_alloc_null_mr(pd), *imported = ibv_import_mr(pd, mr->handle);

	assert_non_null(imported);
	assert_int_equal(imported->lkey, mr->lkey);
	assert_int_equal(imported->rkey, 0);
	ibv_unimport_mr(imported);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(import_mr__is_the_same_region)
{
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	struct ibv_context *context = import(*state);
	struct ibv_pd *pd = ibv_import_pd(context, talk.a.pd->handle);
	struct ibv_mr *mr = ibv_import_mr(pd, talk.source_mr->handle);
	struct ibv_sge sge = talk_source(&talk, 0, 100);

	sge.lkey = mr->lkey;
	talk_post(&talk, IBV_WR_RDMA_WRITE, &sge, 1);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	assert_memory_equal(talk.target, talk.source, 100);
	ibv_unimport_mr(mr);
	/* The original stays. */
	talk_post(&talk, IBV_WR_RDMA_WRITE, &sge, 1);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	ibv_unimport_pd(pd);
	assert_int_equal(ibv_close_device(context), 0);
	talk_end(&talk);
}

TEST(dereg_mr__through_any_handle_once)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	char buf[64];
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), 0), *a, *b;
	const uint32_t handle = mr->handle;

	a = ibv_import_mr(pd, handle);
	b = ibv_import_mr(pd, handle);
	assert_int_equal(ibv_dereg_mr(a), 0);
	assert_int_equal(ibv_dereg_mr(b), EINVAL);
	assert_int_equal(ibv_dereg_mr(mr), EINVAL);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_refused(ibv_import_mr(pd, handle), ENOENT);
	ibv_unimport_mr(b);
	ibv_unimport_mr(mr);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static struct ibv_dm *alloc_dm(struct ibv_context *context)
{
	struct ibv_dm *dm = ibv_alloc_dm(context, &(struct ibv_alloc_dm_attr){.length = 64});

	assert_non_null(dm);
	return dm;
}

TEST(import_dm__is_the_same_memory)
{
	struct ibv_context *context = import(*state), *other = fake_open();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_dm *dm = alloc_dm(*state), *imported;
	char bytes[8] = "abcdefg", found[8];
	struct ibv_mr *mr;

	assert_refused(ibv_import_dm(context, dm->handle + 1000), ENOENT);
	assert_refused(ibv_import_dm(context, pd->handle), ENOENT);
	assert_refused(ibv_import_dm(other, dm->handle), ENOENT);
	imported = ibv_import_dm(context, dm->handle);
	assert_non_null(imported);
	assert_ptr_equal(imported->context, context);
	assert_int_equal(imported->handle, dm->handle);
	assert_int_equal(ibv_memcpy_to_dm(dm, 8, bytes, 8), 0);
	assert_int_equal(ibv_memcpy_from_dm(found, imported, 8, 8), 0);
	assert_memory_equal(found, bytes, 8);
	mr = ibv_reg_dm_mr(pd, imported, 0, 64, IBV_ACCESS_ZERO_BASED);
	assert_non_null(mr);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	ibv_unimport_dm(imported);
	assert_int_equal(ibv_memcpy_from_dm(found, dm, 8, 8), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(context), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

/* Ends the context itself. */
static int close_and_count(void **state)
{
	int rc = fake_close(state);

	assert_int_equal(fake.device->dm_pool.used_bytes, 0);
	return rc;
}

TEST(free_dm__through_any_handle_once, .teardown = close_and_count)
{
	struct ibv_dm *dm = alloc_dm(*state), *imported = ibv_import_dm(*state, dm->handle);

	assert_int_equal(ibv_free_dm(imported), 0);
	assert_int_equal(ibv_free_dm(dm), EINVAL);
	ibv_unimport_dm(dm);
	assert_int_equal(fake.device->dm_pool.used_bytes, 0);
	/* Device memory without handles ends with its context. */
	ibv_unimport_dm(alloc_dm(*state));
	assert_int_not_equal(fake.device->dm_pool.used_bytes, 0);
}

#define THREADS	   4
#define ITERATIONS 300

/* Handles of one domain in contexts that come and go. */
static void *come_and_go(void *arg)
{
	struct ibv_pd *shared = arg;

	for (int i = 0; i < ITERATIONS; i++) {
		struct ibv_context *context = import(shared->context);
		struct ibv_pd *own = ibv_alloc_pd(context);
		struct ibv_pd *same = ibv_import_pd(context, shared->handle);
		struct ibv_pd *also = ibv_import_pd(shared->context, own->handle);

		assert_true(same && also);
		ibv_unimport_pd(same);
		assert_int_equal(ibv_dealloc_pd(i % 2 ? own : also), 0);
		ibv_unimport_pd(i % 2 ? also : own);
		assert_int_equal(ibv_close_device(context), 0);
	}
	return NULL;
}

TEST(import__from_several_threads)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, pd), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(rereg_mr__refuses_an_imported_region)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	char buf[64];
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), 0);
	struct ibv_mr *imported = ibv_import_mr(pd, mr->handle);

	errno = 0;
	assert_int_equal(ibv_rereg_mr(imported, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_LOCAL_WRITE),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	ibv_unimport_mr(imported);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}
