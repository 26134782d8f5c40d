/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Orders: what a reader of a report wants the process to change. An order is one word of the report
 * (`order`), which is empty, an order, an order that is being executed, or the answer to one:
 *
 *     0 -> order    a reader, if the word is empty
 *     order -> taken    the engine's thread, before it executes the order
 *     taken -> answer    the engine's thread, where it also rewrites the report
 *     answer -> 0    the reader
 *     order -> 0    the reader, if it was not taken in time: it will not be executed
 *     taken -> 0    the reader, if there is no answer in as much time again
 *     anything -> order    another reader, if nothing has changed for half of its own time
 *
 * Each step is a compare-and-swap, so readers need no lock. A reader that is killed leaves its
 * order behind; the next reader replaces it after a while. The engine checks each value.
 */
#ifndef REPORT_ORDER_H
#define REPORT_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "report/layout.h"

enum order_kind {
	ORDER_PARAM,	 /* set a parameter of congestion control (transport/cc_params.h) */
	ORDER_ALGORITHM, /* set the algorithm of a queue pair, or of all and of new ones */
	ORDER_KINDS,
};

struct report_order {
	enum order_kind kind;
	uint8_t index;	/* of the parameter, or enum cc_kind: any number */
	uint32_t value; /* of the parameter, or a queue pair's number; 0: all queue pairs */
	uint64_t word;	/* set by order_take: the order as it stands in the report */
};

/**
 * Give an order, and wait at most `ms` milliseconds until the process takes it, and as long again
 * until it answers. One thread of a process at a time.
 *
 * @return
 *   0; -ETIMEDOUT: the process did not take the order, and never will; -EINPROGRESS: it was taken
 *   and not answered, or another reader has replaced it, so it may have been executed; or the
 *   process's error:
 *   -ENOENT: it does not know this parameter or queue pair; -ERANGE, -EINVAL: the value is not
 *   allowed; -EOPNOTSUPP: a queue pair of this type cannot have this algorithm; -ENOMEM.
 */
int order_give(struct report *report, const struct report_order *order, unsigned int ms);

/** Take an order: its reader cannot withdraw it any more. Return false if there is none. Engine's
 * thread. */
bool order_take(struct report *report, struct report_order *order);

/** Answer the order that order_take returned: 0 or -errno. Engine's thread. */
void order_answer(struct report *report, const struct report_order *order, int rc);

#endif
