/* SPDX-License-Identifier: BSD-3-Clause */
/* Refuses what the device of --like does not have, where a context's table is the way to it. The
 * calls of libibverbs.so.1 ask like_refuses themselves. */
#include "like/like.h"

#include <string.h>

#include <rte_common.h>

#include "base/verbs_later.h"
#include "device/limits.h"
#include "queue/sq.h"
#include "verbs_internal.h"

#define HAS 0

int like_check_access(unsigned int access)
{
	return access & (LATER_ACCESS_FLUSH_GLOBAL | LATER_ACCESS_FLUSH_PERSISTENT)
		       ? like_refuses(LIKE_LACKS_flush)
		       : 0;
}

/* Where the slot is, and the error of each device. */
static const struct {
	size_t at;
	uint8_t errors[8];
} calls[] = {
#define LIKE_CALL(slot, ...) {offsetof(struct verbs_context, slot), {__VA_ARGS__}},
#include "like/like.def"
};

/* Return 0, or the negative errno value by which the device refuses a request. */
static int check_request(const struct ibv_send_wr *wr)
{
	const int most = (int)like_most(LIKE_max_sge_rd, DEVICE_MAX_SGE);

	if ((unsigned int)wr->opcode >= 32)
		return 0; /* post_send_op refuses it */
	if (sq_is_in(like_lacking_opcodes(), wr->opcode))
		return CALL_REASON(-EINVAL, "the device of --like has no opcode %d",
				   (int)wr->opcode);
	if (wr->opcode == IBV_WR_RDMA_READ && wr->num_sge > most)
		return CALL_REASON(-EINVAL, "num_sge is %d; max_sge_rd is %d", wr->num_sge, most);
	if (wr->opcode == IBV_WR_BIND_MW)
		return like_check_access(wr->bind_mw.bind_info.mw_access_flags);
	return 0;
}

/* Post a list up to the first request that the device refuses. The requests before it are posted
 * one by one: the list is the program's, and is not changed. */
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const struct ibv_send_wr *first = wr;
	int refused = 0;

	while (first && (refused = check_request(first)) == 0)
		first = first->next;
	if (refused == 0)
		return post_send_op(qp, wr, bad);
	for (; wr != first; wr = wr->next) {
		struct ibv_send_wr one = *wr, *ignored;
		int rc;

		one.next = NULL;
		*bad = wr;
		rc = post_send_op(qp, &one, &ignored);
		if (rc != 0)
			return rc;
	}
	*bad = wr;
	return face_errno(refused);
}

void like_operations(struct verbs_context *verbs)
{
	const int column = like_column();

	if (likely(column == LIKE_NONE))
		return;
	for (size_t i = 0; i < RTE_DIM(calls); i++) {
		if (calls[i].errors[column] != 0)
			memcpy((char *)verbs + calls[i].at,
			       (const char *)&unsupported_verbs + calls[i].at, sizeof(void *));
	}
	verbs->context.ops.post_send = post_send;
}
