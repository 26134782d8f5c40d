/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads classic pcap files of Ethernet frames, as far as the captures in test/data need it. */
#ifndef TEST_COMMON_PCAP_H
#define TEST_COMMON_PCAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pcap {
	uint8_t *bytes; /* the whole file, owned */
	size_t len;
	size_t at;    /* offset of the next record */
	bool swapped; /* the writing host had the other byte order */
	bool nanoseconds;
};

struct pcap_frame {
	const uint8_t *data; /* from the Ethernet header on; valid until pcap_close */
	uint32_t len;
	uint64_t time_ns;
};

/**
 * Read a file. Not MT-safe per pcap.
 *
 * @return
 *   0, -errno when it cannot be read, or -EBADMSG when it is no pcap file of Ethernet frames.
 */
int pcap_open(struct pcap *pcap, const char *path);

/**
 * Take the next frame. Not MT-safe per pcap.
 *
 * @return
 *   1, 0 at the end of the file, or -EBADMSG at a record that is cut off.
 */
int pcap_next(struct pcap *pcap, struct pcap_frame *frame);

void pcap_close(struct pcap *pcap);

#endif
