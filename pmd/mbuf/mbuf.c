/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of DPDK's mbuf library that are not inline, with the meaning that rte_mbuf.h
 * documents. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_debug.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

struct rte_mempool_ops_table rte_mempool_ops_table = {.sl = RTE_SPINLOCK_INITIALIZER};

RTE_DEFINE_PER_LCORE(unsigned int, _lcore_id) = LCORE_ID_ANY;

static int find_ops(const char *name)
{
	for (uint32_t i = 0; i < rte_mempool_ops_table.num_ops; i++) {
		if (strcmp(rte_mempool_ops_table.ops[i].name, name) == 0)
			return (int)i;
	}
	return -ENOENT;
}

/* Return the index of the operations in the table, or -errno. */
int rte_mempool_register_ops(const struct rte_mempool_ops *ops)
{
	int rc = -ENOSPC;

	rte_spinlock_lock(&rte_mempool_ops_table.sl);
	if (find_ops(ops->name) >= 0) {
		rc = -EEXIST;
	} else if (rte_mempool_ops_table.num_ops < RTE_MEMPOOL_MAX_OPS_IDX) {
		rc = (int)rte_mempool_ops_table.num_ops;
		rte_mempool_ops_table.ops[rc] = *ops;
		rte_mempool_ops_table.num_ops++;
	}
	rte_spinlock_unlock(&rte_mempool_ops_table.sl);
	return rc;
}

int rte_mempool_set_ops_byname(struct rte_mempool *pool, const char *name, void *pool_config)
{
	const int index = find_ops(name);

	if (index < 0)
		return -EINVAL;
	pool->ops_index = index;
	pool->pool_config = pool_config;
	return 0;
}

/* DPDK's headers assert that each pool's operations are registered, and ours are not. */
void __rte_panic(const char *function, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "uroce: %s: ", function);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	abort();
}

/* Return true if a packet is one segment with its own data, which nobody else refers to: as it is,
 * it can go back to its pool. */
static bool is_plain(const struct rte_mbuf *mbuf)
{
	return mbuf && rte_mbuf_refcnt_read(mbuf) == 1 && RTE_MBUF_DIRECT(mbuf) && !mbuf->next &&
	       mbuf->nb_segs == 1;
}

/* Free packets, some of which may be NULL. Plain packets of one pool go back to it together. */
void rte_pktmbuf_free_bulk(struct rte_mbuf **mbufs, unsigned int count)
{
	while (count > 0) {
		unsigned int n = 0;

		while (n < count && likely(is_plain(mbufs[n])) && mbufs[n]->pool == mbufs[0]->pool)
			n++;
		if (likely(n > 0))
			rte_mempool_put_bulk(mbufs[0]->pool, (void **)mbufs, n);
		else
			rte_pktmbuf_free(mbufs[n++]);
		mbufs += n;
		count -= n;
	}
}

/* Copy `len` bytes of a packet, from `offset` on. The packet has that many. */
static void read_segments(const struct rte_mbuf *mbuf, uint32_t offset, uint32_t len, uint8_t *to)
{
	while (offset >= mbuf->data_len) {
		offset -= mbuf->data_len;
		mbuf = mbuf->next;
	}
	while (len > 0) {
		const uint32_t bytes = RTE_MIN(len, mbuf->data_len - offset);

		memcpy(to, rte_pktmbuf_mtod_offset(mbuf, const uint8_t *, offset), bytes);
		to += bytes;
		len -= bytes;
		offset = 0;
		mbuf = mbuf->next;
	}
}

/* Return `len` bytes of a packet, from `offset` on, in `buffer` if they are not in one segment.
 * NULL: the packet is shorter. */
const void *__rte_pktmbuf_read(const struct rte_mbuf *mbuf, uint32_t offset, uint32_t len,
			       void *buffer)
{
	if (offset > mbuf->pkt_len || len > mbuf->pkt_len - offset)
		return NULL;
	while (mbuf->next && offset >= mbuf->data_len) {
		offset -= mbuf->data_len;
		mbuf = mbuf->next;
	}
	if (offset <= mbuf->data_len && len <= mbuf->data_len - offset)
		return rte_pktmbuf_mtod_offset(mbuf, const uint8_t *, offset);
	read_segments(mbuf, offset, len, buffer);
	return buffer;
}

/* Append a segment of the pool to a packet whose last one is `last`. NULL: no memory. */
static struct rte_mbuf *append_segment(struct rte_mbuf *head, struct rte_mbuf *last,
				       struct rte_mempool *pool)
{
	struct rte_mbuf *segment = rte_pktmbuf_alloc(pool);

	if (!segment)
		return NULL;
	last->next = segment;
	head->nb_segs++;
	return segment;
}

/* Fill a new packet with data of another one. False: no memory. */
static bool copy_data(struct rte_mbuf *head, const struct rte_mbuf *mbuf, struct rte_mempool *pool,
		      uint32_t offset, uint32_t len)
{
	struct rte_mbuf *segment = head;

	while (len > 0) {
		const uint32_t bytes = RTE_MIN(len, (uint32_t)rte_pktmbuf_tailroom(segment));

		if (bytes == 0) {
			segment = append_segment(head, segment, pool);
			if (!segment)
				return false;
			continue;
		}
		read_segments(mbuf, offset, bytes,
			      rte_pktmbuf_mtod_offset(segment, uint8_t *, segment->data_len));
		segment->data_len = (uint16_t)(segment->data_len + bytes);
		head->pkt_len += bytes;
		offset += bytes;
		len -= bytes;
	}
	return true;
}

/* Copy up to `len` bytes of a packet, from `offset` on, with its metadata. NULL: no memory, or the
 * packet ends before `offset`. */
struct rte_mbuf *rte_pktmbuf_copy(const struct rte_mbuf *mbuf, struct rte_mempool *pool,
				  uint32_t offset, uint32_t len)
{
	struct rte_mbuf *copy;

	if (offset >= mbuf->pkt_len)
		return NULL;
	copy = rte_pktmbuf_alloc(pool);
	if (!copy)
		return NULL;
	__rte_pktmbuf_copy_hdr(copy, mbuf);
	/* How the data is stored is each packet's own. */
	copy->ol_flags |= mbuf->ol_flags & ~(RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL);
	if (copy_data(copy, mbuf, pool, offset, RTE_MIN(len, mbuf->pkt_len - offset)))
		return copy;
	rte_pktmbuf_free(copy);
	return NULL;
}
