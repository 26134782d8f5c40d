/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC: domains, their queue pairs with several handles, and receive queues by number. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/xrc_share.h"
#include "queue/cq.h"

#include "fake_provider.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

static uint8_t bytes[4096];

static struct ibv_xrcd *open_xrcd(struct ibv_context *context, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	return ibv_open_xrcd(context, &attr);
}

/* An XRC domain with a receive queue and a queue pair that receives (tgt), and a queue pair outside
 * the domain that sends to it (ini). */
struct domain {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_pd *srq_pd;
	struct ibv_cq *send_cq;
	struct ibv_cq *srq_cq;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_mr *srq_mr;
	struct ibv_qp *ini;
	struct ibv_qp *tgt;
};

static struct ibv_srq *create_srq(struct domain *domain)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = domain->srq_pd,
		.xrcd = domain->xrcd,
		.cq = domain->srq_cq,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(domain->context, &init);

	assert_non_null(srq);
	assert_true(init.attr.max_wr >= 4);
	return srq;
}

static struct ibv_qp *create_tgt(struct ibv_context *context, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};

	return ibv_create_qp_ex(context, &init);
}

static struct ibv_qp *create_ini(struct domain *domain)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = domain->send_cq,
		.cap = {.max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = 7},
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = domain->pd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(domain->context, &init);

	assert_non_null(qp);
	assert_int_equal(init.cap.max_recv_wr, 0);
	return qp;
}

static void domain_start(struct domain *domain, struct ibv_context *context)
{
	fake.carries = true;
	*domain = (struct domain){
		.context = context,
		.pd = ibv_alloc_pd(context),
		.srq_pd = ibv_alloc_pd(context),
		.send_cq = ibv_create_cq(context, 16, NULL, NULL, 0),
		.srq_cq = ibv_create_cq(context, 16, NULL, NULL, 0),
		.xrcd = open_xrcd(context, -1, O_CREAT),
	};
	assert_non_null(domain->xrcd);
	domain->srq = create_srq(domain);
	domain->tgt = create_tgt(context, domain->xrcd);
	domain->ini = create_ini(domain);
	assert_int_equal(fake_connect(domain->ini, domain->tgt->qp_num, FAKE_GID_V4, IBV_QPS_RTS),
			 0);
	assert_int_equal(fake_connect(domain->tgt, domain->ini->qp_num, FAKE_GID_V4, IBV_QPS_RTS),
			 0);
	domain->mr = ibv_reg_mr(domain->pd, bytes, sizeof(bytes), IBV_ACCESS_LOCAL_WRITE);
	domain->srq_mr = ibv_reg_mr(domain->srq_pd, bytes, sizeof(bytes),
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
}

static void domain_end(struct domain *domain)
{
	assert_int_equal(ibv_destroy_qp(domain->ini), 0);
	if (domain->tgt)
		assert_int_equal(ibv_destroy_qp(domain->tgt), 0);
	if (domain->srq) {
		assert_int_equal(ibv_close_xrcd(domain->xrcd), EBUSY);
		assert_int_equal(ibv_destroy_cq(domain->srq_cq), EBUSY);
		assert_int_equal(ibv_destroy_srq(domain->srq), 0);
	}
	assert_int_equal(ibv_close_xrcd(domain->xrcd), 0);
	assert_int_equal(ibv_dereg_mr(domain->mr), 0);
	assert_int_equal(ibv_dereg_mr(domain->srq_mr), 0);
	assert_int_equal(ibv_destroy_cq(domain->send_cq), 0);
	assert_int_equal(ibv_destroy_cq(domain->srq_cq), 0);
	assert_int_equal(ibv_dealloc_pd(domain->pd), 0);
	assert_int_equal(ibv_dealloc_pd(domain->srq_pd), 0);
	assert_true(LIST_EMPTY(&fake.device->xrcds));
}

static void post(struct domain *domain, uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)bytes, 2048, domain->srq_mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_srq_recv(domain->srq, &wr, &bad), 0);
}

static void request(struct domain *domain, enum ibv_wr_opcode opcode, uint32_t srqn)
{
	struct ibv_sge sge = {(uintptr_t)bytes + 2048, 1500, domain->mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = (uintptr_t)bytes, .rkey = domain->srq_mr->rkey},
		.qp_type.xrc.remote_srqn = srqn,
	};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(domain->ini, &wr, &bad), 0);
}

