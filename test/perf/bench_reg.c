/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of registering memory, by kind of page and size: a row for each size, in microseconds,
 * with the cost of the first access to each page. The program uses verbs only, and runs on any
 * device:
 *
 *     uroce-run --port net_null0 --ip 10.0.0.1/24 -- bench_reg [LARGEST_MIB]
 *
 * Memory that this machine does not have (above all huge pages) is left out, and a line says so.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <infiniband/verbs.h>

#define MIB	((size_t)1 << 20)
#define REPEATS 15 /* odd, so that the median is one of the values */
/* In a virtual machine the first access to memory may also fault on the host: take the lowest
 * value. */
#define FRESH_REPEATS 3

#ifndef MAP_HUGE_2MB
#define MAP_HUGE_2MB (21 << 26)
#define MAP_HUGE_1GB (30 << 26)
#endif

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static const struct kind {
	const char *name;
	size_t page;
	int flags;
} KINDS[] = {
	{"4 KiB", 4096, 0},
	{"2 MiB", 2 * MIB, MAP_HUGETLB | MAP_HUGE_2MB},
	{"1 GiB", 1024 * MIB, MAP_HUGETLB | MAP_HUGE_1GB},
};

static const size_t SIZES_MIB[] = {1, 8, 64, 512, 1024, 4096, 8192};

static struct ibv_pd *pd;

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

static void fail(const char *what)
{
	fprintf(stderr, "bench_reg: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *map(const struct kind *kind, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | kind->flags, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	/* Transparent huge pages would be neither kind: switch them off. */
	if (kind->flags == 0)
		madvise(memory, bytes, MADV_NOHUGEPAGE);
	return memory;
}

/* Return the microseconds of registration, or of deregistration. */
struct cost {
	double on;
	double off;
};

static struct cost once(void *memory, size_t bytes, unsigned int access)
{
	const uint64_t start = now_ns();
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, bytes, (int)access);
	const uint64_t middle = now_ns();
	uint64_t end;

	if (!mr)
		fail("ibv_reg_mr");
	if (ibv_dereg_mr(mr) != 0)
		fail("ibv_dereg_mr");
	end = now_ns();
	return (struct cost){(double)(middle - start) / 1e3, (double)(end - middle) / 1e3};
}

static struct cost repeated(void *memory, size_t bytes, unsigned int access)
{
	double on[REPEATS], off[REPEATS];

	for (int i = 0; i < REPEATS; i++) {
		const struct cost cost = once(memory, bytes, access);

		on[i] = cost.on;
		off[i] = cost.off;
	}
	return (struct cost){median(on, REPEATS), median(off, REPEATS)};
}

/* Return the time in which the program itself accesses each page for the first time. */
static double fault_in(volatile uint8_t *memory, size_t bytes, size_t page)
{
	const uint64_t start = now_ns();

	for (size_t i = 0; i < bytes; i += page)
		memory[i] = 1;
	return (double)(now_ns() - start) / 1e3;
}

/* Measure access to, or registration of, memory that has no pages yet. */
static bool absent(const struct kind *kind, size_t bytes, bool touch, double *us)
{
	*us = 0;
	for (int i = 0; i < FRESH_REPEATS; i++) {
		uint8_t *memory = map(kind, bytes);
		double this_us;

		if (!memory)
			return false;
		this_us = touch ? fault_in(memory, bytes, kind->page)
				: once(memory, bytes, ACCESS).on;
		if (i == 0 || this_us < *us)
			*us = this_us;
		munmap(memory, bytes);
	}
	return true;
}

static bool row(const struct kind *kind, size_t bytes)
{
	const bool huge = kind->flags != 0;
	struct cost present, verified = {0}, on_demand;
	double touch, fresh;
	uint8_t *memory;

	if (!absent(kind, bytes, true, &touch) || !absent(kind, bytes, false, &fresh))
		return false;
	memory = map(kind, bytes);
	if (!memory)
		return false;
	on_demand = repeated(memory, bytes, ACCESS | IBV_ACCESS_ON_DEMAND);
	fault_in(memory, bytes, kind->page);
	present = repeated(memory, bytes, ACCESS);
	if (huge)
		verified = repeated(memory, bytes, ACCESS | IBV_ACCESS_HUGETLB);
	munmap(memory, bytes);
	printf("| %s | %zu MiB | %.0f | %.0f | %.1f |", kind->name, bytes / MIB, touch, fresh,
	       present.on);
	if (huge)
		printf(" %.1f |", verified.on);
	else
		printf(" - |");
	printf(" %.1f | %.1f |\n", on_demand.on, present.off);
	fflush(stdout);
	return true;
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	if (!list || !list[0])
		fail("no RDMA device");
	context = ibv_open_device(list[0]);
	if (!context)
		fail("ibv_open_device");
	pd = ibv_alloc_pd(context);
	if (!pd)
		fail("ibv_alloc_pd");
}

int main(int argc, char **argv)
{
	const size_t largest = (argc > 1 ? strtoul(argv[1], NULL, 10) : 8192) * MIB;

	open_device();
	printf("| pages | size | touch each page | register, pages absent | register, present | "
	       "with IBV_ACCESS_HUGETLB | with IBV_ACCESS_ON_DEMAND | deregister |\n"
	       "|---|---|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++) {
		for (size_t j = 0; j < sizeof(SIZES_MIB) / sizeof(SIZES_MIB[0]); j++) {
			const size_t bytes = SIZES_MIB[j] * MIB;

			if (bytes < KINDS[i].page || bytes > largest)
				continue;
			if (!row(&KINDS[i], bytes)) {
				printf("no %zu MiB of %s pages here\n", bytes / MIB, KINDS[i].name);
				break;
			}
		}
	}
	return 0;
}
