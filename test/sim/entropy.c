/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stack takes its unpredictable numbers (keys, first queue pair number) from getrandom(2). Here
 * they come from the seed instead, so that a run repeats bit by bit. This definition stands before
 * the C library's.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rng.h"
#include "sim.h"
#include "supervise.h"

static struct rng entropy;

void entropy_seed(uint64_t seed)
{
	entropy = rng_fork(seed, 1);
}

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	uint8_t *to = buffer;

	(void)flags;
	for (size_t i = 0; i < length; i++)
		to[i] = (uint8_t)rng_next(&entropy);
	return (ssize_t)length;
}

uint64_t entropy_true(void)
{
	uint64_t v = 0;

	if (syscall(SYS_getrandom, &v, sizeof(v), 0) != sizeof(v)) {
		perror("sim: getrandom");
		exit(1);
	}
	return v;
}
