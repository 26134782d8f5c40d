/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: creation and destruction of their keys, and the checks of a binding. */
#include "mem/mw.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/reason.h"
#include "mem/key_table.h"
#include "mem/pd.h"

#define REMOTE_ACCESS                                                      \
	((unsigned int)(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
			IBV_ACCESS_REMOTE_ATOMIC | LATER_ACCESS_FLUSH_GLOBAL))

static_assert(offsetof(struct mw, view) == 0, "a cast leads from the view to its window");

int mw_create(struct pd *pd, enum ibv_mw_type type, struct mw **mw)
{
	struct mw *m;
	int rc;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return -EINVAL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->type = type;
	m->view.kind = MR_WINDOW;
	m->view.pd = pd;
	rc = pd_get(pd);
	if (rc != 0)
		goto free_window;
	rc = key_table_insert(pd->keys, &m->view, &m->view.key);
	if (rc != 0)
		goto put_pd;
	*mw = m;
	return 0;
put_pd:
	pd_put(pd);
free_window:
	free(m);
	return rc == -ENOSPC ? -ENOMEM : rc;
}

/* Unbind the window. Its lock is held, or all engines are stopped. */
static void unbind(struct mw *mw)
{
	if (mw->region && mw->type == IBV_MW_TYPE_2)
		LIST_REMOVE(mw, link);
	if (mw->region)
		__atomic_fetch_sub(&mw->region->windows, 1, __ATOMIC_RELAXED);
	mw->region = NULL;
	__atomic_store_n(&mw->view.access, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&mw->view.length, 0, __ATOMIC_RELAXED);
}

void mw_destroy(struct mw *mw)
{
	unbind(mw);
	key_table_remove(mw->view.pd->keys, mw->view.key);
	pd_put(mw->view.pd);
	free(mw);
}

/* While a window changes, `changes` is odd: an engine that checks an access meanwhile sees that.
 * What such an engine reads is stored atomically. */
