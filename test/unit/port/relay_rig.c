/* SPDX-License-Identifier: BSD-3-Clause */
/* A relay, and the queue that its carrier's port may have for its engine. */
#include "relay_rig.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "test.h"

struct relay_env env;

static void count_sent(void *arg)
{
	assert_ptr_equal(arg, &env);
	env.sent++;
}

int relay_set_up(TEST_STATE)
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

int relay_tear_down(TEST_STATE)
{
	port_close(&env.port);
	port_destroy(&env.port);
	return 0;
}

bool is_awake(void)
{
	struct pollfd fd = {.fd = port_wake_fd(&env.port), .events = POLLIN};

	assert_true(fd.fd >= 0);
	return poll(&fd, 1, 0) == 1;
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

void expect_all_to_come(void)
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

/* The operations of a queue in whose buffers packets are built. */
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

int relay_given_fd = -1;

static int open_queue(void *arg, uint32_t number, uint32_t count, struct port *queue)
{
	assert_ptr_equal(arg, &env.main);
	env.queue.number = number;
	env.queue.count = count;
	if (env.queue.refuses)
		return env.queue.refuses;
	env.queue.opened++;
	env.queue.fd =
		relay_given_fd >= 0 ? relay_given_fd : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	queue->ops = env.queue.only_sends ? &sending_ops : ops_of_queue;
	queue->ops_arg = &env.queue;
	queue->wake_fd = env.queue.without_fd ? -1 : env.queue.fd;
	return 0;
}

int relay_set_up_with(int refuses, bool only_sends, bool without_fd)
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

int relay_set_up_queue(TEST_STATE)
{
	return relay_set_up_with(0, false, false);
}

int relay_set_up_placing(TEST_STATE)
{
	ops_of_queue = &placing_ops;
	return relay_set_up_with(0, false, false);
}

int relay_tear_down_placing(TEST_STATE)
{
	port_close(&env.port);
	port_destroy(&env.port);
	/* The queue's port has no `destroy`. */
	close(env.queue.fd);
	ops_of_queue = &queue_ops;
	return 0;
}
