/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that a call which is not implemented returns EOPNOTSUPP in its own way and touches nothing.
 */
#include "fake_provider.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

#define assert_null_unsupported(call)                \
	do {                                         \
		errno = 0;                           \
		assert_null(call);                   \
		assert_int_equal(errno, EOPNOTSUPP); \
	} while (0)

TEST(inlines__that_return_objects)
{
	struct ibv_context *context = *state;
	struct ibv_qp qp = {.context = context};

	assert_null_unsupported(ibv_create_flow(&qp, NULL));
	assert_null_unsupported(ibv_create_flow_action_esp(context, NULL));
	assert_null_unsupported(ibv_create_wq(context, NULL));
	assert_null_unsupported(ibv_create_rwq_ind_table(context, NULL));
	assert_null_unsupported(ibv_create_counters(context, NULL));
}

TEST(inlines__that_post)
{
	struct ibv_srq srq = {.context = *state};
	struct ibv_ops_wr op = {0}, *bad_op = NULL;

	assert_int_equal(ibv_post_srq_ops(&srq, &op, &bad_op), EOPNOTSUPP);
	assert_ptr_equal(bad_op, &op);
}

/* A program calls through every slot without looking, so none may be empty. */
TEST(slots__all_are_filled)
{
	struct ibv_context *context = *state;
	const struct verbs_context *verbs = verbs_get_ctx(context);
	void *slots[sizeof(*verbs) / sizeof(void *)];
	/* The members after it are not functions. */
	const size_t extended = offsetof(struct verbs_context, _ABI_placeholder3) / sizeof(void *);
	const size_t old = sizeof(context->ops) / sizeof(void *);

	assert_non_null(verbs);
	memcpy(slots, verbs, extended * sizeof(void *));
	for (size_t i = 0; i < extended; i++) {
		if (slots[i] == NULL)
			fail_msg("slot %zu of verbs_context is empty", i);
	}
	memcpy(slots, &context->ops, old * sizeof(void *));
	for (size_t i = 0; i < old; i++) {
		if (slots[i] == NULL)
			fail_msg("slot %zu of ibv_context_ops is empty", i);
	}
}

/* Slots that today's headers do not call, and programs built long ago might. */
TEST(slots__of_old_inlines)
{
	struct ibv_context *context = *state;
	void *(*const old[])(void) = {
		context->ops._compat_alloc_pd,	  context->ops._compat_create_cq,
		context->ops._compat_create_qp,	  context->ops._compat_create_srq,
		context->ops._compat_async_event, context->ops._compat_create_ah,
	};
	struct ibv_device_attr attr;

	for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++)
		assert_null_unsupported(old[i]());
	assert_int_equal(context->ops._compat_query_device(context, &attr), 0);
	assert_int_equal(attr.phys_port_cnt, 1);
}
