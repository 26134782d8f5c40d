/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of completion statuses, for messages. */
#include "sim.h"

const char *status_text(enum ibv_wc_status status)
{
	static const char *const names[] = {
		[IBV_WC_SUCCESS] = "success",
		[IBV_WC_LOC_LEN_ERR] = "local length error",
		[IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
		[IBV_WC_LOC_PROT_ERR] = "local protection error",
		[IBV_WC_WR_FLUSH_ERR] = "flushed",
		[IBV_WC_MW_BIND_ERR] = "window bind error",
		[IBV_WC_BAD_RESP_ERR] = "bad response",
		[IBV_WC_REM_INV_REQ_ERR] = "remote invalid request",
		[IBV_WC_LOC_ACCESS_ERR] = "local access error",
		[IBV_WC_REM_ACCESS_ERR] = "remote access error",
		[IBV_WC_REM_OP_ERR] = "remote operation error",
		[IBV_WC_RETRY_EXC_ERR] = "retries exceeded",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retries exceeded",
		[IBV_WC_GENERAL_ERR] = "general error",
	};

	if ((unsigned int)status >= sizeof(names) / sizeof(names[0]) || names[status] == NULL)
		return "a status that fits nothing";
	return names[status];
}
