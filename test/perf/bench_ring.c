/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The limit of a software data path by hand-over: two processes, on a CPU each, and packets in
 * shared memory. The sender copies from a region into a packet, computes the CRC in the same pass,
 * and passes the packet's number through a ring. The receiver checks the CRC and copies into a
 * region.
 *
 *     bench_ring [OPTION...] CPU_A CPU_B   prints Gb/s of 4 KiB, million packets of 8 B a second,
 *                                          and the half round trip of an 8 B packet in us (p50,
 *                                          p99)
 *     bench_ring [OPTION...] CPU           no ring: one loop copies from region to region, with
 *                                          the CRC, and prints Gb/s
 *
 *     -s S      seconds of a stream (1)
 *     -l LIST   prints Gb/s of packets of each of these lengths (64,4096) instead; with a ring
 *     -r MIB    the size of a region: more than the caches hold shows what memory costs
 *     -n        without the CRC: as two programs of a uroced that trust each other
 *     -b N      N buffers in turn, a power of two up to 1,024; else 128, the last one back first
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rte_bitops.h>
#include <rte_common.h>

#include "packet_work.h"

#define WORDS	     64u
#define WORDS_MAX    1024u
#define BUFFERS	     (2 * WORDS)
#define BUFFER_BYTES RTE_ALIGN_CEIL(WORK_PACKET_MAX, 128u)
#define REGION_BYTES (512u * 1024)
#define TRIPS	     100000

/* One direction. The sender may reuse a buffer when the receiver's index has passed it. */
struct way {
	_Alignas(128) atomic_uint sent;
	_Alignas(128) atomic_uint taken;
	_Alignas(128) uint32_t bytes[WORDS_MAX];
	uint32_t buffer[WORDS_MAX];
	_Alignas(128) uint8_t buffers[WORDS_MAX][BUFFER_BYTES];
};

struct side {
	struct way *out, *in;
	struct work work;
	uint32_t words;		    /* that are used, a power of two */
	bool in_turn;		    /* each word has a buffer of its own */
	uint32_t sent, back, taken; /* our copies of the indices */
	uint32_t free[BUFFERS];	    /* a stack: the buffer that was returned last is in the cache */
	uint32_t free_count;
};