static void expect_sent(struct domain *domain, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(domain->send_cq, 1, &wc), 1);
	assert_int_equal(wc.status, status);
	assert_int_equal(wc.qp_num, domain->ini->qp_num);
}

TEST(send__arrives_in_the_queue_of_the_number)
{
	struct domain domain;
	struct ibv_wc wc;
	uint32_t srqn;

	domain_start(&domain, *state);
	assert_int_equal(ibv_get_srq_num(domain.srq, &srqn), 0);
	memset(bytes + 2048, 0x5a, 1500);
	post(&domain, 3);
	request(&domain, IBV_WR_SEND, srqn);
	expect_sent(&domain, IBV_WC_SUCCESS);
	assert_int_equal(ibv_poll_cq(domain.srq_cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(wc.byte_len, 1500);
	assert_int_equal(wc.qp_num, domain.tgt->qp_num);
	assert_memory_equal(bytes, bytes + 2048, 1500);
	domain_end(&domain);
}

TEST(read__uses_the_protection_domain_of_the_number)
{
	struct domain domain;
	uint32_t srqn;

	domain_start(&domain, *state);
	assert_int_equal(ibv_get_srq_num(domain.srq, &srqn), 0);
	memset(bytes, 0x77, 1500);
	request(&domain, IBV_WR_RDMA_READ, srqn);
	expect_sent(&domain, IBV_WC_SUCCESS);
	assert_memory_equal(bytes, bytes + 2048, 1500);
	domain_end(&domain);
}

TEST(destroy_srq__makes_its_number_invalid)
{
	struct domain domain;
	uint32_t srqn;

	domain_start(&domain, *state);
	assert_int_equal(ibv_get_srq_num(domain.srq, &srqn), 0);
	assert_int_equal(ibv_destroy_srq(domain.srq), 0);
	domain.srq = NULL;
	request(&domain, IBV_WR_SEND, srqn);
	expect_sent(&domain, IBV_WC_REM_INV_REQ_ERR);
	domain_end(&domain);
}

static struct ibv_qp *open_qp(struct ibv_context *context, struct ibv_xrcd *xrcd, uint32_t qpn,
			      void *user)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE |
			     IBV_QP_OPEN_ATTR_CONTEXT,
		.qp_num = qpn,
		.xrcd = xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
		.qp_context = user,
	};

	return ibv_open_qp(context, &attr);
}

static void receive_two(struct domain *domain)
{
	uint32_t srqn;

	assert_int_equal(ibv_get_srq_num(domain->srq, &srqn), 0);
	for (uint64_t i = 0; i < 2; i++) {
		post(domain, i);
		request(domain, IBV_WR_SEND, srqn);
		expect_sent(domain, IBV_WC_SUCCESS);
	}
}

static void expect_received(const struct domain *domain, int count)
{
	struct ibv_wc wc[4];

	assert_int_equal(ibv_poll_cq(domain->srq_cq, 4, wc), count);
}

TEST(reset_qp__its_completions_are_gone)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct domain domain;

	domain_start(&domain, *state);
	receive_two(&domain);
	assert_int_equal(ibv_modify_qp(domain.ini, &reset, IBV_QP_STATE), 0);
	assert_int_equal(cq_empty(face_cq(domain.srq_cq)->cq), false);
	assert_int_equal(ibv_modify_qp(domain.tgt, &reset, IBV_QP_STATE), 0);
	expect_received(&domain, 0);
	domain_end(&domain);
}

TEST(destroy_qp__its_completions_are_gone)
{
	struct domain domain;

	domain_start(&domain, *state);
	receive_two(&domain);
	assert_int_equal(ibv_destroy_qp(domain.tgt), 0);
	domain.tgt = NULL;
	expect_received(&domain, 0);
	domain_end(&domain);
}

/* The completions are dropped when the last handle of the queue pair is destroyed. */
TEST(destroy_qp__of_one_handle_leaves_them)
{
	struct domain domain;
	struct ibv_qp *second;

	domain_start(&domain, *state);
	second = open_qp(domain.context, domain.xrcd, domain.tgt->qp_num, NULL);
	receive_two(&domain);
	assert_int_equal(ibv_destroy_qp(domain.tgt), 0);
	domain.tgt = second;
	expect_received(&domain, 2);
	domain_end(&domain);
}

