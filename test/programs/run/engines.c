/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs of different engines of one device, and what they share. Completion vectors choose
 * the engines:
 *
 *   one to each    WRITE, READ and atomics from a queue pair of each engine to one of each engine
 *   one queue      queue pairs of all engines receive from one shared receive queue, and complete
 * in one completion queue a group        a datagram to a multicast group reaches members of all
 * engines a window       the binding of a window changes while all engines write through its keys
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "must.h"
#include "raise_qp.h"

#define ENGINES_MAX 16
#define ADDS	    2000 /* of each engine to one word */
#define MESSAGES    4000 /* of each engine to the shared receive queue */
#define DEPTH	    64
#define BINDINGS    300
#define HALF	    2048
#define FEW	    8
#define QKEY	    0x1ee7
#define PSN	    3

static struct ibv_context *context;
static struct ibv_pd *pd;
static union ibv_gid gid;
static int engines; /* of the device, as it tells */

static uint64_t memory[ENGINES_MAX][8], word;
static uint8_t shown[2 * HALF];
static struct ibv_mr *mr, *word_mr, *shown_mr;

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

	MUST(list && list[0]);
	context = ibv_open_device(list[0]);
	MUST(context && ibv_query_gid(context, 1, 0, &gid) == 0);
	engines = context->num_comp_vectors;
	MUST(engines <= ENGINES_MAX);
	pd = ibv_alloc_pd(context);
	MUST(pd);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), access);
	word_mr = ibv_reg_mr(pd, &word, sizeof(word), access);
	shown_mr = ibv_reg_mr(pd, shown, sizeof(shown), access | IBV_ACCESS_MW_BIND);
	MUST(mr && word_mr && shown_mr);
}

static struct ibv_cq *make_cq(int vector)
{
	struct ibv_cq *cq = ibv_create_cq(context, 4096, NULL, NULL, vector);

	MUST(cq);
	return cq;
}

static struct ibv_qp *make_qp(enum ibv_qp_type type, struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
			      struct ibv_srq *srq_or_none)
{
	struct ibv_qp *qp = raise_create(pd, type, send_cq, recv_cq, srq_or_none, DEPTH);

	MUST(qp);
	return qp;
}

static void join_one(struct ibv_qp *qp, uint32_t dest_qpn)
{
	struct ibv_qp_attr attr = raise_attr(&gid, dest_qpn, PSN);

	attr.qp_access_flags =
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	attr.min_rnr_timer = 1;
	MUST(raise_qp(qp, &attr) == 0);
}

static void join(struct ibv_qp *a, struct ibv_qp *b)
{
	join_one(a, b->qp_num);
	join_one(b, a->qp_num);
}

static struct ibv_wc take(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int got;

	while ((got = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	MUST(got == 1);
	return wc;
}

static void post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	MUST(ibv_post_send(qp, wr, &bad) == 0);
}

static void run(struct ibv_qp *qp, struct ibv_cq *cq, enum ibv_wr_opcode opcode, void *local,
		uint32_t lkey, void *remote, uint32_t rkey, uint64_t add)
{
	struct ibv_sge sge = {(uintptr_t)local, 8, lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)remote;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = add;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)remote;
		wr.wr.rdma.rkey = rkey;
	}
	post(qp, &wr);
	MUST(take(cq).status == IBV_WC_SUCCESS);
}

/* A thread of one engine accesses memory through a queue pair of each engine. */
static void *each_thread(void *arg)
{
	const int from = (int)(intptr_t)arg;
	struct ibv_cq *cq = make_cq(from);

	for (int to = 0; to < engines; to++) {
		struct ibv_cq *far_cq = make_cq(to);
		struct ibv_qp *qp = make_qp(IBV_QPT_RC, cq, cq, NULL);
		struct ibv_qp *far = make_qp(IBV_QPT_RC, far_cq, far_cq, NULL);
		uint64_t *mine = memory[from];

		join(qp, far);
		mine[0] = (uint64_t)(from * 100 + to);
		run(qp, cq, IBV_WR_RDMA_WRITE, &mine[0], mr->lkey, &mine[1], mr->rkey, 0);
		MUST(mine[1] == mine[0]);
		mine[2] = 0;
		run(qp, cq, IBV_WR_RDMA_READ, &mine[2], mr->lkey, &mine[1], mr->rkey, 0);
		MUST(mine[2] == mine[0]);
		for (int i = 0; i < ADDS / engines; i++)
			run(qp, cq, IBV_WR_ATOMIC_FETCH_AND_ADD, &mine[3], mr->lkey, &word,
			    word_mr->rkey, 1);
		MUST(ibv_destroy_qp(qp) == 0 && ibv_destroy_qp(far) == 0);
		MUST(ibv_destroy_cq(far_cq) == 0);
	}
	MUST(ibv_destroy_cq(cq) == 0);
	return NULL;
}

