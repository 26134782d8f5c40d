/* SPDX-License-Identifier: BSD-3-Clause */
#include "xrc_rig.h"

#include <errno.h>
#include <string.h>

#include "test.h"
#include "queues.h"
#include "wire/build.h"
#include "wire/qpn_block.h"

struct xrc_far xrc_far;
struct srq *xrc_near;
struct pass_link xrc_link;
int xrc_find_says;
unsigned int xrc_passed;
unsigned int xrc_lose_passed, xrc_lose_answer;
unsigned int xrc_lose_response;

static struct srq *find_near(void *domain, uint32_t number)
{
	(void)domain;
	return number == NEAR ? xrc_near : NULL;
}

static struct srq *find_far(void *domain, uint32_t number)
{
	(void)domain;
	return number == FAR ? xrc_far.srq : NULL;
}

static int find_link(void *user, uint32_t srqn, struct pass_link **found)
{
	assert_ptr_equal(user, &xrc_far);
	*found = &xrc_link;
	return srqn == FAR ? xrc_find_says : -ENOENT;
}

static void create(struct qp **qp, uint32_t qpn, bool is_target)
{
	const struct qp_init init = {
		.pd = rig.fixture.other_pd,
		.type = IBV_QPT_XRC_RECV,
		.qpn = qpn,
		.target_qpn = is_target ? 0 : FIXTURE_QPN,
		.find_srq = is_target ? find_near : find_far,
		.find_link = is_target ? find_link : NULL,
		.counters = &rig.fixture.counters,
		.user = &xrc_far,
		.waiting = &rig.waiting,
		.ooo = rig.ooo,
		.max_rd_atomic = READS,
		.max_dest_rd_atomic = READS,
		.max_rate_kbps = RATE_MAX,
		.port_mtu = IBV_MTU_1024,
	};
	struct ibv_qp_cap cap;

	assert_int_equal(qp_create(&init, &cap, qp), 0);
}

static void connect_stand_in(void)
{
	struct ibv_qp_attr attr = A->attr;
	const int masks[] = {IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER};

	attr.qp_state = IBV_QPS_INIT;
	assert_int_equal(qp_modify(xrc_far.qp, &attr, masks[0], NULL), 0);
	attr.qp_state = IBV_QPS_RTR;
	attr.dest_qp_num = ALIAS;
	attr.rq_psn = LINK_PSN;
	assert_int_equal(qp_modify(xrc_far.qp, &attr, masks[1], &xrc_link.path), 0);
}

int xrc_set_up(void **state)
{
	struct path_attr path = {.vlan_tci = -1, .hop_limit = 64, .udp_sport = 0xc000};

	qp_rig_set_up(state);
	assert_int_equal(ooo_pool_create(64, &rig.ooo), 0);
	memcpy(path.sgid, A->gid, sizeof(path.sgid));
	memcpy(path.dgid, A->gid, sizeof(path.dgid));
	xrc_link = (struct pass_link){.block = FAR >> WIRE_QPN_BLOCK_SHIFT,
				      .qpn = STAND_IN,
				      .alias = ALIAS,
				      .psn = psn_make(LINK_PSN)};
	assert_int_equal(path_init(&xrc_link.path, &path), 0);
	xrc_find_says = 0;
	xrc_passed = xrc_lose_passed = xrc_lose_answer = xrc_lose_response = 0;
	assert_int_equal(srq_create(CQE, PACKET_FRAGS_MAX, rig.fixture.pd, &xrc_near), 0);
	assert_int_equal(srq_create(CQE, 1, rig.fixture.pd, &xrc_far.srq), 0);
	xrc_near->cq = A->recv_cq;
	assert_int_equal(cq_create(CQE, NULL, NULL, NULL, &xrc_far.cq), 0);
	xrc_far.srq->cq = xrc_far.cq;
	catcher_set_up(&xrc_far.catcher);
	qp_destroy(A->qp);
	create(&A->qp, FIXTURE_QPN, true);
	create(&xrc_far.qp, STAND_IN, false);
	end_recreate(B, IBV_QPT_XRC_SEND, NULL);
	connect_stand_in();
	for (int s = IBV_QPS_INIT; s <= IBV_QPS_RTR; s++)
		assert_int_equal(end_modify(A, (enum ibv_qp_state)s), 0);
	end_raise(B, IBV_QPS_RTS);
	return 0;
}

