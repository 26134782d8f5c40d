/* SPDX-License-Identifier: BSD-3-Clause */
/* The surroundings of a transport role under test: a peer that sends packets, a sink that catches
 * them, keys, a completion queue, and memory between canaries. */
#ifndef TEST_COMMON_FIXTURE_H
#define TEST_COMMON_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "mem/mr.h"
#include "queue/cq.h"
#include "telemetry/counters.h"
#include "transport/pacer.h"
#include "transport/peer.h"
#include "transport/sink.h"
#include "wire/packet.h"

#define FIXTURE_QPN	 0x000011u
#define FIXTURE_PEER_QPN 0x345678u
#define FIXTURE_NOBODY	 0u /* a key that no region has */

/* A packet that a role gave to the sink. */
struct caught {
	struct packet packet; /* as the peer's parser returns it */
	uint8_t *frame;	      /* owned, of exactly the frame's length */
};

/* A sink that seals each packet, checks it as a receiver would, and keeps it. */
struct catcher {
	struct packet_sink sink; /* first, so that the sink is the catcher */
	struct packet_out out;
	uint8_t frame[PACKET_FRAME_MAX];
	unsigned int room; /* packets that it still takes */
	unsigned int count;
	struct caught *caught;
};

struct fixture {
	struct key_table *keys;
	struct pd *pd;
	struct pd *other_pd;
	struct cq *cq;
	struct counters counters;
	struct peer peer;   /* the peer of the roles */
	struct pacer pacer; /* a pacer without a limit */
	struct catcher catcher;

	/* the packet that the peer sent last */
	struct path path_back;
	struct packet packet;
	uint8_t frame[PACKET_FRAME_MAX];
};

/** Set up a path MTU in bytes, an IPv4 path, and room for `cqe` completions. */
void fixture_set_up(struct fixture *fixture, uint32_t mtu, uint32_t cqe);
/** Assert that no region is left. */
void fixture_tear_down(struct fixture *fixture);

/** Return the algorithm of congestion control that the environment names by TEST_CC, so that a
 * program can run with each; without it, none. */
enum cc_kind fixture_cc(void);

/** Give the pacer of a requester fixture_cc()'s algorithm. Swift's window is as long as any flight
 * of a test: such tests check what is sent, and not when. */
void fixture_pace(struct fixture *fixture, const struct loss *loss);

/* The values that the peer writes into a packet. Values of headers that the opcode does not have
 * are ignored. */
struct packet_fields {
	uint8_t opcode;
	uint32_t psn;
	bool ack_req;
	uint8_t capability;
	bool solicited;
	uint64_t iova;
	uint32_t rkey;
	uint32_t dma_length;
	uint32_t feth;
	uint64_t swap_add;
	uint64_t compare;
	uint64_t original;
	uint8_t syndrome;
	uint32_t msn;
	uint32_t imm_be;
	uint32_t qkey;
	uint32_t src_qpn;
	uint32_t serial;
	const uint8_t *payload; /* NULL: bytes of pattern_byte by psn */
	uint32_t len;
};

/** Return a packet from the peer to us, sealed and parsed; valid until the next one. */
const struct packet *fixture_packet(struct fixture *fixture, const struct packet_fields *fields);

/** Return byte `i` of a pattern that no other seed has at the same place. */
uint8_t pattern_byte(uint32_t seed, size_t i);

void catcher_set_up(struct catcher *catcher);
void catcher_tear_down(struct catcher *catcher);
/** Forget the caught packets. */
void catcher_clear(struct catcher *catcher);
/** Return the i-th packet that was caught since the last clear. */
const struct packet *catcher_at(const struct catcher *catcher, unsigned int i);
/** Assert that the i-th packet has this operation (RC) and PSN. */
void catcher_expect(const struct catcher *catcher, unsigned int i, uint8_t operation, uint32_t psn);

/* Registered memory with canaries on both sides. */
struct region {
	uint8_t *block; /* owned */
	uint8_t *bytes; /* the region's first byte */
	size_t length;
	struct mr *mr; /* NULL when deregistered */
};

/** Register `length` bytes of pattern `seed`. iova is 8-aligned and the bytes' address. */
void region_set_up(struct region *region, struct pd *pd, size_t length, unsigned int access,
		   uint32_t seed);
/** Assert that the canaries are intact, and free the memory. */
void region_tear_down(struct region *region);
/** Make the keys invalid; the memory stays. */
void region_deregister(struct region *region);
/** Assert that [from, from + len) still holds pattern `seed` counted from the region's first byte.
 */
void region_expect_pattern(const struct region *region, size_t from, size_t len, uint32_t seed);
struct ibv_sge region_sge(const struct region *region, size_t offset, uint32_t len);
static inline uint64_t region_iova(const struct region *region, size_t offset)
{
	return region->mr->iova + offset;
}

/** Take the oldest completion; assert that it has this request and status. */
struct ibv_wc fixture_completion(struct cq *cq, uint64_t wr_id, enum ibv_wc_status status);
void fixture_no_completion(struct cq *cq);

#endif
