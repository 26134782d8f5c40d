/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks a gather or scatter list by byte position. Every entry's key is checked before a byte is
 * copied. */
#include "transport/sgl.h"

#include <rte_branch_prediction.h>

#include "base/guard.h"
#include "base/reason.h"
#include "mem/place.h"

static __rte_noinline __rte_cold enum mr_status unmapped(void)
{
	return FAULT_REASON(MR_FAULT, SGL_UNMAPPED);
}

enum mr_status sgl_reach(const struct sgl *sgl, const struct pd *pd, uint32_t take,
			 unsigned int need, uint8_t **addr)
{
	const struct ibv_sge *sge = &sgl->sge[sgl->index];
	const struct mr_touch touch = {.now = take, .ahead = sge->length - sgl->offset - take};

	return mr_reach(pd, sge->lkey, sge->addr + sgl->offset, take, need, touch, addr);
}

/* Find the next `take` bytes of an entry, whether their pages are in memory or not. */
static enum mr_status sgl_find(const struct sgl *sgl, const struct pd *pd, uint32_t take,
			       unsigned int need, uint8_t **addr)
{
	const struct ibv_sge *sge = &sgl->sge[sgl->index];

	return mr_resolve(pd, sge->lkey, sge->addr + sgl->offset, take, need, addr);
}

typedef enum mr_status sgl_check(const struct sgl *sgl, const struct pd *pd, uint32_t take,
				 unsigned int need, uint8_t **addr);

static enum mr_status sgl_resolve(struct sgl *sgl, const struct pd *pd, uint32_t len,
				  unsigned int need, sgl_check *check, struct packet_frag *frags,
				  uint32_t *count)
{
	const uint32_t index = sgl->index, offset = sgl->offset;
	uint32_t n = 0;

	while (len > 0 && sgl->index < sgl->num_sge) {
		const struct ibv_sge *sge = &sgl->sge[sgl->index];
		const uint32_t left = sge->length - sgl->offset;
		const uint32_t take = left < len ? left : len;

		if (take > 0) {
			uint8_t *addr;
			const enum mr_status status = check(sgl, pd, take, need, &addr);

			if (status != MR_OK) {
				sgl->index = index;
				sgl->offset = offset;
				return status;
			}
			/* A queue's lists have at most PACKET_FRAGS_MAX entries; this check makes
			 * sure. */
			if (n == PACKET_FRAGS_MAX)
				return MR_OUT_OF_RANGE;
			frags[n].addr = addr;
			frags[n].len = take;
			frags[n].kind = addr != NULL ? FRAG_COPY : FRAG_ZERO;
			n++;
		}
		len -= take;
		sgl->offset += take;
		if (sgl->offset == sge->length) {
			sgl->index++;
			sgl->offset = 0;
		}
	}
	*count = n;
	return len == 0 ? MR_OK : MR_OUT_OF_RANGE;
}

enum mr_status sgl_gather_all(struct sgl *sgl, const struct pd *pd, uint32_t len,
			      struct packet_frag *frags, uint32_t *count)
{
	return sgl_resolve(sgl, pd, len, 0, sgl_reach, frags, count);
}

/* Arguments of the guarded part of scattering. */
struct scatter {
	const struct packet_frag *frag;
	uint32_t count;
	const uint8_t *src;
	uint32_t stored; /* bytes written to memory */
};

static void scatter_copy(void *arg)
{
	struct scatter *scatter = arg;
	const uint8_t *src = scatter->src;
	uint32_t stored = 0;

	for (uint32_t i = 0; i < scatter->count; i++) {
		const struct packet_frag *frag = &scatter->frag[i];

		if (frag->kind == FRAG_COPY) {
			place_strict((uint8_t *)(uintptr_t)frag->addr, src, frag->len, 0);
			stored += frag->len;
		}
		src += frag->len;
	}
	scatter->stored = stored;
}

static enum mr_status sgl_scatter_piece(struct sgl *sgl, const struct pd *pd, const uint8_t *src,
					uint32_t len)
{
	const struct ibv_sge *sge = &sgl->sge[sgl->index];
	struct packet_frag frag;
	const enum mr_status status = sgl_take_piece(sgl, pd, len, IBV_ACCESS_LOCAL_WRITE, &frag);

	if (status != MR_OK || frag.kind == FRAG_ZERO)
		return status;
	if (place_guarded((uint8_t *)(uintptr_t)frag.addr, src, len,
			  RTE_MIN(sgl->next, sge->length - sgl->offset)) != 0)
		return unmapped();
	sgl->stored += len;
	return MR_OK;
}

static enum mr_status sgl_scatter_all(struct sgl *sgl, const struct pd *pd, const uint8_t *src,
				      uint32_t len)
{
	struct packet_frag frags[PACKET_FRAGS_MAX];
	struct scatter scatter = {.frag = frags, .src = src};
	const enum mr_status status =
		sgl_resolve(sgl, pd, len, IBV_ACCESS_LOCAL_WRITE, sgl_reach, frags, &scatter.count);

	if (status != MR_OK)
		return status;
	if (guard_run(scatter_copy, &scatter) != 0)
		return unmapped();
	sgl->stored += scatter.stored;
	return MR_OK;
}

enum mr_status sgl_scatter(struct sgl *sgl, const struct pd *pd, const uint8_t *src, uint32_t len)
{
	return likely(sgl_is_piece(sgl, len)) ? sgl_scatter_piece(sgl, pd, src, len)
					      : sgl_scatter_all(sgl, pd, src, len);
}

bool sgl_is_absent(struct sgl *sgl, const struct pd *pd, uint32_t len)
{
	struct packet_frag frags[PACKET_FRAGS_MAX];
	uint32_t count;
	const enum mr_status status =
		sgl_resolve(sgl, pd, len, IBV_ACCESS_LOCAL_WRITE, sgl_reach, frags, &count);

	reason_drop();
	return status == MR_ABSENT;
}

/* Return where the next bytes of a list belong, if all of them belong into one entry with this
 * access. */
static uint8_t *sgl_single(struct sgl *sgl, const struct pd *pd, uint32_t len, unsigned int need,
			   sgl_check *check)
{
	struct packet_frag frags[PACKET_FRAGS_MAX];
	uint32_t count;

	if (sgl_resolve(sgl, pd, len, need, check, frags, &count) != MR_OK || count != 1 ||
	    frags[0].kind != FRAG_COPY) {
		reason_drop();
		return NULL;
	}
	return (uint8_t *)(uintptr_t)frags[0].addr;
}

const uint8_t *sgl_scatter_ooo(struct sgl *sgl, const struct pd *pd, const uint8_t *src,
			       uint32_t len)
{
	uint8_t *addr = sgl_single(sgl, pd, len,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING, sgl_reach);

	if (addr == NULL || place_guarded(addr, src, len, 0) != 0)
		return NULL;
	sgl->stored += len;
	return addr;
}

bool sgl_leads_to(struct sgl *sgl, const struct pd *pd, uint32_t len, const uint8_t *addr)
{
	return sgl_single(sgl, pd, len, IBV_ACCESS_LOCAL_WRITE, sgl_find) == addr;
}
