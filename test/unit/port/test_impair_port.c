/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/impair_port.c, on a port that is a queue in each direction. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "eal/runtime.h"
#include "frames.h"
#include "port/impair.h"
#include "port/port.h"
#include "test.h"

#define MBUFS 512
#define MANY  64

static struct rte_mempool *pool;
static struct port port;
static uint8_t frame[FRAME_MAX];

/* The port below. */
static struct {
	struct rte_mbuf *in[MBUFS], *out[MBUFS];
	uint16_t in_count, out_count;
	uint16_t room; /* that it has for packets */
	bool opened, closed, destroyed, armed;
} below;

static int below_open(void *arg)
{
	assert_ptr_equal(arg, &below);
	below.opened = port.started = true;
	return 0;
}

static uint16_t below_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	assert_ptr_equal(arg, &below);
	n = RTE_MIN(n, below.in_count);
	memcpy(mbufs, below.in, n * sizeof(mbufs[0]));
	below.in_count = (uint16_t)(below.in_count - n);
	memmove(below.in, below.in + n, below.in_count * sizeof(mbufs[0]));
	return n;
}

static uint16_t below_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t n)
{
	assert_ptr_equal(arg, &below);
	/* tx_burst of an attached process needs at least one packet. */
	assert_int_not_equal(n, 0);
	n = RTE_MIN(n, below.room);
	memcpy(below.out + below.out_count, mbufs, n * sizeof(mbufs[0]));
	below.out_count = (uint16_t)(below.out_count + n);
	below.room = (uint16_t)(below.room - n);
	return n;
}

static bool below_has_room(void *arg)
{
	(void)arg;
	return true;
}

static uint8_t *below_place(void *arg, uint32_t len)
{
	(void)arg, (void)len;
	return frame;
}

static bool below_arm(void *arg)
{
	assert_ptr_equal(arg, &below);
	below.armed = true;
	return false;
}

static void below_close(void *arg)
{
	assert_ptr_equal(arg, &below);
	below.closed = true;
}

static void below_destroy(void *arg)
{
	assert_ptr_equal(arg, &below);
	below.destroyed = true;
}

static const struct port_ops below_ops = {
	.open = below_open,
	.rx_burst = below_rx_burst,
	.tx_burst = below_tx_burst,
	.has_room = below_has_room,
	.place = below_place,
	.arm = below_arm,
	.close = below_close,
	.destroy = below_destroy,
};

static int group_set_up(TEST_STATE)
{
	const struct runtime_config runtime = {.memory_bytes = 16 << 20};

	if (runtime_start(&runtime) != 0)
		return -1;
	pool = rte_pktmbuf_pool_create("test", MBUFS, 0, 0, 1024, 0);
	return pool ? 0 : -1;
}

TEST_GROUP(group_set_up, NULL);

static void begin(const char *args)
{
	memset(&port, 0, sizeof(port));
	memset(&below, 0, sizeof(below));
	below.room = MBUFS;
	port_init(&port, 0);
	port.pool = pool;
	port.ops = &below_ops;
	port.ops_arg = &below;
	assert_int_equal(impair_prepare(&port, args), 0);
	assert_int_equal(port_open(&port), 0);
}

