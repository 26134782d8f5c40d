/* SPDX-License-Identifier: BSD-3-Clause */
/* The check of key, domain, access and range before every access; in on-demand regions also whether
 * the pages are in memory. */
#include <inttypes.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "base/origin.h"
#include "base/reason.h"
#include "base/verbs_later.h"
#include "mem/key_table.h"
#include "mem/mr.h"
#include "mem/mw.h"
#include "mem/pager.h"
#include "mem/pd.h"

static enum mr_status check(const struct mr *mr, const struct pd *pd, unsigned int need)
{
	if (mr->pd != pd)
		return MR_WRONG_PD;
	return (mr->access & need) == need ? MR_OK : MR_NO_ACCESS;
}

const char *mr_right_name(unsigned int rights)
{
	if (rights & IBV_ACCESS_LOCAL_WRITE)
		return "IBV_ACCESS_LOCAL_WRITE";
	if (rights & IBV_ACCESS_REMOTE_WRITE)
		return "IBV_ACCESS_REMOTE_WRITE";
	if (rights & IBV_ACCESS_REMOTE_READ)
		return "IBV_ACCESS_REMOTE_READ";
	if (rights & IBV_ACCESS_REMOTE_ATOMIC)
		return "IBV_ACCESS_REMOTE_ATOMIC";
	if (rights & LATER_ACCESS_FLUSH_GLOBAL)
		return "IBV_ACCESS_FLUSH_GLOBAL";
	return "IBV_ACCESS_FLUSH_PERSISTENT";
}

static const char *kind_name(const struct mr *mr)
{
	return mr->kind == MR_WINDOW ? "window" : "region";
}

static void say_out_of_range(const struct mr *mr, uint64_t iova, uint64_t length,
			     const char *origin)
{
	const uint64_t end = mr->iova + mr->length;

	if (iova < mr->iova)
		reason_say(REASON_FAULT,
			   "the access to %" PRIu64 " bytes at 0x%" PRIx64 " begins %" PRIu64
			   " bytes before the %s 0x%x at 0x%" PRIx64 "%s",
			   length, iova, mr->iova - iova, kind_name(mr), mr->key, mr->iova, origin);
	else
		reason_say(REASON_FAULT,
			   "the access to %" PRIu64 " bytes at 0x%" PRIx64 " ends %" PRIu64
			   " bytes behind the end of the %s 0x%x (%" PRIu64 " bytes at 0x%" PRIx64
			   ")%s",
			   length, iova, iova + length - end, kind_name(mr), mr->key, mr->length,
			   mr->iova, origin);
}

/* Say why an access is not granted, and return the status. */
static __rte_noinline __rte_cold enum mr_status refuse(const struct mr *mr, uint64_t iova,
						       uint64_t length, unsigned int need,
						       enum mr_status status)
{
	char origin[ORIGIN_TEXT_MAX];

	if (!reason_wanted)
		return status;
	origin_write(mr, "the region", origin);
	if (status == MR_WRONG_PD)
		reason_say(
			REASON_FAULT,
			"the %s 0x%x is of another protection domain than the queue pair, or than "
			"its shared receive queue%s",
			kind_name(mr), mr->key, origin);
	else if (status == MR_NO_ACCESS)
		reason_say(REASON_FAULT,
			   "the %s 0x%x (%" PRIu64 " bytes at 0x%" PRIx64 ") lacks %s%s",
			   kind_name(mr), mr->key, mr->length, mr->iova,
			   mr_right_name(need & ~mr->access), origin);
	else
		say_out_of_range(mr, iova, length, origin);
	return status;
}

static __rte_noinline __rte_cold enum mr_status refuse_lkey(uint32_t key)
{
	return FAULT_REASON(MR_BAD_KEY, "no region has the lkey 0x%x, or none any more", key);
}

static __rte_noinline __rte_cold enum mr_status refuse_rkey(uint32_t key)
{
	return FAULT_REASON(MR_BAD_KEY,
			    "no region and no window that this queue pair may use has the rkey "
			    "0x%x, or none any more",
			    key);
}

static enum mr_status resolve(const struct mr *mr, const struct pd *pd, uint64_t iova,
			      uint64_t length, unsigned int need, uint8_t **addr)
{
	const enum mr_status status = check(mr, pd, need);
	uint64_t offset;

	if (unlikely(status != MR_OK))
		return refuse(mr, iova, length, need, status);
	/* For an iova below the region the subtraction wraps to at least the length, because the
	 * region's last byte does not wrap. */
	offset = iova - mr->iova;
	if (unlikely(length > mr->length || offset > mr->length - length))
		return refuse(mr, iova, length, need, MR_OUT_OF_RANGE);
	if (likely(mr->kind != MR_NULL))
		*addr = mr->addr + offset;
	return MR_OK;
}

#define WRITES                                                             \
	((unsigned int)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			IBV_ACCESS_REMOTE_ATOMIC))

/*
 * Check that the pages of an on-demand region are in memory. An entry of a list may be longer than
 * the region: the pager must not touch memory behind the region, because it may be a device's.
 */
static __rte_noinline enum mr_status look(const struct mr *mr, const struct pd *pd,
					  const uint8_t *addr, unsigned int need,
					  struct mr_touch touch)
{
	struct pager *pager = pd->pager;
	uint64_t behind;

