/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The share of the owner's time that an untrusted client may use. The owner handles one message of
 * a client between two polls, and the message delays everybody's packets. So the budget limits the
 * time that a client's messages take, not their number.
 */
#ifndef OWNER_BUDGET_H
#define OWNER_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* A client may use at most 1/BUDGET_PART of the time in the long run. */
#define BUDGET_PART	16
#define BUDGET_BURST_NS UINT64_C(2000000) /* that it may use at once */

/* All zero: nothing was spent. */
struct budget {
	uint64_t owed_ns; /* time until all that was spent is earned again */
	uint64_t at_ns;	  /* when owed_ns was updated */
};

static inline void budget_settle(struct budget *budget, uint64_t now_ns)
{
	const uint64_t passed_ns = now_ns - budget->at_ns;

	budget->owed_ns -= passed_ns < budget->owed_ns ? passed_ns : budget->owed_ns;
	budget->at_ns = now_ns;
}

/** Charge `took_ns`, the time that a message took until now, to one of `clients`. All of them
 * together may use at most all of the time. */
static inline void budget_spend(struct budget *budget, uint64_t now_ns, uint64_t took_ns,
				uint32_t clients)
{
	budget_settle(budget, now_ns);
	budget->owed_ns += took_ns * (clients > BUDGET_PART ? clients : BUDGET_PART);
}

/** Return true while the client has to wait. */
static inline bool budget_is_spent(struct budget *budget, uint64_t now_ns)
{
	budget_settle(budget, now_ns);
	return budget->owed_ns >= BUDGET_BURST_NS * BUDGET_PART;
}

#endif
