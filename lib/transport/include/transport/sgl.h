/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks a gather or scatter list by byte position. Every entry's key is checked before a byte is
 * copied. */
#ifndef TRANSPORT_SGL_H
#define TRANSPORT_SGL_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rte_branch_prediction.h>

#include "mem/mr.h"
#include "wire/build.h"

struct pd;

/* Why an access fails that the list's keys allow (base/reason.h). */
#define SGL_UNMAPPED "the memory of the list is not mapped any more, or not for writing"

struct sgl {
	const struct ibv_sge *sge;
	uint32_t num_sge;
	uint32_t index;	 /* index of the entry with the next byte */
	uint32_t offset; /* offset of the next byte in that entry */
	uint32_t next;	 /* bytes expected behind those of the next call; 0: none, or unknown */
	uint64_t stored; /* bytes of memory written since sgl_seek */
};

/** Go to byte `position` of a list. The caller keeps the list. */
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

/** Find the next `take` bytes of an entry, whose pages must be in memory. */
enum mr_status sgl_reach(const struct sgl *sgl, const struct pd *pd, uint32_t take,
			 unsigned int need, uint8_t **addr);

/* Take a piece of the entry with the next byte, up to the entry's end. */
static inline enum mr_status sgl_take_piece(struct sgl *sgl, const struct pd *pd, uint32_t len,
					    unsigned int need, struct packet_frag *frag)
{
	const struct ibv_sge *sge = &sgl->sge[sgl->index];
	uint8_t *addr = mr_recall(pd, sge->lkey, sge->addr + sgl->offset, len, need);

	if (unlikely(!addr)) {
		const enum mr_status status = sgl_reach(sgl, pd, len, need, &addr);

		if (status != MR_OK)
			return status;
	}
	*frag = (struct packet_frag){
		.addr = addr, .len = len, .kind = addr != NULL ? FRAG_COPY : FRAG_ZERO};
	sgl->offset += len;
	return MR_OK;
}

/* Return true if the next bytes are of one entry, which is usual. If they end with the entry, the
 * next call finds nothing left of it. */
static inline bool sgl_is_piece(const struct sgl *sgl, uint32_t len)
{
	return len > 0 && sgl->index < sgl->num_sge &&
	       len <= sgl->sge[sgl->index].length - sgl->offset;
}

/** Do what sgl_gather does, for bytes of several entries. */
enum mr_status sgl_gather_all(struct sgl *sgl, const struct pd *pd, uint32_t len,
			      struct packet_frag *frags, uint32_t *count);

/**
 * Return the next `len` bytes as fragments to read; the list has at least as many. Bytes of a null
 * region are zeros.
 *
 * @param frags
 *   Room for PACKET_FRAGS_MAX.
 * @return
 *   MR_OK, or the reason why an entry may not be used; or MR_ABSENT if a page of an on-demand
 *   region is not in memory. Then the position has not changed.
 */
static inline enum mr_status sgl_gather(struct sgl *sgl, const struct pd *pd, uint32_t len,
					struct packet_frag *frags, uint32_t *count)
{
	if (unlikely(!sgl_is_piece(sgl, len)))
		return sgl_gather_all(sgl, pd, len, frags, count);
	*count = 1;
	return sgl_take_piece(sgl, pd, len, 0, frags);
}

/**
 * Store `len` bytes at the next places of a list, which has at least as many. All entries are
 * checked first. Bytes for a null region are discarded.
 *
 * @return
 *   MR_OK, or the reason why an entry may not be used; or MR_ABSENT, as sgl_gather. Then no byte
 *   was stored, except with MR_FAULT, where those before the fault may have been.
 */
enum mr_status sgl_scatter(struct sgl *sgl, const struct pd *pd, const uint8_t *src, uint32_t len);

/** Return true if the next `len` bytes may be stored to, but a page of them is not in memory. */
bool sgl_is_absent(struct sgl *sgl, const struct pd *pd, uint32_t len);

/**
 * Store bytes that came out of order, if all of them belong into one entry and into a region with
 * relaxed ordering.
 *
 * @return
 *   Where they are, for sgl_leads_to when their turn comes; or NULL: then they must wait.
 */
const uint8_t *sgl_scatter_ooo(struct sgl *sgl, const struct pd *pd, const uint8_t *src,
			       uint32_t len);

/** Return true if the next `len` bytes of a list, which may be stored to, are still those at
 * `addr`. */
bool sgl_leads_to(struct sgl *sgl, const struct pd *pd, uint32_t len, const uint8_t *addr);

#endif
