/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The work of any software data path on a packet, whatever its protocol: copy from a region into
 * the packet and compute a CRC in one pass; check the CRC, and then copy into a region. The limits
 * that performance is compared with consist of this work (bench_limit, bench_ring).
 */
#ifndef PERF_PACKET_WORK_H
#define PERF_PACKET_WORK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mem/place.h"
#include "psock/udp_frame.h"
#include "wire/headers.h"
#include "wire/icrc.h"

#define WORK_HEADER_BYTES 64u
#define WORK_KIND_AT	  44 /* behind the headers that ports may read, up to UDP's */
#define WORK_VALUE_AT	  48
#define WORK_PACKET_MAX	  (WORK_HEADER_BYTES + 4096u + 4u)

/* The receiver's work on a packet. */
enum work_kind { WORK_STORE, WORK_ECHO, WORK_COUNT, WORK_END };

struct work {
	uint8_t *region;
	size_t region_bytes;
	size_t offset;
	bool no_crc; /* copies alone, as between programs that trust each other */
	bool udp;    /* UDP packets to RoCE's port, which a kernel interface needs; their content is
			not RoCE */
	struct udp_frame headers; /* of these */
	bool past_caches;	  /* store the payload with non-temporal stores */
	uint16_t id;
	uint8_t header[WORK_HEADER_BYTES];
};

static inline void work_fail(const char *what)
{
	fprintf(stderr, "%s failed\n", what);
	exit(1);
}

static inline void work_require(bool condition, const char *what)
{
	if (!condition)
		work_fail(what);
}

/* Take the next length of a list like "64,4096". Return 0 at its end. */
static inline uint32_t work_next_length(const char **list)
{
	char *end;
	unsigned long len;

	if (**list == '\0')
		return 0;
	len = strtoul(*list, &end, 10);
	work_require(len > 0 && len <= 4096 && (*end == ',' || *end == '\0'),
		     "a list of lengths up to 4096");
	*list = *end == ',' ? end + 1 : end;
	return (uint32_t)len;
}

/* Initialise a region; this accesses its memory for the first time. */
static inline void work_init(struct work *work, size_t region_bytes)
{
	memset(work, 0, sizeof(*work));
	work->region = mmap(NULL, region_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	work_require(work->region != MAP_FAILED, "memory for the region");
	memset(work->region, 1, region_bytes);
	work->region_bytes = region_bytes;
	/* An Ethernet type for experiments; frames of other types are not ours. */
	work->header[12] = 0x88;
	work->header[13] = 0xb5;
}

/* Call after work_init, because it reads work.udp. */
static inline void work_use_udp(struct work *work)
{
	work->udp = true;
	work->header[12] = 0x08;
	work->header[13] = 0;
	work->header[14] = 0x45;
	work->header[20] = 0x40; /* DF */
	work->header[22] = 64;
	work->header[23] = 17;
	work->header[36] = WIRE_UDP_PORT >> 8;
	work->header[37] = WIRE_UDP_PORT & 0xff;
	work_require(udp_frame_find(work->header, sizeof(work->header), &work->headers),
		     "UDP headers");
}

static inline uint8_t *work_next(struct work *work, uint32_t len)
{
	uint8_t *const at = work->region + work->offset;

	work->offset = work->region_bytes - work->offset < 2 * (size_t)len ? 0 : work->offset + len;
	return at;
}

/* Build a packet of `len` bytes of the region at `at`. Return its length. */
static inline uint32_t work_make(struct work *work, uint8_t *at, enum work_kind kind,
				 uint64_t value, uint32_t len)
{
	uint32_t crc;

	if (work->udp)
		udp_frame_set(work->header, &work->headers,
			      WORK_HEADER_BYTES + len + 4 - work->headers.len, work->id++);
	work->header[WORK_KIND_AT] = (uint8_t)kind;
	memcpy(work->header + WORK_VALUE_AT, &value, sizeof(value));
	if (work->no_crc) {
		memcpy(at, work->header, WORK_HEADER_BYTES);
		place_strict(at + WORK_HEADER_BYTES, work_next(work, len), len, 0);
		return WORK_HEADER_BYTES + len + 4;
	}
	crc = icrc_copy(0, at, work->header, WORK_HEADER_BYTES);
	crc = work->past_caches ? icrc_copy_past_caches(crc, at + WORK_HEADER_BYTES,
							work_next(work, len), len)
				: icrc_copy(crc, at + WORK_HEADER_BYTES, work_next(work, len), len);
	icrc_store(crc, at + WORK_HEADER_BYTES + len);
	return WORK_HEADER_BYTES + len + 4;
}

static inline bool work_is_ours(const struct work *work, const uint8_t *at, uint32_t bytes)
{
	return bytes >= WORK_HEADER_BYTES + 4 && memcmp(at + 12, work->header + 12, 2) == 0;
}

/* Check a packet and store its payload. Return its kind. */
static inline enum work_kind work_take(struct work *work, const uint8_t *at, uint32_t bytes)
{
	const uint32_t len = bytes - WORK_HEADER_BYTES - 4u;
	uint8_t *to;

	if (!work->no_crc)
		work_require(icrc_load(at + WORK_HEADER_BYTES + len) ==
				     icrc_update(icrc_update(0, at, WORK_HEADER_BYTES),
						 at + WORK_HEADER_BYTES, len),
			     "a checksum");
	to = work_next(work, len);
	place_strict(to, at + WORK_HEADER_BYTES, len, len);
	return (enum work_kind)at[WORK_KIND_AT];
}

static inline uint64_t work_value(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at + WORK_VALUE_AT, sizeof(value));
	return value;
}

static inline int work_compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Compute half of the median round trip, and of the 99th percentile, in us. */
static inline void work_quantiles(uint64_t *ticks, int count, double ticks_per_s, double *p50,
				  double *p99)
{
	const double us = 1e6 / 2 / ticks_per_s;

	qsort(ticks, (size_t)count, sizeof(ticks[0]), work_compare);
	*p50 = (double)ticks[count / 2] * us;
	*p99 = (double)ticks[count / 100 * 99] * us;
}

#endif
