/* SPDX-License-Identifier: BSD-3-Clause */
/* The application's memory for rings, by a parent domain's allocator. */
#include <stdlib.h>
#include <string.h>

#include "qp/qp.h"
#include "queue/cq.h"
#include "queue/sq.h"
#include "queue/srq.h"
#include "uroce/verbs.h"

#include "domains.h"
#include "talk.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

#define PIECES_MAX 32

/* An application's memory, and what was done with it. */
struct shop {
	struct ibv_pd *pd; /* the parent domain, once there is one */
	void *pieces[PIECES_MAX];
	size_t sizes[PIECES_MAX];
	uint64_t types[PIECES_MAX];
	unsigned int allocs;
	unsigned int frees;
	unsigned int fail_at; /* the n-th call answers NULL, counted from 1; 0 none */
	unsigned int calls;
	bool declines;
};

static void *shop_alloc(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
			uint64_t resource_type)
{
	struct shop *shop = pd_context;
	void *piece = NULL;

	assert_ptr_equal(pd, shop->pd);
	assert_false(fake.locked);
	assert_int_equal(resource_type >> 32, UROCE_DRIVER_ID);
	if (++shop->calls == shop->fail_at)
		return NULL;
	if (shop->declines)
		return IBV_ALLOCATOR_USE_DEFAULT;
	assert_true(shop->allocs < PIECES_MAX);
	assert_int_equal(posix_memalign(&piece, alignment, size), 0);
	memset(piece, 0, size);
	shop->types[shop->allocs] = resource_type;
	shop->sizes[shop->allocs] = size;
	shop->pieces[shop->allocs++] = piece;
	return piece;
}

static void shop_free(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type)
{
	struct shop *shop = pd_context;

	assert_ptr_equal(pd, shop->pd);
	assert_false(fake.locked);
	for (unsigned int i = 0; i < shop->allocs; i++) {
		if (shop->pieces[i] != ptr)
			continue;
		assert_int_equal(shop->types[i], resource_type);
		memset(ptr, 0xee, shop->sizes[i]);
		free(ptr);
		shop->pieces[i] = NULL;
		shop->frees++;
		return;
	}
	fail_msg("freed what alloc did not give");
}

/* Return true if `at` is in a piece that was allocated for `resource`. */
static bool shop_has(const struct shop *shop, const void *at, enum uroce_resource resource)
{
	for (unsigned int i = 0; i < shop->allocs; i++) {
		const uint8_t *piece = shop->pieces[i];

		if (piece && (const uint8_t *)at >= piece &&
		    (const uint8_t *)at < piece + shop->sizes[i])
			return shop->types[i] == uroce_resource_type(resource);
	}
	return false;
}

static struct ibv_pd *open_shop(struct ibv_pd *pd, struct ibv_td *td, struct shop *shop)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = pd,
		.td = td,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = shop_alloc,
		.free = shop_free,
		.pd_context = shop,
	};

	memset(shop, 0, sizeof(*shop));
	shop->pd = ibv_alloc_parent_domain(pd->context, &attr);
	assert_non_null(shop->pd);
	return shop->pd;
}

