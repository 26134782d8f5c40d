/* SPDX-License-Identifier: BSD-3-Clause */
/* The check of key, domain, access and range before every access. */
#include <rte_branch_prediction.h>

#include "mem/key_table.h"
#include "mem/mr.h"
#include "mem/pd.h"

enum mr_status mr_resolve(const struct pd *pd, uint32_t key, uint64_t iova, uint64_t length,
			  unsigned int need, uint8_t **addr)
{
	const struct mr *mr;
	uint64_t offset;

	*addr = NULL;
	if (length == 0)
		return MR_OK;
	mr = key_table_find(pd->keys, key);
	if (!mr)
		return MR_BAD_KEY;
	if (mr->pd != pd)
		return MR_WRONG_PD;
	if ((mr->access & need) != need)
		return MR_NO_ACCESS;
	/* Below the region the difference wraps to more than any length, as iova + length does not
	 * wrap. */
	offset = iova - mr->iova;
	if (offset > mr->length || length > mr->length - offset)
		return MR_OUT_OF_RANGE;
	if (likely(mr->kind != MR_NULL))
		*addr = mr->addr + offset;
	return MR_OK;
}
