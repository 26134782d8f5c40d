/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/wire/cm_other.c. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/cm.h"
#include "test.h"

static uint8_t bytes[MAD_LEN], answer[MAD_LEN];

static void build_req(void)
{
	const struct cm_mad req = {
		.message = CM_REQ, .tid = 77, .local_id = 0x12345678, .req = {.qpn = 0x111}};

	assert_int_equal(cm_mad_build(&req, bytes), 0);
}

/* Answer the MAD as cm_mad_parse judges it. */
static bool answered(void)
{
	struct cm_mad mad;

	return cm_mad_answer(bytes, cm_mad_parse(bytes, sizeof(bytes), &mad), answer);
}

TEST(cm_mad_answer__has_nothing_for_messages)
{
	build_req();
	assert_false(answered());
	assert_false(cm_mad_answer(bytes, CM_MAD_BAD_LENGTH, answer));
	assert_false(cm_mad_answer(bytes, CM_MAD_BAD_FIELD, answer));
}

TEST(cm_mad_answer__rejects_a_req_of_another_version)
{
	struct cm_mad mad;

	build_req();
	bytes[offsetof(struct mad_header, class_version)] = 1;
	assert_true(answered());
	assert_int_equal(cm_mad_parse(answer, sizeof(answer), &mad), CM_MAD_OK);
	assert_int_equal(mad.message, CM_REJ);
	assert_int_equal(mad.remote_id, 0x12345678);
	assert_int_equal(mad.tid, 77);
	assert_int_equal(mad.rej.reason, CM_REJ_INVALID_CLASS_VERSION);
}

TEST(cm_mad_answer__drops_a_send_of_another_class)
{
	build_req();
	bytes[offsetof(struct mad_header, mgmt_class)] = 0x04;
	assert_false(answered());
	bytes[offsetof(struct mad_header, method)] = MAD_GET;
	assert_true(answered());
	assert_int_equal(answer[5], MAD_CODE_BAD_VERSION);
}

TEST(cm_mad_answer__describes_the_class)
{
	build_req();
	bytes[offsetof(struct mad_header, method)] = MAD_GET;
	bytes[offsetof(struct mad_header, attr)] = 0;
	bytes[offsetof(struct mad_header, attr) + 1] = MAD_ATTR_CLASS_PORT_INFO;
	assert_true(answered());
	assert_int_equal(answer[offsetof(struct mad_header, method)], MAD_GET_RESPONSE);
	assert_int_equal(answer[5], 0);
	assert_int_equal(answer[sizeof(struct mad_header) + 1], CM_CLASS_VERSION);
}
