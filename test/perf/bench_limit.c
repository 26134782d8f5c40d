/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The limit of a software data path on a port: the rates of two processes, on a CPU each, without a
 * protocol. The sender copies from a region into packets and computes the CRC in one pass; the
 * receiver checks it and then copies into a region. The port is opened as the library opens it.
 *
 *     bench_limit PORT            answers, until a client is done
 *     bench_limit -c PORT [-s S]  prints Gb/s of 4 KiB, million packets of 8 B a second, and the
 *                                 half round trip of an 8 B packet in us (p50, p99)
 *     -l LIST                     prints Gb/s of packets of each of these lengths (64,4096)
 *                                 instead
 *     -r MIB                      the size of the region, on either side: more than the caches
 *                                 hold shows what memory costs
 *     -n                          PORT is a kernel interface, used as with --netdev
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_byteorder.h>
#include <rte_cycles.h>
#include <rte_lcore.h>

#include "eal/runtime.h"
#include "packet_work.h"
#include "port/interface.h"
#include "port/port.h"

#define BURST	       32
#define REGION_BYTES   (512u * 1024)
#define TRIPS	       100000
#define PORT_MTU       4200
#define COUNT_EVERY    256 /* packets between two questions how many have arrived */
#define COUNTS_AHEAD   2 /* questions in flight: a port may lose packets that it has no room for */
#define ANSWER_SECONDS 0.05
#define STUCK_SECONDS  5
#define LOST_MAX       100
#define EMPTY_LOOKS    100000 /* empty polls before the server checks that the client still exists */

static struct port port;
static struct work work;

static void start(const char *text, bool netdev)
{
	struct runtime_config config = {.device_count = 0};

	if (netdev)
		work_use_udp(&work);
	work_require((netdev ? interface_prepare(&port, text, PORT_MTU)
			     : port_prepare(&port, text, PORT_MTU)) == 0,
		     "bench_limit: the port");
	config.memory_bytes = port_memory_bytes(&port);
	work_require(runtime_start(&config) == 0, "bench_limit: runtime_start");
	work_require(port_open(&port) == 0, "bench_limit: port_open");
	/*
	 * Act as an lcore, as engines do, because the pool keeps a stack of buffers for each lcore.
	 */
	RTE_PER_LCORE(_lcore_id) = 0;
	while (!port_connected(&port)) {
		if (port_has_conn(&port))
			port_conn_run(&port);
		usleep(1000);
	}
	usleep(100000);
}

/* Build packets directly in the buffers that the port offers (port_ops.place). Return how many. */
static uint16_t make_in_place(uint16_t n, uint32_t len)
{
	const struct port_ops *ops = port.ops;
	uint16_t made = 0;
	uint8_t *place;

	while (made < n &&
	       (place = ops->place(port.ops_arg, WORK_HEADER_BYTES + len + 4)) != NULL) {
		work.past_caches = port.place_way == STORE_PAST;
		ops->placed(port.ops_arg, work_make(&work, place, WORK_STORE, 0, len));
		made++;
	}
	work.past_caches = false;
	ops->push(port.ops_arg);
	return made;
}

static struct rte_mbuf *make(enum work_kind kind, uint64_t value, uint32_t len)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(port.pool);

	if (!mbuf)
		return NULL;
	mbuf->data_len =
		(uint16_t)work_make(&work, rte_pktmbuf_mtod(mbuf, uint8_t *), kind, value, len);
	mbuf->pkt_len = mbuf->data_len;
	return mbuf;
}

static void send_all(struct rte_mbuf **mbufs, uint16_t n)
{
	uint16_t sent = port_tx_burst(&port, mbufs, n);
	uint64_t until;

	if (sent == n)
		return;
	until = rte_rdtsc() + (uint64_t)(STUCK_SECONDS * (double)rte_get_tsc_hz());
	while (sent < n) {
		sent = (uint16_t)(sent + port_tx_burst(&port, mbufs + sent, (uint16_t)(n - sent)));
		work_require(rte_rdtsc() < until, "bench_limit: the port takes nothing more");
	}
}

static void send_one(enum work_kind kind, uint64_t value)
{
	struct rte_mbuf *mbuf = make(kind, value, 8);

	work_require(mbuf != NULL, "bench_limit: a buffer");
	send_all(&mbuf, 1);
}

static uint16_t make_in_buffers(uint32_t len)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t n = 0;

	while (n < BURST && (mbufs[n] = make(WORK_STORE, 0, len)) != NULL)
		n++;
	send_all(mbufs, n);
	return n;
}

static bool is_ours(const struct rte_mbuf *mbuf)
{
	return work_is_ours(&work, rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len);
}

static enum work_kind take(const struct rte_mbuf *mbuf, uint64_t *value)
{
	const uint8_t *at = rte_pktmbuf_mtod(mbuf, const uint8_t *);

	*value = work_value(at);
	return work_take(&work, at, mbuf->data_len);
}

/* Take the received answers. Return how many there were, and the value of the last one in
 * `value`. */
static unsigned int answers(uint64_t *value)
{
	struct rte_mbuf *mbufs[BURST];
	const uint16_t n = port_rx_burst(&port, mbufs, BURST);
	unsigned int ours = 0;

	for (uint16_t i = 0; i < n; i++) {
		if (is_ours(mbufs[i])) {
			take(mbufs[i], value);
			ours++;
		}
	}
	if (n > 0)
		rte_pktmbuf_free_bulk(mbufs, n);
	return ours;
}

