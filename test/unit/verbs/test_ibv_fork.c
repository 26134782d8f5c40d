/* SPDX-License-Identifier: BSD-3-Clause */
/* Children of a process that uses the stack. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "private.h"

#include "fake_provider.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

/* Every check has a number, so that a failing child names it by its exit code. */
#define REQUIRE(number, condition)     \
	do {                           \
		if (!(condition))      \
			_exit(number); \
	} while (0)

static void run_child(void (*child)(struct ibv_context *context, struct fake_pair *pair),
		      struct ibv_context *context, struct fake_pair *pair)
{
	const pid_t pid = fork();
	int status;

	if (pid == 0) {
		child(context, pair);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void child_uses_data_path(struct ibv_context *context, struct fake_pair *pair)
{
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send = NULL;
	struct ibv_recv_wr recv = {0}, *bad_recv = NULL;
	struct ibv_wc wc;

	(void)context;
	REQUIRE(1, ibv_post_send(pair->qp, &send, &bad_send) == ENODEV && bad_send == &send);
	REQUIRE(2, ibv_post_recv(pair->qp, &recv, &bad_recv) == ENODEV && bad_recv == &recv);
	REQUIRE(3, ibv_poll_cq(pair->cq, 1, &wc) == -ENODEV);
	REQUIRE(4, ibv_req_notify_cq(pair->cq, 0) == ENODEV);
	REQUIRE(5, fake.kicks == 0 && fake.polls == 0);
}

TEST(data_path__fails_in_a_child)
{
	struct fake_pair pair = fake_pair_create(*state);

	run_child(child_uses_data_path, *state, &pair);
	fake_pair_destroy(&pair);
}

static void child_uses_control_path(struct ibv_context *context, struct fake_pair *pair)
{
	struct ibv_async_event event;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	const unsigned int locks = fake.locks;
	char buf[8];

	REQUIRE(3, ibv_alloc_pd(context) == NULL && errno == ENODEV);
	REQUIRE(4, ibv_reg_mr(pair->pd, buf, 8, 0) == NULL && errno == ENODEV);
	REQUIRE(5, ibv_create_cq(context, 1, NULL, NULL, 0) == NULL && errno == ENODEV);
	REQUIRE(6, ibv_create_comp_channel(context) == NULL && errno == ENODEV);
	REQUIRE(7, ibv_modify_qp(pair->qp, &attr, IBV_QP_STATE) == ENODEV);
	REQUIRE(8, ibv_destroy_qp(pair->qp) == ENODEV);
	REQUIRE(9, ibv_destroy_cq(pair->cq) == ENODEV);
	REQUIRE(10, ibv_dealloc_pd(pair->pd) == ENODEV);
	REQUIRE(11, ibv_get_async_event(context, &event) == -1 && errno == ENODEV);
	REQUIRE(12, ibv_close_device(context) == -1 && errno == ENODEV);
	REQUIRE(13, fake.locks == locks);
}

TEST(control_path__fails_in_a_child)
{
	struct fake_pair pair = fake_pair_create(*state);

	run_child(child_uses_control_path, *state, &pair);
	fake_pair_destroy(&pair);
}

static void child_begins_anew(struct ibv_context *old, struct fake_pair *pair)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct fake_pair anew;
	struct ibv_context *context;

	REQUIRE(30, list && list[0] && !list[1] && list[0] != old->device);
	context = ibv_open_device(list[0]);
	REQUIRE(31, context);
	anew = fake_pair_create(context);
	REQUIRE(32, fake_connect(anew.qp, 17, FAKE_GID_V4, IBV_QPS_RTS) == 0);
	REQUIRE(33, ibv_query_gid(context, 1, 0, &(union ibv_gid){0}) == 0);
	REQUIRE(34, ibv_alloc_pd(old) == NULL && errno == ENODEV);
	REQUIRE(35, ibv_destroy_qp(pair->qp) == ENODEV && ibv_close_device(old) == -1);
	fake_pair_destroy(&anew);
	REQUIRE(37, ibv_close_device(context) == 0);
	ibv_free_device_list(list);
}

/* The parent's struct ibv_device stands for the child's own. */
static void child_opens_what_was_listed(struct ibv_context *old, struct fake_pair *pair)
{
	struct ibv_context *context = ibv_open_device(old->device);

	(void)pair;
	REQUIRE(40, context && context->device != old->device);
	REQUIRE(41, ibv_dealloc_pd(ibv_alloc_pd(context)) == 0);
	child_uses_control_path(old, pair);
	run_child(child_begins_anew, context, pair);
	REQUIRE(42, ibv_close_device(context) == 0);
}

TEST(device_list__is_started_anew_in_a_child)
{
	struct fake_pair pair = fake_pair_create(*state);

	run_child(child_begins_anew, *state, &pair);
	run_child(child_opens_what_was_listed, *state, &pair);
	assert_int_equal(fake_connect(pair.qp, 17, FAKE_GID_V4, IBV_QPS_RTS), 0);
	fake_pair_destroy(&pair);
}

static void child_forks(struct ibv_context *context, struct fake_pair *pair)
{
	const pid_t pid = fork();
	int status;

	if (pid == 0) {
		child_uses_control_path(context, pair);
		_exit(0);
	}
	REQUIRE(20, waitpid(pid, &status, 0) == pid);
	REQUIRE(21, status == 0);
}

TEST(control_path__fails_in_a_grandchild)
{
	struct fake_pair pair = fake_pair_create(*state);

	run_child(child_forks, *state, &pair);
	fake_pair_destroy(&pair);
}

TEST(parent__is_not_disturbed)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_device **list;

