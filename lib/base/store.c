/* SPDX-License-Identifier: BSD-3-Clause */
/* The way to store long packets: chosen, forced or fixed. */
#include "base/store.h"

#include <assert.h>

#include "base/tuning.h"

static_assert((int)STORE_WAYS <= (int)CHOICE_WAYS, "a choice has room for all ways");

static enum store_way forced = STORE_WAYS;

void store_force(enum store_way way)
{
	forced = way;
}

bool store_is_free(void)
{
	return likely(tuning.store_choice && forced == STORE_WAYS);
}

enum store_way store_way(const struct choice *choice)
{
	const uint8_t first = (uint8_t)__builtin_ctz(choice->possible);

	if (likely(store_is_free()))
		return (enum store_way)choice->now;
	if (tuning.store_choice && (choice->possible >> forced & 1))
		return forced;
	return (enum store_way)first;
}
