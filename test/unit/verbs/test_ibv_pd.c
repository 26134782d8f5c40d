/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, thread domains and parent domains. */
#include <stdlib.h>

#include "domains.h"
#include "fake_provider.h"
#include "qp/qp.h"
#include "queue/cq.h"
#include "queue/sq.h"
#include "queue/srq.h"
#include "talk.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

TEST(alloc_pd__belongs_to_its_context)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);

	assert_non_null(pd);
	assert_ptr_equal(pd->context, *state);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(alloc_pd__gives_different_handles)
{
	struct ibv_pd *a = ibv_alloc_pd(*state), *b = ibv_alloc_pd(*state);

	assert_int_not_equal(a->handle, b->handle);
	assert_int_equal(ibv_dealloc_pd(a), 0);
	assert_int_equal(ibv_dealloc_pd(b), 0);
}

/* Allocate as many domains as the device reports. */
TEST(alloc_pd__no_more_than_there_are)
{
	struct ibv_device_attr attr;
	struct ibv_pd **pds;

	assert_int_equal(ibv_query_device(*state, &attr), 0);
	pds = calloc((size_t)attr.max_pd, sizeof(pds[0]));
	assert_non_null(pds);
	for (int i = 0; i < attr.max_pd; i++) {
		pds[i] = ibv_alloc_pd(*state);
		assert_non_null(pds[i]);
	}
	errno = 0;
	assert_null(ibv_alloc_pd(*state));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(ibv_dealloc_pd(pds[0]), 0);
	pds[0] = ibv_alloc_pd(*state);
	assert_non_null(pds[0]);
	for (int i = 0; i < attr.max_pd; i++)
		assert_int_equal(ibv_dealloc_pd(pds[i]), 0);
	free(pds);
}

/* As with adapters, whose null region is no object of the domain. Its handle stays the program's.
 */
TEST(dealloc_pd__a_null_region_holds_nothing)
{
	struct ibv_parent_domain_init_attr init = {.comp_mask = 0};
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent;
	struct ibv_mr *null = ibv_alloc_null_mr(pd), *other;

	init.pd = pd;
	parent = ibv_alloc_parent_domain(*state, &init);
	assert_non_null(parent);
	other = ibv_alloc_null_mr(parent);
	assert_non_null(null);
	assert_non_null(other);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	pd = ibv_alloc_pd(*state);
	assert_int_equal(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_dereg_mr(null), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	/* The other one ends with its device. */
	assert_int_equal(ibv_close_device(*state), 0);
	*state = fake_open();
	assert_int_equal(ibv_dereg_mr(other), ENODEV);
}

TEST(dealloc_pd__is_busy_while_used)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	char buf[64];
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(alloc_td__refuses_what_is_not_defined)
{
	struct ibv_td *td;

	assert_refused(ibv_alloc_td(*state, NULL), EINVAL);
	assert_refused(ibv_alloc_td(*state, &(struct ibv_td_init_attr){.comp_mask = 1}), EINVAL);
	td = domains_td(*state);
	assert_int_equal(ibv_dealloc_td(td), 0);
}

TEST(dealloc_td__is_busy_while_used)
{
	struct ibv_td *td = domains_td(*state);
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent = domains_parent(pd, td);

	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void *never_alloc(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
			 uint64_t resource_type)
{
	(void)pd, (void)pd_context, (void)size, (void)alignment, (void)resource_type;
	return NULL;
}

static void never_free(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type)
{
	(void)pd, (void)pd_context, (void)ptr, (void)resource_type;
}

TEST(alloc_parent_domain__refuses_what_is_not_defined)
{
	struct ibv_context *context = *state, *other = fake_open();
	struct ibv_pd *pd = ibv_alloc_pd(context), *pd_of_other = ibv_alloc_pd(other);
	struct ibv_td *td_of_other = domains_td(other);
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
	attr.alloc = never_alloc;
	assert_refused(ibv_alloc_parent_domain(context, &attr), EINVAL);
	attr.alloc = NULL;
	attr.free = never_free;
	assert_refused(ibv_alloc_parent_domain(context, &attr), EINVAL);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_dealloc_pd(pd_of_other), 0);
	assert_int_equal(ibv_dealloc_td(td_of_other), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

TEST(dealloc_pd__is_busy_under_a_parent_domain)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent = domains_parent(pd, NULL);
	struct ibv_pd *grand = domains_parent(parent, NULL);

	assert_ptr_equal(parent->context, *state);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_dealloc_pd(grand), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* Each kind of object alone keeps the parent domain. */
TEST(parent_domain__is_busy_while_objects_are_made_with_it)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent = domains_parent(pd, NULL);
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

	srq = domains_srq(parent);
	assert_non_null(srq);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);

	qp = domains_qp(parent, plain_cq);
	assert_non_null(qp);
	assert_ptr_equal(qp->pd, parent);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);

	cq = domains_cq(parent, 0, 0);
	assert_non_null(cq);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_destroy_cq(cq), 0);

	assert_int_equal(ibv_destroy_cq(plain_cq), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

TEST(rereg_mr__moves_between_a_domain_and_its_parent)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent = domains_parent(pd, NULL);
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

/* Objects of the parent domain work with objects of its protection domain. */
TEST(parent_domain__is_interchangeable_with_its_domain)
{
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	struct ibv_pd *parent = domains_parent(talk.a.pd, NULL);
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
TEST(bind_mw__across_a_domain_and_its_parent)
{
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	struct ibv_pd *parent = domains_parent(talk.a.pd, NULL);
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
TEST(srq__across_a_domain_and_its_parent)
{
	struct talk talk = talk_start(*state, FAKE_GID_V4);
	struct fake_pair plain = talk.b;
	struct ibv_pd *parent = domains_parent(talk.b.pd, NULL);
	struct ibv_srq *srq = domains_srq(parent);
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

TEST(create_cq_ex__wants_a_parent_domain_of_its_context)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state), *parent = domains_parent(pd, NULL);
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

TEST(thread_domain__its_queues_take_no_lock)
{
	struct ibv_td *td = domains_td(*state);
	struct ibv_pd *pd = ibv_alloc_pd(*state), *single = domains_parent(pd, td);
	struct ibv_pd *several = domains_parent(pd, NULL);
	struct ibv_cq *cq = domains_cq(single, 0, 0), *locked_cq = domains_cq(several, 0, 0);
	struct ibv_cq *flag_cq = domains_cq(several, IBV_CREATE_CQ_ATTR_SINGLE_THREADED, 0);
	struct ibv_qp *qp = domains_qp(single, cq), *locked_qp = domains_qp(several, cq);
	struct ibv_srq *srq = domains_srq(single), *locked_srq = domains_srq(several);

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