static void end(void)
{
	port_close(&port);
	port_destroy(&port);
	assert_true(below.opened && below.closed && below.destroyed);
	rte_pktmbuf_free_bulk(below.in, below.in_count);
	rte_pktmbuf_free_bulk(below.out, below.out_count);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static struct rte_mbuf *packet(void)
{
	const struct frame send = {.psn = 1, .len = 64};
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
	const uint32_t len = frame_make(&send, frame);

	assert_non_null(mbuf);
	memcpy(rte_pktmbuf_append(mbuf, (uint16_t)len), frame, len);
	return mbuf;
}

static uint16_t transmit(uint16_t n)
{
	struct rte_mbuf *mbufs[MANY];
	uint16_t sent;

	for (uint16_t i = 0; i < n; i++)
		mbufs[i] = packet();
	sent = port_tx_burst(&port, mbufs, n);
	rte_pktmbuf_free_bulk(mbufs + sent, n - sent);
	return sent;
}

static uint16_t receive(void)
{
	struct rte_mbuf *mbufs[MANY];
	const uint16_t got = port_rx_burst(&port, mbufs, MANY);

	rte_pktmbuf_free_bulk(mbufs, got);
	return got;
}

TEST(impair_prepare__without_arguments_leaves_the_port)
{
	begin("");
	assert_ptr_equal(port.ops, &below_ops);
	assert_null(port.impaired);
	assert_int_equal(port_due_ns(&port), UINT64_MAX);
	end();
}

TEST(impair_prepare__refuses_wrong_arguments)
{
	memset(&port, 0, sizeof(port));
	port.ops = &below_ops;
	assert_int_equal(impair_prepare(&port, "loss=2"), -EINVAL);
	assert_ptr_equal(port.ops, &below_ops);
}

/* Packets that are built in the port's own buffers would pass the damage. */
TEST(impair_prepare__hides_the_buffers_of_the_port)
{
	begin("loss=0.5");
	assert_null(port.ops->place);
	assert_null(port.ops->has_room);
	assert_null(port.ops->offer);
	assert_null(port.ops->disarm);
	assert_false(port_arm(&port));
	assert_true(below.armed);
	end();
}

TEST(impair_tx_burst__loses_and_counts)
{
	begin("loss=1,dir=tx");
	assert_int_equal(transmit(10), 10);
	assert_int_equal(below.out_count, 0);
	assert_int_equal(port.impaired->of[IMPAIR_LOST], 10);
	below.in[below.in_count++] = packet();
	assert_int_equal(receive(), 1);
	end();
}

TEST(impair_rx_burst__loses_and_counts)
{
	begin("loss=1,dir=rx");
	for (int i = 0; i < 10; i++)
		below.in[below.in_count++] = packet();
	assert_int_equal(receive(), 0);
	assert_int_equal(port.impaired->of[IMPAIR_LOST], 10);
	assert_int_equal(transmit(10), 10);
	assert_int_equal(below.out_count, 10);
	end();
}

/* A full burst returns no packet, and more packets wait below. */
TEST(impair_rx_burst__tells_of_packets_that_wait_below)
{
	static const char *const all[] = {"delay=1s", "loss=1"};

	for (size_t i = 0; i < RTE_DIM(all); i++) {
		begin(all[i]);
		for (int k = 0; k < MANY + 3; k++)
			below.in[below.in_count++] = packet();
		assert_int_equal(receive(), 0);
		assert_int_equal(port.rx_kept, MANY);
		assert_true(port.rx_cut);
		assert_int_equal(receive(), 0);
		assert_int_equal(port.rx_kept, 3);
		assert_false(port.rx_cut);
		assert_int_equal(receive(), 0);
		assert_int_equal(port.rx_kept, 0);
		end();
	}
}

/* Both directions have random numbers of their own. */
TEST(impair_prepare__damages_both_directions_differently)
{
	uint16_t sent = 0, received = 0;
	uint64_t rx = 0, tx = 0;

	begin("loss=0.5");
	for (int i = 0; i < 40; i++) {
		transmit(1);
		tx = tx << 1 | (below.out_count > sent);
		sent = below.out_count;
		below.in[below.in_count++] = packet();
		received = receive();
		rx = rx << 1 | received;
	}
	assert_true(rx != tx && rx != 0 && tx != 0);
	end();
}

TEST(impair_tx_burst__passes_the_pressure_on)
{
	begin("ce=1");
	below.room = 3;
	assert_int_equal(transmit(5), 5);
	assert_int_equal(below.out_count, 3);
	/* Two packets wait here, and no more are taken; the port asks to be called soon. */
	assert_int_equal(transmit(5), 0);
	assert_in_range(port_due_ns(&port), 1, 100000);
	below.room = MBUFS;
	assert_int_equal(receive(), 0);
	assert_int_equal(below.out_count, 5);
	assert_int_equal(port_due_ns(&port), UINT64_MAX);
	assert_int_equal(transmit(5), 5);
	assert_int_equal(below.out_count, 10);
	end();
}

/* Nothing wakes the engine when a held packet is due, so the port tells the time. */
TEST(impair_due_ns__tells_when_a_held_packet_is_due)
{
	begin("delay=20ms");
	assert_int_equal(port_due_ns(&port), UINT64_MAX);
	assert_int_equal(transmit(1), 1);
	below.in[below.in_count++] = packet();
	assert_int_equal(receive(), 0);
	assert_in_range(port_due_ns(&port), 0, 20000000);
	usleep(20000);
	assert_int_equal(port_due_ns(&port), 0);
	assert_int_equal(receive(), 1);
	assert_int_equal(below.out_count, 1);
	assert_int_equal(port_due_ns(&port), UINT64_MAX);
	end();
}

TEST(impair_prepare__makes_room_for_held_packets)
{
	memset(&port, 0, sizeof(port));
	port.ops = &below_ops;
	port.ops_arg = &below;
	port.mbufs = 100;
	assert_int_equal(impair_prepare(&port, "delay=1us,limit=50"), 0);
	assert_int_equal(port.mbufs, 200);
	port_destroy(&port);
}

static struct rte_mempool *store;

static int make_store(struct port *of)
{
	assert_in_range(of->mbufs, 2 * 50, MBUFS);
	if (!store)
		store = rte_pktmbuf_pool_create("store", MBUFS, 0, 0, 1024, 0);
	of->pool = store;
	return store ? 0 : -ENOMEM;
}

/* A process has few of an owner's buffers: packets must not wait in these. */
TEST(impair_prepare__keeps_held_packets_out_of_anothers_buffers)
{
	struct rte_mbuf *mbuf;

	memset(&port, 0, sizeof(port));
	memset(&below, 0, sizeof(below));
	below.room = MBUFS;
	port_init(&port, 0);
	port.pool = pool;
	port.make_pool = make_store;
	port.ops = &below_ops;
	port.ops_arg = &below;
	assert_int_equal(impair_prepare(&port, "delay=20ms,limit=50"), 0);
	assert_ptr_equal(port.pool, pool);
	assert_int_equal(port_open(&port), 0);
	mbuf = packet();
	mbuf->port = UINT16_MAX - 3;
	port_set_local_qpn(mbuf, 77);
	assert_int_equal(port_tx_burst(&port, &mbuf, 1), 1);
	assert_int_equal(transmit(9), 9);
	for (int i = 0; i < 10; i++)
		below.in[below.in_count++] = packet();
	assert_int_equal(receive(), 0);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
	usleep(20000);
	assert_int_equal(receive(), 10);
	assert_int_equal(below.out_count, 10);
	assert_int_equal(rte_mempool_in_use_count(store), 0);
	/* The port below gets its own buffers, and all that was said of a packet. */
	for (int i = 0; i < 10; i++)
		assert_ptr_equal(below.out[i]->pool, pool);
	assert_int_equal(below.out[0]->port, UINT16_MAX - 3);
	assert_int_equal(port_local_qpn(below.out[0]), 77);
	assert_memory_equal(rte_pktmbuf_mtod(below.out[0], uint8_t *), frame,
			    below.out[0]->data_len);
	end();
}

/* The owner gives buffers only when it runs: packets that are due wait until then. */
TEST(impair_tx_burst__sends_nothing_while_the_port_has_no_buffers)
{
	struct rte_mbuf *all[MBUFS];
	unsigned int count;

	memset(&port, 0, sizeof(port));
	memset(&below, 0, sizeof(below));
	below.room = MBUFS;
	port_init(&port, 0);
	port.pool = pool;
	port.make_pool = make_store;
	port.ops = &below_ops;
	port.ops_arg = &below;
	assert_int_equal(impair_prepare(&port, "delay=1ms,limit=50"), 0);
	assert_int_equal(port_open(&port), 0);
	assert_int_equal(transmit(5), 5);
	count = rte_mempool_avail_count(pool);
	assert_int_equal(rte_pktmbuf_alloc_bulk(pool, all, count), 0);
	usleep(2000);
	assert_int_equal(receive(), 0);
	assert_int_equal(below.out_count, 0);
	rte_pktmbuf_free_bulk(all, count);
	assert_int_equal(receive(), 0);
	assert_int_equal(below.out_count, 5);
	assert_int_equal(rte_mempool_in_use_count(store), 0);
	end();
}

/* The last acknowledgement of a program that ends must arrive. */
TEST(impair_close__sends_what_is_held)
{
	begin("delay=1s");
	assert_int_equal(transmit(4), 4);
	assert_int_equal(below.out_count, 0);
	port_close(&port);
	assert_int_equal(below.out_count, 4);
	end();
}

/* A packet without an ICRC must not arrive with a wrong bit. */
TEST(impair_rx_burst__drops_what_it_cannot_corrupt)
{
	begin("corrupt=1");
	port.spares_icrc = true;
	below.in[below.in_count++] = packet();
	below.in[0]->port = PORT_HANDED_OVER;
	assert_int_equal(receive(), 0);
	below.in[below.in_count++] = packet();
	assert_int_equal(receive(), 1);
	assert_int_equal(port.impaired->of[IMPAIR_CORRUPTED], 2);
	end();
}
