/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast: datagrams to all queue pairs that are attached to a group. */
#include <string.h>

#include "fake_provider.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

#define GRH   40
#define BYTES 4096
#define QPS   3

static uint8_t inbox[QPS][BYTES];
static uint8_t outbox[BYTES];

static const union ibv_gid group_v4 = {.raw = {[10] = 0xff, 0xff, 239, 1, 2, 3}};
static const union ibv_gid group_v6 = {.raw = {0xff, 0x0e, [15] = 7}};

struct members {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *in;
	struct ibv_mr *out;
	struct ibv_qp *qp[QPS]; /* the first does not want its own datagrams */
};

static struct ibv_qp *create_qp(struct ibv_context *context, struct members *members,
				uint32_t flags)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = members->cq,
		.recv_cq = members->cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = members->pd,
		.create_flags = flags,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(context, &init);

	assert_non_null(qp);
	assert_int_equal(fake_connect(qp, 0, 0, IBV_QPS_RTS), 0);
	return qp;
}

static struct members start(struct ibv_context *context)
{
	struct members members = {
		.pd = ibv_alloc_pd(context),
		.cq = ibv_create_cq(context, 16, NULL, NULL, 0),
	};

	fake.carries = true;
	members.in = ibv_reg_mr(members.pd, inbox, sizeof(inbox), IBV_ACCESS_LOCAL_WRITE);
	members.out = ibv_reg_mr(members.pd, outbox, BYTES, 0);
	for (int i = 0; i < QPS; i++)
		members.qp[i] = create_qp(context, &members,
					  i == 0 ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0);
	memset(outbox, 0x5a, BYTES);
	return members;
}

static void end(struct members *members)
{
	for (int i = 0; i < QPS; i++)
		assert_int_equal(ibv_destroy_qp(members->qp[i]), 0);
	assert_int_equal(ibv_dereg_mr(members->in), 0);
	assert_int_equal(ibv_dereg_mr(members->out), 0);
	assert_int_equal(ibv_destroy_cq(members->cq), 0);
	assert_int_equal(ibv_dealloc_pd(members->pd), 0);
}

static void receive(struct members *members)
{
	memset(inbox, 0, sizeof(inbox));
	for (int i = 0; i < QPS; i++) {
		struct ibv_sge sge = {(uintptr_t)inbox[i], BYTES, members->in->lkey};
		struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

		assert_int_equal(ibv_post_recv(members->qp[i], &wr, &bad), 0);
	}
}

static void send(struct members *members, int from, const union ibv_gid *group, uint32_t qpn)
{
	const uint8_t gid_index = group == &group_v4 ? FAKE_GID_V4 : FAKE_GID_V6;
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .grh = {.sgid_index = gid_index, .dgid = *group}};
	struct ibv_ah *ah = ibv_create_ah(members->pd, &attr);
	struct ibv_sge sge = {(uintptr_t)outbox, 100, members->out->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = FAKE_QKEY}};
	struct ibv_send_wr *bad;

	assert_non_null(ah);
	assert_int_equal(ibv_post_send(members->qp[from], &wr, &bad), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* Return a mask of the queue pairs that have completed a receive request since the last call. */
static unsigned int received(struct members *members)
{
	unsigned int bits = 0;
	struct ibv_wc wc;

	while (ibv_poll_cq(members->cq, 1, &wc) == 1) {
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, GRH + 100);
		for (int i = 0; i < QPS; i++) {
			if (wc.qp_num != members->qp[i]->qp_num)
				continue;
			assert_int_equal(bits & 1u << i, 0);
			bits |= 1u << i;
			assert_memory_equal(inbox[i] + GRH, outbox, 100);
		}
	}
	return bits;
}

static void send__reaches_all_that_are_attached(struct ibv_context *context,
						const union ibv_gid *group)
{
	struct members members = start(context);

	receive(&members);
	send(&members, 1, group, 0xffffff);
	assert_int_equal(received(&members), 0);
	for (int i = 0; i < QPS; i++) {
		assert_int_equal(ibv_attach_mcast(members.qp[i], group, 0), 0);
		assert_int_equal(ibv_attach_mcast(members.qp[i], group, 0), 0);
	}
	assert_int_equal(fake.joined, 1);
	send(&members, 1, group, 0xffffff);
	assert_int_equal(received(&members), 7);
	receive(&members);
	send(&members, 0, group, 0xffffff);
	assert_int_equal(received(&members), 6);
	assert_int_equal(ibv_destroy_qp(members.qp[0]), EBUSY);
	/* Only the multicast QPN reaches the members. */
	send(&members, 0, group, members.qp[0]->qp_num);
	assert_int_equal(received(&members), 0);
	for (int i = 0; i < QPS; i++)
		assert_int_equal(ibv_detach_mcast(members.qp[i], group, 0), 0);
	assert_int_equal(ibv_detach_mcast(members.qp[0], group, 0), EINVAL);
	assert_int_equal(fake.joined, 0);
	receive(&members);
	send(&members, 1, group, 0xffffff);
	assert_int_equal(received(&members), 0);
	end(&members);
}

TEST(send__reaches_members_ipv4)
{
	send__reaches_all_that_are_attached(*state, &group_v4);
}

TEST(send__reaches_members_ipv6)
{
	send__reaches_all_that_are_attached(*state, &group_v6);
}

TEST(attach__refuses_what_is_wrong)
{
	struct members members = start(*state);
	struct fake_pair pair = fake_pair_create(*state);

	assert_int_equal(ibv_attach_mcast(pair.qp, &group_v4, 0), EINVAL);
	assert_int_equal(ibv_attach_mcast(members.qp[0], &fake.device->gids[FAKE_GID_V4].gid, 0),
			 EINVAL);
	fake.join_result = -ENODEV;
	assert_int_equal(ibv_attach_mcast(members.qp[0], &group_v4, 0), ENODEV);
	fake_pair_destroy(&pair);
	end(&members);
}
