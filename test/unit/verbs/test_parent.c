/* SPDX-License-Identifier: BSD-3-Clause */
/* Thread domains and parent domains, and the application's memory for rings. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "queue/cq.h"
#include "queue/srq.h"
#include "qp/qp.h"
#include "queue/sq.h"
#include "uroce/verbs.h"

#include "talk.h"

#define PIECES_MAX 32

#define assert_refused(call, error)             \
	do {                                    \
		errno = 0;                      \
		assert_null(call);              \
		assert_int_equal(errno, error); \
	} while (0)

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

/* Whether `at` stands in a piece that was given for `resource`. */
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

static struct ibv_td *alloc_td(struct ibv_context *context)
{
	struct ibv_td *td = ibv_alloc_td(context, &(struct ibv_td_init_attr){.comp_mask = 0});

	assert_non_null(td);
	assert_ptr_equal(td->context, context);
	return td;
}

static struct ibv_pd *plain_parent(struct ibv_pd *pd, struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr attr = {.pd = pd, .td = td};
	struct ibv_pd *parent = ibv_alloc_parent_domain(pd->context, &attr);

	assert_non_null(parent);
	return parent;
}

static struct ibv_cq *create_cq(struct ibv_pd *parent, uint32_t flags, uint64_t wc_flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.wc_flags = wc_flags,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD | IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = flags,
		.parent_domain = parent,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(parent->context, &attr);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2},
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(pd, &init);
}

static struct ibv_srq *create_srq(struct ibv_pd *pd)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};

	return ibv_create_srq(pd, &init);
}

static void alloc_td__refuses_what_is_not_defined(void **state)
{
	struct ibv_td *td;

	assert_refused(ibv_alloc_td(*state, NULL), EINVAL);
	assert_refused(ibv_alloc_td(*state, &(struct ibv_td_init_attr){.comp_mask = 1}), EINVAL);
	td = alloc_td(*state);
	assert_int_equal(ibv_dealloc_td(td), 0);
}

static void dealloc_td__is_busy_while_used(void **state)
{
	struct ibv_td *td = alloc_td(*state);
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent = plain_parent(pd, td);

	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void alloc_parent_domain__refuses_what_is_not_defined(void **state)
{
	struct ibv_context *context = *state, *other = fake_open();
	struct ibv_pd *pd = ibv_alloc_pd(context), *pd_of_other = ibv_alloc_pd(other);
	struct ibv_td *td_of_other = alloc_td(other);
	struct ibv_parent_domain_init_attr attr = {.pd = NULL};

	assert_refused(ibv_alloc_parent_domain(context, NULL), EINVAL);
	assert_refused(ibv_alloc_parent_domain(context, &attr), EINVAL);
	attr.pd = pd_of_other;
	assert_refused(ibv_alloc_parent_domain(context, &attr), EINVAL);
	attr.pd = pd;
	attr.td = td_of_other;
	assert_refused(ibv_alloc_parent_domain(context, &attr), EINVAL);
	attr.td = NULL;
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT << 1;
	assert_refused(ibv_alloc_parent_domain(context, &attr), EINVAL);
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	attr.alloc = shop_alloc;
	assert_refused(ibv_alloc_parent_domain(context, &attr), EINVAL);
	attr.alloc = NULL;
	attr.free = shop_free;
	assert_refused(ibv_alloc_parent_domain(context, &attr), EINVAL);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_dealloc_pd(pd_of_other), 0);
	assert_int_equal(ibv_dealloc_td(td_of_other), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

static void dealloc_pd__is_busy_under_a_parent_domain(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent = plain_parent(pd, NULL);
	struct ibv_pd *grand = plain_parent(parent, NULL);

	assert_ptr_equal(parent->context, *state);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_dealloc_pd(grand), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* Each kind of object alone keeps the parent domain. */
static void parent_domain__is_busy_while_objects_are_made_with_it(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent = plain_parent(pd, NULL);
	struct ibv_cq *plain_cq = ibv_create_cq(*state, 16, NULL, NULL, 0), *cq;
	struct ibv_ah_attr ah_attr = fake_ah_attr(FAKE_GID_V4);
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_ah *ah;
	struct ibv_dm *dm;
	struct ibv_qp *qp;
	char buf[64];

	mr = ibv_reg_mr(parent, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_ptr_equal(mr->pd, parent);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);

	mr = ibv_alloc_null_mr(parent);
	assert_non_null(mr);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);

	dm = ibv_alloc_dm(*state, &(struct ibv_alloc_dm_attr){.length = 64});
	mr = ibv_reg_dm_mr(parent, dm, 0, 64, IBV_ACCESS_ZERO_BASED);
	assert_non_null(mr);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);

	mw = ibv_alloc_mw(parent, IBV_MW_TYPE_2);
	assert_non_null(mw);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_dealloc_mw(mw), 0);

	ah = ibv_create_ah(parent, &ah_attr);
	assert_non_null(ah);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_destroy_ah(ah), 0);

	srq = create_srq(parent);
	assert_non_null(srq);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);

	qp = create_qp(parent, plain_cq);
	assert_non_null(qp);
	assert_ptr_equal(qp->pd, parent);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);

	cq = create_cq(parent, 0, 0);
	assert_non_null(cq);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_destroy_cq(cq), 0);

	assert_int_equal(ibv_destroy_cq(plain_cq), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void rereg_mr__moves_between_a_domain_and_its_parent(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent = plain_parent(pd, NULL);
	char buf[64];
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);

	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, parent, NULL, 0, 0), 0);
	assert_ptr_equal(mr->pd, parent);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* What is made with the one works with what is made with the other. */
