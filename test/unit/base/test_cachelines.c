/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of many small objects. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pthread.h>
#include <rte_common.h>

#include "base/cachelines.h"
#include "sanitizer.h"
#include "test.h"

#define OBJECTS 4000 /* of several pages each, and of several huge ones together */

#define PAGE_BYTES 4096 /* the largest objects */
#define PAGES	   4096 /* more than other tests leave behind */
#define HUGE_BYTES (UINT64_C(2) << 20)
#define FORKS	   100

static uint8_t *pages[2 * PAGES];

static size_t bytes_of(size_t i)
{
	static const size_t sizes[] = {1, 64, 65, 128, 1344, 4096, 4097, 10000};

	return sizes[i % RTE_DIM(sizes)];
}

/* Hold all blocks at once, each filled with its own number, so that an overlap is seen. */
static void *use(void *arg)
{
	uint8_t *at[OBJECTS];
	uintptr_t wrong = 0;

	for (size_t i = 0; i < OBJECTS; i++) {
		at[i] = cachelines_alloc(bytes_of(i));
		if (!at[i] || (uintptr_t)at[i] % RTE_CACHE_LINE_SIZE != 0)
			return (void *)(uintptr_t)-1;
		memset(at[i], (int)(uint8_t)(i + (uintptr_t)arg), bytes_of(i));
	}
	for (size_t i = 0; i < OBJECTS; i++) {
		for (size_t k = 0; k < bytes_of(i); k++)
			wrong += at[i][k] != (uint8_t)(i + (uintptr_t)arg);
		cachelines_free(at[i], bytes_of(i));
	}
	return (void *)wrong;
}

TEST(cachelines_alloc__gives_each_its_own)
{
	for (uintptr_t round = 0; round < 3; round++)
		assert_null(use((void *)round));
}

TEST(cachelines_alloc__threads_share_nothing)
{
	pthread_t threads[4];
	void *wrong;

	for (uintptr_t i = 0; i < RTE_DIM(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use, (void *)(100 * i)), 0);
	for (size_t i = 0; i < RTE_DIM(threads); i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
}

TEST(cachelines_free__takes_nothing)
{
	cachelines_free(NULL, 64);
	cachelines_free(NULL, 10000);
}

TEST(cachelines_free__what_it_takes_is_used_again)
{
	void *at;

	if (ADDRESS_SANITIZER)
		skip();
	at = cachelines_alloc(150);
	assert_non_null(at);
	cachelines_free(at, 150);
	assert_ptr_equal(cachelines_alloc(192), at);
	cachelines_free(at, 192);
}

/* Return how many pieces there are of a size, at most `max`. */
static size_t alloc_all(size_t bytes, size_t max)
{
	size_t n = 0;

	while (n < max && (pages[n] = cachelines_alloc(bytes)))
		n++;
	return n;
}

static void free_all(size_t bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		cachelines_free(pages[i], bytes);
}

static int by_address(const void *a, const void *b)
{
	const uint8_t *const *left = a, *const *right = b;

	return *left < *right ? -1 : *left > *right;
}

/* Return true if the kernel was told that memory may be of huge pages, or if it does not report
 * that. */
static bool is_advised(const void *at)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	bool inside = false, advised = true;
	unsigned long begin, end;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
			inside = begin <= (uintptr_t)at && (uintptr_t)at < end;
		else if (inside && strncmp(line, "VmFlags:", 8) == 0)
			advised = strstr(line, " hg") != NULL;
	}
	if (file)
		fclose(file);
	return advised || access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0;
}

TEST(cachelines_alloc__many_objects_fill_huge_pages)
{
	size_t whole = 0;

	if (ADDRESS_SANITIZER)
		skip();
	assert_int_equal(alloc_all(PAGE_BYTES, PAGES), PAGES);
	qsort(pages, PAGES, sizeof(pages[0]), by_address);
	for (size_t i = 0; i + HUGE_BYTES / PAGE_BYTES <= PAGES; i++) {
		if ((uintptr_t)pages[i] % HUGE_BYTES != 0 ||
		    pages[i + HUGE_BYTES / PAGE_BYTES - 1] != pages[i] + HUGE_BYTES - PAGE_BYTES)
			continue;
		whole++;
		assert_true(is_advised(pages[i]));
	}
	assert_true(whole >= 2);
	free_all(PAGE_BYTES, PAGES);
}

