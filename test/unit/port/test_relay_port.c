/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/relay_port.c. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "open_fds.h"
#include "port/port.h"
#include "port/relay.h"
#include "test.h"

#define SENDERS 2
#define FRAMES	4096u

static struct {
	struct port main;
	struct port port;
	struct relay *relay;
	bool lost;
	int sent; /* calls of the carrier */
	struct rte_mbuf frames[SENDERS][FRAMES];
	/* the queue that the carrier's port has for the engine */
	struct {
		int opened, closed, destroyed;
		int refuses; /* -errno of the open */
		int fd;	     /* an eventfd */
		uint32_t number, count;
		struct rte_mbuf *waiting[8];
		uint16_t received, waits;
		uint16_t sent;
		bool unconnected;
		bool lost, given_up;
		bool full, cut;
		bool only_sends;
		bool without_fd;
		int disarmed;
		uint32_t len, qpn, ahead;
		int pushed, placed;
		uint8_t place[64], offer[64];
	} queue;
} env;

static void count_sent(void *arg)
{
	assert_ptr_equal(arg, &env);
	env.sent++;
}

static int set_up(TEST_STATE)
{
	const struct relay_carrier carrier = {
		.port = &env.main,
		.lost = &env.lost,
		.sent = count_sent,
		.sent_arg = &env,
	};

	memset(&env, 0, sizeof(env));
	env.main.mtu_bytes = 1500;
	env.main.mac[5] = 7;
	env.main.own_qpn_first = 0x4000;
	env.main.own_qpn_count = 64;
	return relay_open(&carrier, 1, &env.port, &env.relay);
}

