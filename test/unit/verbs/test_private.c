/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the private symbols that drivers of other devices link with. */
#include "private.h"

#include "fake_provider.h"
#include "test.h"

/* Declarations like those of a driver, whose parameters are ignored. */
void verbs_register_driver_34(const void *ops);
struct ibv_context *verbs_open_device(struct ibv_device *device, void *private_data);
int ibv_cmd_alloc_pd(struct ibv_context *context, struct ibv_pd *pd, void *cmd, size_t cmd_size,
		     void *resp, size_t resp_size);
int ibv_cmd_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int execute_ioctl(struct ibv_context *context, void *cmd);

TEST(register_driver__is_harmless)
{
	struct ibv_device **list;
	int num = 0;

	verbs_register_driver_34(&num);
	list = ibv_get_device_list(&num);
	assert_int_equal(num, 1);
	ibv_free_device_list(list);
	assert_false(verbs_allow_disassociate_destroy);
}

TEST(private__answers_that_it_does_nothing)
{
	struct ibv_pd pd = {.handle = 5};
	struct ibv_wc wc;

	errno = 0;
	assert_null(verbs_open_device(NULL, NULL));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(ibv_cmd_alloc_pd(NULL, &pd, NULL, 0, NULL, 0), EOPNOTSUPP);
	assert_int_equal(pd.handle, 5);
	assert_int_equal(execute_ioctl(NULL, NULL), EOPNOTSUPP);
	assert_true(ibv_cmd_poll_cq(NULL, 1, &wc) < 0);
}
