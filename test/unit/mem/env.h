/* SPDX-License-Identifier: BSD-3-Clause */
/* The fixture of this room's tests: a key table, a domain, and some pages of memory. */
#ifndef TEST_MEM_ENV_H
#define TEST_MEM_ENV_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "mem/key_table.h"
#include "mem/mr.h"
#include "mem/pd.h"
#include "test.h"

#define ENV_PAGES      8
#define ENV_REGIONS    16 /* that the key table holds */
#define ENV_HUGE_BYTES (2u << 20)

#define RW (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static struct {
	struct key_table *keys;
	struct pd *pd;
	struct pd *other_pd;
	size_t page;
	uint8_t *memory; /* ENV_PAGES pages, read and write */
} env;

static inline int env_set_up(TEST_STATE)
{
	env.page = (size_t)sysconf(_SC_PAGESIZE);
	env.memory = mmap(NULL, ENV_PAGES * env.page, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (env.memory == MAP_FAILED || key_table_create(ENV_REGIONS, &env.keys) != 0)
		return -1;
	return pd_create(env.keys, &env.pd) | pd_create(env.keys, &env.other_pd);
}

/* Fails where a test has left a region. */
static inline int env_tear_down(TEST_STATE)
{
	munmap(env.memory, ENV_PAGES * env.page);
	if (pd_destroy(env.pd) != 0 || pd_destroy(env.other_pd) != 0)
		return -1;
	key_table_destroy(env.keys);
	return 0;
}

/* Let the process open so many descriptors. Return how many it could open before. */
static inline rlim_t env_limit_descriptors(rlim_t most)
{
	struct rlimit limit;
	rlim_t before;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	before = limit.rlim_cur;
	limit.rlim_cur = most;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return before;
}

/* Let the program take the handler of faults away. */
static inline void env_take_handler(void)
{
	signal(SIGBUS, SIG_DFL);
}

static inline void env_expect_handler(void)
{
	struct sigaction action;

	assert_int_equal(sigaction(SIGBUS, NULL, &action), 0);
	assert_ptr_not_equal(action.sa_handler, SIG_DFL);
}

static inline int env_register(void *addr, size_t length, unsigned int access, struct mr **mr)
{
	return mr_register(env.pd, addr, length, (uintptr_t)addr, access, mr);
}

/* A region of the first `length` bytes of the memory. */
static inline struct mr *env_region(size_t length, unsigned int access)
{
	struct mr *mr;

	assert_int_equal(env_register(env.memory, length, access, &mr), 0);
	return mr;
}

#endif
