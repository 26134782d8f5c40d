/* SPDX-License-Identifier: BSD-3-Clause */
/* Advice about on-demand regions: which of their pages will be needed (ibv_advise_mr(3)). */
#ifndef MEM_ADVISE_H
#define MEM_ADVISE_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct mr;
struct pd;

/* Memory of this process that advice is about. */
struct advise_range {
	struct mr *mr;
	uintptr_t addr;
	size_t length; /* bytes */
};

/**
 * Check advice, and find what it is about. The engine is stopped, so that no region goes.
 *
 * @param ranges
 *   Room for num_sge.
 * @return
 *   0; -EOPNOTSUPP for unknown advice; -EINVAL for unknown flags, an empty list or the key of a
 * window; -ENOENT for a key of no on-demand region; -EPERM for a region of another domain, or one
 * that may not be written, where that is what is advised; -EFAULT for what is not in the region.
 */
int advise_check(const struct pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		 const struct ibv_sge *sge, uint32_t num_sge, struct advise_range *ranges);

/**
 * Follow advice that was checked, and return when it is done. MT-safe; the engine runs.
 *
 * @return
 *   0, -EFAULT where parts are not mapped, or not so, -ENOMEM.
 */
int advise_follow(enum ibv_advise_mr_advice advice, const struct advise_range *ranges,
		  uint32_t num);

/** Let another thread follow it, as far as it can. The engine is stopped. 0 or -ENOMEM. */
int advise_follow_later(enum ibv_advise_mr_advice advice, const struct advise_range *ranges,
			uint32_t num);

/** Forget what is still to be followed of a region, which changes or goes. The engine is stopped.
 */
void advise_cancel(struct mr *mr);

#endif