	run_child(child_uses_control_path, *state, &pair);
	assert_int_equal(fake_connect(pair.qp, 17, FAKE_GID_V4, IBV_QPS_RTS), 0);
	list = ibv_get_device_list(NULL);
	assert_non_null(list);
	ibv_free_device_list(list);
	fake_pair_destroy(&pair);
}

/* Objects whose rings are in memory that parent and child share. */
#define SHARED_BYTES (256 * 1024)

struct ring_users {
	uint8_t *memory; /* of the rings */
	size_t used;
	struct ibv_pd *parent;
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	struct ibv_mw *mw;
	struct ibv_mr *mr;
};

static struct ring_users shared;

static void *shared_alloc(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
			  uint64_t resource_type)
{
	void *piece = shared.memory + shared.used;

	(void)pd;
	(void)pd_context;
	(void)alignment;
	(void)resource_type;
	shared.used += RTE_ALIGN(size, 4096);
	assert_true(shared.used <= SHARED_BYTES);
	return piece;
}

static void shared_free(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type)
{
	(void)pd;
	(void)pd_context;
	(void)ptr;
	(void)resource_type;
}

static struct ibv_qp *create_ex_qp(struct ibv_context *context)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = ibv_cq_ex_to_cq(shared.cq),
		.recv_cq = ibv_cq_ex_to_cq(shared.cq),
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = shared.parent,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
				  IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV,
	};

	return ibv_create_qp_ex(context, &init);
}

static void make_shared(struct ibv_context *context, struct ibv_pd *pd)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
		.alloc = shared_alloc,
		.free = shared_free,
	};
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_cq_init_attr_ex cq_init = {.cqe = 16, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD};

	memset(&shared, 0, sizeof(shared));
	shared.memory =
		mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared.memory, MAP_FAILED);
	shared.parent = ibv_alloc_parent_domain(context, &attr);
	cq_init.parent_domain = shared.parent;
	shared.cq = ibv_create_cq_ex(context, &cq_init);
	shared.srq = ibv_create_srq(shared.parent, &srq_init);
	shared.qp = create_ex_qp(context);
	assert_true(shared.cq && shared.srq && shared.qp);
	shared.ex = ibv_qp_to_qp_ex(shared.qp);
	shared.mw = ibv_alloc_mw(shared.parent, IBV_MW_TYPE_1);
	shared.mr = ibv_reg_mr(shared.parent, shared.memory, 4096, 0);
	assert_int_equal(fake_connect(shared.qp, shared.qp->qp_num, FAKE_GID_V4, IBV_QPS_RTS), 0);
}

static void destroy_shared(void)
{
	assert_int_equal(ibv_dereg_mr(shared.mr), 0);
	assert_int_equal(ibv_dealloc_mw(shared.mw), 0);
	assert_int_equal(ibv_destroy_qp(shared.qp), 0);
	assert_int_equal(ibv_destroy_srq(shared.srq), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(shared.cq)), 0);
	assert_int_equal(ibv_dealloc_pd(shared.parent), 0);
	munmap(shared.memory, SHARED_BYTES);
}