static void parent_domain__is_interchangeable_with_its_domain(void **state)
{
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	struct ibv_pd *parent = plain_parent(talk.a.pd, NULL);
	struct ibv_mr *mr = ibv_reg_mr(parent, talk.source, TALK_BYTES, 0);
	struct ibv_sge sge = talk_source(&talk, 0, 100);

	assert_non_null(mr);
	sge.lkey = mr->lkey;
	talk_post(&talk, IBV_WR_RDMA_WRITE, &sge, 1);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	assert_memory_equal(talk.target, talk.source, 100);
	sge.length = 0;
	assert_int_equal(ibv_advise_mr(parent, IBV_ADVISE_MR_ADVICE_PREFETCH,
				       IBV_ADVISE_MR_FLAG_FLUSH, &sge, 0),
			 ibv_advise_mr(talk.a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
				       IBV_ADVISE_MR_FLAG_FLUSH, &sge, 0));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	talk_end(&talk);
}

/* Window and region of the one, queue pair of the other. */
static void bind_mw__across_a_domain_and_its_parent(void **state)
{
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	struct ibv_pd *parent = plain_parent(talk.a.pd, NULL);
	struct ibv_mw *mw = ibv_alloc_mw(parent, IBV_MW_TYPE_1);
	struct ibv_mr *mr = ibv_reg_mr(parent, talk.source, TALK_BYTES, IBV_ACCESS_MW_BIND);
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {.mr = mr,
			      .addr = (uintptr_t)talk.source,
			      .length = 64,
			      .mw_access_flags = IBV_ACCESS_REMOTE_READ},
	};

	assert_int_equal(ibv_bind_mw(talk.a.qp, mw, &bind), 0);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	talk_end(&talk);
}

