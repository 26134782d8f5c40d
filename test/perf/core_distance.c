/* SPDX-License-Identifier: BSD-3-Clause */
/* The distance of two CPUs: the median round trip of one cache line, in nanoseconds. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SAMPLES 201
#define TRIPS	1000

static _Alignas(128) atomic_uint ball;

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0) {
		perror("core_distance: sched_setaffinity");
		exit(1);
	}
}

static void *answer(void *cpu)
{
	pin(*(int *)cpu);
	for (unsigned int i = 0; i < SAMPLES * TRIPS; i++) {
		while (atomic_load_explicit(&ball, memory_order_acquire) != 2 * i + 1)
			;
		atomic_store_explicit(&ball, 2 * i + 2, memory_order_release);
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int cpu_a = argc > 1 ? atoi(argv[1]) : 0;
	int cpu_b = argc > 2 ? atoi(argv[2]) : 1;
	double ns[SAMPLES];
	pthread_t thread;
	unsigned int i = 0;

	pin(cpu_a);
	if (pthread_create(&thread, NULL, answer, &cpu_b) != 0)
		return 1;
	for (int sample = 0; sample < SAMPLES; sample++) {
		struct timespec begin, end;

		clock_gettime(CLOCK_MONOTONIC, &begin);
		for (int trip = 0; trip < TRIPS; trip++, i++) {
			atomic_store_explicit(&ball, 2 * i + 1, memory_order_release);
			while (atomic_load_explicit(&ball, memory_order_acquire) != 2 * i + 2)
				;
		}
		clock_gettime(CLOCK_MONOTONIC, &end);
		ns[sample] = ((double)(end.tv_sec - begin.tv_sec) * 1e9 +
			      (double)(end.tv_nsec - begin.tv_nsec)) /
			     TRIPS;
	}
	pthread_join(thread, NULL);
	qsort(ns, SAMPLES, sizeof(ns[0]), compare);
	printf("%.0f\n", ns[SAMPLES / 2]);
	return 0;
}
