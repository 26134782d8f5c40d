/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI program that checks what it gets: a ping-pong of every size, and sums over all ranks.
 * Built with mpicc by the test that runs it. */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

#define ROUNDS	  20
#define BYTES_MAX (1 << 20)
#define COUNT_MAX 100000
#define TAG	  5

static void fail(int rank, const char *what, int at)
{
	fprintf(stderr, "rank %d: %s differs at %d\n", rank, what, at);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Rank 1 adds 1 to every byte that rank 0 sends. */
static void pingpong(int rank, int bytes)
{
	unsigned char *buffer = malloc((size_t)bytes);

	for (int round = 0; round < ROUNDS; round++) {
		if (rank == 0) {
			for (int i = 0; i < bytes; i++)
				buffer[i] = (unsigned char)(i * 7 + round);
			MPI_Send(buffer, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
			MPI_Recv(buffer, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			for (int i = 0; i < bytes; i++)
				if (buffer[i] != (unsigned char)(i * 7 + round + 1))
					fail(rank, "message", i);
		} else if (rank == 1) {
			MPI_Recv(buffer, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			for (int i = 0; i < bytes; i++)
				buffer[i]++;
			MPI_Send(buffer, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
		}
	}
	free(buffer);
}

static void allreduce(int rank, int ranks, int count)
{
	double *own = calloc((size_t)count, sizeof(*own));
	double *sums = calloc((size_t)count, sizeof(*sums));

	for (int i = 0; i < count; i++)
		own[i] = i + rank;
	MPI_Allreduce(own, sums, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < count; i++)
		if (sums[i] != ranks * (double)i + ranks * (ranks - 1) / 2.0)
			fail(rank, "sum", i);
	free(own);
	free(sums);
}

int main(int argc, char **argv)
{
	int rank, ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int bytes = 1; bytes <= BYTES_MAX; bytes *= 16)
		pingpong(rank, bytes);
	for (int count = 1; count <= COUNT_MAX; count *= 10)
		allreduce(rank, ranks, count);
	printf("rank %d of %d: all right\n", rank, ranks);
	MPI_Finalize();
	return 0;
}
