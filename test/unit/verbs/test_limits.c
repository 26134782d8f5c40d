/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the limits that ibv_query_device(3) reports: so many objects can be created, and one
 * more fails with ENOMEM. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "live.h"
#include "raise_qp.h"
#include "sanitizer.h"
#include "test.h"

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_device_attr limits;
static uint8_t bytes[4096];

static void *create_pd(void)
{
	return ibv_alloc_pd(live_context);
}

static int destroy_pd(void *object)
{
	return ibv_dealloc_pd(object);
}

static void *create_cq(void)
{
	return ibv_create_cq(live_context, 1, NULL, NULL, 0);
}

static int destroy_cq(void *object)
{
	return ibv_destroy_cq(object);
}

static void *create_srq(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};

	return ibv_create_srq(pd, &attr);
}

static int destroy_srq(void *object)
{
	return ibv_destroy_srq(object);
}

static void *create_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC};

	return ibv_create_qp(pd, &init);
}

static int destroy_qp(void *object)
{
	return ibv_destroy_qp(object);
}

static void *create_mr(void)
{
	return ibv_reg_mr(pd, bytes, sizeof(bytes), IBV_ACCESS_LOCAL_WRITE);
}

static int destroy_mr(void *object)
{
	return ibv_dereg_mr(object);
}

static void *create_mw(void)
{
	return ibv_alloc_mw(pd, IBV_MW_TYPE_1);
}

static int destroy_mw(void *object)
{
	return ibv_dealloc_mw(object);
}

static void *create_ah(void)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 1};

	ibv_query_gid(live_context, 1, 0, &attr.grh.dgid);
	return ibv_create_ah(pd, &attr);
}

static int destroy_ah(void *object)
{
	return ibv_destroy_ah(object);
}

/* `there` are made already. */
static void expect_limit(int told, int there, void *(*create)(void), int (*destroy)(void *object))
{
	const int count = told - there;
	void **objects = calloc((size_t)count, sizeof(objects[0]));

	assert_non_null(objects);
	for (int i = 0; i < count; i++) {
		objects[i] = create();
		assert_non_null(objects[i]);
	}
	errno = 0;
	assert_null(create());
	assert_int_equal(errno, ENOMEM);
	/* A freed place is available again. */
	assert_int_equal(destroy(objects[count / 2]), 0);
	objects[count / 2] = create();
	assert_non_null(objects[count / 2]);
	assert_null(create());
	for (int i = 0; i < count; i++)
		assert_int_equal(destroy(objects[i]), 0);
	free(objects);
}

TEST(limits__of_protection_domains)
{
	assert_int_equal(limits.max_pd, 65536);
	expect_limit(limits.max_pd, 1, create_pd, destroy_pd);
}

TEST(limits__of_completion_queues)
{
	assert_int_equal(limits.max_cq, 65536);
	expect_limit(limits.max_cq, 1, create_cq, destroy_cq);
}

TEST(limits__of_shared_receive_queues)
{
	expect_limit(limits.max_srq, 0, create_srq, destroy_srq);
}

TEST(limits__of_queue_pairs)
{
	assert_int_equal(limits.max_qp, 65536);
	expect_limit(limits.max_qp, 0, create_qp, destroy_qp);
}

TEST(limits__of_regions)
{
	/* Under AddressSanitizer, a million regions take half a minute and more memory than some
	 * machines have. */
	if (ADDRESS_SANITIZER)
		skip();
	assert_int_equal(limits.max_mr, 1048576);
	expect_limit(limits.max_mr, 0, create_mr, destroy_mr);
}

TEST(limits__of_windows)
{
	expect_limit(limits.max_mw, 0, create_mw, destroy_mw);
}

TEST(limits__of_address_handles)
{
	expect_limit(limits.max_ah, 0, create_ah, destroy_ah);
}

