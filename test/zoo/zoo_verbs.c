/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong programs of verbs. */
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#include "zoo_world.h"

static void beyond_the_end(void)
{
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE);

	connect_both();
	if (wrong)
		wr.wr.rdma.remote_addr += 12;
	run(wr, 1);
}

static void before_the_beginning(void)
{
	struct ibv_send_wr wr = request(IBV_WR_RDMA_READ);

	connect_both();
	if (wrong)
		wr.wr.rdma.remote_addr -= 8;
	run(wr, 1);
}

static void unknown_key(void)
{
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE);

	connect_both();
	if (wrong)
		wr.wr.rdma.rkey ^= 0x5a5a00;
	run(wr, 1);
}

static void deregistered(void)
{
	struct ibv_mr *more = ibv_reg_mr(world.pd, memory[1], BYTES, ALL);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE);

	connect_both();
	wr.wr.rdma.rkey = more->rkey;
	if (wrong)
		must(ibv_dereg_mr(more) == 0, "ibv_dereg_mr");
	run(wr, 1);
}

static void without_remote_write(void)
{
	struct ibv_mr *mr =
		ibv_reg_mr(world.pd, memory[1], BYTES, wrong ? IBV_ACCESS_LOCAL_WRITE : ALL);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE);

	connect_both();
	wr.wr.rdma.rkey = mr->rkey;
	run(wr, 1);
}

static void other_domain(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(world.context);
	struct ibv_mr *mr = ibv_reg_mr(wrong ? pd : world.pd, memory[1], BYTES, ALL);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE);

	connect_both();
	wr.wr.rdma.rkey = mr->rkey;
	run(wr, 1);
}

static void local_key(void)
{
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE);

	connect_both();
	if (wrong)
		wr.sg_list->lkey = 0;
	run(wr, 1);
}

/* The first request is under way when the second one turns out to be wrong. */
static void local_key_of_the_second(void)
{
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE), second = request(IBV_WR_RDMA_WRITE);
	struct ibv_sge sge = *second.sg_list;
	struct ibv_send_wr *bad;

	connect_both();
	if (wrong)
		sge.lkey = 0;
	second.wr_id = 9;
	second.sg_list = &sge;
	wr.next = &second;
	must(ibv_post_send(world.a, &wr, &bad) == 0, "ibv_post_send");
	await(2);
}

/* The peer refuses the first request; the second one is wrong here. */
static void two_mistakes(void)
{
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE), second = request(IBV_WR_RDMA_WRITE);
	struct ibv_sge sge = *second.sg_list;
	struct ibv_send_wr *bad;

	connect_both();
	if (wrong) {
		wr.wr.rdma.remote_addr += 12;
		sge.lkey = 0;
	}
	second.sg_list = &sge;
	wr.next = &second;
	must(ibv_post_send(world.a, &wr, &bad) == 0, "ibv_post_send");
	await(2);
}

static void own_receive_request(void)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)memory[1], .length = BYTES, .lkey = wrong ? 0 : world.to->lkey};
	struct ibv_recv_wr wr = {.wr_id = 8, .sg_list = &sge, .num_sge = 1}, *bad;

	connect_both();
	must(ibv_post_recv(world.b, &wr, &bad) == 0, "ibv_post_recv");
	run(request(IBV_WR_SEND), 2);
}

static void read_on_uc(void)
{
	struct ibv_qp_attr *attr = &world.attr_a;

	world.init.qp_type = IBV_QPT_UC;
	make();
	must(move(world.a, attr, IBV_QPS_INIT, RC_INIT_MASK) == 0, "INIT");
	must(move(world.a, attr, IBV_QPS_RTR,
		  RC_RTR_MASK & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)) == 0,
	     "RTR");
	must(move(world.a, attr, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0, "RTS");
	run(request(wrong ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE), 1);
}

static void read_into_constant(void)
{
	struct ibv_mr *mr = ibv_reg_mr(world.pd, memory[0], BYTES,
				       wrong ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_LOCAL_WRITE);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_READ);

	connect_both();
	wr.sg_list->lkey = mr->lkey;
	run(wr, 1);
}

static void queue_pair_right(void)
{
	if (wrong)
		world.attr_b.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	connect_both();
	run(request(IBV_WR_RDMA_READ), 1);
}

static void short_receive(void)
{
	connect_both();
	receive(wrong ? BYTES / 2 : BYTES);
	run(request(IBV_WR_SEND), 2);
}