static void describe_work(struct ibv_qp_ex *ex)
{
	ex->wr_id = 99;
	ibv_wr_rdma_write(ex, 1, 0);
	ibv_wr_set_sge(ex, 1, 0, 8);
	ibv_wr_rdma_read(ex, 1, 0);
	ibv_wr_set_sge_list(ex, 0, NULL);
	ibv_wr_atomic_fetch_add(ex, 1, 0, 1);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, ex, 0);
	ibv_wr_local_inv(ex, 1);
	ibv_wr_bind_mw(ex, shared.mw, 1, &(struct ibv_mw_bind_info){.mr = NULL});
}

static void child_uses_inline_entry_points(struct ibv_context *context, struct fake_pair *pair)
{
	struct ibv_recv_wr recv = {0}, *bad_recv = NULL;
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_mw_bind bind = {.bind_info = {.mr = shared.mr}};
	struct ibv_ops_wr op = {0}, *bad_op = NULL;

	(void)context;
	(void)pair;
	REQUIRE(1, ibv_post_srq_recv(shared.srq, &recv, &bad_recv) == ENODEV && bad_recv == &recv);
	ibv_wr_start(shared.ex);
	describe_work(shared.ex);
	REQUIRE(2, ibv_wr_complete(shared.ex) == ENODEV);
	ibv_wr_start(shared.ex);
	describe_work(shared.ex);
	ibv_wr_abort(shared.ex);
	REQUIRE(3, ibv_start_poll(shared.cq, &attr) == ENODEV);
	REQUIRE(4, ibv_next_poll(shared.cq) == ENODEV);
	ibv_end_poll(shared.cq);
	REQUIRE(5, ibv_bind_mw(shared.qp, shared.mw, &bind) == ENODEV);
	REQUIRE(6, ibv_post_srq_ops(shared.srq, &op, &bad_op) != 0 && bad_op == &op);
	REQUIRE(7, fake.kicks == 0 && fake.polls == 0);
}

static void run_on_shared(struct ibv_context *context,
			  void (*child)(struct ibv_context *context, struct fake_pair *pair))
{
	uint8_t *before = malloc(SHARED_BYTES);

	assert_non_null(before);
	fake.kicks = fake.polls = 0;
	memcpy(before, shared.memory, SHARED_BYTES);
	run_child(child, context, NULL);
	assert_memory_equal(shared.memory, before, SHARED_BYTES);
	free(before);
}

TEST(inline_entry_points__do_not_touch_shared_rings)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);

	make_shared(*state, pd);
	run_on_shared(*state, child_uses_inline_entry_points);
	destroy_shared();
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* The list that its parent's thread has begun, in the same thread. */
static void child_goes_on(struct ibv_context *context, struct fake_pair *pair)
{
	(void)context;
	(void)pair;
	describe_work(shared.ex);
	REQUIRE(1, ibv_wr_complete(shared.ex) == ENODEV);
	child_uses_inline_entry_points(context, pair);
}

