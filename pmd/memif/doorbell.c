/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings a doorbell between processes, and takes its rings; numbers the pairs of rings of several
 * engines. */
#include "memif/doorbell.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "memif/socket.h"

#define NAME "uroce"

void memif_pairs_write_name(char name[MEMIF_NAME_LEN], uint32_t queues)
{
	if (queues == 0)
		snprintf(name, MEMIF_NAME_LEN, NAME);
	else
		snprintf(name, MEMIF_NAME_LEN, NAME ", engines: %u", queues);
}

uint32_t memif_pairs_read_name(const char name[MEMIF_NAME_LEN])
{
	char expected[MEMIF_NAME_LEN];

	/* Compare with the few names that we write, so that nothing needs to be parsed. */
	for (uint32_t queues = 1; queues <= MEMIF_QUEUES_MAX; queues++) {
		memif_pairs_write_name(expected, queues);
		if (strncmp(name, expected, MEMIF_NAME_LEN) == 0)
			return queues;
	}
	return 0;
}

#define LONG_NS	   UINT64_C(50000) /* a usual wake-up takes 1 or 2 us */
#define REST_TIMES 256		   /* a wake-up that was long, so many times until the next one */

static uint64_t doorbell_now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* EAGAIN: the receiver has unread rings. EPIPE: it has gone. */
static void doorbell_send(int end_fd)
{
	(void)memif_socket_send(end_fd, "", 1);
}

int memif_doorbell_make(int ends[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
		return -errno;
	doorbell_send(ends[0]);
	doorbell_send(ends[1]);
	return 0;
}

/* The woken thread often takes this CPU at once. So a ring that seems long is no proof, and the CPU
 * time of the next one is measured, which costs two system calls. */
void memif_doorbell_ring(int end_fd, struct memif_doorbell_cost *cost)
{
	const bool suspect = cost->suspect;
	const clockid_t clock = suspect ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
	const uint64_t now_ns = doorbell_now_ns(CLOCK_MONOTONIC);
	uint64_t begun_ns, took_ns;

	if (now_ns < cost->rest_until_ns)
		return;
	begun_ns = suspect ? doorbell_now_ns(clock) : now_ns;
	doorbell_send(end_fd);
	took_ns = doorbell_now_ns(clock) - begun_ns;
	cost->suspect = took_ns >= LONG_NS;
	if (suspect && cost->suspect)
		cost->rest_until_ns = now_ns + took_ns * REST_TIMES;
}

bool memif_doorbell_clear(int end_fd)
{
	char bytes[MEMIF_DOORBELL_BYTES];
	int fd;
	const int len = memif_socket_receive(end_fd, bytes, sizeof(bytes), &fd);

	memif_socket_discard(fd);
	return len > 0 && fd < 0;
}
