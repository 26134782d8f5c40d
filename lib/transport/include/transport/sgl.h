/* SPDX-License-Identifier: BSD-3-Clause */
/* Walking a gather or scatter list by byte position, with every entry's key checked before a byte
 * moves. */
#ifndef TRANSPORT_SGL_H
#define TRANSPORT_SGL_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "mem/mr.h"
#include "wire/build.h"

struct pd;

struct sgl {
	const struct ibv_sge *sge;
	uint32_t num_sge;
	uint32_t index;	 /* of the entry the next byte is in */
	uint32_t offset; /* of the next byte in that entry */
	uint32_t next;	 /* bytes expected behind those of the next call; 0: none, or not known */
	uint64_t stored; /* bytes of memory written since sgl_seek */
};

/** Stand at byte `position` of a list. The list stays the caller's. */
static inline void sgl_seek(struct sgl *sgl, const struct ibv_sge *sge, uint32_t num_sge,
			    uint64_t position)
{
	sgl->sge = sge;
	sgl->num_sge = num_sge;
	sgl->index = 0;
	sgl->next = 0;
	sgl->stored = 0;
	while (sgl->index < num_sge && position >= sge[sgl->index].length)
		position -= sge[sgl->index++].length;
	sgl->offset = (uint32_t)position;
}

/**
 * The next `len` bytes as fragments to read from; the list holds at least so many. What is in a
 * null region is zeros.
 *
 * @param frags
 *   Room for PACKET_FRAGS_MAX.
 * @return
 *   MR_OK, or why an entry may not be used; or MR_ABSENT, where a page of an on-demand region is
 * not in memory. Then nothing has moved.
 */
enum mr_status sgl_gather(struct sgl *sgl, const struct pd *pd, uint32_t len,
			  struct packet_frag *frags, uint32_t *count);

/**
 * Store `len` bytes at the next places of a list, which holds at least so many. All entries are
 * checked first. What belongs into a null region is dropped.
 *
 * @return
 *   MR_OK, or why an entry may not be used; or MR_ABSENT, as by sgl_gather. Then no byte was
 * stored, but for MR_FAULT, where those before the fault may have been.
 */
enum mr_status sgl_scatter(struct sgl *sgl, const struct pd *pd, const uint8_t *src, uint32_t len);

/** Return true if the next `len` bytes may be stored to, and a page of them is not in memory. */
bool sgl_is_absent(struct sgl *sgl, const struct pd *pd, uint32_t len);

/**
 * Store bytes that come before their turn, if all of them belong into one entry, and into a region
 * with relaxed ordering.
 *
 * @return
 *   Where they are, for sgl_leads_to at their turn; or NULL: then they wait for it.
 */
const uint8_t *sgl_scatter_early(struct sgl *sgl, const struct pd *pd, const uint8_t *src,
				 uint32_t len);

/** Whether the next `len` bytes of a list, which may be stored to, are still those at `addr`. */
bool sgl_leads_to(struct sgl *sgl, const struct pd *pd, uint32_t len, const uint8_t *addr);

#endif
