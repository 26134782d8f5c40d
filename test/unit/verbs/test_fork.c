/* SPDX-License-Identifier: BSD-3-Clause */
/* Children of a process that uses the stack. */
#include <sys/wait.h>
#include <unistd.h>

#include "private.h"

#include "fake.h"

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

static void data_path__fails_in_a_child(void **state)
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

	REQUIRE(1, ibv_get_device_list(NULL) == NULL && errno == ENODEV);
	REQUIRE(2, ibv_open_device(context->device) == NULL && errno == ENODEV);
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

static void control_path__fails_in_a_child(void **state)
{
	struct fake_pair pair = fake_pair_create(*state);

	run_child(child_uses_control_path, *state, &pair);
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

static void control_path__fails_in_a_grandchild(void **state)
{
	struct fake_pair pair = fake_pair_create(*state);

	run_child(child_forks, *state, &pair);
	fake_pair_destroy(&pair);
}

static void parent__is_not_disturbed(void **state)
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

static void fork_init__is_not_needed(void **state)
{
	char buf[8];

	(void)state;
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	assert_int_equal(ibv_dontfork_range(buf, sizeof(buf)), 0);
	assert_int_equal(ibv_dofork_range(buf, sizeof(buf)), 0);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(data_path__fails_in_a_child),	    UNIT(control_path__fails_in_a_child),
		UNIT(control_path__fails_in_a_grandchild),  UNIT(parent__is_not_disturbed),
		cmocka_unit_test(fork_init__is_not_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