static int tear_down(TEST_STATE)
{
	port_close(&env.port);
	port_destroy(&env.port);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* Return true if a thread that sleeps on the port's descriptor would wake. */
static bool is_awake(void)
{
	struct pollfd fd = {.fd = port_wake_fd(&env.port), .events = POLLIN};

	assert_true(fd.fd >= 0);
	return poll(&fd, 1, 0) == 1;
}

TEST(relay_open__the_port_is_as_the_carriers)
{
	assert_int_equal(env.port.mtu_bytes, 1500);
	assert_memory_equal(env.port.mac, env.main.mac, sizeof(env.port.mac));
	assert_int_equal(env.port.own_qpn_first, 0x4000);
	assert_int_equal(env.port.own_qpn_count, 64);
	assert_true(env.port.started);
	assert_true(port_connected(&env.port));
	assert_false(port_lost(&env.port));
	env.lost = true;
	assert_true(port_lost(&env.port));
}

TEST(relay_open__leaves_no_descriptor, .bare = true)
{
	const unsigned int before = fds_count();

	assert_int_equal(set_up(NULL), 0);
	assert_int_equal(tear_down(NULL), 0);
	assert_int_equal(fds_count(), before);
}

TEST(relay_give__frames_are_received_in_their_order)
{
	struct rte_mbuf *taken[8];

	assert_int_equal(port_rx_burst(&env.port, taken, 8), 0);
	assert_false(env.port.rx_cut);
	for (int i = 0; i < 5; i++)
		assert_true(relay_give(env.relay, &env.frames[0][i], true));
	assert_int_equal(port_rx_burst(&env.port, taken, 3), 3);
	assert_true(env.port.rx_cut);
	assert_int_equal(port_rx_burst(&env.port, taken + 3, 5), 2);
	assert_false(env.port.rx_cut);
	for (int i = 0; i < 5; i++)
		assert_ptr_equal(taken[i], &env.frames[0][i]);
}

TEST(relay_give__wakes_an_armed_port_once)
{
	struct rte_mbuf *taken[8];

	assert_true(relay_give(env.relay, &env.frames[0][0], true));
	assert_false(is_awake());
	/* A frame waits already, so the helper does not sleep. */
	assert_true(port_arm(&env.port));
	assert_int_equal(port_rx_burst(&env.port, taken, 8), 1);
	assert_false(port_arm(&env.port));
	assert_false(is_awake());
	assert_true(relay_give(env.relay, &env.frames[0][1], true));
	assert_true(is_awake());
	assert_int_equal(port_rx_burst(&env.port, taken, 8), 1);
	/* Arming forgets what the last frame rang for. */
	assert_false(port_arm(&env.port));
	assert_false(is_awake());
	assert_true(relay_give(env.relay, &env.frames[0][2], true));
	assert_true(is_awake());
}

TEST(relay_fetch__what_the_engine_sends)
{
	struct rte_mbuf *sent[FRAMES], *taken[FRAMES];
	uint16_t room;

	for (uint32_t i = 0; i < FRAMES; i++)
		sent[i] = &env.frames[0][i];
	assert_false(relay_sends(env.relay));
	assert_int_equal(relay_fetch(env.relay, taken, 8), 0);
	assert_int_equal(port_tx_burst(&env.port, sent, 3), 3);
	assert_int_equal(env.sent, 1);
	assert_true(relay_sends(env.relay));
	assert_int_equal(relay_fetch(env.relay, taken, 2), 2);
	assert_int_equal(relay_fetch(env.relay, taken + 2, 8), 1);
	assert_memory_equal(taken, sent, 3 * sizeof(taken[0]));
	/* More than there is room for: the rest stays the engine's, and the carrier is told. */
	room = port_tx_burst(&env.port, sent, FRAMES);
	assert_in_range(room, 256, FRAMES - 1);
	assert_int_equal(env.sent, 2);
	assert_int_equal(port_tx_burst(&env.port, sent + room, 1), 0);
	assert_int_equal(env.sent, 3);
	assert_int_equal(relay_fetch(env.relay, taken, 1), 1);
	assert_int_equal(port_tx_burst(&env.port, sent + room, 2), 1);
	assert_int_equal(relay_fetch(env.relay, taken + 1, FRAMES), room);
	assert_memory_equal(taken, sent, (room + 1u) * sizeof(taken[0]));
	assert_false(relay_sends(env.relay));
}

static void *give_many(void *arg)
{
	struct rte_mbuf *own = arg;

	for (uint32_t i = 0; i < FRAMES; i++) {
		if (!relay_give(env.relay, &own[i], true))
			return "refused";
	}
	return NULL;
}

/* Sleep as the helper does. A lost wake-up hangs the program. */
static void sleep_until_all_came(void)
{
	struct pollfd fd = {.fd = port_wake_fd(&env.port), .events = POLLIN};
	struct rte_mbuf *next[SENDERS];
	pthread_t threads[SENDERS];
	uint32_t total = 0;

	for (int i = 0; i < SENDERS; i++) {
		next[i] = env.frames[i];
		assert_int_equal(pthread_create(&threads[i], NULL, give_many, env.frames[i]), 0);
	}
	while (total < SENDERS * FRAMES) {
		struct rte_mbuf *taken[4];
		const uint16_t n = port_rx_burst(&env.port, taken, 4);

		for (uint16_t i = 0; i < n; i++) {
			const int sender = taken[i] >= env.frames[1];

			assert_ptr_equal(taken[i], next[sender]);
			next[sender]++;
		}
		total += n;
		if (n == 0 && !port_arm(&env.port))
			assert_int_equal(poll(&fd, 1, -1), 1);
	}
	for (int i = 0; i < SENDERS; i++) {
		void *wrong;

		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
}

TEST(relay_give__a_sleeper_never_misses_a_frame)
{
	sleep_until_all_came();
}

static uint16_t queue_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	uint16_t taken = 0;

	assert_ptr_equal(arg, &env.queue);
	while (taken < n && env.queue.received < env.queue.waits)
		mbufs[taken++] = env.queue.waiting[env.queue.received++];
	if (env.queue.cut)
		env.port.rx_cut = true;
	return taken;
}

static uint16_t queue_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	assert_ptr_equal(arg, &env.queue);
	assert_non_null(mbufs);
	if (env.queue.full)
		return 0;
	env.queue.sent = (uint16_t)(env.queue.sent + n);
	return n;
}

static bool queue_arm(void *arg)
{
	assert_ptr_equal(arg, &env.queue);
	return env.queue.received < env.queue.waits;
}

static void queue_disarm(void *arg)
{
	assert_ptr_equal(arg, &env.queue);
	env.queue.disarmed++;
}

