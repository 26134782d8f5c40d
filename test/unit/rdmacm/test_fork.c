/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of what fork() leaves to either process: lib/rdmacm/rdma_device.c, lib/cm/ports.c. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdmacm_rig.h"
#include "sanitizer.h"

TEST_FIXTURE(rig_set_up, rig_tear_down);

/* Every check has a number, so that a failing child names it by its exit code. */
#define REQUIRE(number, condition)     \
	do {                           \
		if (!(condition))      \
			_exit(number); \
	} while (0)

#define FAILS(call, error) ((errno = 0, (call) == -1) && errno == (error))

static void wait_for(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Use the parent's objects in the child: every call fails and touches nothing. */
static void child_uses_the_parents(struct rig_pair *pair, struct rdma_cm_event *event)
{
	struct ibv_ece ece = {.vendor_id = 1};
	struct rdma_cm_event *got;
	struct ibv_qp_attr attr;
	uint8_t tos = 1;
	int mask;

	REQUIRE(1, FAILS(rdma_disconnect(pair->active), ENODEV));
	REQUIRE(2, FAILS(rdma_accept(pair->passive, NULL), ENODEV));
	REQUIRE(3, FAILS(rdma_reject(pair->passive, NULL, 0), ENODEV));
	REQUIRE(4, FAILS(rdma_connect(pair->active, NULL), ENODEV));
	REQUIRE(5, FAILS(rdma_listen(pair->listener, 1), ENODEV));
	REQUIRE(6, FAILS(rdma_get_cm_event(rig_channel, &got), ENODEV));
	REQUIRE(7, FAILS(rdma_ack_cm_event(event), ENODEV));
	REQUIRE(8, FAILS(rdma_migrate_id(pair->active, NULL), ENODEV));
	REQUIRE(9, FAILS(rdma_init_qp_attr(pair->active, &attr, &mask), ENODEV));
	REQUIRE(10,
		FAILS(rdma_set_option(pair->active, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1),
		      ENODEV));
	REQUIRE(11, FAILS(rdma_set_local_ece(pair->active, &ece), ENODEV));
	REQUIRE(12, FAILS(rdma_notify(pair->passive, IBV_EVENT_COMM_EST), ENODEV));
	REQUIRE(13, FAILS(rdma_establish(pair->active), ENODEV));
	REQUIRE(14, FAILS(rdma_resolve_route(pair->active, 1), ENODEV));
	REQUIRE(15, FAILS(rdma_join_multicast(pair->active, rig_ipv4(0, 0), NULL), ENODEV));
	REQUIRE(16, FAILS(rdma_destroy_id(pair->listener), ENODEV));
	rdma_destroy_ep(pair->active);
	_exit(0);
}

TEST(fork__the_parents_connection_goes_on)
{
	struct rig_pair pair = rig_connect();
	struct rdma_cm_event *event;
	pid_t pid;

	assert_int_equal(rdma_disconnect(pair.passive), 0);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_DISCONNECTED);
	pid = fork();
	if (pid == 0)
		child_uses_the_parents(&pair, event);
	wait_for(pid);
	assert_ptr_equal(event->id, pair.active);
	assert_int_equal(rdma_disconnect(pair.active), 0);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_DISCONNECTED), pair.passive);
	rig_end(&pair);
}

/* The child has devices and ports of its own. */
TEST(fork__child_begins_anew)
{
	struct rdma_cm_id *listener = rig_listen(RDMA_PS_TCP);
	const pid_t pid = fork();

	if (pid == 0) {
		struct rig_pair pair;

		rig_channel = rig_create_channel();
		pair = rig_connect();
		rig_end(&pair);
		_exit(0);
	}
	wait_for(pid);
	rdma_destroy_id(listener);
}

static bool stop;

static void *claim_for_ever(void *arg)
{
	struct cm_port_claim claim = {
		.space = CM_PS_TCP, .port = 9, .ip_version = 4, .any_address = true};
	uint32_t id;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		if (cm_ports_local.claim(NULL, &claim, &id) == 0)
			cm_ports_local.release(NULL, id);
	}
	return arg;
}

/* Another thread, which the child lacks, may hold the lock of the port table at the fork. */
TEST(fork__lock_of_the_ports_is_free_in_the_child)
{
	struct rdma_cm_id *id;
	pthread_t thread;

	/* The leak checker reports in a child what the parent's threads had. */
	if (ADDRESS_SANITIZER)
		skip();
	id = rig_create(RDMA_PS_TCP);
	stop = false;
	assert_int_equal(pthread_create(&thread, NULL, claim_for_ever, NULL), 0);
	for (int i = 0; i < 100; i++) {
		const pid_t pid = fork();

		if (pid == 0) {
			alarm(10);
			rig_channel = rig_create_channel();
			id = rig_create(RDMA_PS_TCP);
			REQUIRE(1, rdma_bind_addr(id, rig_ipv4(0, 9)) == 0);
			_exit(0);
		}
		wait_for(pid);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	rdma_destroy_id(id);
}
