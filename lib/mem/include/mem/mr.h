/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions: registration, and the one check that stands before every access by key. */
#ifndef MEM_MR_H
#define MEM_MR_H

#include <stddef.h>
#include <stdint.h>

struct dm;
struct pd;

enum mr_kind {
	MR_MEMORY,   /* of this process */
	MR_IMPLICIT, /* all memory that this process has, or will have */
	MR_NULL,     /* reads as zeros, what is written vanishes */
	MR_DEVICE,   /* a part of device memory (dm.h) */
	MR_DMABUF,   /* a part of a dma-buf, mapped for it (dmabuf.h) */
	MR_WINDOW,   /* a part of another region, for peers only (mw.h) */
};

struct mr {
	struct pd *pd;
	uint8_t *addr;	     /* first byte in this process */
	uint64_t length;     /* bytes */
	uint64_t iova;	     /* the address that peers and work requests use for addr */
	unsigned int access; /* enum ibv_access_flags */
	uint32_t key;	     /* both lkey and rkey */
	enum mr_kind kind;
	uint32_t windows; /* that are bound to it; engine's thread */
	void *dma;	  /* what sends from its place has mapped it so, or NULL; engine's lock */
	uint32_t prefetches; /* on their way (advise.h); under that file's lock */
	union {
		struct dm *dm;	       /* MR_DEVICE: what it is a part of */
		struct {	       /* MR_DMABUF */
			uint64_t skip; /* bytes of the buffer that are mapped before addr */
			int fd;	       /* keeps the buffer; owned */
		} dmabuf;
	};
};

/**
 * Register memory. MT-safe. Pages are faulted in (as a pinning NIC would do), read-only without
 * IBV_ACCESS_LOCAL_WRITE. With IBV_ACCESS_ON_DEMAND they need not exist, now or later: the region
 * is a range of addresses, and what is mapped there when an access comes counts. With it, `addr`
 * NULL and `length` SIZE_MAX stand for all addresses (an implicit region). The optional access
 * range (IBV_ACCESS_OPTIONAL_RANGE) never makes the call fail.
 *
 * @param iova
 *   Address of `addr` in keys' address space; equal to `addr` for ibv_reg_mr, 0 for zero-based.
 *   An implicit region's are the process's own.
 * @return
 *   0; -EINVAL for access flags that contradict each other (remote write or atomic without local
 * write), an unknown mandatory flag, a range that wraps, page offsets of addr and iova that differ,
 * or pages that are not huge with IBV_ACCESS_HUGETLB; -EFAULT where the range is not mapped so;
 * -ENOMEM. Source: ibv_reg_mr(3).
 */
int mr_register(struct pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access,
		struct mr **mr);

/**
 * Create a null region: for local access, of the greatest length, at every address
 * (ibv_alloc_null_mr(3)). It cannot be changed. MT-safe. 0 or -ENOMEM.
 */
int mr_create_null(struct pd *pd, struct mr **mr);

/**
 * Make the key invalid and free the region; a dma-buf is unmapped. The caller has stopped the
 * engine, so that no packet is between its check and its copy; after return nobody touches the
 * memory.
 *
 * @return
 *   0, or -EBUSY while windows are bound to it: nothing has changed.
 */
int mr_deregister(struct mr *mr);

/* What is to change of a region (ibv_rereg_mr(3)). */
struct mr_change {
	unsigned int flags; /* enum ibv_rereg_mr_flags: which of the following */
	struct pd *pd;
	void *addr;
	size_t length;
	unsigned int access; /* 0 unless it is to change */
};

/**
 * Check a change, and fault in the pages that it needs. MT-safe; the engine runs on. The region
 * stays as it was.
 *
 * @return
 *   0; -EINVAL for a region that is null, device memory or a dma-buf, unknown or no flags, a change
 * without its value, access flags that do not go together, a range that wraps; -EFAULT where the
 * range is not mapped so; -ENOMEM.
 */
int mr_check_change(const struct mr *mr, const struct mr_change *change);

/**
 * Make a change that was checked. The engine is stopped, so that every packet sees either region
 * whole. The key stays: both as local and as remote key the region is found as before.
 *
 * @return
 *   0; else nothing has changed: -EBUSY while windows are bound to it, -EINVAL where the new domain
 * is destroyed.
 */
int mr_apply_change(struct mr *mr, const struct mr_change *change);

/* Outcome of mr_resolve, in the order of the checks. */
enum mr_status {
	MR_OK,
	MR_BAD_KEY, /* no such key, or not for this use */
	MR_WRONG_PD,
	MR_NO_ACCESS, /* the region does not grant what is needed */
	MR_OUT_OF_RANGE,
	MR_FAULT,  /* not of mr_resolve: the region grants it, and the process has no such memory */
	MR_ABSENT, /* of mr_reach only: all is granted, and a page is not in memory */
};

/**
 * Check an access by a local key and translate its address. MT-safe against registration; callers
 * hold the engine.
 *
 * @param need
 *   enum ibv_access_flags that must all be granted; 0 for a local read.
 * @param length
 *   Bytes; with 0 nothing is checked, MR_OK, and *addr is NULL (IBTA C9-88: no key check for zero
 * length).
 * @param addr
 *   Set on MR_OK to the first byte in this process, or NULL in a null region: then the bytes are
 * zeros, and there is nothing to write to.
 */
enum mr_status mr_resolve(const struct pd *pd, uint32_t key, uint64_t iova, uint64_t length,
			  unsigned int need, uint8_t **addr);

/**
 * The same for a peer's access by a remote key, which may be a window's.
 *
 * @param qpn
 *   Our queue pair that the peer is connected to.
 */
enum mr_status mr_resolve_remote(const struct pd *pd, uint32_t qpn, uint32_t key, uint64_t iova,
				 uint64_t length, unsigned int need, uint8_t **addr);

/* The part of a range that is accessed. */
struct mr_touch {
	uint32_t now;	/* bytes from its begin: these must be in memory */
	uint32_t ahead; /* bytes behind them that are likely to be accessed next */
};

/**
 * mr_resolve, before an access to the first bytes of the range. Their pages must be in memory if
 * the region is an on-demand one, because an access would stop the engine until they are.
 *
 * @return
 *   As mr_resolve; or MR_ABSENT, and *addr is set: the access must not be made. The domain's pager
 * brings the pages in, and tells the engine.
 */
enum mr_status mr_reach(const struct pd *pd, uint32_t key, uint64_t iova, uint64_t length,
			unsigned int need, struct mr_touch touch, uint8_t **addr);

/** mr_resolve_remote, in the same way. */
enum mr_status mr_reach_remote(const struct pd *pd, uint32_t qpn, uint32_t key, uint64_t iova,
			       uint64_t length, unsigned int need, struct mr_touch touch,
			       uint8_t **addr);

/** Whether a peer may use a key so, without regard to a range. As above. */
enum mr_status mr_check_remote(const struct pd *pd, uint32_t qpn, uint32_t key, unsigned int need);

/** Keep what registration needs of the system, before the program gives up what it may ask.
 * MT-safe; again in a child of fork(). */
void mr_prepare(void);

#endif
