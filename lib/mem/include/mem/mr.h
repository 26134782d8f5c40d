/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions: registration, and the only check of an access by key. */
#ifndef MEM_MR_H
#define MEM_MR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rte_branch_prediction.h>

#include "mem/key_table.h"
#include "mem/pd.h"

/* Length from which a region is looked at for huge pages that its program does not mention: the
 * smallest huge page. Few regions are that long, so few questions and mappings are made. */
#define MR_HUGE_MIN (UINT64_C(2) << 20)

struct dm;

enum mr_kind {
	MR_MEMORY,   /* memory of this process */
	MR_IMPLICIT, /* all memory that this process has or will have */
	MR_DEVICE,   /* a part of device memory (dm.h) */
	MR_DMABUF,   /* a part of a dma-buf, mapped for it (dmabuf.h) */
	/* From here on mr_recall finds no address. */
	MR_NULL,   /* reads as zeros; written bytes are discarded */
	MR_WINDOW, /* a part of another region, for peers only (mw.h) */
};

struct mr {
	struct pd *pd;
	uint8_t *addr;	     /* first byte in this process */
	uint64_t length;     /* bytes */
	uint64_t iova;	     /* the address that peers and work requests use for addr */
	unsigned int access; /* enum ibv_access_flags */
	uint32_t key;	     /* both lkey and rkey */
	enum mr_kind kind;
	uint32_t windows;    /* bound windows; engine's thread */
	void *dma;	     /* DMA mapping for sends without a copy, or NULL; engine's lock */
	uint32_t prefetches; /* prefetches in progress (advise.h); under that file's lock */
	/* Release what the region holds: MR_DEVICE, MR_DMABUF; else NULL. Nobody uses the region
	 * any more. */
	void (*release)(const struct mr *mr);
	union {
		struct dm *dm;	       /* MR_DEVICE: the device memory that this is a part of */
		struct {	       /* MR_DMABUF */
			uint64_t skip; /* bytes of the buffer that are mapped before addr */
			int fd;	       /* keeps the buffer; owned */
		} dmabuf;
	};
};

/**
 * Register memory. MT-safe. Pages are faulted in (a NIC would pin them), and only for reading if
 * IBV_ACCESS_LOCAL_WRITE is missing. With IBV_ACCESS_ON_DEMAND the pages need not exist, now or
 * later: the region is a range of addresses, and an access uses what is mapped there at that time.
 * With IBV_ACCESS_ON_DEMAND, `addr` NULL and `length` SIZE_MAX stand for all addresses (an implicit
 * region). The optional access flags (IBV_ACCESS_OPTIONAL_RANGE) never make the call fail.
 *
 * @param iova
 *   Address of `addr` in the key's address space: equal to `addr` for ibv_reg_mr, 0 for zero-based.
 *   In an implicit region it is the process's address.
 * @return
 *   0; -EINVAL for access flags that contradict each other (remote write or atomic without local
 *   write), an unknown mandatory flag, a range that wraps, page offsets of addr and iova that
 *   differ, or pages that are not huge with IBV_ACCESS_HUGETLB; -EFAULT if the range is not mapped
 *   for this access; -ENOMEM. Source: ibv_reg_mr(3).
 */
int mr_register(struct pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access,
		struct mr **mr);

/**
 * Create a null region: for local access, of the greatest length, at every address
 * (ibv_alloc_null_mr(3)). It cannot be changed. It does not keep its domain from being destroyed,
 * because it has no memory; after that nobody can use it. MT-safe. 0, -EINVAL if the domain is
 * destroyed, -ENOMEM.
 */
int mr_create_null(struct pd *pd, struct mr **mr);

/**
 * Make the key invalid and free the region; unmap a dma-buf. The caller has stopped the engine, so
 * that no packet is between its check and its copy. After the return nobody accesses the memory by
 * this region.
 *
 * @return
 *   0; else nothing has changed: -EBUSY while windows are bound to the region; -EAGAIN while a
 *   thread that follows advice waits for a page of it (start the engine, call advise_wait, and try
 *   again).
 */
int mr_deregister(struct mr *mr);

/**
 * Return true if a region of this process's memory has huge pages. IBV_ACCESS_HUGETLB has verified
 * it; without the flag the kernel is asked, of a region of MR_HUGE_MIN bytes or more. MT-safe.
 */
bool mr_has_huge_pages(const struct mr *mr);

/* A change of a region (ibv_rereg_mr(3)). */
struct mr_change {
	unsigned int flags; /* enum ibv_rereg_mr_flags: which of the following change */
	struct pd *pd;
	void *addr;
	size_t length;
	unsigned int access; /* 0 unless it changes */
};

/**
 * Check a change, and fault in the pages that it needs. MT-safe; the engine runs. The region does
 * not change yet.
 *
 * @return
 *   0; -EINVAL for a region that is null, device memory or a dma-buf, unknown or no flags, a flag
 *   without its value, access flags that contradict each other, or a range that wraps; -EFAULT if
 *   the range is not mapped for this access; -ENOMEM.
 */
int mr_check_change(const struct mr *mr, const struct mr_change *change);

/**
 * Make a change that was checked. The engine is stopped, so that every packet sees either the old
 * region or the new one. The region keeps its key, as local and as remote key.
 *
 * @return
 *   0; else nothing has changed: -EBUSY while windows are bound to the region, -EAGAIN as
 *   mr_deregister, -EINVAL if the new domain is destroyed.
 */
int mr_apply_change(struct mr *mr, const struct mr_change *change);

