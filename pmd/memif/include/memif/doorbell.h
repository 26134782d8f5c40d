/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Doorbells between two processes that do not trust each other: a pair of stream sockets, of which
 * each process has one end. Each rings the other by writing a byte to its own end, and sleeps on
 * its own end.
 *
 * An eventfd would not do. Both processes have it open, so either of them can make its write block:
 * they share O_NONBLOCK, and each can fill the counter. A write to a socket does not block if that
 * call itself says so, whatever the other process does with its end.
 *
 * A read of a socket does not block in this way only if nobody else has a copy of that end: the
 * kernel lets one thread at a time read a socket, and a read into memory that never comes (a page
 * of a FUSE file, userfaultfd) never ends. So neither of the two processes makes the pair. The
 * owner, whom both trust, makes it and gives each process its end.
 *
 * No ring is lost:
 *
 * - The sender publishes packets, executes a full fence, and reads the flag of the ring. If it is
 *   set, the sender writes a byte.
 * - The receiver reads all bytes, sets the flag, executes a full fence, looks at the ring, and
 *   sleeps.
 *
 * Either the sender sees the flag, or the receiver sees the packets. If the socket is full, either
 * the receiver has not read it since it was filled, and does not sleep, or it reads it at this
 * moment, and looks at the ring afterwards.
 */
#ifndef MEMIF_DOORBELL_H
#define MEMIF_DOORBELL_H

#include <stdbool.h>
#include <stdint.h>

#include "memif/protocol.h"

/* The bytes that one call of memif_doorbell_clear reads. A socket's default send buffer holds about
 * 280 one-byte writes. */
#define MEMIF_DOORBELL_BYTES 512

/* The cost of waking one receiver. It begins as all zeros. */
struct memif_doorbell_cost {
	bool suspect; /* the last ring took long, perhaps because this thread lost its CPU */
	uint64_t rest_until_ns; /* CLOCK_MONOTONIC: no ring before that */
};

/**
 * Make the doorbells of two processes. Both have been rung once, so that a receiver that sleeps
 * already when it begins to use its doorbell looks at its ring.
 *
 * @param ends
 *   Set to the end of each process (close-on-exec).
 * @return
 *   0 or -errno.
 */
int memif_doorbell_make(int ends[2]);

/**
 * Ring the other process by our end. Never blocks. A receiver that has gone, or that has been rung
 * and does not listen, is no error. MT-safe for different `cost`.
 *
 * The kernel wakes all who watch the receiver's end, in this thread. A hostile receiver may watch
 * it very often. So a receiver whose wake-up has taken much CPU time is not rung for many times as
 * long, and notices packets only when it looks by itself.
 */
void memif_doorbell_ring(int end_fd, struct memif_doorbell_cost *cost);

/**
 * Take the rings that have come to our end, which is reported as readable. Does not wait.
 *
 * @return
 *   False if the sender has closed its end or has sent anything but rings. The receiver must not
 *   listen to this doorbell any more, because it could stay readable for ever.
 */
bool memif_doorbell_clear(int end_fd);

#define MEMIF_QUEUES_MAX 8				       /* engines of one end */
#define MEMIF_PAIRS_MAX	 (MEMIF_QUEUES_MAX * MEMIF_QUEUES_MAX) /* of a connection */

/** Write our name. `queues`: our engines; 0: we want one pair of rings, whoever the other end is.
 */
void memif_pairs_write_name(char name[MEMIF_NAME_LEN], uint32_t queues);

/** Return the number of engines that a name tells, at most MEMIF_QUEUES_MAX; 0: it tells none,
 * because the other end is another program, an older uroce, or wants one pair of rings. The name is
 * not trusted. */
uint32_t memif_pairs_read_name(const char name[MEMIF_NAME_LEN]);

/** Return the client's engine of a pair. `server_queues` is the number of the server's engines. */
static inline uint32_t memif_pairs_client(uint32_t pair, uint32_t server_queues)
{
	return pair / server_queues;
}

/** Return the server's engine of a pair. */
static inline uint32_t memif_pairs_server(uint32_t pair, uint32_t server_queues)
{
	return pair % server_queues;
}

#endif
