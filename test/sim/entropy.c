/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replaces getrandom(2), from which the stack takes its unpredictable numbers (keys, first queue
 * pair number). Here they come from the seed, so that a run repeats bit by bit. This definition
 * precedes the C library's.
 */
#include "entropy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rng.h"

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