/* Objects may be as large as that, and one more of anything is refused. */
static void expect_qp(struct ibv_qp_cap cap, int error)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .cap = cap, .qp_type = IBV_QPT_RC};
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp(pd, &init);
	/* A call that succeeds may change errno, as memory allocation does. */
	if (error)
		assert_int_equal(errno, error);
	assert_int_equal(qp == NULL, error != 0);
	if (qp)
		assert_int_equal(ibv_destroy_qp(qp), 0);
}

TEST(limits__of_a_queue_pair)
{
	const uint32_t wr = (uint32_t)limits.max_qp_wr, sge = (uint32_t)limits.max_sge;

	expect_qp((struct ibv_qp_cap){wr, wr, sge, sge, 0}, 0);
	expect_qp((struct ibv_qp_cap){wr + 1, 1, 1, 1, 0}, EINVAL);
	expect_qp((struct ibv_qp_cap){1, wr + 1, 1, 1, 0}, EINVAL);
	expect_qp((struct ibv_qp_cap){1, 1, sge + 1, 1, 0}, EINVAL);
	expect_qp((struct ibv_qp_cap){1, 1, 1, sge + 1, 0}, EINVAL);
	assert_int_equal(limits.max_sge_rd, limits.max_sge);
}

static void expect_srq(uint32_t max_wr, uint32_t max_sge, int error)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = max_wr, .max_sge = max_sge}};
	struct ibv_srq *srq;

	errno = 0;
	srq = ibv_create_srq(pd, &init);
	/* A call that succeeds may change errno, as memory allocation does. */
	if (error)
		assert_int_equal(errno, error);
	assert_int_equal(srq == NULL, error != 0);
	if (srq)
		assert_int_equal(ibv_destroy_srq(srq), 0);
}

TEST(limits__of_a_shared_receive_queue)
{
	const uint32_t wr = (uint32_t)limits.max_srq_wr, sge = (uint32_t)limits.max_srq_sge;
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_srq_attr attr = {.max_wr = wr};
	struct ibv_srq *srq = ibv_create_srq(pd, &init);

	expect_srq(wr, sge, 0);
	expect_srq(wr + 1, 1, EINVAL);
	expect_srq(1, sge + 1, EINVAL);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	attr.max_wr++;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

TEST(limits__of_a_region)
{
	void *start = (void *)(uintptr_t)4096;
	struct ibv_mr *all = ibv_reg_mr(pd, NULL, limits.max_mr_size, IBV_ACCESS_ON_DEMAND);

	assert_non_null(all);
	assert_int_equal(ibv_dereg_mr(all), 0);
	/* Addresses end there. */
	errno = 0;
	assert_null(ibv_reg_mr(pd, start, limits.max_mr_size, IBV_ACCESS_ON_DEMAND));
	assert_int_equal(errno, EINVAL);
}

TEST(limits__of_reads_and_atomics)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 1},
		.max_dest_rd_atomic = UINT8_MAX,
		.max_rd_atomic = UINT8_MAX,
	};
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp = create_qp();

	/* The device reports less than the attribute's byte could hold. A program that confuses the
	 * limits of the two ends must work. */
	assert_int_equal(limits.max_qp_rd_atom, 128);
	assert_int_equal(limits.max_qp_init_rd_atom, limits.max_qp_rd_atom);
	assert_int_equal(ibv_query_gid(live_context, 1, 0, &attr.ah_attr.grh.dgid), 0);
	assert_int_equal(raise_qp(qp, &attr), 0);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC, &init), 0);
	assert_int_equal(attr.max_rd_atomic, UINT8_MAX);
	assert_int_equal(attr.max_dest_rd_atomic, UINT8_MAX);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static int set_up(void **state)
{
	if (live_set_up(state) != 0 || ibv_query_device(live_context, &limits) != 0)
		return -1;
	pd = ibv_alloc_pd(live_context);
	cq = ibv_create_cq(live_context, 1, NULL, NULL, 0);
	return pd && cq ? 0 : -1;
}

static int tear_down(void **state)
{
	return ibv_destroy_cq(cq) != 0 || ibv_dealloc_pd(pd) != 0 ? -1 : live_tear_down(state);
}

TEST_GROUP(set_up, tear_down);