	if (!pager || touch.now == 0)
		return MR_OK;
	behind = mr->length - (uint64_t)((uintptr_t)addr - (uintptr_t)mr->addr) - touch.now;
	touch.ahead = (uint32_t)RTE_MIN(touch.ahead, behind);
	return pager->look(pager, (uintptr_t)addr, touch, need & WRITES) ? MR_OK : MR_ABSENT;
}

/* Resolve an access, and check the pages. Regions that are not on demand lack none. */
static enum mr_status reach(const struct mr *mr, const struct pd *pd, uint64_t iova,
			    uint64_t length, unsigned int need, struct mr_touch touch,
			    uint8_t **addr)
{
	const enum mr_status status = resolve(mr, pd, iova, length, need, addr);

	if (unlikely(mr->access & IBV_ACCESS_ON_DEMAND) && status == MR_OK)
		return look(mr, pd, *addr, need, touch);
	return status;
}

static const struct mr *find_local(const struct pd *pd, uint32_t key)
{
	const struct mr *mr = key_table_find(pd->keys, key);

	return mr && unlikely(mr->kind == MR_WINDOW) ? NULL : mr;
}

enum mr_status mr_resolve(const struct pd *pd, uint32_t key, uint64_t iova, uint64_t length,
			  unsigned int need, uint8_t **addr)
{
	const struct mr *mr;

	*addr = NULL;
	if (length == 0)
		return MR_OK;
	mr = find_local(pd, key);
	return mr ? resolve(mr, pd, iova, length, need, addr) : refuse_lkey(key);
}

enum mr_status mr_reach_any(const struct pd *pd, uint32_t key, uint64_t iova, uint64_t length,
			    unsigned int need, struct mr_touch touch, uint8_t **addr)
{
	const struct mr *mr;

	if (length == 0)
		return MR_OK;
	mr = find_local(pd, key);
	return mr ? reach(mr, pd, iova, length, need, touch, addr) : refuse_lkey(key);
}

/* Return true if a queue pair may use this window: one of type 2 only by the queue pair that bound
 * it. */
static bool serves(const struct mw *mw, uint32_t qpn)
{
	return mw->type == IBV_MW_TYPE_1 || __atomic_load_n(&mw->qpn, __ATOMIC_RELAXED) == qpn;
}

/* Return the region or window of a peer's key, or NULL. */
static const struct mr *find_remote(const struct pd *pd, uint32_t qpn, uint32_t key)
{
	const struct mr *mr = key_table_find(pd->keys, key);

	if (mr && unlikely(mr->kind == MR_WINDOW) && !serves(mw_of_view(mr), qpn))
		return NULL;
	return mr;
}

/*
 * Copy a window that another engine may bind anew at this moment. The copy counts only if the
 * window has not changed meanwhile and the key is still its own: a mix of two bindings could grant
 * what neither does. Return false if it does not count.
 */
static bool copy_window(const struct mw *mw, uint32_t qpn, uint32_t key, struct mr *view)
{
	const uint32_t changes = __atomic_load_n(&mw->changes, __ATOMIC_ACQUIRE);
	bool is_right;

	*view = (struct mr){
		.pd = mw->view.pd,
		.addr = __atomic_load_n(&mw->view.addr, __ATOMIC_RELAXED),
		.length = __atomic_load_n(&mw->view.length, __ATOMIC_RELAXED),
		.iova = __atomic_load_n(&mw->view.iova, __ATOMIC_RELAXED),
		.access = __atomic_load_n(&mw->view.access, __ATOMIC_RELAXED),
		.key = __atomic_load_n(&mw->view.key, __ATOMIC_RELAXED),
		.kind = MR_WINDOW,
	};
	is_right = changes % 2 == 0 && view->key == key && serves(mw, qpn);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return is_right && __atomic_load_n(&mw->changes, __ATOMIC_RELAXED) == changes;
}

/* Return what a peer's key shows, or NULL; `copy` has room for a window. */
static const struct mr *view_remote(const struct pd *pd, uint32_t qpn, uint32_t key,
				    struct mr *copy)
{
	const struct mr *mr = find_remote(pd, qpn, key);

	if (likely(!mr || mr->kind != MR_WINDOW))
		return mr;
	return copy_window(mw_of_view(mr), qpn, key, copy) ? copy : NULL;
}

enum mr_status mr_resolve_any_remote(const struct pd *pd, uint32_t qpn, uint32_t key, uint64_t iova,
				     uint64_t length, unsigned int need, uint8_t **addr)
{
	const struct mr *mr;
	struct mr copy;

	if (length == 0)
		return MR_OK;
	mr = view_remote(pd, qpn, key, &copy);
	return mr ? resolve(mr, pd, iova, length, need, addr) : refuse_rkey(key);
}

enum mr_status mr_reach_any_remote(const struct pd *pd, uint32_t qpn, uint32_t key, uint64_t iova,
				   uint64_t length, unsigned int need, struct mr_touch touch,
				   uint8_t **addr)
{
	const struct mr *mr;
	struct mr copy;

	if (length == 0)
		return MR_OK;
	mr = view_remote(pd, qpn, key, &copy);
	return mr ? reach(mr, pd, iova, length, need, touch, addr) : refuse_rkey(key);
}

enum mr_status mr_check_remote(const struct pd *pd, uint32_t qpn, uint32_t key, unsigned int need)
{
	struct mr copy;
	const struct mr *mr = view_remote(pd, qpn, key, &copy);
	enum mr_status status;

	if (!mr)
		return refuse_rkey(key);
	status = check(mr, pd, need);
	return status == MR_OK ? MR_OK : refuse(mr, mr->iova, 0, need, status);
}