int xrc_tear_down(void **state)
{
	qp_retire(A->qp);
	qp_retire(xrc_far.qp);
	qp_destroy(xrc_far.qp);
	assert_int_equal(srq_destroy(xrc_far.srq), 0);
	assert_int_equal(cq_destroy(xrc_far.cq), 0);
	catcher_tear_down(&xrc_far.catcher);
	qp_destroy(A->qp);
	A->qp = NULL;
	assert_int_equal(srq_destroy(xrc_near), 0);
	return qp_rig_tear_down(state);
}

static bool is_lost(unsigned int *lose)
{
	return *lose > 0 && --*lose == 0;
}

void xrc_deliver(struct catcher *catcher)
{
	for (unsigned int i = 0; i < catcher->count; i++) {
		const struct packet *packet = &catcher->caught[i].packet;

		if (packet->dest_qpn == STAND_IN) {
			xrc_passed++;
			if (!is_lost(&xrc_lose_passed))
				qp_receive(xrc_far.qp, packet, rig.now_ns);
		} else if (packet->dest_qpn == FIXTURE_PEER_QPN) {
			if (!is_lost(&xrc_lose_response))
				qp_receive(B->qp, packet, rig.now_ns);
		} else if (packet->dest_qpn != ALIAS || !is_lost(&xrc_lose_answer)) {
			qp_receive(A->qp, packet, rig.now_ns);
		}
	}
	catcher_clear(catcher);
}

/* Return a copy of a READ request that outlives its frame. */
struct packet xrc_kept(struct catcher *catcher)
{
	static uint8_t mac[6];
	struct packet packet = *catcher_at(catcher, 0);

	memcpy(mac, packet.src_mac, sizeof(mac));
	packet.src_mac = mac;
	return packet;
}

unsigned int xrc_poll(struct qp *qp, struct catcher *catcher)
{
	unsigned int moved;

	while (qp_run(qp, rig.now_ns, &catcher->sink, 64))
		;
	moved = catcher->count;
	xrc_deliver(catcher);
	return moved;
}

void xrc_run(void)
{
	while (xrc_poll(B->qp, &B->catcher) + xrc_poll(A->qp, &A->catcher) +
		       xrc_poll(xrc_far.qp, &xrc_far.catcher) >
	       0)
		;
}

/* The requester's timers run out until something has completed. */
void xrc_run_with_losses(void)
{
	xrc_run();
	for (int i = 0; i < 20 && qp_deadline_ns(B->qp) != UINT64_MAX; i++) {
		end_time_out(B);
		xrc_run();
	}
}

void xrc_post(struct srq *srq, uint64_t wr_id, size_t offset, uint32_t length)
{
	struct ibv_sge sge = region_sge(&A->memory, offset, length);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(rq_post(&srq->rq, &wr, &bad), 0);
}

void xrc_send_to(uint32_t srqn, uint64_t wr_id, enum ibv_wr_opcode opcode, size_t offset,
		 uint32_t length, size_t remote)
{
	struct ibv_sge sge = region_sge(&B->memory, offset, length);
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .opcode = opcode,
				 .sg_list = &sge,
				 .num_sge = length > 0,
				 .imm_data = 0x1234},
			   *bad = NULL;

	wr.qp_type.xrc.remote_srqn = srqn;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = region_iova(&A->memory, remote);
		wr.wr.atomic.rkey = A->memory.mr->key;
		wr.wr.atomic.compare_add = 5;
	} else {
		wr.wr.rdma.remote_addr = region_iova(&A->memory, remote);
		wr.wr.rdma.rkey = A->memory.mr->key;
	}
	assert_int_equal(qp_post_send(B->qp, &wr, &bad), 0);
}

struct ibv_wc xrc_arrived(uint64_t wr_id, enum ibv_wc_status status)
{
	return fixture_completion(xrc_far.cq, wr_id, status);
}
