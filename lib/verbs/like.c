/* SPDX-License-Identifier: BSD-3-Clause */
/* Refuses what the device of --like does not have, where a context's table is the way to it. The
 * calls of libibverbs.so.1 ask like_refuses themselves. */
#include "like/like.h"

#include <string.h>

#include <rte_common.h>

#include "queue/sq.h"
#include "verbs_internal.h"

#define HAS 0

/* Where the slot is, and the error of each device. */
static const struct {
	size_t at;
	uint8_t errors[8];
} calls[] = {
#define LIKE_CALL(slot, ...) {offsetof(struct verbs_context, slot), {__VA_ARGS__}},
#include "like/like.def"
};

/* Post a list up to the first request whose opcode the device does not have. The requests before it
 * are posted one by one: the list is the program's, and is not changed. */
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const uint32_t lacking = like_lacking_opcodes();
	const struct ibv_send_wr *first = wr;

	while (first && (unsigned int)first->opcode < 32 && !sq_is_in(lacking, first->opcode))
		first = first->next;
	if (!first || (unsigned int)first->opcode >= 32)
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
	return face_errno(
		CALL_REASON(-EINVAL, "the device of --like has no opcode %d", (int)wr->opcode));
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