static bool queue_connected(void *arg)
{
	assert_ptr_equal(arg, &env.queue);
	return !env.queue.unconnected;
}

static void queue_close(void *arg)
{
	assert_ptr_equal(arg, &env.queue);
	env.queue.closed++;
	env.port.wake_fd = -1;
}

static void queue_destroy(void *arg)
{
	assert_ptr_equal(arg, &env.queue);
	env.queue.destroyed++;
	close(env.queue.fd);
}

static const struct port_ops queue_ops = {
	.rx_burst = queue_rx_burst,
	.tx_burst = queue_tx_burst,
	.arm = queue_arm,
	.disarm = queue_disarm,
	.connected = queue_connected,
	.close = queue_close,
	.destroy = queue_destroy,
};

static const struct port_ops sending_ops = {
	.tx_burst = queue_tx_burst,
	.arm = queue_arm,
	.connected = queue_connected,
	.close = queue_close,
	.destroy = queue_destroy,
};

static bool queue_lost(void *arg)
{
	assert_ptr_equal(arg, &env.queue);
	return env.queue.lost;
}

static void queue_lose(void *arg)
{
	assert_ptr_equal(arg, &env.queue);
	env.queue.given_up = true;
}

static bool queue_has_room(void *arg)
{
	assert_ptr_equal(arg, &env.queue);
	return !env.queue.full;
}

static void queue_expect(void *arg, uint32_t ahead, uint32_t len)
{
	assert_ptr_equal(arg, &env.queue);
	env.queue.ahead = ahead;
	env.queue.len = len;
}

static uint8_t *queue_place(void *arg, uint32_t len)
{
	assert_ptr_equal(arg, &env.queue);
	env.queue.len = len;
	return len <= sizeof(env.queue.place) ? env.queue.place : NULL;
}

static bool queue_aim(void *arg, uint32_t qpn)
{
	assert_ptr_equal(arg, &env.queue);
	env.queue.qpn = qpn;
	return qpn == 5;
}

static uint8_t *queue_offer(void *arg)
{
	assert_ptr_equal(arg, &env.queue);
	return env.queue.offer;
}

static bool queue_suits(void *arg, uint32_t qpn)
{
	assert_ptr_equal(arg, &env.queue);
	return qpn == 6;
}

static void queue_placed(void *arg, uint32_t len)
{
	assert_ptr_equal(arg, &env.queue);
	env.queue.len = len;
	env.queue.placed++;
}

static void queue_push(void *arg)
{
	assert_ptr_equal(arg, &env.queue);
	env.queue.pushed++;
}

/* Those of a queue in whose buffers packets are built. */
static const struct port_ops placing_ops = {
	.rx_burst = queue_rx_burst,
	.tx_burst = queue_tx_burst,
	.expect = queue_expect,
	.has_room = queue_has_room,
	.place = queue_place,
	.aim = queue_aim,
	.steers = true,
	.offer = queue_offer,
	.suits = queue_suits,
	.placed = queue_placed,
	.push = queue_push,
	.arm = queue_arm,
	.disarm = queue_disarm,
	.connected = queue_connected,
	.lost = queue_lost,
	.lose = queue_lose,
	.close = queue_close,
};

static const struct port_ops *ops_of_queue = &queue_ops;

static int given_fd = -1; /* the queue's descriptor; -1: an eventfd */

static int open_queue(void *arg, uint32_t number, uint32_t count, struct port *queue)
{
	assert_ptr_equal(arg, &env.main);
	env.queue.number = number;
	env.queue.count = count;
	if (env.queue.refuses)
		return env.queue.refuses;
	env.queue.opened++;
	env.queue.fd = given_fd >= 0 ? given_fd : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	queue->ops = env.queue.only_sends ? &sending_ops : ops_of_queue;
	queue->ops_arg = &env.queue;
	queue->wake_fd = env.queue.without_fd ? -1 : env.queue.fd;
	return 0;
}