/* Run `body` in a thread for each engine. */
static void in_threads(void *(*body)(void *arg))
{
	pthread_t threads[ENGINES_MAX];

	for (int i = 0; i < engines; i++)
		MUST(pthread_create(&threads[i], NULL, body, (void *)(intptr_t)i) == 0);
	for (int i = 0; i < engines; i++)
		pthread_join(threads[i], NULL);
}

static struct ibv_srq *srq;
static struct ibv_cq *one_cq;
static struct ibv_qp *one_qps[ENGINES_MAX];

static void post_one(void)
{
	struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	MUST(ibv_post_srq_recv(srq, &wr, &bad) == 0);
}

/* The queue pair is of this thread's engine, and the peer of another one's. */
static void *send_thread(void *arg)
{
	const int from = (int)(intptr_t)arg;
	struct ibv_cq *cq = make_cq(from);
	struct ibv_qp *qp = make_qp(IBV_QPT_RC, cq, cq, NULL);
	int sent = 0, done = 0;

	join(qp, one_qps[(from + 1) % engines]);
	while (done < MESSAGES) {
		struct ibv_sge sge = {(uintptr_t)memory[from], 8, mr->lkey};
		struct ibv_send_wr wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND_WITH_IMM,
					 .imm_data = (uint32_t)from << 24 | (uint32_t)sent};
		struct ibv_wc wc;
		int got;

		if (sent < MESSAGES && sent - done < DEPTH) {
			post(qp, &wr);
			sent++;
		}
		got = ibv_poll_cq(cq, 1, &wc);
		MUST(got == 0 || (got == 1 && wc.status == IBV_WC_SUCCESS));
		done += got;
	}
	return NULL;
}

/* Each message arrives once, and those of one sender in their order. */
static void *receive_thread(void *arg)
{
	uint32_t next[ENGINES_MAX] = {0};

	(void)arg;
	for (int i = 0; i < MESSAGES * engines; i++) {
		const struct ibv_wc wc = take(one_cq);
		const uint32_t from = wc.imm_data >> 24;

		MUST(wc.status == IBV_WC_SUCCESS && from < (uint32_t)engines);
		MUST((wc.imm_data & 0xffffff) == next[from]);
		next[from]++;
		post_one();
	}
	return NULL;
}

static void one_queue(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 1024, .max_sge = 1}};
	pthread_t receiver;

	srq = ibv_create_srq(pd, &init);
	MUST(srq);
	one_cq = make_cq(0);
	for (int i = 0; i < engines; i++)
		one_qps[i] = make_qp(IBV_QPT_RC, make_cq(i), one_cq, srq);
	for (int i = 0; i < 1024; i++)
		post_one();
	MUST(pthread_create(&receiver, NULL, receive_thread, NULL) == 0);
	in_threads(send_thread);
	pthread_join(receiver, NULL);
}

static void raise_ud(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.port_num = 1, .qkey = QKEY};

	MUST(raise_qp(qp, &attr) == 0);
}