TEST(inline_entry_points__of_a_list_that_was_begun)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);

	make_shared(*state, pd);
	ibv_wr_start(shared.ex);
	run_on_shared(*state, child_goes_on);
	shared.ex->wr_id = 1;
	ibv_wr_rdma_write(shared.ex, 1, 0);
	assert_int_equal(ibv_wr_complete(shared.ex), 0);
	destroy_shared();
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void child_uses_other_calls(struct ibv_context *context, struct fake_pair *pair)
{
	struct ibv_parent_domain_init_attr parent_init = {.pd = pair->pd};
	struct ibv_cq_init_attr_ex cq_init = {.cqe = 1};
	struct ibv_srq_attr srq_attr = {.max_wr = 32};
	struct ibv_td_init_attr td_init = {0};
	struct ibv_values_ex values = {0};
	struct ibv_device_attr_ex attr_ex;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	struct ibv_async_event event = {.event_type = IBV_EVENT_CQ_ERR};
	const union ibv_gid group = {.raw = {0xff, 0x0e}};
	struct ibv_modify_cq_attr moderate = {.attr_mask = IBV_CQ_ATTR_MODERATE};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr qp_attr;
	union ibv_gid gid;
	__be16 pkey;

	REQUIRE(1, ibv_query_device(context, &attr) == 0 && attr.max_qp > 0);
	REQUIRE(2, ibv_query_device_ex(context, NULL, &attr_ex) == 0);
	REQUIRE(3, ibv_query_port(context, 1, &port) == ENODEV);
	REQUIRE(4, ibv_query_gid(context, 1, 0, &gid) == -1 && errno == ENODEV);
	REQUIRE(5, ibv_query_pkey(context, 1, 0, &pkey) == -1 && errno == ENODEV);
	REQUIRE(6, ibv_get_pkey_index(context, 1, 0xffff) == -1 && errno == ENODEV);
	REQUIRE(7, ibv_query_rt_values_ex(context, &values) == ENODEV);
	REQUIRE(8, !ibv_alloc_td(context, &td_init) && errno == ENODEV);
	REQUIRE(9, !ibv_alloc_parent_domain(context, &parent_init) && errno == ENODEV);
	REQUIRE(10, ibv_dealloc_pd(shared.parent) == ENODEV);
	REQUIRE(11, !ibv_alloc_mw(pair->pd, IBV_MW_TYPE_1) && errno == ENODEV);
	REQUIRE(12, ibv_dealloc_mw(shared.mw) == ENODEV);
	REQUIRE(13, !ibv_alloc_null_mr(pair->pd) && errno == ENODEV);
	REQUIRE(14, ibv_rereg_mr(shared.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) ==
				    IBV_REREG_MR_ERR_CMD &&
			    errno == ENODEV);
	REQUIRE(15, ibv_dereg_mr(shared.mr) == ENODEV);
	REQUIRE(16, ibv_advise_mr(pair->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0) == ENODEV);
	REQUIRE(17, !ibv_create_cq_ex(context, &cq_init) && errno == ENODEV);
	REQUIRE(18, ibv_resize_cq(pair->cq, 100) == ENODEV);
	REQUIRE(19, ibv_modify_cq(pair->cq, &moderate) == ENODEV);
	REQUIRE(20, ibv_modify_srq(shared.srq, &srq_attr, IBV_SRQ_MAX_WR) == ENODEV);
	REQUIRE(21, ibv_query_srq(shared.srq, &srq_attr) == ENODEV);
	REQUIRE(22, ibv_destroy_srq(shared.srq) == ENODEV);
	REQUIRE(23, !create_ex_qp(context) && errno == ENODEV);
	REQUIRE(24, ibv_query_qp(shared.qp, &qp_attr, IBV_QP_STATE, &init) == ENODEV);
	REQUIRE(25, ibv_destroy_qp(shared.qp) == ENODEV);
	REQUIRE(26, ibv_detach_mcast(shared.qp, &group, 0) == ENODEV);
	REQUIRE(27, !ibv_import_device(dup(context->cmd_fd)) && errno == EINVAL);
	REQUIRE(28, !ibv_import_pd(context, pair->pd->handle) && errno == ENODEV);
	REQUIRE(29, !ibv_import_mr(pair->pd, shared.mr->handle) && errno == ENODEV);
	REQUIRE(30, !ibv_import_dm(context, 0) && errno == ENODEV);
	event.element.cq = pair->cq;
	ibv_ack_async_event(&event);
	ibv_ack_cq_events(pair->cq, 1);
}

TEST(control_path__fails_whole_in_a_child)
{
	struct fake_pair pair = fake_pair_create(*state);

	make_shared(*state, pair.pd);
	/* Hold the lock as another thread in ibv_ack_cq_events would. */
	pthread_mutex_lock(&pair.cq->mutex);
	run_child(child_uses_other_calls, *state, &pair);
	pthread_mutex_unlock(&pair.cq->mutex);
	destroy_shared();
	fake_pair_destroy(&pair);
}

TEST(fork_init__is_not_needed)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);
	char buf[8];
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), 0);

	/* The call works after a registration too, although the manual page reserves EINVAL for
	 * that. */
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	assert_int_equal(ibv_dontfork_range(buf, sizeof(buf)), 0);
	assert_int_equal(ibv_dofork_range(buf, sizeof(buf)), 0);
}
