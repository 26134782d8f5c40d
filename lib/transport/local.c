/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests without a packet. */
#include "transport/local.h"

#include "base/reason.h"
#include "mem/mw.h"

enum fault local_failure(const struct send_wqe *wqe)
{
	return FAULT_REASON((enum fault)wqe->rkey, "this was asked for (--inject)");
}

enum fault local_execute(const struct pd *pd, uint32_t qpn, struct mw_list *windows,
			 const struct send_wqe *wqe)
{
	const struct mw_binding binding = {
		.window = wqe->bind_window,
		.rkey = wqe->rkey,
		.lkey = wqe->bind->lkey,
		.addr = wqe->remote_addr,
		.length = wqe->bind->length,
		.access = wqe->bind->access,
	};
	int rc;

	if (wqe->opcode == SQ_WR_FAILS)
		return local_failure(wqe);
	if (wqe->opcode == IBV_WR_BIND_MW)
		rc = mw_bind(pd, qpn, windows, &binding);
	else
		rc = mw_invalidate(pd, qpn, wqe->rkey);
	return rc == 0 ? FAULT_NONE : FAULT_SEND_WINDOW;
}