/* Outcome of mr_resolve, in the order of the checks. */
enum mr_status {
	MR_OK,
	MR_BAD_KEY, /* no such key, or not for this use */
	MR_WRONG_PD,
	MR_NO_ACCESS, /* the region does not grant this access */
	MR_OUT_OF_RANGE,
	MR_FAULT,  /* not from mr_resolve: the access is granted, but the process has no such memory
		    */
	MR_ABSENT, /* from mr_reach only: the access is granted, but a page is not in memory */
};

/**
 * Check an access by a local key and translate its address. MT-safe against registration; callers
 * hold the engine.
 *
 * @param need
 *   enum ibv_access_flags that must all be granted; 0 for a local read.
 * @param length
 *   Bytes. For 0 nothing is checked: the result is MR_OK and *addr is NULL (IBTA C9-88: no key
 *   check for zero length).
 * @param addr
 *   On MR_OK: the first byte in this process; NULL in a null region, which reads as zeros and
 *   discards what is written.
 */
enum mr_status mr_resolve(const struct pd *pd, uint32_t key, uint64_t iova, uint64_t length,
			  unsigned int need, uint8_t **addr);

/** Do what mr_resolve_remote does, where mr_recall has not found the key: *addr is NULL. */
enum mr_status mr_resolve_any_remote(const struct pd *pd, uint32_t qpn, uint32_t key, uint64_t iova,
				     uint64_t length, unsigned int need, uint8_t **addr);

/* The part of a range that is accessed. */
struct mr_touch {
	uint32_t now;	/* bytes from the range's beginning that must be in memory */
	uint32_t ahead; /* bytes behind them that are likely to be accessed next */
};

/** Do what mr_reach does, where mr_recall has not found the key: *addr is NULL. */
enum mr_status mr_reach_any(const struct pd *pd, uint32_t key, uint64_t iova, uint64_t length,
			    unsigned int need, struct mr_touch touch, uint8_t **addr);

/** Do what mr_reach_remote does, where mr_recall has not found the key: *addr is NULL. */
enum mr_status mr_reach_any_remote(const struct pd *pd, uint32_t qpn, uint32_t key, uint64_t iova,
				   uint64_t length, unsigned int need, struct mr_touch touch,
				   uint8_t **addr);

/**
 * Return the address of an access if it is granted and needs no more than a look at its region: the
 * key was used just now, and the region is no window, not null, and not on demand. Most accesses
 * are so, and need no call. NULL says nothing.
 */
static inline uint8_t *mr_recall(const struct pd *pd, uint32_t key, uint64_t iova, uint64_t length,
				 unsigned int need)
{
	const struct mr *mr = key_table_recall(pd->keys, key);
	uint64_t offset;

	if (unlikely(!mr || mr->pd != pd || mr->kind >= MR_NULL ||
		     (mr->access & (need | IBV_ACCESS_ON_DEMAND)) != need))
		return NULL;
	/* For an iova below the region, and for a length of 0, the subtractions wrap to at least
	 * the region's length, because the region's last byte does not wrap. */
	offset = iova - mr->iova;
	if (unlikely(length - 1 >= mr->length || offset > mr->length - length))
		return NULL;
	return mr->addr + offset;
}

/**
 * Check and translate a peer's access by a remote key, which may be a window's.
 *
 * @param qpn
 *   Our queue pair that the peer is connected to.
 */
static inline enum mr_status mr_resolve_remote(const struct pd *pd, uint32_t qpn, uint32_t key,
					       uint64_t iova, uint64_t length, unsigned int need,
					       uint8_t **addr)
{
	*addr = mr_recall(pd, key, iova, length, need);
	return likely(*addr) ? MR_OK
			     : mr_resolve_any_remote(pd, qpn, key, iova, length, need, addr);
}

/**
 * Call mr_resolve before an access to the first bytes of the range. In an on-demand region, also
 * check that their pages are in memory, because the access would otherwise stop the engine until
 * they are.
 *
 * @return
 *   As mr_resolve; or MR_ABSENT with *addr set: the access must not be made. The domain's pager
 *   then faults the pages in and tells the engine.
 */
static inline enum mr_status mr_reach(const struct pd *pd, uint32_t key, uint64_t iova,
				      uint64_t length, unsigned int need, struct mr_touch touch,
				      uint8_t **addr)
{
	*addr = mr_recall(pd, key, iova, length, need);
	return likely(*addr) ? MR_OK : mr_reach_any(pd, key, iova, length, need, touch, addr);
}

/** Call mr_resolve_remote, and check the pages as mr_reach does. */
static inline enum mr_status mr_reach_remote(const struct pd *pd, uint32_t qpn, uint32_t key,
					     uint64_t iova, uint64_t length, unsigned int need,
					     struct mr_touch touch, uint8_t **addr)
{
	*addr = mr_recall(pd, key, iova, length, need);
	return likely(*addr) ? MR_OK
			     : mr_reach_any_remote(pd, qpn, key, iova, length, need, touch, addr);
}

/** Check whether a peer may use a key for this access, without a range. MT-safe as mr_resolve. */
enum mr_status mr_check_remote(const struct pd *pd, uint32_t qpn, uint32_t key, unsigned int need);

/** Return the name of the first of these rights (enum ibv_access_flags), for a message. MT-safe. */
const char *mr_right_name(unsigned int rights);

/** Open what registration needs from the system, before the program drops privileges or changes its
 * root directory. MT-safe; call it again in a child of fork(). */
void mr_prepare(void);

#endif