static void group(void)
{
	const union ibv_gid to = {.raw = {0xff, 0x0e, [15] = 0x77}};
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .grh = {.dgid = to, .hop_limit = 1}};
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);
	static uint8_t places[ENGINES_MAX][64];
	struct ibv_mr *places_mr = ibv_reg_mr(pd, places, sizeof(places), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_cq *cqs[ENGINES_MAX];
	struct ibv_qp *qps[ENGINES_MAX];

	MUST(ah && places_mr);
	for (int i = 0; i < engines; i++) {
		struct ibv_sge sge = {(uintptr_t)places[i], sizeof(places[i]), places_mr->lkey};
		struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

		cqs[i] = make_cq(i);
		qps[i] = make_qp(IBV_QPT_UD, cqs[i], cqs[i], NULL);
		raise_ud(qps[i]);
		for (int sender = 0; sender < engines; sender++)
			MUST(ibv_post_recv(qps[i], &wr, &bad) == 0);
		MUST(ibv_attach_mcast(qps[i], &to, 0) == 0);
	}
	for (int sender = 0; sender < engines; sender++) {
		struct ibv_sge sge = {(uintptr_t)memory[0], 8, mr->lkey};
		struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};

		memory[0][0] = (uint64_t)sender;
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = 0xffffff;
		wr.wr.ud.remote_qkey = QKEY;
		post(qps[sender], &wr);
		for (int i = 0; i < engines; i++) {
			struct ibv_wc wc = take(cqs[i]);

			if (i == sender && wc.opcode == IBV_WC_SEND)
				wc = take(cqs[i]);
			else if (i == sender)
				MUST(take(cqs[i]).opcode == IBV_WC_SEND);
			MUST(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV);
			MUST(memcmp(&places[i][40], &memory[0][0], 8) == 0);
		}
	}
}

static struct ibv_mw *window;
static uint32_t window_rkey; /* atomic */
static bool bound_often;     /* atomic */

/*
 * The window shows either the first half or a few bytes of the second one. A WRITE of the whole
 * second half must never be executed, whatever key it uses: only a mix of both bindings would allow
 * it.
 */
static void *write_thread(void *arg)
{
	const int from = (int)(intptr_t)arg;
	struct ibv_cq *cq = make_cq(from);
	static uint8_t bytes[HALF];
	struct ibv_mr *bytes_mr = ibv_reg_mr(pd, bytes, sizeof(bytes), 0);

	while (!__atomic_load_n(&bound_often, __ATOMIC_ACQUIRE)) {
		struct ibv_qp *qp = make_qp(IBV_QPT_RC, cq, cq, NULL);
		struct ibv_qp *far = make_qp(IBV_QPT_RC, cq, cq, NULL);
		enum ibv_wc_status status = IBV_WC_SUCCESS;

		join(qp, far);
		while (status == IBV_WC_SUCCESS &&
		       !__atomic_load_n(&bound_often, __ATOMIC_ACQUIRE)) {
			struct ibv_sge sge = {(uintptr_t)bytes, HALF, bytes_mr->lkey};
			struct ibv_send_wr wr = {
				.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};

			wr.wr.rdma.rkey = __atomic_load_n(&window_rkey, __ATOMIC_ACQUIRE);
			wr.wr.rdma.remote_addr = (uintptr_t)shown + HALF;
			post(qp, &wr);
			status = take(cq).status;
			MUST(status == IBV_WC_REM_ACCESS_ERR);
		}
		MUST(ibv_destroy_qp(qp) == 0 && ibv_destroy_qp(far) == 0);
	}
	return NULL;
}

static void *bind_thread(void *arg)
{
	struct ibv_cq *cq = make_cq(0);
	struct ibv_qp *qp = make_qp(IBV_QPT_RC, cq, cq, NULL),
		      *far = make_qp(IBV_QPT_RC, cq, cq, NULL);

	(void)arg;
	join(qp, far);
	for (int i = 0; i < BINDINGS; i++) {
		struct ibv_mw_bind bind = {
			.send_flags = IBV_SEND_SIGNALED,
			.bind_info = {.mr = shown_mr,
				      .addr = (uintptr_t)shown + (i % 2 ? HALF : 0),
				      .length = i % 2 ? FEW : HALF,
				      .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}};

		MUST(ibv_bind_mw(qp, window, &bind) == 0);
		__atomic_store_n(&window_rkey, window->rkey, __ATOMIC_RELEASE);
		MUST(take(cq).status == IBV_WC_SUCCESS);
	}
	__atomic_store_n(&bound_often, true, __ATOMIC_RELEASE);
	return NULL;
}

static void change_window(void)
{
	pthread_t binder;

	window = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	MUST(window);
	MUST(pthread_create(&binder, NULL, bind_thread, NULL) == 0);
	in_threads(write_thread);
	pthread_join(binder, NULL);
}

int main(void)
{
	alarm(100);
	open_device();
	in_threads(each_thread);
	MUST(word == (uint64_t)(ADDS / engines) * (uint64_t)(engines * engines));
	one_queue();
	group();
	change_window();
	printf("%d engines: each to each, one queue, a group, a window\n", engines);
	return 0;
}