static void no_receive(void)
{
	world.attr_a.rnr_retry = 1;
	connect_both();
	if (!wrong)
		receive(BYTES);
	run(request(IBV_WR_SEND), wrong ? 1 : 2);
}

static void give_up_soon(void)
{
	world.attr_a.timeout = 8;
	world.attr_a.retry_cnt = 1;
}

static void nobody_there(void)
{
	if (wrong) {
		world.attr_a.dest_qp_num = 0xfffff0;
		give_up_soon();
	}
	connect_both();
	run(request(IBV_WR_RDMA_WRITE), 1);
}

static void peer_destroyed(void)
{
	if (wrong)
		give_up_soon();
	connect_both();
	receive(BYTES);
	if (wrong)
		must(ibv_destroy_qp(world.b) == 0, "ibv_destroy_qp");
	run(request(IBV_WR_SEND), wrong ? 1 : 2);
}

static void different_mtu(void)
{
	if (wrong)
		world.attr_b.path_mtu = IBV_MTU_512;
	connect_both();
	receive(BYTES);
	run(request(IBV_WR_SEND), wrong ? 1 : 2);
}

static void atomic_alignment(void)
{
	struct ibv_send_wr wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD);

	connect_both();
	wr.sg_list->length = 8;
	wr.wr.atomic.remote_addr = (uintptr_t)memory[1] + (wrong ? 4 : 8);
	wr.wr.atomic.rkey = world.to->rkey;
	run(wr, 1);
}

static void no_reads_allowed(void)
{
	if (wrong)
		world.attr_a.max_rd_atomic = 0;
	connect_both();
	run(request(IBV_WR_RDMA_READ), 1);
}

static void more_reads_than_agreed(void)
{
	struct ibv_send_wr wrs[16], *bad;

	world.attr_a.max_rd_atomic = 16;
	world.attr_b.max_dest_rd_atomic = wrong ? 1 : 16;
	connect_both();
	/* All at a time: a peer that is uroce may have eight times as many as agreed. */
	for (int i = 0; i < 16; i++) {
		wrs[i] = request(IBV_WR_RDMA_READ);
		wrs[i].next = i < 15 ? &wrs[i + 1] : NULL;
	}
	must(ibv_post_send(world.a, wrs, &bad) == 0, "ibv_post_send");
	await(16);
}

static void missing_attribute(void)
{
	make();
	must(move(world.a, &world.attr_a, IBV_QPS_INIT, RC_INIT_MASK) == 0, "INIT");
	move(world.a, &world.attr_a, IBV_QPS_RTR,
	     wrong ? RC_RTR_MASK & ~IBV_QP_MIN_RNR_TIMER : RC_RTR_MASK);
}

static void attribute_in_vain(void)
{
	make();
	move(world.a, &world.attr_a, IBV_QPS_INIT,
	     wrong ? RC_INIT_MASK | IBV_QP_TIMEOUT : RC_INIT_MASK);
}

static void skipped_state(void)
{
	make();
	must(move(world.a, &world.attr_a, IBV_QPS_INIT, RC_INIT_MASK) == 0, "INIT");
	if (!wrong)
		must(move(world.a, &world.attr_a, IBV_QPS_RTR, RC_RTR_MASK) == 0, "RTR");
	move(world.a, &world.attr_a, IBV_QPS_RTS, RC_RTS_MASK);
}

static void port_number(void)
{
	make();
	world.attr_a.port_num = wrong ? 2 : 1;
	move(world.a, &world.attr_a, IBV_QPS_INIT, RC_INIT_MASK);
}

static void gid_index(void)
{
	make();
	must(move(world.a, &world.attr_a, IBV_QPS_INIT, RC_INIT_MASK) == 0, "INIT");
	world.attr_a.ah_attr.grh.sgid_index = wrong ? 100 : 0;
	move(world.a, &world.attr_a, IBV_QPS_RTR, RC_RTR_MASK);
}

static void no_grh(void)
{
	make();
	must(move(world.a, &world.attr_a, IBV_QPS_INIT, RC_INIT_MASK) == 0, "INIT");
	world.attr_a.ah_attr.is_global = !wrong;
	move(world.a, &world.attr_a, IBV_QPS_RTR, RC_RTR_MASK);
}