static double now_s(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void pin(const char *cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(strtoul(cpu, NULL, 10), &set);
	work_require(sched_setaffinity(0, sizeof(set), &set) == 0, "bench_ring: a CPU");
}

static void side_init(struct side *side, struct way *out, struct way *in)
{
	side->out = out;
	side->in = in;
	for (uint32_t i = 0; i < BUFFERS; i++)
		side->free[side->free_count++] = i;
}

/* Take buffers back until there is a word. */
static void side_make_room(struct side *side)
{
	const struct way *way = side->out;

	while (side->sent - side->back == side->words) {
		const uint32_t taken = atomic_load_explicit(&way->taken, memory_order_acquire);

		if (side->in_turn)
			side->back = taken;
		for (; side->back != taken; side->back++)
			side->free[side->free_count++] =
				way->buffer[side->back & (side->words - 1)];
	}
}

static void side_send(struct side *side, enum work_kind kind, uint64_t value, uint32_t len)
{
	struct way *way = side->out;
	uint32_t buffer, slot;

	side_make_room(side);
	slot = side->sent++ & (side->words - 1);
	buffer = side->in_turn ? slot : side->free[--side->free_count];
	way->bytes[slot] = work_make(&side->work, way->buffers[buffer], kind, value, len);
	way->buffer[slot] = buffer;
	atomic_store_explicit(&way->sent, side->sent, memory_order_release);
}

static enum work_kind side_receive(struct side *side, uint64_t *value)
{
	struct way *way = side->in;
	const uint32_t slot = side->taken & (side->words - 1);
	const uint8_t *at;
	enum work_kind kind;

	while (atomic_load_explicit(&way->sent, memory_order_acquire) == side->taken)
		;
	at = way->buffers[way->buffer[slot]];
	*value = work_value(at);
	kind = work_take(&side->work, at, way->bytes[slot]);
	atomic_store_explicit(&way->taken, ++side->taken, memory_order_release);
	return kind;
}

static void serve(struct side *side)
{
	uint64_t count = 0, value;

	for (;;) {
		switch (side_receive(side, &value)) {
		case WORK_STORE:
			count++;
			break;
		case WORK_ECHO:
			side_send(side, WORK_ECHO, value, 8);
			break;
		case WORK_COUNT:
			side_send(side, WORK_COUNT, count, 8);
			count = 0;
			break;
		default:
			return;
		}
	}
}

/* Return the rate of packets that arrive, in packets a second. */
static double stream(struct side *side, uint32_t len, double seconds)
{
	const double from = now_s();
	uint64_t arrived;

	while (now_s() - from < seconds)
		for (int i = 0; i < 64; i++)
			side_send(side, WORK_STORE, 0, len);
	side_send(side, WORK_COUNT, 0, 8);
	side_receive(side, &arrived);
	return (double)arrived / (now_s() - from);
}

static void ping_pong(struct side *side, double *p50, double *p99)
{
	static uint64_t ns[TRIPS];
	uint64_t value;

	for (int i = 0; i < TRIPS; i++) {
		const uint64_t from = now_ns();

		side_send(side, WORK_ECHO, 0, 8);
		side_receive(side, &value);
		ns[i] = now_ns() - from;
	}
	work_quantiles(ns, TRIPS, 1e9, p50, p99);
}

static double gbits_of(struct side *side, uint32_t len, double seconds)
{
	return stream(side, len, seconds) * len * 8 / 1e9;
}

static void measure(struct side *side, double seconds)
{
	const double gbits = gbits_of(side, 4096, seconds), mpps = stream(side, 8, seconds) / 1e6;
	double p50, p99;

	ping_pong(side, &p50, &p99);
	printf("%.2f %.2f %.3f %.3f\n", gbits, mpps, p50, p99);
}

static void measure_lengths(struct side *side, const char *lengths, double seconds)
{
	for (uint32_t len; (len = work_next_length(&lengths)) > 0;)
		printf("%.3f ", gbits_of(side, len, seconds));
	printf("\n");
}

static void run_pair(struct side *side, char **cpus, size_t region_bytes, const char *lengths,
		     double seconds)
{
	struct way *ways = mmap(NULL, 2 * sizeof(*ways), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	const bool no_crc = side->work.no_crc;
	uint64_t value;
	pid_t child;

	work_require(ways != MAP_FAILED, "bench_ring: shared memory");
	child = fork();
	work_require(child >= 0, "bench_ring: fork");
	if (child == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(cpus[child == 0]);
	work_init(&side->work, region_bytes);
	side->work.no_crc = no_crc;
	side_init(side, &ways[child == 0], &ways[child != 0]);
	if (child == 0) {
		serve(side);
		_exit(0);
	}
	/* When the other side answers, it has its region. */
	side_send(side, WORK_ECHO, 0, 8);
	side_receive(side, &value);
	if (lengths)
		measure_lengths(side, lengths, seconds);
	else
		measure(side, seconds);
	side_send(side, WORK_END, 0, 8);
	waitpid(child, NULL, 0);
}

/* Copy on one CPU, a packet's length at a time, from all of one region to all of another. */
static void run_loop(struct work *from, const char *cpu, size_t region_bytes, double seconds)
{
	const bool no_crc = from->no_crc;
	double start, bytes = 0;
	struct work to;

	pin(cpu);
	work_init(from, region_bytes);
	work_init(&to, region_bytes);
	start = now_s();
	while (now_s() - start < seconds) {
		for (int i = 0; i < 256; i++) {
			uint8_t *const at = work_next(&to, 4096);

			if (no_crc)
				place_strict(at, work_next(from, 4096), 4096, 4096);
			else
				icrc_copy(0, at, work_next(from, 4096), 4096);
		}
		bytes += 256 * 4096.0;
	}
	printf("%.2f\n", bytes * 8 / 1e9 / (now_s() - start));
}

int main(int argc, char **argv)
{
	static struct side side = {.words = WORDS};
	const char *lengths = NULL;
	size_t region_bytes = REGION_BYTES;
	double seconds = 1;
	int option;

	while ((option = getopt(argc, argv, "l:s:r:nb:")) != -1) {
		if (option == 'l')
			lengths = optarg;
		else if (option == 's')
			seconds = strtod(optarg, NULL);
		else if (option == 'r')
			region_bytes = strtoul(optarg, NULL, 10) << 20;
		else if (option == 'n')
			side.work.no_crc = true;
		else if (option == 'b')
			side.words = (uint32_t)strtoul(optarg, NULL, 10);
		else
			return 2;
		if (option == 'b')
			side.in_turn = true;
	}
	if (!rte_is_power_of_2(side.words) || side.words > WORDS_MAX || region_bytes == 0 ||
	    argc - optind < 1 || argc - optind > 2)
		return 2;
	if (argc - optind == 1)
		run_loop(&side.work, argv[optind], region_bytes, seconds);
	else
		run_pair(&side, argv + optind, region_bytes, lengths, seconds);
	return 0;
}