static int set_up_with(int refuses, bool only_sends, bool without_fd)
{
	static const struct port_ops main_ops = {.open_queue = open_queue};
	const struct relay_carrier carrier = {
		.port = &env.main,
		.engines = 4,
		.lost = &env.lost,
		.sent = count_sent,
		.sent_arg = &env,
	};

	memset(&env, 0, sizeof(env));
	env.main.ops = &main_ops;
	env.main.ops_arg = &env.main;
	env.queue.refuses = refuses;
	env.queue.only_sends = only_sends;
	env.queue.without_fd = without_fd;
	return relay_open(&carrier, 3, &env.port, &env.relay);
}

static int set_up_queue(TEST_STATE)
{
	return set_up_with(0, false, false);
}

static int set_up_refused(TEST_STATE)
{
	return set_up_with(-ENOMEM, false, false);
}

static int set_up_sending(TEST_STATE)
{
	return set_up_with(0, true, true);
}

static int set_up_without_fd(TEST_STATE)
{
	return set_up_with(0, false, true);
}

TEST(relay_open__opens_the_engines_queue, .setup = set_up_queue)
{
	assert_true(relay_receives(env.relay));
	assert_int_equal(env.queue.opened, 1);
	assert_int_equal(env.queue.number, 3);
	assert_int_equal(env.queue.count, 4);
	assert_true(port_connected(&env.port));
	env.queue.unconnected = true;
	assert_false(port_connected(&env.port));
}

static int set_up_placing(TEST_STATE)
{
	ops_of_queue = &placing_ops;
	return set_up_with(0, false, false);
}

static int tear_down_placing(TEST_STATE)
{
	port_close(&env.port);
	port_destroy(&env.port);
	/* The queue's port has no `destroy`. */
	close(env.queue.fd);
	ops_of_queue = &queue_ops;
	return 0;
}

/* The engine builds packets in the buffers of its queue. */
TEST(relay_open__the_port_places_as_the_queue_does, .setup = set_up_placing,
     .teardown = tear_down_placing)
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
TEST(relay_open__the_port_places_nothing_without_the_queue, .setup = set_up_queue)
{
	assert_null(env.port.ops->place);
	assert_null(env.port.ops->aim);
	assert_null(env.port.ops->offer);
	assert_null(env.port.ops->expect);
	assert_null(env.port.ops->push);
}

TEST(relay_lost__also_if_the_queue_is, .setup = set_up_placing, .teardown = tear_down_placing)
{
	assert_false(port_lost(&env.port));
	env.queue.lost = true;
	assert_true(port_lost(&env.port));
	port_lose(&env.port);
	assert_true(env.queue.given_up);
}

TEST(relay_give__a_sleeper_with_a_queue_never_misses_a_frame, .setup = set_up_queue)
{
	sleep_until_all_came();
}

TEST(relay_open__a_queue_leaves_no_descriptor, .bare = true)
{
	const unsigned int before = fds_count();

	assert_int_equal(set_up_queue(NULL), 0);
	assert_int_equal(tear_down(NULL), 0);
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

TEST(relay_tx_burst__a_queue_sends_itself, .setup = set_up_queue)
{
	struct rte_mbuf *sent[3] = {&env.frames[0][0], &env.frames[0][1], &env.frames[0][2]};

	assert_int_equal(port_tx_burst(&env.port, sent, 3), 3);
	assert_int_equal(env.queue.sent, 3);
	assert_int_equal(env.sent, 0);
	assert_false(relay_sends(env.relay));
}

/* Neither the queue nor the other engines are served alone. */
TEST(relay_rx_burst__takes_of_both, .setup = set_up_queue)
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

TEST(relay_arm__wakes_for_both, .setup = set_up_queue)
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
	given_fd = ends[1];
	rc = set_up_queue(state);
	given_fd = -1;
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
TEST(relay_tx_burst__a_queue_that_leads_nowhere_is_relayed, .setup = set_up_placing,
     .teardown = tear_down_placing)
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
	/* It receives what the queue still holds. */
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

TEST(relay_place__packets_are_built_in_the_queue, .setup = set_up_placing,
     .teardown = tear_down_placing)
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
TEST(relay_rx_burst__says_if_more_waits, .setup = set_up_placing, .teardown = tear_down_placing)
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
TEST(relay_disarm__disarms_the_queue, .setup = set_up_queue)
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
TEST(relay_tx_burst__a_stuck_queue_is_passed_by, .setup = set_up_queue)
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
