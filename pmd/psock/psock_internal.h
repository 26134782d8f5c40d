/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a packet socket, for the files that receive and send. */
#ifndef PSOCK_INTERNAL_H
#define PSOCK_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <linux/virtio_net.h>

#include "psock/packet_run.h"
#include "psock/psock.h"
#include "psock/split.h"

/* The ring's frame: the longest packet and the kernel's header before it, in whole pages. */
#define FRAME_BYTES	 (SPLIT_ROOM + 4096u)
#define BLOCK_FRAMES	 15u /* nearly 1 MiB; the kernel rounds up to a power of two */
#define FRAMES		 480u /* enough for a burst that arrives while this process waits for a CPU */
#define PSOCK_RING_BYTES ((size_t)FRAMES * FRAME_BYTES)

#define SEND_BURST  64
#define SHORT_BYTES 1024 /* of a message: the kernel takes a short one faster from one buffer */
#define IOVS_PER_PACKET \
	3 /* offload, headers, payload; each further packet of a run has a payload only */

/* Received packets that a burst had no room for. */
struct psock_held {
	uint32_t first;
	uint32_t count; /* atomic: psock_holds */
	struct rte_mbuf *mbufs[SPLIT_PACKETS_MAX];
};

struct psock_ring {
	uint8_t *memory;
	uint32_t next; /* the frame that the kernel fills next, or has filled */
};

/* The messages of one system call. */
struct psock_batch {
	uint32_t messages;
	uint16_t packets[SEND_BURST]; /* of each message */
	struct mmsghdr headers[SEND_BURST];
	struct iovec iovs[SEND_BURST * IOVS_PER_PACKET];
	struct virtio_net_hdr offloads[SEND_BURST];
	uint8_t run_headers[SEND_BURST][HEADERS_MAX];
	uint8_t whole[SHORT_BYTES];
};

struct psock {
	int fd;
	uint32_t room; /* of a buffer, for one packet */
	struct rte_mempool *pool;
	struct psock_ring ring;
	struct psock_held held;
	uint32_t qpn_first; /* psock_expect */
	unsigned int qpn_shift;
	uint32_t share, shares; /* psock_expect_share; no shares: all numbers */
	bool sends_runs;	/* until the kernel refuses one */
	bool bypasses_qdiscs;	/* packets bypass the kernel's queues, in which the kernel would
				   segment runs */
	bool told_of_size;
	uint64_t missed;	  /* frames that the kernel dropped because the ring was full */
	uint64_t dropped;	  /* frames that psock_rx_burst dropped */
	uint64_t refused_packets; /* dropped because the interface did not take them */
	uint64_t refused_bytes;
	struct psock_batch batch;
};

#endif
