/* SPDX-License-Identifier: BSD-3-Clause */
/* The format of a fuzzer's input: records, each a head and a number of bytes. */
#ifndef FUZZ_RECORD_H
#define FUZZ_RECORD_H

#include <stdint.h>

enum record_kind {
	RECORD_PACKET,	 /* the bytes from the BTH on; headers, pad and ICRC are added */
	RECORD_PACKET_2, /* the same: four values, so that nearly half of the random records are
			    packets */
	RECORD_PACKET_3,
	RECORD_PACKET_4,
	RECORD_FRAME, /* the bytes are a whole frame */
	RECORD_WAIT,
	RECORD_POST,
	RECORD_MODIFY,
	RECORD_BIND, /* the queue pair's window */
	RECORD_KINDS,
};

#define RECORD_KEEP_QPN	  0x01 /* the packet's own; else that of queue pair `qp` */
#define RECORD_KEEP_PSN	  0x02 /* else the expected PSN, plus `delta` */
#define RECORD_KEEP_KEY	  0x04 /* else the key and an address of region `select` */
#define RECORD_IPV6	  0x08 /* else the queue pair's own IP version and VLAN */
#define RECORD_PATCH	  0x10 /* the frame's byte at `patch_at` is changed by `patch` */
#define RECORD_BAD_ICRC	  0x20 /* and the ICRC is not computed again */
#define RECORD_SMALL_ROOM 0x40 /* the port takes few packets in this engine poll */

struct record {
	uint8_t kind;
	uint8_t flags;
	uint8_t qp;
	int8_t delta;
	uint8_t select;
	uint8_t patch_at;
	uint8_t patch;
	uint8_t len[2]; /* high byte first */
};

struct world;

/** Execute a record. */
void record_play(struct world *world, const struct record *record, const uint8_t *bytes,
		 uint32_t len);

#endif
