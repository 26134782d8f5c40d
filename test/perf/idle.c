/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of an idle program, and the time until it answers:
 *
 *     idle -s SOCKET SECONDS    does nothing for so long, connected, and prints how many percent of
 *                               a CPU that took; then does nothing until it is killed
 *     idle SOCKET SECONDS       waits for that, and longer; then READs 8 bytes from there, again
 *                               and again with pauses, and prints the median and the longest time
 *                               that took, in us
 *     idle -w SLEEPER WAKER     the limit: two processes on these CPUs, of which one sleeps on an
 *                               eventfd, is woken with the same pauses, and stores a word that the
 *                               other looks for: median and longest
 */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
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

/* Return the CPU time of all threads. */
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

static void print_times(double us[READS])
{
	qsort(us, READS, sizeof(us[0]), compare);
	printf("%.2f %.2f\n", us[READS / 2], us[READS - 1]);
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
	print_times(us);
}

static void go_to_cpu(const char *number)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET((size_t)strtoul(number, NULL, 10), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0) {
		perror("idle: sched_setaffinity");
		exit(1);
	}
}

/* Store how often it was woken. */
static void sleep_and_answer(int fd, uint64_t *word)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	uint64_t count;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (uint64_t answers = 1;; answers++) {
		poll(&poll_fd, 1, -1);
		if (read(fd, &count, sizeof(count)) < 0)
			exit(1);
		__atomic_store_n(word, answers, __ATOMIC_RELEASE);
	}
}

static double wake_us(int fd, const uint64_t *word, uint64_t answer)
{
	const double from = now_us();
	const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		exit(1);
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != answer)
		;
	return now_us() - from;
}

static void wake(const char *sleeper, const char *waker)
{
	uint64_t *word = mmap(NULL, sizeof(*word), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const int fd = eventfd(0, EFD_CLOEXEC);
	double us[READS];
	pid_t child;

	if (word == MAP_FAILED || fd < 0 || (child = fork()) < 0) {
		perror("idle");
		exit(1);
	}
	go_to_cpu(child == 0 ? sleeper : waker);
	if (child == 0)
		sleep_and_answer(fd, word);
	sleep_us(SETTLE_S * 1e6);
	for (int i = 0; i < READS; i++) {
		us[i] = wake_us(fd, word, (uint64_t)i + 1);
		sleep_us(PAUSE_US);
	}
	kill(child, SIGKILL);
	print_times(us);
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "-s") == 0) {
		serve(argv[2], strtod(argv[3], NULL));
	} else if (argc == 4 && strcmp(argv[1], "-w") == 0) {
		wake(argv[2], argv[3]);
	} else if (argc == 3) {
		call(argv[1], strtod(argv[2], NULL));
	} else {
		fprintf(stderr, "usage: idle [-s] SOCKET SECONDS | idle -w SLEEPER WAKER\n");
		return 2;
	}
	return 0;
}
