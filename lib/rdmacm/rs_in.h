/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiving half of a stream: a ring that the peer writes into, and what the peer is told of
 * it. Without verbs: messages in, grants out.
 *
 * The ring has two parts, which are granted to the peer in turn. Each byte of it is one of: ready
 * (has arrived), promised (the peer may write it), or freed (the program has read it, and the peer
 * does not know yet). A credit is a receive request, which each message but a grant takes one of.
 */
#ifndef RDMACM_RS_IN_H
#define RDMACM_RS_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rs_in {
	uint8_t *ring;
	uint32_t part;	   /* bytes of a part */
	uint32_t head;	   /* offset of the first byte that the program has not read */
	uint32_t ready;	   /* bytes */
	uint32_t promised; /* bytes */
	uint32_t freed;	   /* bytes */
	uint32_t next;	   /* offset of the part that is granted next */
	uint16_t requests; /* receive requests that there are credits for */
	uint16_t taken;	   /* messages that took one, which is posted again */
	uint16_t told;	   /* `taken` at the last grant */
};

/* A grant to the peer; with length 0 it has credits alone. */
struct rs_grant {
	uint16_t credits;
	uint32_t offset;
	uint32_t length;
};

/** Start with the first part promised. The size is that of both parts. */
void rs_in_init(struct rs_in *in, uint8_t *ring, uint32_t size, uint16_t requests);

/** Count a message, which has taken a receive request. */
void rs_in_count(struct rs_in *in);

/** Add bytes that have arrived. 0, or -EPROTO for none or for more than is promised. */
int rs_in_data(struct rs_in *in, uint32_t len);

/** Return true if a grant is due. */
bool rs_in_is_due(const struct rs_in *in);

/** Make the next grant, which the caller must send. */
void rs_in_grant(struct rs_in *in, struct rs_grant *grant);

/** Copy what is ready, at most len bytes from `skip` on, without taking it. Return the bytes. */
size_t rs_in_peek(const struct rs_in *in, size_t skip, void *data, size_t len);

/** Copy and take. */
size_t rs_in_read(struct rs_in *in, void *data, size_t len);

#endif
