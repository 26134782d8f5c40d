/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells processes that others have not read their packets. */
#include "unread.h"

#include <string.h>

#include "isolated.h"
#include "server.h"
#include "slot.h"

/* While nothing but late processes is known, the owner sleeps longer. What they send wakes it. */
#define UNREAD_LATE_NS UINT64_C(100000000)

static bool unread_has_senders(const struct unread *unread)
{
	uint64_t any = 0;

	for (int i = 0; i < UNREAD_WORDS; i++)
		any |= unread->senders[i];
	return any != 0;
}

/* Tell how many packets a process was given, and how many it has taken; false: it is not known. */
static bool unread_count(const struct slot *slot, uint32_t *given, uint32_t *taken)
{
	const struct share_ring *ring = &slot->rings[SHARE_RING_RX];

	if (slot->isolated)
		return isolated_tell_taken(slot, given, taken);
	*given = ring->own;
	*taken = __atomic_load_n(&ring->memory->cons, __ATOMIC_RELAXED);
	return true;
}

enum unread_state {
	UNREAD_NONE, /* the process has taken all packets */
	UNREAD_SOME,
	UNREAD_LATE, /* and has taken none since the last look */
};

static enum unread_state unread_judge(struct slot *slot)
{
	struct unread *unread = &slot->unread;
	const uint32_t given = unread->given, taken = unread->taken;

	if (!unread_has_senders(unread))
		return UNREAD_NONE;
	if (!unread_count(slot, &unread->given, &unread->taken) || unread->given == unread->taken) {
		memset(unread->senders, 0, sizeof(unread->senders));
		return UNREAD_NONE;
	}
	return unread->taken == taken && given != taken ? UNREAD_LATE : UNREAD_SOME;
}

static void unread_tell(const struct slot *slot, bool is_unread)
{
	if (slot->isolated)
		isolated_tell_unread(slot, is_unread);
	else
		__atomic_store_n(&slot->page->unread, is_unread, __ATOMIC_RELAXED);
}

void unread_forget(struct server *server, uint16_t number)
{
	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++)
		server->slots.all[i].unread.senders[number / 64] &= ~(UINT64_C(1) << number % 64);
}

void unread_look(struct server *server)
{
	struct slots *slots = &server->slots;
	uint64_t senders[UNREAD_WORDS] = {0};
	bool some = false, late = false;

	if (likely(server->now_ns < server->unread_looks.due_ns))
		return;
	for (uint16_t i = 0; i < slots->live_count; i++) {
		struct slot *slot = &slots->all[slots->live[i]];
		const enum unread_state state = unread_judge(slot);

		some |= state == UNREAD_SOME;
		late |= state == UNREAD_LATE;
		for (int k = 0; state == UNREAD_LATE && k < UNREAD_WORDS; k++)
			senders[k] |= slot->unread.senders[k];
	}
	for (uint16_t i = 0; i < slots->live_count; i++) {
		const uint16_t number = slots->live[i];

		unread_tell(&slots->all[number], senders[number / 64] >> number % 64 & 1);
	}
	server->unread_looks.due_ns = server->now_ns + UNREAD_LOOK_NS;
	server->unread_looks.wake_ns = some   ? server->unread_looks.due_ns
				       : late ? server->now_ns + UNREAD_LATE_NS
					      : UINT64_MAX;
}
