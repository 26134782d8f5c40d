/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/relay_port.c: an engine that has a queue of its own. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "open_fds.h"
#include "relay_rig.h"
#include "test.h"

TEST_FIXTURE(relay_set_up, relay_tear_down);

static int set_up_refused(TEST_STATE)
{
	return relay_set_up_with(-ENOMEM, false, false);
}

static int set_up_sending(TEST_STATE)
{
	return relay_set_up_with(0, true, true);
}

static int set_up_without_fd(TEST_STATE)
{
	return relay_set_up_with(0, false, true);
}

TEST(relay_open__opens_the_engines_queue, .setup = relay_set_up_queue)
{
	assert_true(relay_receives(env.relay));
	assert_int_equal(env.queue.opened, 1);
	assert_int_equal(env.queue.number, 3);
	assert_int_equal(env.queue.count, 4);
	assert_true(port_connected(&env.port));
	env.queue.unconnected = true;
	assert_false(port_connected(&env.port));
}

/* The engine builds packets in the buffers of its queue. */
TEST(relay_open__the_port_places_as_the_queue_does, .setup = relay_set_up_placing,
     .teardown = relay_tear_down_placing)
{
	const struct port_ops *ops = env.port.ops;

	assert_false(ops->aim(env.port.ops_arg, 4));
	assert_true(ops->aim(env.port.ops_arg, 5));
	assert_int_equal(env.queue.qpn, 5);
	assert_ptr_equal(ops->place(env.port.ops_arg, 64), env.queue.place);
	assert_int_equal(env.queue.len, 64);
	assert_ptr_equal(ops->offer(env.port.ops_arg), env.queue.offer);
	assert_false(ops->suits(env.port.ops_arg, 5));
	assert_true(ops->suits(env.port.ops_arg, 6));
	ops->placed(env.port.ops_arg, 77);
	assert_int_equal(env.queue.len, 77);
	ops->push(env.port.ops_arg);
	assert_int_equal(env.queue.pushed, 1);
	ops->expect(env.port.ops_arg, 2, 55);
	assert_int_equal(env.queue.ahead, 2);
	assert_int_equal(env.queue.len, 55);
}

/* The engine asks its port what it can do. */
TEST(relay_open__the_port_places_nothing_without_the_queue, .setup = relay_set_up_queue)
{
	assert_null(env.port.ops->place);
	assert_null(env.port.ops->aim);
	assert_null(env.port.ops->offer);
	assert_null(env.port.ops->expect);
	assert_null(env.port.ops->push);
}

TEST(relay_lost__also_if_the_queue_is, .setup = relay_set_up_placing,
     .teardown = relay_tear_down_placing)
{
	assert_false(port_lost(&env.port));
	env.queue.lost = true;
	assert_true(port_lost(&env.port));
	port_lose(&env.port);
	assert_true(env.queue.given_up);
}

TEST(relay_give__a_sleeper_with_a_queue_never_misses_a_frame, .setup = relay_set_up_queue)
{
	expect_all_to_come();
}

TEST(relay_open__a_queue_leaves_no_descriptor, .bare = true)
{
	const unsigned int before = fds_count();

	assert_int_equal(relay_set_up_queue(NULL), 0);
	assert_int_equal(relay_tear_down(NULL), 0);
	assert_int_equal(env.queue.closed, 1);
	assert_int_equal(env.queue.destroyed, 1);
	assert_int_equal(fds_count(), before);
}

/* The first engine receives and sends for it. */
TEST(relay_open__does_without_a_queue, .setup = set_up_refused)
{
	struct rte_mbuf *sent = &env.frames[0][0];

	assert_false(relay_receives(env.relay));
	assert_int_equal(port_tx_burst(&env.port, &sent, 1), 1);
	assert_int_equal(env.sent, 1);
	assert_true(relay_sends(env.relay));
}

TEST(relay_tx_burst__a_queue_sends_itself, .setup = relay_set_up_queue)
{
	struct rte_mbuf *sent[3] = {&env.frames[0][0], &env.frames[0][1], &env.frames[0][2]};

	assert_int_equal(port_tx_burst(&env.port, sent, 3), 3);
	assert_int_equal(env.queue.sent, 3);
	assert_int_equal(env.sent, 0);
	assert_false(relay_sends(env.relay));
}

