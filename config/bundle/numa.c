/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of libnuma that DPDK's libraries call. A bundle has no libnuma: its static library
 * cannot be linked into a shared one. */
#include <numa.h>
#include <numaif.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NODES	  1024 /* more than a kernel has */
#define WORD_BITS (8 * sizeof(unsigned long))

struct nodes {
	struct bitmask mask;
	unsigned long words[NODES / WORD_BITS];
};

long get_mempolicy(int *mode, unsigned long *nodes, unsigned long max, void *address,
		   unsigned int flags)
{
	return syscall(SYS_get_mempolicy, mode, nodes, max, address, flags);
}

long set_mempolicy(int mode, const unsigned long *nodes, unsigned long max)
{
	return syscall(SYS_set_mempolicy, mode, nodes, max);
}

int numa_available(void)
{
	return get_mempolicy(NULL, NULL, 0, NULL, 0) == 0 ? 0 : -1;
}

struct bitmask *numa_allocate_nodemask(void)
{
	struct nodes *nodes = calloc(1, sizeof(*nodes));

	if (!nodes)
		return NULL;
	nodes->mask = (struct bitmask){.size = NODES, .maskp = nodes->words};
	return &nodes->mask;
}

void numa_bitmask_free(struct bitmask *mask)
{
	free(mask);
}

void numa_set_preferred(int node)
{
	unsigned long words[NODES / WORD_BITS] = {0};

	words[(size_t)node / WORD_BITS] = 1UL << (size_t)node % WORD_BITS;
	set_mempolicy(MPOL_PREFERRED, words, NODES + 1);
}

void numa_set_localalloc(void)
{
	set_mempolicy(MPOL_LOCAL, NULL, 0);
}