TEST(alloc__provides_every_ring)
{
	struct shop shop;
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent = open_shop(pd, NULL, &shop);
	struct ibv_cq *cq =
		domains_cq(parent, 0, IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
	struct ibv_srq *srq = domains_srq(parent);
	struct ibv_qp *qp = domains_qp(parent, cq);
	const struct cq_ring *ring = &face_cq(cq)->cq->ring;

	assert_non_null(srq);
	assert_non_null(qp);
	assert_int_equal(shop.allocs, 4);
	assert_true(shop_has(&shop, ring->entries, UROCE_RESOURCE_COMPLETION_QUEUE));
	assert_true(shop_has(&shop, &ring->stamps[ring->mask], UROCE_RESOURCE_COMPLETION_QUEUE));
	assert_true(shop_has(&shop, face_srq(srq)->srq->rq.ring, UROCE_RESOURCE_SHARED_RECV_QUEUE));
	assert_true(shop_has(&shop, qp_sq(face_qp(qp)->qp)->ring, UROCE_RESOURCE_SEND_QUEUE));
	assert_int_equal(shop.types[3], uroce_resource_type(UROCE_RESOURCE_RECV_QUEUE));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(shop.frees, 2);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(shop.frees, 3);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(shop.frees, 4);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(alloc__provides_the_rings_of_other_sizes)
{
	struct shop shop;
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent = open_shop(pd, NULL, &shop);
	struct ibv_srq_attr srq_attr = {.max_wr = 100};
	struct ibv_cq *cq = domains_cq(parent, 0, 0);
	struct ibv_srq *srq = domains_srq(parent);

	assert_int_equal(ibv_resize_cq(cq, 100), 0);
	assert_int_equal(shop.allocs, 3);
	assert_int_equal(shop.frees, 1);
	assert_true(
		shop_has(&shop, face_cq(cq)->cq->ring.entries, UROCE_RESOURCE_COMPLETION_QUEUE));
	assert_int_equal(ibv_modify_srq(srq, &srq_attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(shop.allocs, 4);
	assert_int_equal(shop.frees, 2);
	assert_true(shop_has(&shop, face_srq(srq)->srq->rq.ring, UROCE_RESOURCE_SHARED_RECV_QUEUE));

	/* A failing call keeps nothing that it has changed. */
	srq_attr = (struct ibv_srq_attr){.max_wr = 2, .srq_limit = 5};
	assert_int_equal(ibv_modify_srq(srq, &srq_attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	assert_int_equal(shop.frees, shop.allocs - 2);
	shop.fail_at = shop.calls + 1;
	assert_int_equal(ibv_resize_cq(cq, 50), ENOMEM);
	shop.fail_at = shop.calls + 1;
	assert_int_equal(ibv_modify_srq(srq, &srq_attr, IBV_SRQ_MAX_WR), ENOMEM);
	assert_int_equal(cq->cqe, 128);

	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(shop.frees, shop.allocs);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(alloc__null_fails_the_call)
{
	struct shop shop;
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent = open_shop(pd, NULL, &shop);
	struct ibv_cq *cq = ibv_create_cq(*state, 16, NULL, NULL, 0);

	shop.fail_at = 1;
	assert_refused(domains_cq(parent, 0, 0), ENOMEM);
	shop.fail_at = 2;
	assert_refused(domains_srq(parent), ENOMEM);
	shop.fail_at = 3;
	assert_refused(domains_qp(parent, cq), ENOMEM);
	assert_int_equal(shop.allocs, 0);
	/* The send queue had its memory already. */
	shop.fail_at = 5;
	assert_refused(domains_qp(parent, cq), ENOMEM);
	assert_int_equal(shop.allocs, 1);
	assert_int_equal(shop.frees, 1);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(alloc__may_leave_it_to_the_library)
{
	struct shop shop;
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent = open_shop(pd, NULL, &shop);
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	shop.declines = true;
	cq = domains_cq(parent, 0, 0);
	assert_non_null(cq);
	qp = domains_qp(parent, cq);
	assert_non_null(qp);
	assert_int_equal(shop.calls, 3);
	assert_int_equal(ibv_resize_cq(cq, 100), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(shop.frees, 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* Without IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT, pd_context is not read. */
static void *no_context_alloc(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
			      uint64_t resource_type)
{
	(void)pd;
	(void)size;
	(void)alignment;
	(void)resource_type;
	assert_null(pd_context);
	return IBV_ALLOCATOR_USE_DEFAULT;
}

TEST(alloc__gets_the_context_that_was_given)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent;
	struct ibv_parent_domain_init_attr attr = {
		.pd = pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
		.alloc = no_context_alloc,
		.free = shop_free,
		.pd_context = pd,
	};
	struct ibv_srq *srq;

	parent = ibv_alloc_parent_domain(*state, &attr);
	srq = domains_srq(parent);
	assert_non_null(srq);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void write_through(struct talk *talk)
{
	struct ibv_sge sge = talk_source(talk, 0, TALK_BYTES);

	talk_post(talk, IBV_WR_RDMA_WRITE, &sge, 1);
	talk_wait(talk->a.cq, IBV_WC_SUCCESS);
	assert_memory_equal(talk->target, talk->source, TALK_BYTES);
}

/* One side uses a parent domain: its rings are in the application's memory, and its queues take no
 * locks. */
TEST(traffic__with_the_applications_memory_and_thread)
{
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	struct ibv_td *td = domains_td(*state);
	struct fake_pair plain = talk.a;
	struct shop shop;
	struct ibv_pd *parent = open_shop(talk.a.pd, td, &shop);

	talk.a.cq = domains_cq(parent, 0, 0);
	talk.a.qp = domains_qp(parent, talk.a.cq);
	assert_non_null(talk.a.qp);
	assert_int_equal(shop.allocs, 3);
	assert_int_equal(fake_connect(talk.a.qp, talk.b.qp->qp_num, FAKE_GID_V4, IBV_QPS_RTS), 0);
	assert_int_equal(ibv_modify_qp(talk.b.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET},
				       IBV_QP_STATE),
			 0);
	assert_int_equal(fake_connect(talk.b.qp, talk.a.qp->qp_num, FAKE_GID_V4, IBV_QPS_RTS), 0);
	for (int i = 0; i < 40; i++)
		write_through(&talk);
	assert_int_equal(ibv_destroy_qp(talk.a.qp), 0);
	assert_int_equal(ibv_destroy_cq(talk.a.cq), 0);
	assert_int_equal(shop.frees, 3);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
	talk.a = plain;
	talk_end(&talk);
}
