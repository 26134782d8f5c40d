/* SPDX-License-Identifier: BSD-3-Clause */
/* Advice about memory regions. */
#include <stdlib.h>

#include "mem/advise.h"

#include "verbs_internal.h"

static int advise(struct face_context *context, struct ibv_pd *ibv,
		  enum ibv_advise_mr_advice advice, uint32_t flags, const struct ibv_sge *sge,
		  uint32_t num_sge, struct advise_range *ranges)
{
	int rc = context_lock(context);

	if (rc != 0)
		return rc;
	rc = advise_check(face_pd(ibv)->pd, advice, flags, sge, num_sge, ranges);
	if (rc == 0 && !(flags & IBV_ADVISE_MR_FLAG_FLUSH))
		rc = advise_follow_later(advice, ranges, num_sge);
	context_unlock(context);
	/* This may take long, so the engine runs. A region that is deregistered meanwhile needs no
	 * advice. */
	if (rc == 0 && (flags & IBV_ADVISE_MR_FLAG_FLUSH))
		rc = advise_follow(advice, ranges, num_sge);
	return rc;
}

int mr_advise_op(struct ibv_pd *ibv, enum ibv_advise_mr_advice advice, uint32_t flags,
		 struct ibv_sge *sge, uint32_t num_sge)
{
	struct advise_range *ranges = calloc((size_t)num_sge + 1, sizeof(*ranges));
	int rc;

	if (!ranges)
		return face_errno(-ENOMEM);
	rc = advise(face_context(ibv->context), ibv, advice, flags, sge, num_sge, ranges);
	free(ranges);
	return face_errno(rc);
}
