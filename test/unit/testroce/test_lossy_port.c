/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the loss of app/testroce/nic.c, with a device of two engines, each with a queue of the
 * port. What is lossy stays so, as in the program. */
#include <errno.h>
#include <string.h>

#include <rte_mbuf.h>

#include "eal/runtime.h"
#include "frames.h"
#include "impair/counts.h"
#include "nic.h"
#include "port/port.h"
#include "test.h"

#define ENGINES 2
#define MBUFS	1024
#define ROOM	1024
#define BURST	32
#define BURSTS	64
#define PACKETS (BURST * BURSTS)

static struct rte_mempool *pool;
static struct port ports[ENGINES];
static struct port_ops main_ops;
static uint8_t frame[FRAME_MAX];
static uint32_t frame_len;
static bool arrived[ENGINES][PACKETS];
static uint16_t arrives; /* packets that wait in each queue */

static struct rte_mbuf *make_packet(uint16_t number)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);

	assert_non_null(mbuf);
	memcpy(rte_pktmbuf_append(mbuf, (uint16_t)frame_len), frame, frame_len);
	mbuf->vlan_tci = number;
	return mbuf;
}

/* Receive from a queue, whose argument is the engine's port. */
static uint16_t queue_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	uint16_t taken = 0;

	assert_true(arg == &ports[0] || arg == &ports[1]);
	for (; taken < n && arrives > 0; taken++)
		mbufs[taken] = make_packet(--arrives);
	return taken;
}

static bool queue_connected(void *arg)
{
	assert_non_null(arg);
	return true;
}

static void queue_close(void *arg)
{
	assert_non_null(arg);
}

static const struct port_ops queue_ops = {
	.rx_burst = queue_rx_burst,
	.connected = queue_connected,
	.close = queue_close,
};

static int main_open(void *arg)
{
	assert_ptr_equal(arg, &ports[0]);
	return 0;
}

static int open_queue(void *arg, uint32_t number, uint32_t count, struct port *queue)
{
	assert_ptr_equal(arg, &ports[0]);
	assert_int_equal(number, 1);
	assert_int_equal(count, ENGINES);
	queue->ops = &queue_ops;
	queue->ops_arg = queue;
	return 0;
}

static int group_set_up(TEST_STATE)
{
	const struct runtime_config runtime = {.memory_bytes = 16 << 20};
	const struct frame send = {.psn = 1, .len = 64};

	if (runtime_start(&runtime) != 0)
		return -1;
	pool = rte_pktmbuf_pool_create("test", MBUFS, 0, 0, ROOM, 0);
	frame_len = frame_make(&send, frame);
	main_ops = queue_ops;
	main_ops.open_queue = open_queue;
	ports[0] = (struct port){
		.ops = &main_ops, .ops_arg = &ports[0], .pool = pool, .started = true};
	return pool ? port_open_queue(&ports[0], 1, ENGINES, &ports[1]) : -1;
}

static int group_tear_down(TEST_STATE)
{
	port_close(&ports[1]);
	port_destroy(&ports[1]);
	return 0;
}

TEST_GROUP(group_set_up, group_tear_down);

static int tear_down(TEST_STATE)
{
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
	return 0;
}

TEST_FIXTURE(NULL, tear_down);

static int set_loss(uint64_t per_million)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < ENGINES; i++)
		rc = lossy_port_set(&ports[i], i, per_million, 7);
	return rc;
}

/* Note which packets an engine receives in one burst. Returns how many. */
static uint16_t receive(uint32_t engine)
{
	struct rte_mbuf *mbufs[BURST];
	const uint16_t n = port_rx_burst(&ports[engine], mbufs, BURST);

	for (uint16_t i = 0; i < n; i++)
		arrived[engine][mbufs[i]->vlan_tci] = true;
	rte_pktmbuf_free_bulk(mbufs, n);
	return n;
}

/* Let packets arrive in the queue of an engine. Returns how many it receives. */
static uint32_t receive_all(uint32_t engine)
{
	uint32_t total = 0;

	memset(arrived[engine], 0, sizeof(arrived[engine]));
	arrives = PACKETS;
	while (arrives > 0)
		total += receive(engine);
	return total;
}

TEST(lossy_port_set__another_processs_port)
{
	assert_int_equal(set_loss(10000), -ENOTSUP);
	assert_int_equal(set_loss(0), 0);
	for (uint32_t engine = 0; engine < ENGINES; engine++)
		assert_int_equal(receive_all(engine), PACKETS);
	main_ops.open = main_open;
}

TEST(lossy_port_set__each_queue_loses)
{
	bool first[PACKETS];

	assert_int_equal(set_loss(LOSS_PPM_MAX), 0);
	for (uint32_t engine = 0; engine < ENGINES; engine++) {
		const uint32_t received = receive_all(engine);

		/* A fifth, by the seed: always the same ones. */
		assert_in_range(received, PACKETS * 7 / 10, PACKETS * 9 / 10);
		assert_non_null(ports[engine].impaired);
		assert_int_equal(ports[engine].impaired->of[IMPAIR_LOST], PACKETS - received);
	}
	/* Each engine has random numbers of its own. */
	assert_memory_not_equal(arrived[0], arrived[1], sizeof(arrived[0]));
	memcpy(first, arrived[1], sizeof(first));
	assert_int_equal(set_loss(LOSS_PPM_MAX), 0);
	receive_all(1);
	assert_memory_equal(arrived[1], first, sizeof(first));
	assert_int_equal(set_loss(0), 0);
	for (uint32_t engine = 0; engine < ENGINES; engine++)
		assert_int_equal(receive_all(engine), PACKETS);
}
