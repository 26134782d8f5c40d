/* SPDX-License-Identifier: BSD-3-Clause */
/* Two queue pairs, the link between them, and a clock. */
#include "qp_rig.h"

#include <string.h>

#include "raise_qp.h"
#include "test.h"
#include "queues.h"

struct qp_rig rig;

static struct end *other(struct end *end)
{
	return end == A ? B : A;
}

static void note_event(void *user, enum ibv_event_type type)
{
	struct end *end = user;

	assert_true(end->events < EVENTS_MAX);
	end->event[end->events++] = type;
}

void end_recreate(struct end *end, enum ibv_qp_type type, struct srq *srq)
{
	struct qp_init init = {
		.pd = rig.fixture.pd,
		.send_cq = end->send_cq,
		.recv_cq = end->recv_cq,
		.srq = srq,
		.cap = {.max_send_wr = WRS,
			.max_recv_wr = srq == NULL ? WRS : 0,
			.max_send_sge = 2,
			.max_recv_sge = srq == NULL ? 2 : 0,
			.max_inline_data = 64},
		.type = type,
		.sig_all = !rig.unsignaled,
		.qpn = end == A ? FIXTURE_QPN : FIXTURE_PEER_QPN,
		.counters = &rig.fixture.counters,
		.waiting = &rig.waiting,
		.ooo = rig.ooo,
		.sack = rig.sack,
		.max_rd_atomic = READS,
		.max_dest_rd_atomic = READS,
		.max_rate_kbps = RATE_MAX,
		.cc = rig.cc,
		.port_mtu = IBV_MTU_1024,
		.event = note_event,
		.user = end,
	};
	struct ibv_qp_cap cap;

	if (end->qp != NULL)
		qp_destroy(end->qp);
	assert_int_equal(qp_create(&init, &cap, &end->qp), 0);
}

void end_recreate_with_small_cq(struct end *end)
{
	struct cq *small;

	assert_int_equal(cq_create(1, NULL, NULL, NULL, &small), 0);
	qp_destroy(end->qp);
	end->qp = NULL;
	assert_int_equal(cq_destroy(end->send_cq), 0);
	end->send_cq = small;
	end_recreate(end, IBV_QPT_RC, NULL);
}

static void set_up_attr(struct end *end)
{
	const bool is_a = end == A;

	end->attr = (struct ibv_qp_attr){
		.path_mtu = IBV_MTU_256,
		.rq_psn = is_a ? 0xfffffe : 100,
		.sq_psn = is_a ? 100 : 0xfffffe,
		.dest_qp_num = is_a ? FIXTURE_PEER_QPN : FIXTURE_QPN,
		.qp_access_flags = REMOTE,
		.max_rd_atomic = READS,
		.max_dest_rd_atomic = READS,
		.min_rnr_timer = RNR_CODE,
		.port_num = 1,
		.timeout = TIMEOUT,
		.retry_cnt = RETRIES,
		.rnr_retry = RETRIES,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};
	memcpy(end->attr.ah_attr.grh.dgid.raw, other(end)->gid, sizeof(end->gid));
}

static void set_up_end(struct end *end)
{
	struct path_attr path = {.vlan_tci = -1, .hop_limit = 64, .udp_sport = 0xc000};

	assert_int_equal(cq_create(CQE, NULL, NULL, NULL, &end->send_cq), 0);
	assert_int_equal(cq_create(CQE, NULL, NULL, NULL, &end->recv_cq), 0);
	region_set_up(&end->memory, rig.fixture.pd, MEMORY, REMOTE | IBV_ACCESS_LOCAL_WRITE,
		      end == A ? SEED : SEED + 1);
	catcher_set_up(&end->catcher);
	memcpy(path.sgid, end->gid, sizeof(path.sgid));
	memcpy(path.dgid, other(end)->gid, sizeof(path.dgid));
	assert_int_equal(path_init(&end->path, &path), 0);
	set_up_attr(end);
	end_recreate(end, IBV_QPT_RC, NULL);
}

/* Let the queue pairs have the congestion control that the environment names. */
static void set_up_cc(void)
{
	static struct cc_paths paths;

	paths = (struct cc_paths){0};
	rig.cc = (struct cc_attr){.kind = fixture_cc(), .paths = &paths};
}

int qp_rig_set_up(TEST_STATE)
{
	static const uint8_t gids[2][16] = {{[10] = 0xff, 0xff, 10, 0, 0, 1},
					    {[10] = 0xff, 0xff, 10, 0, 0, 2}};

	memset(&rig, 0, sizeof(rig));
	set_up_cc();
	fixture_set_up(&rig.fixture, MTU, CQE);
	memcpy(A->gid, gids[0], sizeof(A->gid));
	memcpy(B->gid, gids[1], sizeof(B->gid));
	rig.now_ns = 1000000;
	TAILQ_INIT(&rig.waiting);
	set_up_end(A);
	set_up_end(B);
	return 0;
}

