/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The limit of a software data path on a port: what two processes, a CPU each, get through it
 * without a protocol. The sender copies from a region into packets and computes the CRC in one
 * pass; the receiver checks it and then copies into a region. The port is made as the library makes
 * it.
 *
 *     bench_limit PORT            answers, until a client is done
 *     bench_limit -c PORT [-s S]  prints Gb/s of 4 KiB, million packets of 8 B a second, and the
 *                                 half round trip of an 8 B packet in us (p50, p99)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_byteorder.h>
#include <rte_cycles.h>
#include <rte_lcore.h>

#include "link/port.h"
#include "link/runtime.h"
#include "mem/place.h"
#include "wire/icrc.h"

#define BURST	     32
#define REGION_BYTES (512u * 1024)
#define HEADER_BYTES 64u
#define TRIPS	     100000
#define PORT_MTU     4200

/* In the first byte of a packet: what the receiver does with it. */
enum kind { KIND_STORE, KIND_ECHO, KIND_COUNT, KIND_END };

static struct port port;
static uint8_t region[REGION_BYTES] __rte_cache_aligned;
static uint8_t header[HEADER_BYTES];
static uint32_t offset;

static void require(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "bench_limit: %s failed\n", what);
	exit(1);
}

static void start(const char *text)
{
	struct runtime_config config = {.device_count = 0};

	require(port_prepare(&port, text, PORT_MTU) == 0, "port_prepare");
	config.memory_bytes = port_memory_bytes(&port);
	require(runtime_start(&config) == 0, "runtime_start");
	require(port_open(&port) == 0, "port_open");
	/* As engines do: the pool's stack of buffers is that of an lcore. */
	RTE_PER_LCORE(_lcore_id) = 0;
	while (!port_connected(&port)) {
		if (!port.started)
			port_start(&port);
		usleep(1000);
	}
	usleep(100000);
}

static uint32_t next_offset(uint32_t len)
{
	const uint32_t at = offset;

	offset = offset + 2 * len > REGION_BYTES ? 0 : offset + len;
	return at;
}

/* Make a packet of `len` bytes of the region, with header and CRC. */
static struct rte_mbuf *make(enum kind kind, uint32_t len)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(port.pool);
	uint8_t *at;
	uint32_t crc;

	if (!mbuf)
		return NULL;
	at = rte_pktmbuf_mtod(mbuf, uint8_t *);
	header[0] = (uint8_t)kind;
	crc = icrc_copy(0, at, header, HEADER_BYTES);
	crc = icrc_copy(crc, at + HEADER_BYTES, region + next_offset(len), len);
	icrc_store(crc, at + HEADER_BYTES + len);
	mbuf->data_len = (uint16_t)(HEADER_BYTES + len + 4);
	mbuf->pkt_len = mbuf->data_len;
	return mbuf;
}

/* Check a packet and store its payload; what is asked for. */
static enum kind take(const struct rte_mbuf *mbuf)
{
	const uint8_t *at = rte_pktmbuf_mtod(mbuf, const uint8_t *);
	const uint32_t len = mbuf->data_len - HEADER_BYTES - 4u;
	const uint32_t crc = icrc_update(icrc_update(0, at, HEADER_BYTES), at + HEADER_BYTES, len);

	require(icrc_load(at + HEADER_BYTES + len) == crc, "a checksum");
	place_strict(region + next_offset(len), at + HEADER_BYTES, len);
	return (enum kind)at[0];
}

static void send_all(struct rte_mbuf **mbufs, uint16_t n)
{
	uint16_t sent = 0;

	while (sent < n)
		sent = (uint16_t)(sent + port_tx_burst(&port, mbufs + sent, (uint16_t)(n - sent)));
}

static void send_one(enum kind kind, uint64_t value)
{
	struct rte_mbuf *mbuf;

	memcpy(header + 8, &value, sizeof(value));
	mbuf = make(kind, 8);
	require(mbuf != NULL, "a buffer");
	send_all(&mbuf, 1);
}

static uint64_t receive_one(void)
{
	struct rte_mbuf *mbuf;
	uint64_t value;

	while (port_rx_burst(&port, &mbuf, 1) == 0)
		;
	take(mbuf);
	memcpy(&value, rte_pktmbuf_mtod_offset(mbuf, uint8_t *, 8), sizeof(value));
	rte_pktmbuf_free(mbuf);
	return value;
}

static void serve(void)
{
	struct rte_mbuf *mbufs[BURST];
	uint64_t count = 0;
	bool ended = false;

	while (!ended) {
		const uint16_t n = port_rx_burst(&port, mbufs, BURST);

		for (uint16_t i = 0; i < n; i++) {
			switch (take(mbufs[i])) {
			case KIND_STORE:
				count++;
				break;
			case KIND_ECHO:
				send_one(KIND_ECHO, 0);
				break;
			case KIND_COUNT:
				send_one(KIND_COUNT, count);
				count = 0;
				break;
			default:
				ended = true;
			}
		}
		if (n > 0)
			rte_pktmbuf_free_bulk(mbufs, n);
	}
}

/* Packets a second that arrive. */
static double stream(uint32_t len, double seconds)
{
	const uint64_t hz = rte_get_tsc_hz(), from = rte_rdtsc();
	const uint64_t until = from + (uint64_t)(seconds * (double)hz);
	uint64_t arrived;

	while (rte_rdtsc() < until) {
		struct rte_mbuf *mbufs[BURST];
		uint16_t n = 0;

		while (n < BURST && (mbufs[n] = make(KIND_STORE, len)) != NULL)
			n++;
		send_all(mbufs, n);
	}
	send_one(KIND_COUNT, 0);
	arrived = receive_one();
	return (double)arrived * (double)hz / (double)(rte_rdtsc() - from);
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Half round trips in us: the median, and the 99th of 100. */
static void ping_pong(double *p50, double *p99)
{
	static uint64_t ticks[TRIPS];
	const double us = 1e6 / 2 / (double)rte_get_tsc_hz();

	for (int i = 0; i < TRIPS; i++) {
		const uint64_t from = rte_rdtsc();

		send_one(KIND_ECHO, 0);
		receive_one();
		ticks[i] = rte_rdtsc() - from;
	}
	qsort(ticks, TRIPS, sizeof(ticks[0]), compare);
	*p50 = (double)ticks[TRIPS / 2] * us;
	*p99 = (double)ticks[TRIPS / 100 * 99] * us;
}

int main(int argc, char **argv)
{
	double seconds = 2, gbits, mpps, p50, p99;
	bool client = false;
	int option;

	while ((option = getopt(argc, argv, "cs:")) != -1) {
		if (option == 'c')
			client = true;
		else if (option == 's')
			seconds = strtod(optarg, NULL);
		else
			return 2;
	}
	if (optind + 1 != argc)
		return 2;
	memset(region, 1, sizeof(region));
	start(argv[optind]);
	if (!client) {
		serve();
		return 0;
	}
	gbits = stream(4096, seconds) * 4096 * 8 / 1e9;
	mpps = stream(8, seconds) / 1e6;
	ping_pong(&p50, &p99);
	send_one(KIND_END, 0);
	printf("%.2f %.2f %.3f %.3f\n", gbits, mpps, p50, p99);
	/* The server needs a moment to find the last packet. */
	usleep(50000);
	return 0;
}
