/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an idle program costs, and how soon it answers:
 *
 *     idle -s SOCKET SECONDS    does nothing for so long, connected, and prints how many percent of
 *                               a CPU that took; then does nothing until it is killed
 *     idle SOCKET SECONDS       waits for that, and longer; then READs 8 bytes from there, again
 *                               and again with pauses, and prints the median and the longest time
 *                               that took, in us
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "meet.h"

#define READS	 31 /* odd: the median is one of them */
#define PAUSE_US 100000
#define SETTLE_S 1

static double now_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static double seconds_of(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

/* Of all threads. */
static double cpu_s(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime);
}

static void sleep_us(double us)
{
	const double until = now_us() + us;

	while (now_us() < until)
		usleep((useconds_t)(until - now_us()) + 1);
}

static void serve(const char *path, double seconds)
{
	struct meet meet;
	double cpu, from;

	meet_serve(&meet, path);
	sleep_us(SETTLE_S * 1e6);
	cpu = cpu_s();
	from = now_us();
	sleep_us(seconds * 1e6);
	printf("%.3f\n", (cpu_s() - cpu) * 1e8 / (now_us() - from));
	fflush(stdout);
	for (;;)
		pause();
}

static double read_us(struct meet *meet)
{
	struct ibv_sge sge = {.addr = (uintptr_t)meet->memory, .length = 8, .lkey = meet->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_READ,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	const double from = now_us();

	wr.wr.rdma.remote_addr = meet->peer_addr;
	wr.wr.rdma.rkey = meet->peer_rkey;
	if (ibv_post_send(meet->qp, &wr, &bad) != 0) {
		fprintf(stderr, "idle: ibv_post_send failed\n");
		exit(1);
	}
	meet_wait(meet);
	return now_us() - from;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void call(const char *path, double seconds)
{
	struct meet meet;
	double us[READS];

	meet_call(&meet, path);
	sleep_us((seconds + 2 * SETTLE_S) * 1e6);
	for (int i = 0; i < READS; i++) {
		us[i] = read_us(&meet);
		sleep_us(PAUSE_US);
	}
	qsort(us, READS, sizeof(us[0]), compare);
	printf("%.2f %.2f\n", us[READS / 2], us[READS - 1]);
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "-s") == 0) {
		serve(argv[2], strtod(argv[3], NULL));
	} else if (argc == 3) {
		call(argv[1], strtod(argv[2], NULL));
	} else {
		fprintf(stderr, "usage: idle [-s] SOCKET SECONDS\n");
		return 2;
	}
	return 0;
}