/* Limit the address space to so many bytes more than there are now. */
static void limit_memory(size_t more_bytes)
{
	const int fd = open("/proc/self/statm", O_RDONLY);
	struct rlimit limit = {.rlim_max = RLIM_INFINITY};
	char text[64] = "";

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		_exit(3);
	close(fd);
	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = strtoul(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE) + more_bytes;
	if (setrlimit(RLIMIT_AS, &limit) != 0)
		_exit(3);
}

/* The children give 0 when all is well. */
static int child_without_memory(void)
{
	size_t n;

	limit_memory(0);
	n = alloc_all(PAGE_BYTES, 2 * PAGES);
	if (n == 2 * PAGES || cachelines_alloc(64 * HUGE_BYTES))
		return 1;
	cachelines_free(pages[n - 1], PAGE_BYTES);
	return cachelines_alloc(PAGE_BYTES) == pages[n - 1] ? 0 : 1;
}

static int child_cuts_gaps(void)
{
	if (alloc_all(PAGE_BYTES, PAGES) != PAGES)
		return 1;
	limit_memory(0);
	free_all(PAGE_BYTES, PAGES);
	/* nothing may overlap, and each is given back as what it was asked for */
	for (int round = 0; round < 2; round++) {
		if (alloc_all(PAGE_BYTES / 2, 2 * PAGES) != 2 * PAGES)
			return 1;
		for (size_t i = 0; i < 2 * PAGES; i++)
			memset(pages[i], (int)(i % 251), PAGE_BYTES / 2);
		for (size_t i = 0; i < 2 * PAGES; i++) {
			for (size_t k = 0; k < PAGE_BYTES / 2; k++)
				if (pages[i][k] != i % 251)
					return 1;
			cachelines_free(pages[i], PAGE_BYTES / 2);
		}
	}
	return 0;
}

static int child_without_huge_pages(void)
{
	limit_memory(0);
	if (alloc_all(PAGE_BYTES, 2 * PAGES) == 2 * PAGES)
		return 1;
	limit_memory(HUGE_BYTES + HUGE_BYTES / 2);
	/* of several small chunks */
	return alloc_all(PAGE_BYTES, 100) == 100 ? 0 : 1;
}

static int status_of(pid_t pid)
{
	int status;

	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void in_child(int (*child)(void))
{
	pid_t pid;

	/* their own memory is the kernel's too */
	if (ADDRESS_SANITIZER || THREAD_SANITIZER)
		skip();
	/* more than small chunks are made for, whatever ran before */
	assert_int_equal(alloc_all(PAGE_BYTES, PAGES), PAGES);
	free_all(PAGE_BYTES, PAGES);
	pid = fork();
	if (pid == 0)
		_exit(child());
	assert_int_equal(status_of(pid), 0);
}

TEST(cachelines_alloc__without_memory)
{
	in_child(child_without_memory);
}

TEST(cachelines_alloc__cuts_what_is_larger_before_it_takes_more)
{
	in_child(child_cuts_gaps);
}

TEST(cachelines_alloc__does_without_huge_pages)
{
	in_child(child_without_huge_pages);
}

/* Hold the lock most of the time. */
static void *use_until_told(void *arg)
{
	const atomic_bool *stop = arg;

	while (!atomic_load(stop))
		cachelines_free(cachelines_alloc(64), 64);
	return NULL;
}

/* Otherwise the child waits for ever for a thread that it does not have. */
TEST(cachelines_alloc__in_a_child_of_a_process_of_threads)
{
	atomic_bool stop = false;
	pthread_t threads[2];
	int status = 0;

	if (ADDRESS_SANITIZER) /* the lock is the heap's */
		skip();
	for (size_t i = 0; i < RTE_DIM(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use_until_told, &stop), 0);
	for (size_t i = 0; status == 0 && i < FORKS; i++) {
		const pid_t pid = fork();

		if (pid == 0) {
			alarm(60);
			cachelines_free(cachelines_alloc(64), 64);
			_exit(0);
		}
		status = status_of(pid);
	}
	atomic_store(&stop, true);
	for (size_t i = 0; i < RTE_DIM(threads); i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(status, 0);
}
