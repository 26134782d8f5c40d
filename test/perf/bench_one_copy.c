/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The limit of one copy between two programs: what process_vm_readv gives, by which a process
 * copies from the memory of another one; or a plain copy from memory that both have mapped. The
 * other process writes its memory all the time, and is stopped by nothing.
 *
 *     bench_one_copy [-H] [-S] BYTES CPU_OF_OWNER CPU_OF_READER
 *
 * prints Gb/s, and us for each copy.
 *
 *     -H    in huge pages, as far as the kernel gives them
 *     -S    memory that both have mapped
 */
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REGION_BYTES (4u << 20)
#define SECONDS	     1.0
#define CALLS	     64 /* between two looks at the clock */
#define PAUSE_US     1000

static void require(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static double now_s(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void go_to_cpu(const char *number)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET((size_t)strtoul(number, NULL, 10), &cpus);
	require(sched_setaffinity(0, sizeof(cpus), &cpus) == 0, "bench_one_copy: CPU");
}

static uint8_t *make_region(int huge, int shared)
{
	uint8_t *region = aligned_alloc(2u << 20, REGION_BYTES);

	require(region != NULL, "bench_one_copy: memory");
	if (shared)
		require(mmap(region, REGION_BYTES, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == region,
			"bench_one_copy: mmap");
	madvise(region, REGION_BYTES, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	memset(region, 1, REGION_BYTES);
	return region;
}

/* The process that is read. It ends with the reader. */
static void own(uint8_t *region, const char *cpu)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	go_to_cpu(cpu);
	for (uint8_t value = 0;; value++) {
		memset(region, value, REGION_BYTES);
		usleep(PAUSE_US);
	}
}

/* Copy from the memory of `owner`; 0: from memory that is mapped here, too. */
static void copy(pid_t owner, uint8_t *from, uint8_t *to, size_t bytes)
{
	struct iovec local = {.iov_base = to, .iov_len = bytes};
	struct iovec remote = {.iov_base = from, .iov_len = bytes};

	if (owner == 0)
		memcpy(to, from, bytes);
	else
		require(process_vm_readv(owner, &local, 1, &remote, 1, 0) == (ssize_t)bytes,
			"bench_one_copy: process_vm_readv");
}

static void measure(pid_t owner, uint8_t *from, uint8_t *to, size_t bytes)
{
	const double begin = now_s();
	size_t calls = 0, offset = 0;
	double end;

	do {
		for (int i = 0; i < CALLS; i++, calls++) {
			copy(owner, from + offset, to + offset, bytes);
			offset += bytes;
			if (offset + bytes > REGION_BYTES)
				offset = 0;
		}
		end = now_s();
	} while (end - begin < SECONDS);
	printf("%.1f %.2f\n", (double)(calls * bytes) * 8 / (end - begin) / 1e9,
	       (end - begin) * 1e6 / (double)calls);
}

int main(int argc, char **argv)
{
	int huge = 0, shared = 0, option;
	uint8_t *from, *to;
	size_t bytes = 0;
	pid_t owner;

	while ((option = getopt(argc, argv, "HS")) != -1) {
		huge |= option == 'H';
		shared |= option == 'S';
	}
	if (argc - optind == 3)
		bytes = strtoul(argv[optind], NULL, 10);
	if (bytes == 0 || bytes > REGION_BYTES) {
		fprintf(stderr,
			"usage: bench_one_copy [-H] [-S] BYTES CPU_OF_OWNER CPU_OF_READER\n");
		return 2;
	}
	argv += optind;
	/* The same addresses in both processes. */
	from = make_region(huge, shared);
	to = make_region(huge, 0);
	owner = fork();
	require(owner >= 0, "bench_one_copy: fork");
	if (owner == 0)
		own(from, argv[1]);
	go_to_cpu(argv[2]);
	measure(shared ? 0 : owner, from, to, bytes);
	kill(owner, SIGKILL);
	waitpid(owner, NULL, 0);
	return 0;
}