static void retry_count(void)
{
	make();
	must(move(world.a, &world.attr_a, IBV_QPS_INIT, RC_INIT_MASK) == 0, "INIT");
	must(move(world.a, &world.attr_a, IBV_QPS_RTR, RC_RTR_MASK) == 0, "RTR");
	world.attr_a.retry_cnt = wrong ? 8 : 7;
	move(world.a, &world.attr_a, IBV_QPS_RTS, RC_RTS_MASK);
}

static void full_queue(void)
{
	world.init.sq_sig_all = 0;
	/* Nobody answers, so nothing completes. */
	world.attr_a.dest_qp_num = 0xfffff0;
	world.attr_a.timeout = 31;
	connect_both();
	for (int i = 0; i < (wrong ? 20 : 16); i++)
		post(request(IBV_WR_RDMA_WRITE));
}

static void too_early(void)
{
	make();
	must(move(world.a, &world.attr_a, IBV_QPS_INIT, RC_INIT_MASK) == 0, "INIT");
	must(move(world.a, &world.attr_a, IBV_QPS_RTR, RC_RTR_MASK) == 0, "RTR");
	connect_one(world.b, &world.attr_b);
	if (wrong) {
		post(request(IBV_WR_RDMA_WRITE));
		return;
	}
	must(move(world.a, &world.attr_a, IBV_QPS_RTS, RC_RTS_MASK) == 0, "RTS");
	run(request(IBV_WR_RDMA_WRITE), 1);
}

static void too_many_entries(void)
{
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE);
	struct ibv_sge list[4] = {*wr.sg_list, *wr.sg_list, *wr.sg_list, *wr.sg_list};

	connect_both();
	for (int i = 0; i < 4; i++)
		list[i].length = 8;
	wr.sg_list = list;
	wr.num_sge = wrong ? 4 : 2;
	post(wr);
}

static void long_inline(void)
{
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE);

	connect_both();
	wr.send_flags = IBV_SEND_INLINE;
	wr.sg_list->length = wrong ? BYTES : 8;
	post(wr);
}

static void long_datagram(void)
{
	struct ibv_send_wr wr = request(IBV_WR_SEND);
	struct ibv_ah *ah;

	world.init.qp_type = IBV_QPT_UD;
	make();
	world.attr_a.qkey = QKEY;
	must(move(world.a, &world.attr_a, IBV_QPS_INIT, INIT_UD) == 0, "INIT");
	must(move(world.a, &world.attr_a, IBV_QPS_RTR, IBV_QP_STATE) == 0, "RTR");
	must(move(world.a, &world.attr_a, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0, "RTS");
	ah = ibv_create_ah(world.pd, &world.attr_a.ah_attr);
	must(ah, "ibv_create_ah");
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = world.b->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	wr.sg_list->length = wrong ? BYTES : 100;
	run(wr, 1);
}

static void remote_write_alone(void)
{
	ibv_reg_mr(world.pd, memory[1], BYTES,
		   wrong ? IBV_ACCESS_REMOTE_WRITE
			 : IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE);
}

static void unmapped_memory(void)
{
	uint8_t *pages =
		mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(pages != MAP_FAILED && munmap(pages + BYTES, BYTES) == 0, "mmap");
	ibv_reg_mr(world.pd, pages, wrong ? 2 * BYTES : BYTES, ALL);
}

static void too_long_queue(void)
{
	world.init.cap.max_send_wr = wrong ? 1 << 22 : 16;
	world.cq = ibv_create_cq(world.context, 16, NULL, NULL, 0);
	world.init.send_cq = world.cq;
	world.init.recv_cq = world.cq;
	ibv_create_qp(world.pd, &world.init);
}

static void queue_missing(void)
{
	world.cq = ibv_create_cq(world.context, 16, NULL, NULL, 0);
	world.init.send_cq = world.cq;
	world.init.recv_cq = wrong ? NULL : world.cq;
	ibv_create_qp(world.pd, &world.init);
}

static void domain_in_use(void)
{
	if (!wrong) {
		ibv_dereg_mr(world.from);
		ibv_dereg_mr(world.to);
	}
	ibv_dealloc_pd(world.pd);
}

static void destroyed_twice(void)
{
	make();
	ibv_destroy_qp(world.a);
	if (wrong)
		ibv_destroy_qp(world.a);
}

static void full_completion_queue(void)
{
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE);
	struct ibv_async_event event;

	world.cqe = 4;
	connect_both();
	wr.sg_list->length = 8;
	for (int i = 0; i < (wrong ? 16 : 4); i++)
		post(wr);
	/* The completion queue's event, and the queue pair's. */
	for (int i = 0; wrong && i < 2; i++)
		must(ibv_get_async_event(world.context, &event) == 0, "ibv_get_async_event");
	if (!wrong)
		await(4);
}

