/* SPDX-License-Identifier: BSD-3-Clause */
/* Advice about on-demand regions: the application names pages that it will need
 * (ibv_advise_mr(3)). */
#ifndef MEM_ADVISE_H
#define MEM_ADVISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct mr;
struct pd;

/* A range of this process's memory that the advice names. */
struct advise_range {
	struct mr *mr;
	uintptr_t addr;
	size_t length; /* bytes */
};

/**
 * Check advice, and find the memory that it names. The engine is stopped, so that no region is
 * deregistered meanwhile.
 *
 * @param ranges
 *   Room for num_sge elements.
 * @return
 *   0; -EOPNOTSUPP for unknown advice; -EINVAL for unknown flags, an empty list or the key of a
 *   window; -ENOENT for a key that is not an on-demand region's; -EPERM for a region of another
 *   domain, or for advice to write to a region that grants no write; -EFAULT for a range that is
 *   not in the region.
 */
int advise_check(const struct pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		 const struct ibv_sge *sge, uint32_t num_sge, struct advise_range *ranges);

/**
 * Follow advice that was checked, and return when it is done. MT-safe; the engine runs.
 *
 * @return
 *   0, -EFAULT if a part is not mapped or not mapped for this access, -ENOMEM.
 */
int advise_follow(enum ibv_advise_mr_advice advice, const struct advise_range *ranges,
		  uint32_t num);

/** Let another thread follow the advice, as far as possible. The engine is stopped. 0 or
 * -ENOMEM. */
int advise_follow_later(enum ibv_advise_mr_advice advice, const struct advise_range *ranges,
			uint32_t num);

/** Cancel advice about a region that is about to change or to be deregistered. The engine is
 * stopped. Return false if a thread is waiting for pages of the region: it stops when they come. */
bool advise_cancel(struct mr *mr);

/**
 * Wait until no thread waits for pages of a region, whose advice was cancelled. MT-safe. The engine
 * runs, because the program may receive these pages through it (userfaultfd(2)). The region may
 * have ended meanwhile.
 */
void advise_wait(const struct mr *mr);

#endif
