/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much of the owner's time somebody has had who is not trusted. Between two of its messages all
 * others have a turn, but a turn of theirs is longer by what the message takes: so it may have a
 * small part of the time, by what messages take and not by how many there are.
 */
#ifndef OWNER_BUDGET_H
#define OWNER_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_PART	16 /* this part of the time is what it may have in the long run */
#define BUDGET_BURST_NS UINT64_C(2000000) /* and so much at once */

/* All zero: it has had nothing. */
struct budget {
	uint64_t owed_ns; /* the time in which it earns what it has had */
	uint64_t at_ns;	  /* when that was found out */
};

static inline void budget_settle(struct budget *budget, uint64_t now_ns)
{
	const uint64_t passed_ns = now_ns - budget->at_ns;

	budget->owed_ns -= passed_ns < budget->owed_ns ? passed_ns : budget->owed_ns;
	budget->at_ns = now_ns;
}

/** Something took so long that ends now. */
static inline void budget_spend(struct budget *budget, uint64_t now_ns, uint64_t took_ns)
{
	budget_settle(budget, now_ns);
	budget->owed_ns += took_ns * BUDGET_PART;
}

/** Return true while it has to wait. */
static inline bool budget_is_spent(struct budget *budget, uint64_t now_ns)
{
	budget_settle(budget, now_ns);
	return budget->owed_ns >= BUDGET_BURST_NS * BUDGET_PART;
}

#endif