/* A shared queue of the one, its queue pair and memory of the other. */
static void srq__across_a_domain_and_its_parent(void **state)
{
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	struct fake_pair plain = talk.b;
	struct ibv_pd *parent = plain_parent(talk.b.pd, NULL);
	struct ibv_srq *srq = create_srq(parent);
	struct ibv_qp_init_attr init = {
		.send_cq = talk.b.cq,
		.recv_cq = talk.b.cq,
		.srq = srq,
		.cap = {.max_send_wr = 4, .max_send_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_sge out = talk_source(&talk, 0, 500), in = talk_target(&talk, 0, 500);
	struct ibv_recv_wr wr = {.sg_list = &in, .num_sge = 1}, *bad;

	talk.b.qp = ibv_create_qp(talk.b.pd, &init);
	assert_non_null(talk.b.qp);
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(ibv_modify_qp(talk.a.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET},
				       IBV_QP_STATE),
			 0);
	assert_int_equal(fake_connect(talk.a.qp, talk.b.qp->qp_num, FAKE_GID_V4, IBV_QPS_RTS), 0);
	assert_int_equal(fake_connect(talk.b.qp, talk.a.qp->qp_num, FAKE_GID_V4, IBV_QPS_RTS), 0);
	talk_post(&talk, IBV_WR_SEND, &out, 1);
	talk_wait(talk.b.cq, IBV_WC_SUCCESS);
	assert_memory_equal(talk.target, talk.source, 500);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(talk.b.qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	talk.b = plain;
	talk_end(&talk);
}

static void create_cq_ex__wants_a_parent_domain_of_its_context(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent = plain_parent(pd, NULL);
	struct ibv_context *other = fake_open();
	struct ibv_cq_init_attr_ex attr = {.cqe = 16, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD};

	assert_refused(ibv_create_cq_ex(*state, &attr), EINVAL);
	attr.parent_domain = pd;
	assert_refused(ibv_create_cq_ex(*state, &attr), EINVAL);
	attr.parent_domain = parent;
	assert_refused(ibv_create_cq_ex(other, &attr), EINVAL);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

static void alloc__provides_every_ring(void **state)
{
	struct shop shop;
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent = open_shop(pd, NULL, &shop);
	struct ibv_cq *cq =
		create_cq(parent, 0, IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
	struct ibv_srq *srq = create_srq(parent);
	struct ibv_qp *qp = create_qp(parent, cq);
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

static void alloc__provides_the_rings_of_other_sizes(void **state)
{
	struct shop shop;
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent = open_shop(pd, NULL, &shop);
	struct ibv_srq_attr srq_attr = {.max_wr = 100};
	struct ibv_cq *cq = create_cq(parent, 0, 0);
	struct ibv_srq *srq = create_srq(parent);

	assert_int_equal(ibv_resize_cq(cq, 100), 0);
	assert_int_equal(shop.allocs, 3);
	assert_int_equal(shop.frees, 1);
	assert_true(
		shop_has(&shop, face_cq(cq)->cq->ring.entries, UROCE_RESOURCE_COMPLETION_QUEUE));
	assert_int_equal(ibv_modify_srq(srq, &srq_attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(shop.allocs, 4);
	assert_int_equal(shop.frees, 2);
	assert_true(shop_has(&shop, face_srq(srq)->srq->rq.ring, UROCE_RESOURCE_SHARED_RECV_QUEUE));

	/* Nothing is kept of what a failing call got. */
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

static void alloc__null_fails_the_call(void **state)
{
	struct shop shop;
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent = open_shop(pd, NULL, &shop);
	struct ibv_cq *cq = ibv_create_cq(*state, 16, NULL, NULL, 0);

	shop.fail_at = 1;
	assert_refused(create_cq(parent, 0, 0), ENOMEM);
	shop.fail_at = 2;
	assert_refused(create_srq(parent), ENOMEM);
	shop.fail_at = 3;
	assert_refused(create_qp(parent, cq), ENOMEM);
	assert_int_equal(shop.allocs, 0);
	/* The send queue had its memory already. */
	shop.fail_at = 5;
	assert_refused(create_qp(parent, cq), ENOMEM);
	assert_int_equal(shop.allocs, 1);
	assert_int_equal(shop.frees, 1);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void alloc__may_leave_it_to_the_library(void **state)
{
	struct shop shop;
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent = open_shop(pd, NULL, &shop);
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	shop.declines = true;
	cq = create_cq(parent, 0, 0);
	assert_non_null(cq);
	qp = create_qp(parent, cq);
	assert_non_null(qp);
	assert_int_equal(shop.calls, 3);
	assert_int_equal(ibv_resize_cq(cq, 100), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(shop.frees, 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* Without IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT the member is not read. */
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

static void alloc__gets_the_context_that_was_given(void **state)
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
	srq = create_srq(parent);
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

/* One side is made with a parent domain: its rings are the application's, its queues lock nothing.
 */
static void traffic__with_the_applications_memory_and_thread(void **state)
{
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	struct ibv_td *td = alloc_td(*state);
	struct fake_pair plain = talk.a;
	struct shop shop;
	struct ibv_pd *parent = open_shop(talk.a.pd, td, &shop);

	talk.a.cq = create_cq(parent, 0, 0);
	talk.a.qp = create_qp(parent, talk.a.cq);
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

static void thread_domain__its_queues_take_no_lock(void **state)
{
	struct ibv_td *td = alloc_td(*state);
	struct ibv_pd *pd = ibv_alloc_pd(*state), *single = plain_parent(pd, td);
	struct ibv_pd *several = plain_parent(pd, NULL);
	struct ibv_cq *cq = create_cq(single, 0, 0), *locked_cq = create_cq(several, 0, 0);
	struct ibv_cq *flag_cq = create_cq(several, IBV_CREATE_CQ_ATTR_SINGLE_THREADED, 0);
	struct ibv_qp *qp = create_qp(single, cq), *locked_qp = create_qp(several, cq);
	struct ibv_srq *srq = create_srq(single), *locked_srq = create_srq(several);

	assert_true(face_cq(cq)->cq->lock.unneeded && face_cq(cq)->single_threaded);
	assert_true(face_cq(flag_cq)->cq->lock.unneeded && face_cq(flag_cq)->single_threaded);
	assert_false(face_cq(locked_cq)->cq->lock.unneeded || face_cq(locked_cq)->single_threaded);
	assert_true(qp_sq(face_qp(qp)->qp)->lock.unneeded);
	assert_false(qp_sq(face_qp(locked_qp)->qp)->lock.unneeded);
	assert_true(face_srq(srq)->srq->rq.lock.unneeded);
	assert_false(face_srq(locked_srq)->srq->rq.lock.unneeded);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_srq(locked_srq), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_qp(locked_qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_cq(flag_cq), 0);
	assert_int_equal(ibv_destroy_cq(locked_cq), 0);
	assert_int_equal(ibv_dealloc_pd(single), 0);
	assert_int_equal(ibv_dealloc_pd(several), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(alloc_td__refuses_what_is_not_defined),
		UNIT(dealloc_td__is_busy_while_used),
		UNIT(alloc_parent_domain__refuses_what_is_not_defined),
		UNIT(dealloc_pd__is_busy_under_a_parent_domain),
		UNIT(parent_domain__is_busy_while_objects_are_made_with_it),
		UNIT(rereg_mr__moves_between_a_domain_and_its_parent),
		UNIT(parent_domain__is_interchangeable_with_its_domain),
		UNIT(bind_mw__across_a_domain_and_its_parent),
		UNIT(srq__across_a_domain_and_its_parent),
		UNIT(create_cq_ex__wants_a_parent_domain_of_its_context),
		UNIT(alloc__provides_every_ring),
		UNIT(alloc__provides_the_rings_of_other_sizes),
		UNIT(alloc__null_fails_the_call),
		UNIT(alloc__may_leave_it_to_the_library),
		UNIT(alloc__gets_the_context_that_was_given),
		UNIT(traffic__with_the_applications_memory_and_thread),
		UNIT(thread_domain__its_queues_take_no_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