TEST(destroy_qp__drops_them_even_after_their_srq)
{
	struct domain domain;

	domain_start(&domain, *state);
	receive_two(&domain);
	assert_int_equal(ibv_destroy_srq(domain.srq), 0);
	domain.srq = NULL;
	assert_int_equal(ibv_destroy_qp(domain.tgt), 0);
	domain.tgt = NULL;
	expect_received(&domain, 0);
	domain_end(&domain);
}

TEST(open_xrcd__shares_by_file)
{
	const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct ibv_xrcd_init_attr no_fd = {.comp_mask = IBV_XRCD_INIT_ATTR_OFLAGS,
					   .oflags = O_CREAT};
	struct ibv_xrcd *a, *b;

	assert_true(fd >= 0);
	errno = 0;
	assert_null(open_xrcd(*state, fd, 0));
	assert_int_equal(errno, EAGAIN);
	assert_null(ibv_open_xrcd(*state, &no_fd));
	assert_int_equal(errno, EINVAL);
	a = open_xrcd(*state, fd, O_CREAT);
	b = open_xrcd(*state, fd, 0);
	assert_ptr_equal(face_xrcd(a)->xrcd, face_xrcd(b)->xrcd);
	assert_null(open_xrcd(*state, fd, O_CREAT | O_EXCL));
	assert_int_equal(ibv_close_xrcd(a), 0);
	assert_int_equal(ibv_close_xrcd(b), 0);
	close(fd);
}

TEST(open_qp__gives_another_handle)
{
	struct ibv_context *other = fake_open();
	const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct ibv_xrcd *mine = open_xrcd(*state, fd, O_CREAT), *theirs = open_xrcd(other, fd, 0);
	struct ibv_qp *first = create_tgt(*state, mine);
	struct ibv_qp *second;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp_init_attr init;

	assert_non_null(first);
	second = open_qp(other, theirs, first->qp_num, &attr);
	assert_non_null(second);
	assert_int_equal(second->qp_num, first->qp_num);
	assert_int_equal(second->qp_type, IBV_QPT_XRC_RECV);
	assert_ptr_equal(second->qp_context, &attr);
	assert_ptr_equal(second->context, other);
	assert_int_equal(ibv_destroy_qp(first), 0);
	assert_int_equal(ibv_close_xrcd(mine), 0);
	assert_int_equal(ibv_modify_qp(second, &attr, IBV_QP_STATE), 0);
	assert_int_equal(ibv_query_qp(second, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	assert_non_null(device_find_qp(fake.device, second->qp_num));
	assert_int_equal(ibv_close_xrcd(theirs), EBUSY);
	assert_int_equal(ibv_destroy_qp(second), 0);
	assert_int_equal(fake.device->qps, 0);
	assert_int_equal(ibv_close_xrcd(theirs), 0);
	assert_int_equal(ibv_close_device(other), 0);
	close(fd);
}

TEST(open_qp__refuses_a_wrong_domain_type_or_number)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_xrcd *mine = open_xrcd(*state, -1, O_CREAT);
	struct ibv_xrcd *other = open_xrcd(*state, -1, O_CREAT);
	struct ibv_qp *tgt = create_tgt(*state, mine);

	errno = 0;
	assert_null(open_qp(*state, other, tgt->qp_num, NULL));
	assert_int_equal(errno, EINVAL);
	assert_null(open_qp(*state, mine, pair.qp->qp_num, NULL));
	assert_null(open_qp(*state, mine, 1, NULL));
	assert_int_equal(ibv_destroy_qp(tgt), 0);
	assert_int_equal(ibv_close_xrcd(mine), 0);
	assert_int_equal(ibv_close_xrcd(other), 0);
	fake_pair_destroy(&pair);
}

/* Other processes that share the port have other numbers. */
#define BLOCK_QPNS (1u << 14)

static struct {
	int ask_says;
	bool has_note;
	struct xrc_note note; /* for us */
	struct xrc_note told; /* the last one */
} others;

static int ask_others(void *user, struct xrc_note *note)
{
	(void)user;
	note->result = others.ask_says;
	return 0;
}

static void tell_others(void *user, const struct xrc_note *note)
{
	(void)user;
	others.told = *note;
}

static bool next_of_others(void *user, struct xrc_note *note)
{
	const bool found = others.has_note;

	(void)user;
	*note = others.note;
	others.has_note = false;
	return found;
}

static const struct xrc_share_ops others_ops = {
	.ask = ask_others, .tell = tell_others, .next = next_of_others};

static int share_setup(void **state)
{
	const int rc = fake_setup(state);
	struct device *device = fake.device;

	memset(&others, 0, sizeof(others));
	device->config.qpn_first = device->qpn_next & ~(BLOCK_QPNS - 1);
	device->config.qpn_count = BLOCK_QPNS;
	device->xrc_share = &others_ops;
	return rc;
}

static int share_close(void **state)
{
	fake.device->config.qpn_first = 0;
	fake.device->config.qpn_count = 0;
	fake.device->xrc_share = NULL;
	return fake_close(state);
}

TEST(open_qp__of_another_process, .setup = share_setup, .teardown = share_close)
{
	const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct ibv_xrcd *xrcd = open_xrcd(*state, fd, 0);
	const uint32_t far = fake.device->config.qpn_first ^ BLOCK_QPNS;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp;

	assert_non_null(xrcd);
	others.ask_says = -EINVAL;
	errno = 0;
	assert_null(open_qp(*state, xrcd, far, NULL));
	assert_int_equal(errno, EINVAL);
	others.ask_says = 0;
	/* It would be ours. */
	assert_null(open_qp(*state, xrcd, fake.device->config.qpn_first + 5, NULL));
	qp = open_qp(*state, xrcd, far, &attr);
	assert_non_null(qp);
	assert_int_equal(qp->qp_num, far);
	assert_ptr_equal(qp->qp_context, &attr);
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EOPNOTSUPP);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), EOPNOTSUPP);
	assert_int_equal(ibv_close_xrcd(xrcd), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	assert_int_equal(others.told.type, XRC_CLOSE);
	assert_int_equal(fake.device->qps, 0);
	close(fd);
}