static void window_without_right(void)
{
	struct ibv_mr *mr =
		ibv_reg_mr(world.pd, memory[0], BYTES, wrong ? IBV_ACCESS_LOCAL_WRITE : ALL);
	struct ibv_mw *mw = ibv_alloc_mw(world.pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = {.wr_id = 7, .opcode = IBV_WR_BIND_MW};

	connect_both();
	must(mr && mw, "ibv_alloc_mw");
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = mr,
							 .addr = (uintptr_t)memory[0],
							 .length = BYTES,
							 .mw_access_flags = IBV_ACCESS_REMOTE_READ};
	run(wr, 1);
}

static void queue_that_nothing_receives(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = wrong ? 0 : 4, .max_sge = 1}};

	must((ibv_create_srq(world.pd, &init) == NULL) == wrong, "ibv_create_srq");
}

static void bind_without_queue_room(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(world.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.wr_id = 7,
				   .bind_info = {.mr = world.from,
						 .addr = (uintptr_t)memory[0],
						 .length = BYTES,
						 .mw_access_flags = IBV_ACCESS_REMOTE_READ}};

	world.init.sq_sig_all = 0;
	world.attr_a.dest_qp_num = 0xfffff0;
	world.attr_a.timeout = 31;
	connect_both();
	must(mw, "ibv_alloc_mw");
	for (int i = 0; i < (wrong ? 16 : 8); i++)
		post(request(IBV_WR_RDMA_WRITE));
	must((ibv_bind_mw(world.a, mw, &bind) != 0) == wrong, "ibv_bind_mw");
}

/* The program does not post as many receive requests as it uses. */
static void low_shared_queue(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq_attr limit = {.srq_limit = 2};
	struct ibv_sge sge = {
		.addr = (uintptr_t)memory[1], .length = BYTES, .lkey = world.to->lkey};
	struct ibv_recv_wr wr = {.wr_id = 8, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_async_event event;

	world.init.srq = ibv_create_srq(world.pd, &init);
	must(world.init.srq, "ibv_create_srq");
	connect_both();
	for (int i = 0; i < (wrong ? 2 : 4); i++)
		must(ibv_post_srq_recv(world.init.srq, &wr, &bad) == 0, "ibv_post_srq_recv");
	must(ibv_modify_srq(world.init.srq, &limit, IBV_SRQ_LIMIT) == 0, "ibv_modify_srq");
	run(request(IBV_WR_SEND), 2);
	if (wrong)
		must(ibv_get_async_event(world.context, &event) == 0, "ibv_get_async_event");
}

const struct zoo_case zoo_verbs[] = {
	CASE(beyond_the_end),
	CASE(before_the_beginning),
	CASE(unknown_key),
	CASE(deregistered),
	CASE(without_remote_write),
	CASE(other_domain),
	CASE(local_key),
	CASE(local_key_of_the_second),
	CASE(two_mistakes),
	CASE(own_receive_request),
	CASE(read_on_uc),
	CASE(read_into_constant),
	CASE(queue_pair_right),
	CASE(short_receive),
	CASE(no_receive),
	CASE(nobody_there),
	CASE(peer_destroyed),
	CASE(different_mtu),
	CASE(atomic_alignment),
	CASE(no_reads_allowed),
	CASE(more_reads_than_agreed),
	CASE(missing_attribute),
	CASE(attribute_in_vain),
	CASE(skipped_state),
	CASE(port_number),
	CASE(gid_index),
	CASE(no_grh),
	CASE(retry_count),
	CASE(full_queue),
	CASE(too_early),
	CASE(too_many_entries),
	CASE(long_inline),
	CASE(long_datagram),
	CASE(remote_write_alone),
	CASE(unmapped_memory),
	CASE(too_long_queue),
	CASE(queue_missing),
	CASE(domain_in_use),
	CASE(destroyed_twice),
	CASE(full_completion_queue),
	CASE(window_without_right),
	CASE(queue_that_nothing_receives),
	CASE(bind_without_queue_room),
	CASE(low_shared_queue),
	{0},
};
