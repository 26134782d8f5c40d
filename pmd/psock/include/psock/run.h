/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A run: packets that follow each other and differ, up to the UDP header, in nothing but what the
 * kernel fills in for each when it parts one long packet (UDP segmentation offload). They can be
 * given to it as that one.
 *
 * What it fills in are lengths, checksums and, over IPv4, an identification that counts up by one.
 * The ICRC leaves the checksums out and covers the rest: so packets are a run only where each has
 * the very identification that the kernel would give it, and every one has the length of the first,
 * but for the last, which may be shorter.
 */
#ifndef PSOCK_RUN_H
#define PSOCK_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "psock/headers.h"

struct virtio_net_hdr;

#define RUN_PACKETS_MAX 64    /* Linux's UDP_MAX_SEGMENTS before 6.9; 128 now */
#define RUN_BYTES_MAX	65535 /* of the whole frame: a device takes no longer one at once */

struct run {
	const uint8_t *first; /* frame */
	struct headers headers;
	uint32_t segment_len; /* UDP payload of each packet but the last */
	uint32_t payload_len; /* of all */
	uint32_t count;
	bool ended; /* the last one was shorter, or none can follow */
};

/** Begin with a packet, which may be of any protocol: a run of one. MT-safe. */
void run_begin(struct run *run, const uint8_t *frame, uint32_t len);

/** Whether the next packet belongs to it; then it does. MT-safe. */
bool run_add(struct run *run, const uint8_t *frame, uint32_t len);

/**
 * The headers of the long packet of two and more, and what the kernel has to know of it. MT-safe.
 *
 * @param header
 *   Gets run->headers.len bytes.
 */
void run_describe(const struct run *run, uint8_t header[HEADERS_MAX],
		  struct virtio_net_hdr *offload);

#endif