/* A stand-in for another process's target is no queue pair of the program's. */
TEST(open_qp__not_of_a_stand_in, .setup = share_setup, .teardown = share_close)
{
	const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct ibv_xrcd *xrcd = open_xrcd(*state, fd, 0);
	struct stat file;

	assert_int_equal(fstat(fd, &file), 0);
	others.note = (struct xrc_note){.type = XRC_LINK,
					.dev = (uint64_t)file.st_dev,
					.ino = (uint64_t)file.st_ino,
					.target = fake.device->config.qpn_first ^ BLOCK_QPNS,
					.alias = (fake.device->config.qpn_first ^ BLOCK_QPNS) + 1,
					.mtu = IBV_MTU_1024,
					.min_rnr_timer = 12,
					.vlan_id = fake.device->gids[FAKE_GID_V4].vlan_id};
	memcpy(others.note.gid, fake.device->gids[FAKE_GID_V4].gid.raw, sizeof(others.note.gid));
	others.has_note = true;
	device_lock(fake.device);
	xrc_share_follow(fake.device);
	device_unlock(fake.device);
	assert_int_equal(others.told.type, XRC_LINKED);
	assert_int_equal(others.told.result, 0);
	assert_non_null(device_find_qp(fake.device, others.told.stand_in));
	errno = 0;
	assert_null(open_qp(*state, xrcd, others.told.stand_in, NULL));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	assert_int_equal(fake.device->qps, 0);
	close(fd);
}

TEST(events__reach_every_handle)
{
	struct ibv_xrcd *xrcd = open_xrcd(*state, -1, O_CREAT);
	struct ibv_qp *first = create_tgt(*state, xrcd);
	struct ibv_qp *second = open_qp(*state, xrcd, first->qp_num, NULL);
	struct ibv_async_event a, b;

	event_raise_target(face_qp(first)->target, IBV_EVENT_COMM_EST);
	assert_int_equal(ibv_get_async_event(*state, &a), 0);
	assert_int_equal(ibv_get_async_event(*state, &b), 0);
	assert_ptr_equal(a.element.qp, first);
	assert_ptr_equal(b.element.qp, second);
	ibv_ack_async_event(&a);
	ibv_ack_async_event(&b);
	assert_int_equal(ibv_destroy_qp(first), 0);
	assert_int_equal(ibv_destroy_qp(second), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}
