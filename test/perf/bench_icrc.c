/* SPDX-License-Identifier: BSD-3-Clause */
/* The speed of each kernel of the ICRC: GB/s of update and copy, and nanoseconds for a packet's
 * headers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/icrc.h"
#include "wire/icrc_kernel.h"

#define BUFFERS_BYTES (256 * 1024) /* source and target fit into the second-level cache */
#define RUNS	      21
#define RUN_BYTES     (64u << 20)
#define RUN_HEADERS   500000u

enum work {
	WORK_UPDATE,
	WORK_COPY,
};

static uint8_t source[BUFFERS_BYTES] __attribute__((aligned(4096)));
static uint8_t target[BUFFERS_BYTES] __attribute__((aligned(4096)));
static volatile uint32_t result;

/* Measure this thread's CPU time, which depends less on other load of the machine. */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, RUNS, sizeof(*values), compare);
	return values[RUNS / 2];
}

static double gigabytes_per_second(const struct icrc_kernel *kernel, enum work work, size_t len)
{
	const size_t count = RUN_BYTES / len;
	double values[RUNS];
	size_t i, at = 0;
	int run;

	for (run = 0; run < RUNS; run++) {
		const double start = now();
		uint32_t sum = 0;

		for (i = 0; i < count; i++) {
			sum ^= work == WORK_COPY ? kernel->copy(0, target + at, source + at, len)
						 : kernel->update(0, source + at, len);
			at = (at + len) % BUFFERS_BYTES;
		}
		result = sum;
		values[run] = (double)(count * len) / (now() - start) * 1e-9;
	}
	return median(values);
}

static double headers_ns(const struct icrc_kernel *kernel, size_t len)
{
	double values[RUNS];
	unsigned int i;
	int run;

	for (run = 0; run < RUNS; run++) {
		const double start = now();
		uint32_t sum = 0;

		for (i = 0; i < RUN_HEADERS; i++)
			sum ^= kernel->masked(0, source + i % 1024, target, len);
		result = sum;
		values[run] = (now() - start) / RUN_HEADERS * 1e9;
	}
	return median(values);
}

/* Measure a copy without a CRC: the limit of the fused copies. */
static uint32_t copy_only(uint32_t state, void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	return state;
}

static void print_work(const struct icrc_kernel *kernel, enum work work, const char *name)
{
	static const size_t lengths[] = {64, 256, 1024, 4096};
	size_t i;

	printf("%-10s%-8s", kernel->name, name);
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		printf("%9.1f", gigabytes_per_second(kernel, work, lengths[i]));
	printf("\n");
}

static void print_headers(const struct icrc_kernel *kernel)
{
	static const size_t lengths[] = {40, 56, 76};
	size_t i;

	printf("%-10s%-8s", kernel->name, "headers");
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		printf("   %zu B %.1f ns", lengths[i], headers_ns(kernel, lengths[i]));
	printf("\n");
}

int main(void)
{
	static const struct icrc_kernel memcpy_kernel = {.name = "memcpy", .copy = copy_only};
	const struct icrc_kernel *const *kernel;

	memset(source, 0x5a, sizeof(source));
	memset(target, 0, sizeof(target));
	printf("%-18s     64 B    256 B   1024 B   4096 B   GB/s, medians of %d\n",
	       "kernel    work", RUNS);
	print_work(&memcpy_kernel, WORK_COPY, "copy");
	for (kernel = icrc_kernels; *kernel; kernel++) {
		if (!(*kernel)->supported())
			continue;
		print_work(*kernel, WORK_UPDATE, "update");
		print_work(*kernel, WORK_COPY, "copy");
		print_headers(*kernel);
	}
	return 0;
}
