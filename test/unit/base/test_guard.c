/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of guarded copies (lib/base/guard.c). */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/guard.h"
#include "guard_rig.h"
#include "test.h"

TEST_FIXTURE(guard_rig_set_up, guard_rig_tear_down);

TEST(guard_run__a_good_copy_is_made)
{
	expect_copy(memory, "good", 5, 0);
	assert_string_equal((char *)memory, "good");
}

TEST(guard_run__memory_that_is_gone_is_a_fault)
{
	assert_int_equal(munmap(memory + PAGE, PAGE), 0);
	expect_copy(memory + PAGE, local, 1, -EFAULT);
	expect_copy(local, memory + PAGE, 1, -EFAULT);
	expect_copy(local, memory + PAGE - 1, 2, -EFAULT);
	expect_copy(NULL, local, 1, -EFAULT);
	/* This value is not even a canonical address. */
	expect_copy((void *)((uintptr_t)1 << 62), local, 8, -EFAULT);
	expect_copy(local, memory, 1, 0);
}

TEST(guard_run__protected_memory_is_a_fault)
{
	assert_int_equal(mprotect(memory, PAGE, PROT_READ), 0);
	expect_copy(memory, local, 1, -EFAULT);
	expect_copy(local, memory, 1, 0);
	assert_int_equal(mprotect(memory, PAGE, PROT_NONE), 0);
	expect_copy(local, memory, 1, -EFAULT);
}

TEST(guard_run__a_file_cut_short_is_a_fault)
{
	const int fd = memfd_create("short", MFD_CLOEXEC);
	uint8_t *map;

	assert_int_equal(ftruncate(fd, 2 * PAGE), 0);
	map = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	expect_copy(map + PAGE, local, 1, 0);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	expect_copy(map + PAGE, local, 1, -EFAULT);
	expect_copy(local, map + PAGE, 1, -EFAULT);
	expect_copy(map, local, 1, 0);
	munmap(map, 2 * PAGE);
	close(fd);
}

static int inner_rc;

static void nest(void *arg)
{
	inner_rc = guarded_copy(NULL, local, 1);
	/* The outer one still guards. */
	copy_job_run(arg);
}

TEST(guard_run__nests)
{
	struct copy_job good = {memory, local, 1}, bad = {NULL, local, 1};

	assert_int_equal(guard_install(), 0);
	inner_rc = 0;
	assert_int_equal(guard_run(nest, &good), 0);
	assert_int_equal(inner_rc, -EFAULT);
	inner_rc = 0;
	assert_int_equal(guard_run(nest, &bad), -EFAULT);
	assert_int_equal(inner_rc, -EFAULT);
}

/* A handler of another signal interrupts a copy, and makes a mistake of its own. */

__attribute__((no_sanitize("address"))) static void fault_in_handler(int sig)
{
	/* Use as much stack as a signal frame in an instrumented build. */
	char deep[32768];

	__asm__ volatile("" : : "r"(deep), "r"(sig) : "memory");
	fault_at_64();
	__asm__ volatile("" : : "r"(deep) : "memory");
}

static void raise_usr1(void *arg)
{
	(void)arg;
	raise(SIGUSR1);
}

static void mistake_in_a_handler(void)
{
	signal(SIGUSR1, fault_in_handler);
	guard_install();
	guard_run(raise_usr1, NULL);
}

TEST(guard_run__does_not_swallow_the_faults_of_handlers)
{
	expect_killed(mistake_in_a_handler, SIGSEGV);
}

TEST(guard_copy_word__memory_that_is_not_there_is_an_error)
{
	static const uint64_t value = 0x1122334455667788;
	uint64_t kept = 1;

	assert_int_equal(guard_install(), 0);
	assert_int_equal(mprotect(memory + PAGE, PAGE, PROT_NONE), 0);
	assert_int_equal(guard_copy_word(memory + PAGE, &value), -EFAULT);
	assert_int_equal(guard_copy_word(memory + PAGE - 4, &value), -EFAULT);
	assert_int_equal(guard_copy_word(&kept, memory + PAGE), -EFAULT);
	assert_int_equal(guard_copy_word(&kept, memory + PAGE - 4), -EFAULT);
	assert_int_equal(kept, 1);
	assert_int_equal(guard_copy_word(memory + PAGE - 8, &value), 0);
	assert_memory_equal(memory + PAGE - 8, &value, sizeof(value));
	assert_int_equal(guard_copy_word(&kept, memory + PAGE - 8), 0);
	assert_int_equal(kept, value);
	assert_int_equal(mprotect(memory + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
}

static void nested_word(void *arg)
{
	uint64_t word = 0;

	*(int *)arg = guard_copy_word(&word, memory + PAGE);
	/* The outer run's own fault ends it still. */
	*(volatile uint8_t *)(memory + PAGE) = 1;
}

TEST(guard_copy_word__in_a_guarded_run_leaves_it_alone)
{
	int rc = 0;

	assert_int_equal(guard_install(), 0);
	assert_int_equal(mprotect(memory + PAGE, PAGE, PROT_NONE), 0);
	assert_int_equal(guard_run(nested_word, &rc), -EFAULT);
	assert_int_equal(rc, -EFAULT);
	assert_int_equal(mprotect(memory + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
}
