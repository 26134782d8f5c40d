/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests without a packet: bindings and invalidations of memory windows, executed in
 * order. */
#ifndef TRANSPORT_LOCAL_H
#define TRANSPORT_LOCAL_H

#include <stdint.h>

#include "queue/sq.h"
#include "transport/status.h"

struct mw_list;
struct pd;

/** Return the fault that a user has asked for (SQ_WR_FAILS). */
enum fault local_failure(const struct send_wqe *wqe);

/** Execute a local request (sq_is_local). `windows` is as for mw_bind. FAULT_NONE;
 * FAULT_SEND_WINDOW: nothing has changed; or that of local_failure. */
enum fault local_execute(const struct pd *pd, uint32_t qpn, struct mw_list *windows,
			 const struct send_wqe *wqe);

#endif
