/* SPDX-License-Identifier: BSD-3-Clause */
/* The consequences of a failed check: one table of NAK codes, completion statuses, counters and
 * events. */
#ifndef TRANSPORT_STATUS_H
#define TRANSPORT_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "telemetry/counters.h"

/*
 * The reasons why a queue pair fails, one row each: NAK code to the peer (or the reason for none),
 * status of the work request at fault, asynchronous event if no work request is at fault
 * (FAULT_NO_EVENT for none), counter.
 */
#define FAULTS(FAULT)                                                                              \
	/* responder: the peer's request is wrong (IBTA 9.7.4, 9.9.3) */                           \
	FAULT(INVALID_REQUEST, NAK_INVALID_REQUEST, REM_INV_REQ_ERR, QP_REQ_ERR,                   \
	      resp_invalid_request)                                                                \
	/* only a WRITE with immediate data has a receive request then (11.6.2) */                 \
	FAULT(ACCESS, NAK_REMOTE_ACCESS, LOC_ACCESS_ERR, QP_ACCESS_ERR, resp_remote_access_errors) \
	FAULT(MESSAGE_TOO_LONG, NAK_INVALID_REQUEST, LOC_LEN_ERR, FAULT_NO_EVENT,                  \
	      resp_local_length_error)                                                             \
	/* class J: the message arrived, and its local processing fails; the peer gets no NAK */   \
	FAULT(INVALIDATE, FAULT_SILENT, REM_INV_REQ_ERR, FAULT_NO_EVENT, resp_invalidate_errors)   \
	/* responder: our own receive request or memory is wrong */                                \
	FAULT(RECEIVE_PROTECTION, NAK_REMOTE_OPERATIONAL, LOC_PROT_ERR, FAULT_NO_EVENT,            \
	      resp_operational_errors)                                                             \
	/* requester: our own send request or memory is wrong */                                   \
	FAULT(SEND_PROTECTION, FAULT_NO_NAK, LOC_PROT_ERR, FAULT_NO_EVENT,                         \
	      req_local_protection_errors)                                                         \
	FAULT(SEND_OPERATION, FAULT_NO_NAK, LOC_QP_OP_ERR, FAULT_NO_EVENT,                         \
	      req_local_operation_errors)                                                          \
	/* a memory management operation error of IBTA 11.6.2 */                                   \
	FAULT(SEND_WINDOW, FAULT_NO_NAK, MW_BIND_ERR, FAULT_NO_EVENT, req_window_errors)           \
	FAULT(SEND_LENGTH, FAULT_NO_NAK, LOC_LEN_ERR, FAULT_NO_EVENT, req_local_length_errors)     \
	/* requester: the peer's answer, or the lack of one */                                     \
	FAULT(NAKED_INVALID, FAULT_NO_NAK, REM_INV_REQ_ERR, FAULT_NO_EVENT,                        \
	      req_remote_invalid_request)                                                          \
	FAULT(NAKED_ACCESS, FAULT_NO_NAK, REM_ACCESS_ERR, FAULT_NO_EVENT,                          \
	      req_remote_access_errors)                                                            \
	FAULT(NAKED_OPERATIONAL, FAULT_NO_NAK, REM_OP_ERR, FAULT_NO_EVENT,                         \
	      req_remote_operational_errors)                                                       \
	FAULT(BAD_RESPONSE, FAULT_NO_NAK, BAD_RESP_ERR, FAULT_NO_EVENT, req_bad_responses)         \
	FAULT(RETRIES_EXHAUSTED, FAULT_NO_NAK, RETRY_EXC_ERR, FAULT_NO_EVENT,                      \
	      req_transport_retries_exceeded)                                                      \
	FAULT(RNR_RETRIES_EXHAUSTED, FAULT_NO_NAK, RNR_RETRY_EXC_ERR, FAULT_NO_EVENT,              \
	      req_rnr_retries_exceeded)                                                            \
	/* a completion queue was full: the queue's own event reports it */                        \
	FAULT(CQ_OVERRUN, FAULT_NO_NAK, GENERAL_ERR, QP_FATAL, cq_overrun)

enum fault {
	FAULT_NONE,
#define FAULT(name, nak, status, event, counter) FAULT_##name,
	FAULTS(FAULT)
#undef FAULT
		FAULT_COUNT
};

#define FAULT_NO_NAK   (-1) /* not a responder's fault */
#define FAULT_SILENT   (-2) /* a responder's fault without a NAK */
#define FAULT_NO_EVENT (-1)

struct fault_info {
	const char *name;
	int nak; /* enum nak_code, FAULT_NO_NAK or FAULT_SILENT */
	enum ibv_wc_status status;
	int event; /* enum ibv_event_type or FAULT_NO_EVENT */
	enum counter counter;
};

/** Return the row of a fault. MT-safe. Only for faults other than FAULT_NONE. */
const struct fault_info *fault_info(enum fault fault);

/** Return a fault of a send request that has this completion status; FAULT_NONE if there is none.
 * MT-safe. */
enum fault fault_of_status(enum ibv_wc_status status);

/** Return the fault for a received NAK code other than a PSN sequence error. MT-safe. */
enum fault fault_of_nak(uint8_t code);

#endif
