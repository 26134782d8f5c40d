/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/status.c: what the specification and ibv_poll_cq(3) say of each fault. */
#include <stddef.h>
#include <stdint.h>

#include "transport/status.h"
#include "wire/headers.h"
#include "test.h"

/* Typed from IBTA 9.9.2 and 9.9.3 and the verbs' headers, not from the table under test. */
static const struct row {
	enum fault fault;
	int nak;
	enum ibv_wc_status status;
	int event;
} rows[] = {
	{FAULT_INVALID_REQUEST, 1, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR},
	{FAULT_ACCESS, 2, IBV_WC_LOC_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
	{FAULT_MESSAGE_TOO_LONG, 1, IBV_WC_LOC_LEN_ERR, FAULT_NO_EVENT},
	{FAULT_INVALIDATE, FAULT_SILENT, IBV_WC_REM_INV_REQ_ERR, FAULT_NO_EVENT},
	{FAULT_RECEIVE_PROTECTION, 3, IBV_WC_LOC_PROT_ERR, FAULT_NO_EVENT},
	{FAULT_SEND_PROTECTION, FAULT_NO_NAK, IBV_WC_LOC_PROT_ERR, FAULT_NO_EVENT},
	{FAULT_SEND_OPERATION, FAULT_NO_NAK, IBV_WC_LOC_QP_OP_ERR, FAULT_NO_EVENT},
	{FAULT_SEND_WINDOW, FAULT_NO_NAK, IBV_WC_MW_BIND_ERR, FAULT_NO_EVENT},
	{FAULT_SEND_LENGTH, FAULT_NO_NAK, IBV_WC_LOC_LEN_ERR, FAULT_NO_EVENT},
	{FAULT_NAKED_INVALID, FAULT_NO_NAK, IBV_WC_REM_INV_REQ_ERR, FAULT_NO_EVENT},
	{FAULT_NAKED_ACCESS, FAULT_NO_NAK, IBV_WC_REM_ACCESS_ERR, FAULT_NO_EVENT},
	{FAULT_NAKED_OPERATIONAL, FAULT_NO_NAK, IBV_WC_REM_OP_ERR, FAULT_NO_EVENT},
	{FAULT_BAD_RESPONSE, FAULT_NO_NAK, IBV_WC_BAD_RESP_ERR, FAULT_NO_EVENT},
	{FAULT_RETRIES_EXHAUSTED, FAULT_NO_NAK, IBV_WC_RETRY_EXC_ERR, FAULT_NO_EVENT},
	{FAULT_RNR_RETRIES_EXHAUSTED, FAULT_NO_NAK, IBV_WC_RNR_RETRY_EXC_ERR, FAULT_NO_EVENT},
	{FAULT_CQ_OVERRUN, FAULT_NO_NAK, IBV_WC_GENERAL_ERR, IBV_EVENT_QP_FATAL},
};

TEST(fault_info__each_fault_has_its_nak_status_and_event)
{
	/* A fault that is added gets a row here as well. */
	assert_int_equal(sizeof(rows) / sizeof(rows[0]), FAULT_COUNT - 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct fault_info *info = fault_info(rows[i].fault);

		assert_int_equal(rows[i].fault, i + 1);
		assert_int_equal(info->nak, rows[i].nak);
		assert_int_equal(info->status, rows[i].status);
		assert_int_equal(info->event, rows[i].event);
	}
}

TEST(fault_info__each_fault_counts_apart)
{
	for (int a = FAULT_NONE + 1; a < FAULT_COUNT; a++) {
		assert_non_null(fault_info((enum fault)a)->name);
		for (int b = a + 1; b < FAULT_COUNT; b++)
			assert_int_not_equal(fault_info((enum fault)a)->counter,
					     fault_info((enum fault)b)->counter);
	}
}

TEST(fault_info__counters_are_those_of_their_names)
{
	assert_int_equal(fault_info(FAULT_ACCESS)->counter, COUNTER_resp_remote_access_errors);
	assert_int_equal(fault_info(FAULT_NAKED_ACCESS)->counter, COUNTER_req_remote_access_errors);
	assert_int_equal(fault_info(FAULT_MESSAGE_TOO_LONG)->counter,
			 COUNTER_resp_local_length_error);
	assert_int_equal(fault_info(FAULT_CQ_OVERRUN)->counter, COUNTER_cq_overrun);
}

TEST(fault_of_nak__each_code_has_its_fault)
{
	assert_int_equal(fault_of_nak(NAK_INVALID_REQUEST), FAULT_NAKED_INVALID);
	assert_int_equal(fault_of_nak(NAK_REMOTE_ACCESS), FAULT_NAKED_ACCESS);
	assert_int_equal(fault_of_nak(NAK_REMOTE_OPERATIONAL), FAULT_NAKED_OPERATIONAL);
}

TEST(fault_of_nak__reserved_codes_are_bad_responses)
{
	for (unsigned int code = 4; code < 32; code++)
		assert_int_equal(fault_of_nak((uint8_t)code), FAULT_BAD_RESPONSE);
}

TEST(fault_of_status__is_of_a_send_request)
{
	assert_int_equal(fault_of_status(IBV_WC_REM_ACCESS_ERR), FAULT_NAKED_ACCESS);
	assert_int_equal(fault_of_status(IBV_WC_LOC_PROT_ERR), FAULT_SEND_PROTECTION);
	assert_int_equal(fault_of_status(IBV_WC_LOC_LEN_ERR), FAULT_SEND_LENGTH);
	assert_int_equal(fault_of_status(IBV_WC_RETRY_EXC_ERR), FAULT_RETRIES_EXHAUSTED);
	/* Only a receive request has it. */
	assert_int_equal(fault_of_status(IBV_WC_LOC_ACCESS_ERR), FAULT_NONE);
	assert_int_equal(fault_of_status(IBV_WC_SUCCESS), FAULT_NONE);
}