int qp_rig_tear_down(TEST_STATE)
{
	for (struct end *end = A; end <= B; end++) {
		if (end->qp != NULL)
			qp_destroy(end->qp);
		assert_int_equal(cq_destroy(end->send_cq), 0);
		assert_int_equal(cq_destroy(end->recv_cq), 0);
		region_tear_down(&end->memory);
		catcher_tear_down(&end->catcher);
	}
	ooo_pool_destroy(rig.ooo);
	fixture_tear_down(&rig.fixture);
	return 0;
}

int end_modify(struct end *end, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = end->attr;
	int mask = IBV_QP_STATE;

	attr.qp_state = to;
	if (to == IBV_QPS_INIT || to == IBV_QPS_RTR ||
	    (to == IBV_QPS_RTS && qp_state(end->qp) == IBV_QPS_RTR))
		mask = raise_mask(qp_type(end->qp) == IBV_QPT_UC ? IBV_QPT_UC : IBV_QPT_RC, to);
	return qp_modify(end->qp, &attr, mask, &end->path);
}

void end_raise(struct end *end, enum ibv_qp_state to)
{
	for (int state = IBV_QPS_INIT; state <= (int)to; state++)
		assert_int_equal(end_modify(end, (enum ibv_qp_state)state), 0);
	assert_int_equal(qp_state(end->qp), to);
}

void rig_connect(void)
{
	end_raise(A, IBV_QPS_RTS);
	end_raise(B, IBV_QPS_RTS);
}

void end_expect_event(const struct end *end, unsigned int i, enum ibv_event_type type)
{
	assert_true(i < end->events);
	assert_int_equal(end->event[i], type);
}

int end_send(struct end *end, uint64_t wr_id, enum ibv_wr_opcode opcode, size_t offset,
	     uint32_t length, size_t remote)
{
	const struct region *target = &other(end)->memory;
	struct ibv_sge sge = region_sge(&end->memory, offset, length);
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .opcode = opcode,
				 .sg_list = &sge,
				 .num_sge = length > 0},
			   *bad = NULL;
	int err;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)target->bytes + remote;
		wr.wr.atomic.rkey = target->mr == NULL ? FIXTURE_NOBODY : target->mr->key;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)target->bytes + remote;
		wr.wr.rdma.rkey = target->mr == NULL ? FIXTURE_NOBODY : target->mr->key;
	}
	err = qp_post_send(end->qp, &wr, &bad);
	assert_ptr_equal(bad, err == 0 ? NULL : &wr);
	return err;
}

int end_receive(struct end *end, uint64_t wr_id, size_t offset, uint32_t length)
{
	struct ibv_sge sge = region_sge(&end->memory, offset, length);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad = NULL;
	const int err = qp_post_recv(end->qp, &wr, &bad);

	assert_ptr_equal(bad, err == 0 ? NULL : &wr);
	return err;
}

bool end_run(struct end *end, unsigned int budget)
{
	return qp_run(end->qp, rig.now_ns, &end->catcher.sink, budget);
}

void end_deliver(struct end *end)
{
	unsigned int *lose = &rig.lose[end - A];

	for (unsigned int i = 0; i < end->catcher.count; i++)
		if (*lose == 0 || --*lose > 0)
			qp_receive(other(end)->qp, &end->catcher.caught[i].packet, rig.now_ns);
	catcher_clear(&end->catcher);
}

bool end_deliver_marked(struct end *end)
{
	bool runs = false;

	for (unsigned int i = 0; i < end->catcher.count; i++) {
		struct packet packet = end->catcher.caught[i].packet;

		packet.tclass |= ECN_EXPERIENCED;
		runs = qp_receive(other(end)->qp, &packet, rig.now_ns);
	}
	catcher_clear(&end->catcher);
	return runs;
}

void rig_run(void)
{
	unsigned int moved;

	do {
		moved = 0;
		for (struct end *end = A; end <= B; end++) {
			while (end_run(end, 64))
				;
			moved += end->catcher.count;
			end_deliver(end);
		}
	} while (moved > 0);
}

void end_time_out(struct end *end)
{
	const uint64_t deadline_ns = qp_deadline_ns(end->qp);

	assert_true(deadline_ns != UINT64_MAX);
	if (rig.now_ns < deadline_ns)
		rig.now_ns = deadline_ns;
	qp_timeout(end->qp, rig.now_ns, &end->catcher.sink);
}

struct ibv_wc end_sent(struct end *end, uint64_t wr_id, enum ibv_wc_status status)
{
	return fixture_completion(end->send_cq, wr_id, status);
}

struct ibv_wc end_received(struct end *end, uint64_t wr_id, enum ibv_wc_status status)
{
	return fixture_completion(end->recv_cq, wr_id, status);
}

void end_idle(struct end *end)
{
	fixture_no_completion(end->send_cq);
	fixture_no_completion(end->recv_cq);
}

void end_expect_error(const struct end *end)
{
	assert_int_equal(qp_state(end->qp), IBV_QPS_ERR);
	assert_int_equal(qp_deadline_ns(end->qp), UINT64_MAX);
}

uint64_t rig_counter(enum counter which)
{
	return counters_get(&rig.fixture.counters, which);
}
