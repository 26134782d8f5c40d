/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing a device. */
#include <fcntl.h>
#include <stdlib.h>

#include "fake_provider.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

TEST(open__says_that_the_context_is_extended)
{
	struct ibv_context *context = *state;
	struct verbs_context *verbs = verbs_get_ctx(context);

	assert_non_null(verbs);
	assert_int_equal(verbs->sz, sizeof(*verbs));
	assert_non_null(verbs->priv);
	assert_int_equal(context->num_comp_vectors, 1);
	assert_string_equal(context->device->name, "fake0");
}

TEST(open__fills_every_slot)
{
	struct ibv_context *context = *state;
	struct verbs_context *verbs = verbs_get_ctx(context);
	void *const *ops = (void *const *)&context->ops;
	void *const *slots = (void *const *)verbs;

	for (size_t i = 0; i < sizeof(context->ops) / sizeof(*ops); i++)
		assert_non_null(ops[i]);
	for (size_t i = 0; i < offsetof(struct verbs_context, _ABI_placeholder3) / sizeof(*slots);
	     i++)
		assert_non_null(slots[i]);
}

TEST(open__gives_a_descriptor_that_programs_do_not_inherit)
{
	struct ibv_context *context = *state;

	assert_true(fcntl(context->async_fd, F_GETFD) & FD_CLOEXEC);
}

TEST(close__closes_the_descriptor, .bare = true)
{
	struct ibv_context *context = fake_open();
	const int fd = context->async_fd;

	assert_int_equal(ibv_close_device(context), 0);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}
