/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memif protocol, version 2.0: its messages and its layout of shared memory.
 *
 * Two ends exchange packets through shared memory. The client makes the memory, and describes it to
 * the server over a SOCK_SEQPACKET socket. All messages have the same length:
 *
 *   server  HELLO       the server's limits
 *   client  INIT        the interface that the client wants; acknowledged
 *   client  ADD_REGION  memory, with its descriptor; acknowledged
 *   client  ADD_RING    a ring in it, with an eventfd; acknowledged
 *   client  CONNECT     all was described
 *   server  CONNECTED
 *   either  DISCONNECT
 *
 * A ring has descriptors of buffers and two free-running indices. In the ring to the server, the
 * client fills buffers and advances `head`; the server advances `tail` when it has read them. In
 * the ring to the client, the client provides empty buffers up to `head`; the server fills them up
 * to `tail`.
 */
#ifndef MEMIF_PROTOCOL_H
#define MEMIF_PROTOCOL_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>

#define MEMIF_VERSION	 0x0200
#define MEMIF_COOKIE	 UINT32_C(0x3e31f20) /* at the start of each ring */
#define MEMIF_SECRET_LEN 24
#define MEMIF_NAME_LEN	 32

enum memif_type {
	MEMIF_ACK = 1,
	MEMIF_HELLO,
	MEMIF_INIT,
	MEMIF_ADD_REGION,
	MEMIF_ADD_RING,
	MEMIF_CONNECT,
	MEMIF_CONNECTED,
	MEMIF_DISCONNECT,
};

#define MEMIF_MODE_ETHERNET  0
#define MEMIF_RING_TO_SERVER 0x1 /* memif_add_ring.flags */

struct memif_hello {
	char name[MEMIF_NAME_LEN];
	uint16_t min_version;
	uint16_t max_version;
	uint16_t max_region; /* the last index of each */
	uint16_t max_ring_to_client;
	uint16_t max_ring_to_server;
	uint8_t max_log2_ring_size;
} __rte_packed;

struct memif_init {
	uint16_t version;
	uint32_t id;
	uint8_t mode;
	uint8_t secret[MEMIF_SECRET_LEN];
	char name[MEMIF_NAME_LEN];
} __rte_packed;

struct memif_add_region {
	uint16_t index;
	uint64_t bytes;
} __rte_packed;

struct memif_add_ring {
	uint16_t flags;
	uint16_t index;
	uint16_t region;
	uint32_t offset;
	uint8_t log2_size;
	uint16_t private_header_bytes;
} __rte_packed;

struct memif_connect {
	char name[MEMIF_NAME_LEN];
} __rte_packed;

struct memif_disconnect {
	uint32_t code;
	char reason[96];
} __rte_packed;

struct memif_message {
	uint16_t type;
	union {
		struct memif_hello hello;
		struct memif_init init;
		struct memif_add_region add_region;
		struct memif_add_ring add_ring;
		struct memif_connect connect; /* MEMIF_CONNECTED too */
		struct memif_disconnect disconnect;
		uint8_t room[126];
	};
} __rte_packed;

static_assert(sizeof(struct memif_message) == 128, "the same length always");
static_assert(offsetof(struct memif_message, hello.max_log2_ring_size) == 44, "no holes");
static_assert(offsetof(struct memif_message, init.secret) == 9, "no holes");
static_assert(offsetof(struct memif_message, add_region.bytes) == 4, "no holes");
static_assert(offsetof(struct memif_message, add_ring.private_header_bytes) == 13, "no holes");

#define MEMIF_MORE 0x1 /* memif_descriptor.flags: the packet goes on in the next buffer */

struct memif_descriptor {
	uint16_t flags;
	uint16_t region;
	uint32_t length;
	uint32_t offset; /* in the region */
	uint32_t metadata;
};

static_assert(sizeof(struct memif_descriptor) == 16, "no holes");

#define MEMIF_QUIET 0x1 /* memif_ring_memory.flags: the receiver polls and wants no signal */

struct memif_ring_memory {
	uint32_t cookie;
	uint16_t flags;
	uint16_t head;
	uint8_t fill_head[56];
	uint16_t tail;
	uint16_t fill;
	/* An owner (owner/serve.h) writes here how many packets it took from this ring and dropped,
	 * and which receivers have left some unread. This is not part of memif: other servers leave
	 * it 0. */
	uint32_t dropped;
	uint64_t unread;
	uint8_t fill_tail[48];
	struct memif_descriptor descriptors[];
};

static_assert(offsetof(struct memif_ring_memory, tail) == 64, "a cache line each");
static_assert(offsetof(struct memif_ring_memory, dropped) == 68, "no holes");
static_assert(offsetof(struct memif_ring_memory, unread) == 72, "no holes");
static_assert(sizeof(struct memif_ring_memory) == 128, "a cache line each");

#endif