/*
 * Answer each question with the number of packets stored since the start. The client announces its
 * end and leaves. A server that had no CPU at that time finds the connection closed, and the last
 * packet gone.
 */
static void serve(void)
{
	struct rte_mbuf *mbufs[BURST];
	uint64_t count = 0, value;
	unsigned int empty = 0;
	bool ended = false;

	while (!ended) {
		const uint16_t n = port_rx_burst(&port, mbufs, BURST);

		empty = n > 0 ? 0 : empty + 1;
		if (empty == EMPTY_LOOKS) {
			if (port_has_conn(&port))
				port_conn_run(&port);
			ended = !port_connected(&port);
			empty = 0;
		}
		for (uint16_t i = 0; i < n; i++) {
			if (!is_ours(mbufs[i]))
				continue;
			switch (take(mbufs[i], &value)) {
			case WORK_STORE:
				count++;
				break;
			case WORK_ECHO:
				send_one(WORK_ECHO, value);
				break;
			case WORK_COUNT:
				send_one(WORK_COUNT, count);
				break;
			default:
				ended = true;
			}
		}
		if (n > 0)
			rte_pktmbuf_free_bulk(mbufs, n);
	}
}

/* Wait until at most `ahead` questions have no answer. After a time without an answer, take all
 * open ones for lost. */
static void await(unsigned int *open, unsigned int ahead, uint64_t *arrived)
{
	const uint64_t until = rte_rdtsc() + (uint64_t)(ANSWER_SECONDS * (double)rte_get_tsc_hz());

	while (*open > ahead) {
		const unsigned int came = answers(arrived);

		*open -= came < *open ? came : *open;
		if (rte_rdtsc() > until)
			*open = 0;
	}
}

/* Return the rate of packets that arrive, in packets a second. */
static double stream(uint32_t len, double seconds)
{
	const double hz = (double)rte_get_tsc_hz();
	uint64_t before = 0, arrived = 0, from, until;
	unsigned int open = 1;

	send_one(WORK_COUNT, 0);
	await(&open, 0, &before);
	from = rte_rdtsc();
	until = from + (uint64_t)(seconds * hz);
	for (unsigned int sent = 0; rte_rdtsc() < until;) {
		sent += port.ops->place ? make_in_place(BURST, len) : make_in_buffers(len);
		if (sent < COUNT_EVERY)
			continue;
		sent = 0;
		send_one(WORK_COUNT, 0);
		open++;
		await(&open, COUNTS_AHEAD, &arrived);
	}
	send_one(WORK_COUNT, 0);
	open++;
	await(&open, 0, &arrived);
	return (double)(arrived - before) * hz / (double)(rte_rdtsc() - from);
}

/* Return true if the echo arrived. A port may lose it. */
static bool trip(uint64_t number)
{
	const uint64_t until = rte_rdtsc() + (uint64_t)(ANSWER_SECONDS * (double)rte_get_tsc_hz());
	uint64_t value = UINT64_MAX;

	send_one(WORK_ECHO, number);
	while (answers(&value) == 0 || value != number) {
		if (rte_rdtsc() > until)
			return false;
	}
	return true;
}

static void ping_pong(double *p50, double *p99)
{
	static uint64_t ticks[TRIPS];
	unsigned int lost = 0;

	for (uint64_t i = 0; i < TRIPS; i++) {
		const uint64_t from = rte_rdtsc();

		if (!trip(i))
			work_require(++lost < LOST_MAX, "bench_limit: nobody answers");
		ticks[i] = rte_rdtsc() - from;
	}
	work_quantiles(ticks, TRIPS, (double)rte_get_tsc_hz(), p50, p99);
}

static double gbits_of(uint32_t len, double seconds)
{
	return stream(len, seconds) * len * 8 / 1e9;
}

static void measure(double seconds)
{
	const double gbits = gbits_of(4096, seconds), mpps = stream(8, seconds) / 1e6;
	double p50, p99;

	ping_pong(&p50, &p99);
	printf("%.2f %.2f %.3f %.3f\n", gbits, mpps, p50, p99);
}

static void measure_lengths(const char *lengths, double seconds)
{
	for (uint32_t len; (len = work_next_length(&lengths)) > 0;)
		printf("%.3f ", gbits_of(len, seconds));
	printf("\n");
}

int main(int argc, char **argv)
{
	const char *lengths = NULL;
	size_t region_bytes = REGION_BYTES;
	bool client = false, netdev = false;
	double seconds = 2;
	int option;

	while ((option = getopt(argc, argv, "cnl:s:r:")) != -1) {
		if (option == 'c')
			client = true;
		else if (option == 'n')
			netdev = true;
		else if (option == 'l')
			lengths = optarg;
		else if (option == 's')
			seconds = strtod(optarg, NULL);
		else if (option == 'r')
			region_bytes = strtoul(optarg, NULL, 10) << 20;
		else
			return 2;
	}
	if (optind + 1 != argc || region_bytes == 0)
		return 2;
	work_init(&work, region_bytes);
	start(argv[optind], netdev);
	if (!client) {
		serve();
		return 0;
	}
	if (lengths)
		measure_lengths(lengths, seconds);
	else
		measure(seconds);
	send_one(WORK_END, 0);
	/* Give the server a moment to receive the last packet. */
	usleep(50000);
	return 0;
}