/* Neither the queue nor the other engines are served alone. */
TEST(relay_rx_burst__takes_of_both, .setup = relay_set_up_queue)
{
	struct rte_mbuf *taken[4];

	for (int i = 0; i < 8; i++) {
		env.queue.waiting[i] = &env.frames[1][i];
		assert_true(relay_give(env.relay, &env.frames[0][i], true));
	}
	env.queue.waits = 8;
	for (int round = 0; round < 4; round++) {
		assert_int_equal(port_rx_burst(&env.port, taken, 4), 4);
		for (int i = 0; i < 2; i++) {
			assert_ptr_equal(taken[i], &env.frames[0][2 * round + i]);
			assert_ptr_equal(taken[2 + i], &env.frames[1][2 * round + i]);
		}
		assert_int_equal(env.port.rx_cut, round < 3);
	}
	assert_int_equal(port_rx_burst(&env.port, taken, 4), 0);
}

TEST(relay_arm__wakes_for_both, .setup = relay_set_up_queue)
{
	struct rte_mbuf *taken[4];

	assert_false(port_arm(&env.port));
	assert_false(is_awake());
	env.queue.waiting[0] = &env.frames[1][0];
	env.queue.waits = 1;
	assert_int_equal(eventfd_write(env.queue.fd, 1), 0);
	assert_true(is_awake());
	assert_true(port_arm(&env.port));
	assert_int_equal(port_rx_burst(&env.port, taken, 4), 1);
	assert_int_equal(eventfd_read(env.queue.fd, &(eventfd_t){0}), 0);
	assert_false(port_arm(&env.port));
	assert_false(is_awake());
	assert_true(relay_give(env.relay, &env.frames[0][0], true));
	assert_true(is_awake());
	/* After the end, threads of other engines may still give frames, and a late helper arm. */
	port_close(&env.port);
	assert_true(relay_give(env.relay, &env.frames[0][1], true));
	assert_true(port_arm(&env.port));
}

/* The descriptor of a tap that was deleted is in error, as a pipe without a reader is. */
static int set_up_broken(TEST_STATE)
{
	int ends[2], rc;

	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	close(ends[0]);
	relay_given_fd = ends[1];
	rc = relay_set_up_queue(state);
	relay_given_fd = -1;
	return rc;
}

TEST(relay_arm__does_not_sleep_on_a_descriptor_in_error_for_ever, .setup = set_up_broken)
{
	int looks = 0;

	for (; is_awake() && looks < 1000; looks++)
		assert_false(port_arm(&env.port));
	assert_in_range(looks, 50, 200);
	/* Other engines still wake it. */
	assert_true(relay_give(env.relay, &env.frames[0][0], true));
	assert_true(is_awake());
}

/* A memif whose other end has no ring for this engine now. */
TEST(relay_tx_burst__a_queue_that_leads_nowhere_is_relayed, .setup = relay_set_up_placing,
     .teardown = relay_tear_down_placing)
{
	struct rte_mbuf *sent = &env.frames[0][0];

	env.queue.unconnected = true;
	__atomic_store_n(&env.port.relayed, true, __ATOMIC_RELAXED);
	assert_false(relay_receives(env.relay));
	/* The first engine knows if its port is connected. */
	assert_true(port_connected(&env.port));
	assert_false(env.port.ops->aim(env.port.ops_arg, 5));
	env.queue.full = true;
	assert_true(env.port.ops->has_room(env.port.ops_arg));
	assert_int_equal(port_tx_burst(&env.port, &sent, 1), 1);
	assert_int_equal(env.queue.sent, 0);
	assert_int_equal(env.sent, 1);
	assert_int_equal(relay_fetch(env.relay, &sent, 1), 1);
	/* The port receives what the queue still holds. */
	env.queue.waiting[0] = &env.frames[1][0];
	env.queue.waits = 1;
	assert_int_equal(port_rx_burst(&env.port, &sent, 1), 1);
	env.queue.full = false;
	__atomic_store_n(&env.port.relayed, false, __ATOMIC_RELAXED);
	assert_true(relay_receives(env.relay));
	assert_false(port_connected(&env.port));
	assert_int_equal(port_tx_burst(&env.port, &sent, 1), 1);
	assert_int_equal(env.queue.sent, 1);
}

