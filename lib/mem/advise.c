/* SPDX-License-Identifier: BSD-3-Clause */
/* Advice about on-demand regions: check it, and follow it at once. */
#include "mem/advise.h"

#include <errno.h>
#include <stdbool.h>

#include "mem/key_table.h"
#include "mem/mr.h"
#include "mem/pd.h"
#include "prefetch.h"
#include "range.h"

static int check_arguments(enum ibv_advise_mr_advice advice, uint32_t flags,
			   const struct ibv_sge *sge, uint32_t num_sge)
{
	switch (advice) {
	case IBV_ADVISE_MR_ADVICE_PREFETCH:
	case IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE:
	case IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT:
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH)
		return -EINVAL;
	return sge && num_sge > 0 ? 0 : -EINVAL;
}

static int check_element(const struct pd *pd, bool write, const struct ibv_sge *sge,
			 struct advise_range *range)
{
	struct mr *mr = key_table_find(pd->keys, sge->lkey);
	uint64_t offset;

	if (!mr)
		return -ENOENT;
	if (mr->kind == MR_WINDOW)
		return -EINVAL;
	if (!(mr->access & IBV_ACCESS_ON_DEMAND))
		return -ENOENT;
	if (mr->pd != pd)
		return -EPERM;
	if (write && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return -EPERM;
	offset = sge->addr - mr->iova;
	if (sge->length > mr->length || offset > mr->length - sge->length)
		return -EFAULT;
	*range = (struct advise_range){
		.mr = mr, .addr = (uintptr_t)mr->addr + offset, .length = sge->length};
	return 0;
}

int advise_check(const struct pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		 const struct ibv_sge *sge, uint32_t num_sge, struct advise_range *ranges)
{
	const bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	int rc = check_arguments(advice, flags, sge, num_sge);

	for (uint32_t i = 0; rc == 0 && i < num_sge; i++)
		rc = check_element(pd, write, &sge[i], &ranges[i]);
	return rc;
}

int advise_follow(enum ibv_advise_mr_advice advice, const struct advise_range *ranges, uint32_t num)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < num; i++) {
		/* Memory that this process has needs no further preparation for our transport: only
		 * check it. */
		if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
			rc = range_check_mapped(ranges[i].addr, ranges[i].length, false);
		else
			rc = range_populate(ranges[i].addr, ranges[i].length,
					    advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE);
	}
	return rc;
}

int advise_follow_later(enum ibv_advise_mr_advice advice, const struct advise_range *ranges,
			uint32_t num)
{
	int rc = 0;

	if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return 0;
	for (uint32_t i = 0; rc == 0 && i < num; i++)
		rc = prefetch_post(&ranges[i], advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE);
	return rc;
}

bool advise_cancel(struct mr *mr)
{
	return prefetch_cancel(mr);
}

void advise_wait(const struct mr *mr)
{
	prefetch_wait(mr);
}