static void change_begin(struct mw *mw)
{
	__atomic_store_n(&mw->changes, mw->changes + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static void change_end(struct mw *mw)
{
	__atomic_store_n(&mw->changes, mw->changes + 1, __ATOMIC_RELEASE);
}

/* Return the window of a key if it belongs to this domain, else NULL. */
static struct mw *find(const struct pd *pd, struct mr *view)
{
	if (!view || view->kind != MR_WINDOW || view->pd != pd)
		return NULL;
	return mw_of_view(view);
}

/* Check that the region allows the binding (C10-75 and the clauses after it). */
static int check_region(const struct mr *region, const struct mw_binding *binding)
{
	uint64_t offset;

	if (region->kind != MR_MEMORY && region->kind != MR_IMPLICIT)
		return FAULT_REASON(-EINVAL, "the region 0x%x is no memory of the program",
				    region->key);
	if (!(region->access & IBV_ACCESS_MW_BIND))
		return FAULT_REASON(-EINVAL, "the region 0x%x lacks IBV_ACCESS_MW_BIND",
				    region->key);
	if ((binding->access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(region->access & IBV_ACCESS_LOCAL_WRITE))
		return FAULT_REASON(
			-EINVAL,
			"the window allows remote writes or atomics, and the region 0x%x "
			"lacks IBV_ACCESS_LOCAL_WRITE",
			region->key);
	offset = binding->addr - region->iova;
	if (binding->length > region->length || offset > region->length - binding->length)
		return FAULT_REASON(-EINVAL, "the window does not lie within the region 0x%x",
				    region->key);
	return 0;
}

static int check_window(const struct mw *mw, const struct mw_list *bound,
			const struct mw_binding *binding)
{
	if (binding->access & ~MW_ACCESS)
		return FAULT_REASON(
			-EINVAL, "a window may only have remote rights and IBV_ACCESS_ZERO_BASED");
	if (mw->type != IBV_MW_TYPE_2)
		return 0;
	if (!bound)
		return FAULT_REASON(-EINVAL,
				    "this queue pair, or this call, binds no window of type 2");
	if (mw->region)
		return FAULT_REASON(-EINVAL, "the window 0x%x is bound already", mw->view.key);
	if (binding->length == 0)
		return FAULT_REASON(-EINVAL, "a window of type 2 is bound to no bytes");
	return 0;
}

/* Make the window a view of the region. */
static void set_view(struct mw *mw, struct mr *region, const struct mw_binding *binding)
{
	struct mr *view = &mw->view;

	__atomic_fetch_add(&region->windows, 1, __ATOMIC_RELAXED);
	mw->region = region;
	__atomic_store_n(&view->addr, region->addr + (binding->addr - region->iova),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&view->length, binding->length, __ATOMIC_RELAXED);
	__atomic_store_n(&view->iova, binding->access & IBV_ACCESS_ZERO_BASED ? 0 : binding->addr,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&view->access,
			 (binding->access & REMOTE_ACCESS) |
				 (region->access & IBV_ACCESS_ON_DEMAND),
			 __ATOMIC_RELAXED);
}

/* Assign a window of type 2 to the queue pair that binds it. */
static void assign(struct mw *mw, uint32_t qpn, struct mw_list *bound)
{
	__atomic_store_n(&mw->qpn, qpn, __ATOMIC_RELAXED);
	LIST_INSERT_HEAD(bound, mw, link);
}

/* Bind a window. Its lock is held. */
static int bind_locked(struct mw *mw, const struct pd *pd, uint32_t qpn, struct mw_list *bound,
		       const struct mw_binding *binding)
{
	struct mr *region = NULL;
	int rc;

	rc = check_window(mw, bound, binding);
	if (rc == 0 && binding->length > 0) {
		region = key_table_find(pd->keys, binding->lkey);
		if (!region || region->pd != pd)
			return FAULT_REASON(
				-EINVAL, "the lkey 0x%x is of no region of the queue pair's domain",
				binding->lkey);
		rc = check_region(region, binding);
	}
	if (rc == 0)
		rc = key_table_change(pd->keys, mw->view.key, binding->rkey);
	if (rc != 0)
		return rc;
	change_begin(mw);
	__atomic_store_n(&mw->view.key, binding->rkey, __ATOMIC_RELAXED);
	unbind(mw);
	if (region)
		set_view(mw, region, binding);
	if (mw->type == IBV_MW_TYPE_2)
		assign(mw, qpn, bound);
	change_end(mw);
	return 0;
}

int mw_bind(const struct pd *pd, uint32_t qpn, struct mw_list *bound,
	    const struct mw_binding *binding)
{
	struct mw *mw = find(pd, key_table_find_any_tag(pd->keys, binding->window));
	int rc;

	if (!mw)
		return FAULT_REASON(-EINVAL, "0x%x is no window of the queue pair's domain",
				    binding->window);
	rte_spinlock_lock(&mw->lock);
	rc = bind_locked(mw, pd, qpn, bound, binding);
	rte_spinlock_unlock(&mw->lock);
	return rc;
}

/* Unbind the window. Its lock is held. */
static void end_binding(struct mw *mw)
{
	change_begin(mw);
	unbind(mw);
	change_end(mw);
}

int mw_invalidate(const struct pd *pd, uint32_t qpn, uint32_t rkey)
{
	struct mw *mw = find(pd, key_table_find(pd->keys, rkey));
	int rc;

	if (!mw || mw->type != IBV_MW_TYPE_2)
		return FAULT_REASON(-EINVAL,
				    "0x%x is no window of type 2 of the queue pair's domain", rkey);
	rte_spinlock_lock(&mw->lock);
	if (mw->region && mw->qpn == qpn) {
		end_binding(mw);
		rc = 0;
	} else {
		rc = FAULT_REASON(-EINVAL, "the window 0x%x is not bound by this queue pair", rkey);
	}
	rte_spinlock_unlock(&mw->lock);
	return rc;
}

void mw_unbind_all(struct mw_list *bound)
{
	struct mw *mw;

	/* Another engine may check an access by the window, or try to bind it, at this moment. */
	while ((mw = LIST_FIRST(bound)) != NULL) {
		rte_spinlock_lock(&mw->lock);
		end_binding(mw);
		rte_spinlock_unlock(&mw->lock);
	}
}