TEST(relay_place__packets_are_built_in_the_queue, .setup = relay_set_up_placing,
     .teardown = relay_tear_down_placing)
{
	const struct port_ops *ops = env.port.ops;
	void *arg = env.port.ops_arg;

	assert_true(ops->steers);
	assert_true(ops->has_room(arg));
	env.queue.full = true;
	assert_false(ops->has_room(arg));
	assert_null(ops->place(arg, 65));
	env.port.armed = true;
	port_disarm(&env.port);
	assert_int_equal(env.queue.disarmed, 1);
}

/* The queue has more than it gave, or another engine does. */
TEST(relay_rx_burst__says_if_more_waits, .setup = relay_set_up_placing,
     .teardown = relay_tear_down_placing)
{
	struct rte_mbuf *taken[4];

	env.queue.cut = true;
	port_rx_burst(&env.port, taken, 4);
	assert_true(env.port.rx_cut);
	env.queue.cut = false;
	port_rx_burst(&env.port, taken, 4);
	assert_false(env.port.rx_cut);
	for (int i = 0; i < 3; i++)
		assert_true(relay_give(env.relay, &env.frames[0][i], true));
	port_rx_burst(&env.port, taken, 4);
	assert_true(env.port.rx_cut);
}

/* A NIC's queue has interrupts, and its descriptor is another one than the relay's. */
TEST(relay_disarm__disarms_the_queue, .setup = relay_set_up_queue)
{
	port_disarm(&env.port);
	assert_int_equal(env.queue.disarmed, 0);
	env.port.armed = true;
	port_disarm(&env.port);
	assert_int_equal(env.queue.disarmed, 1);
}

/* The helper must poll such a queue, so it must not sleep until another engine rings. */
TEST(relay_open__a_queue_without_a_descriptor_wakes_nobody, .setup = set_up_without_fd)
{
	assert_true(relay_receives(env.relay));
	assert_int_equal(port_wake_fd(&env.port), -1);
}

/* The port has fewer receive queues than engines: the first engine receives. */
TEST(relay_open__a_queue_that_only_sends, .setup = set_up_sending)
{
	struct rte_mbuf *sent[1] = {&env.frames[0][0]}, *taken[4];

	assert_false(relay_receives(env.relay));
	assert_int_equal(port_tx_burst(&env.port, sent, 1), 1);
	assert_int_equal(env.queue.sent, 1);
	assert_false(relay_sends(env.relay));
	for (int i = 0; i < 3; i++)
		assert_true(relay_give(env.relay, &env.frames[1][i], true));
	assert_int_equal(port_rx_burst(&env.port, taken, 4), 3);
	assert_false(port_arm(&env.port));
	assert_true(relay_give(env.relay, &env.frames[1][3], true));
	assert_true(is_awake());
}

/* A full queue keeps its packets. Those of a queue that nobody serves go to the first engine. */
TEST(relay_tx_burst__a_stuck_queue_is_passed_by, .setup = relay_set_up_queue)
{
	struct rte_mbuf *sent[2] = {&env.frames[0][0], &env.frames[0][1]}, *taken[2];

	env.queue.full = true;
	assert_int_equal(port_tx_burst(&env.port, sent, 2), 0);
	assert_false(relay_sends(env.relay));
	env.port.tx_stuck = true;
	assert_int_equal(port_tx_burst(&env.port, sent, 2), 2);
	assert_int_equal(env.sent, 1);
	assert_int_equal(relay_fetch(env.relay, taken, 2), 2);
	assert_memory_equal(taken, sent, sizeof(sent));
	/* The queue is asked each time. */
	env.queue.full = false;
	assert_int_equal(port_tx_burst(&env.port, sent, 2), 2);
	assert_int_equal(env.queue.sent, 2);
	assert_int_equal(env.sent, 1);
}
