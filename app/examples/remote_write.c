/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remote_write SOCKET [ROUNDS] writes a megabyte into the memory of a waiting program, reads it
 * back and verifies it, 8 times by default. remote_write -s SOCKET is the waiting program, which
 * verifies the data of round 8.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meet.h"

#define ROUNDS 8

static void fill(struct meet *meet, uint32_t round)
{
	for (uint32_t i = 0; i < MEET_BYTES; i++)
		meet->memory[i] = meet_byte(i, round);
}

static void verify(const struct meet *meet, uint32_t round)
{
	for (uint32_t i = 0; i < MEET_BYTES; i++) {
		if (meet->memory[i] != meet_byte(i, round)) {
			fprintf(stderr, "round %u: byte %u is wrong\n", round, i);
			exit(1);
		}
	}
}

static void call(const char *path, uint32_t rounds)
{
	struct meet meet = {0};

	meet_call(&meet, path);
	for (uint32_t round = 1; round <= rounds; round++) {
		fill(&meet, round);
		meet_post(&meet, IBV_WR_RDMA_WRITE);
		meet_wait(&meet);
		memset(meet.memory, 0, MEET_BYTES);
		meet_post(&meet, IBV_WR_RDMA_READ);
		meet_wait(&meet);
		verify(&meet, round);
	}
	/* Tell the peer that it may verify its memory, and wait for its answer. */
	meet_post(&meet, IBV_WR_SEND);
	meet_wait(&meet);
	meet_wait(&meet);
	printf("%d bytes written and read back, %u times\n", MEET_BYTES, rounds);
}

static void serve(const char *path)
{
	struct meet meet = {0};

	meet_serve(&meet, path);
	meet_wait(&meet);
	verify(&meet, ROUNDS);
	meet_post(&meet, IBV_WR_SEND);
	meet_wait(&meet);
	printf("%d bytes were written correctly\n", MEET_BYTES);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "-s") == 0) {
		serve(argv[2]);
	} else if (argc == 2 || argc == 3) {
		call(argv[1], argc == 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : ROUNDS);
	} else {
		fprintf(stderr, "usage: remote_write {-s SOCKET | SOCKET [ROUNDS]}\n");
		return 1;
	}
	return 0;
}
