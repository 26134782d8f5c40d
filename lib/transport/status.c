/* SPDX-License-Identifier: BSD-3-Clause */
/* The consequences of a failed check: one table of NAK codes, completion statuses, counters and
 * events. */
#include "transport/status.h"

#include "wire/headers.h"

/* FAULT_NO_EVENT is used in place of an event's name. */
#define IBV_EVENT_FAULT_NO_EVENT FAULT_NO_EVENT

static const struct fault_info faults[FAULT_COUNT] = {
#define FAULT(row_name, row_nak, row_status, row_event, row_counter) \
	[FAULT_##row_name] = {.name = #row_name,                     \
			      .nak = row_nak,                        \
			      .status = IBV_WC_##row_status,         \
			      .event = IBV_EVENT_##row_event,        \
			      .counter = COUNTER_##row_counter},
	FAULTS(FAULT)
#undef FAULT
};

const struct fault_info *fault_info(enum fault fault)
{
	return &faults[fault];
}

enum fault fault_of_nak(uint8_t code)
{
	switch (code) {
	case NAK_INVALID_REQUEST:
		return FAULT_NAKED_INVALID;
	case NAK_REMOTE_ACCESS:
		return FAULT_NAKED_ACCESS;
	case NAK_REMOTE_OPERATIONAL:
		return FAULT_NAKED_OPERATIONAL;
	default:
		return FAULT_BAD_RESPONSE;
	}
}

enum fault fault_of_status(enum ibv_wc_status status)
{
	for (int fault = FAULT_NONE + 1; fault < FAULT_COUNT; fault++) {
		const struct fault_info *info = fault_info((enum fault)fault);

		if (info->nak == FAULT_NO_NAK && info->status == status)
			return (enum fault)fault;
	}
	return FAULT_NONE;
}
