/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A run: consecutive packets that the kernel takes as one long UDP packet and splits (UDP
 * segmentation offload).
 *
 * The kernel copies the headers, and writes lengths, checksums and, over IPv4, an identification
 * that counts up by one. The ICRC covers all of that but the checksums. So packets are a run only
 * if each has the identification that the kernel would write, and the length of the first one. The
 * last one may be shorter. All packets of a run are for one queue pair.
 */
#ifndef PSOCK_PACKET_RUN_H
#define PSOCK_PACKET_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "psock/udp_frame.h"

struct rte_mbuf;
struct virtio_net_hdr;

#define RUN_PACKETS_MAX 64    /* Linux's UDP_MAX_SEGMENTS before 6.9; 128 now */
#define RUN_BYTES_MAX	65535 /* of the whole frame: a device takes no longer frame at once */

struct run {
	const uint8_t *first; /* frame */
	struct udp_frame headers;
	uint32_t segment_len; /* UDP payload of each packet but the last */
	uint32_t payload_len; /* of all */
	uint32_t count;
	bool ended; /* the last one was shorter, or none can follow */
};

/** Begin a run with one packet, of any protocol. MT-safe. */
void run_begin(struct run *run, const uint8_t *frame, uint32_t len);

/** Add the next packet to the run. Returns false if it does not belong to the run. MT-safe. */
bool run_add(struct run *run, const uint8_t *frame, uint32_t len);

/**
 * Begin a run with the first of `n` packets, and add those behind it that belong to it. MT-safe.
 *
 * @param runs
 *   False: each packet is a run of its own.
 */
void run_gather(struct run *run, struct rte_mbuf *const *mbufs, uint32_t n, bool runs);

/**
 * Make the headers of the long packet, and its description for the kernel. For runs of two packets
 * and more. MT-safe.
 *
 * @param header
 *   Gets run->headers.len bytes.
 */
void run_describe(const struct run *run, uint8_t header[HEADERS_MAX],
		  struct virtio_net_hdr *offload);

#endif
