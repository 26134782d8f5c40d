/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiving half of a stream: a ring that the peer writes, and the grants for it. It does not
 * call verbs: its input is messages, its output grants.
 *
 * The ring has two parts, which are granted to the peer alternately. Each byte of the ring is in
 * one of three states: ready (has arrived), promised (the peer may write it), or freed (the program
 * has read it, but it is not granted again yet). A credit stands for one receive request. Data
 * messages and mappings take one credit each; grants and control messages take none.
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
	uint16_t requests; /* receive requests that back credits */
	uint16_t taken;	   /* messages that took a credit; their receive requests are reposted */
	uint16_t told;	   /* `taken` at the last grant */
};

/* A grant to the peer. With length 0 it grants only credits. */
struct rs_grant {
	uint16_t credits;
	uint32_t offset;
	uint32_t length;
};

/** Start with the first part promised. `size` is the size of both parts. */
void rs_in_init(struct rs_in *in, uint8_t *ring, uint32_t size, uint16_t requests);

/** Count a message that took a credit. */
void rs_in_count(struct rs_in *in);

/** Add bytes that have arrived. Return 0, or -EPROTO if len is 0 or more than is promised. */
int rs_in_data(struct rs_in *in, uint32_t len);

/** Return true if a grant is due. */
bool rs_in_is_due(const struct rs_in *in);

/** Make the next grant, which the caller must send. */
void rs_in_grant(struct rs_in *in, struct rs_grant *grant);

/** Copy at most len ready bytes from offset `skip` on, but keep them in the ring. If data is NULL,
 * only count them. Return the number of bytes. */
size_t rs_in_peek(const struct rs_in *in, size_t skip, void *data, size_t len);

/** Copy at most len ready bytes and free them. If data is NULL, drop them. Return the number of
 * bytes. */
size_t rs_in_read(struct rs_in *in, void *data, size_t len);

#endif
