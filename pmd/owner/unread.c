/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells processes that others have not read their packets. */
#include "unread.h"

#include <string.h>

#include "isolated.h"
#include "server.h"
#include "slot.h"
#include "wire/qpn_block.h"

/* While nothing but late processes is known, the owner sleeps longer. What they send wakes it. */
#define UNREAD_LATE_NS UINT64_C(100000000)

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

/* All packets before the mark were taken: those that came since wait before the next one. */
static void unread_move_mark(struct unread *unread)
{
	unread->older = unread->newer;
	memset(&unread->newer, 0, sizeof(unread->newer));
	unread->mark = unread->given;
}

/* Return who has sent packets that a process may not have taken. */
static struct unread_senders unread_senders(const struct unread *unread)
{
	struct unread_senders senders = unread->older;

	for (int i = 0; i < UNREAD_WORDS; i++)
		senders.words[i] |= unread->newer.words[i];
	return senders;
}

static bool unread_is_none(const struct unread_senders *senders)
{
	uint64_t any = 0;

	for (int i = 0; i < UNREAD_WORDS; i++)
		any |= senders->words[i];
	return any == 0;
}

enum unread_state {
	UNREAD_NONE, /* the process has taken all packets */
	UNREAD_SOME,
	UNREAD_LATE, /* and has taken none since the last look */
};

static enum unread_state unread_judge(struct slot *slot, struct unread_senders *senders)
{
	struct unread *unread = &slot->unread;
	const uint32_t given = unread->given, taken = unread->taken;

	*senders = unread_senders(unread);
	if (unread_is_none(senders))
		return UNREAD_NONE;
	if (!unread_count(slot, &unread->given, &unread->taken) || unread->given == unread->taken) {
		*unread = (struct unread){
			.given = unread->given, .taken = unread->taken, .mark = unread->given};
		return UNREAD_NONE;
	}
	if ((int32_t)(unread->taken - unread->mark) >= 0)
		unread_move_mark(unread);
	return unread->taken == taken && given != taken ? UNREAD_LATE : UNREAD_SOME;
}

static void unread_add(uint64_t *unread, const struct unread_senders *senders, uint64_t bit)
{
	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++) {
		if (senders->words[i / 64] >> i % 64 & 1)
			unread[i] |= bit;
	}
}

static void unread_tell(const struct slot *slot, uint64_t unread)
{
	if (slot->isolated)
		isolated_tell_unread(slot, unread);
	else
		__atomic_store_n(&slot->page->unread, unread, __ATOMIC_RELAXED);
}

void unread_forget(struct server *server, uint16_t number)
{
	const uint64_t others = ~(UINT64_C(1) << number % 64);

	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++) {
		struct unread *unread = &server->slots.all[i].unread;

		unread->older.words[number / 64] &= others;
		unread->newer.words[number / 64] &= others;
	}
}

void unread_look(struct server *server)
{
	const struct slots *slots = &server->slots;
	uint64_t unread[SERVE_SLOTS_MAX] = {0}; /* by sender: bits of late receivers */
	bool some = false, late = false;

	if (likely(server->now_ns < server->unread_looks.due_ns))
		return;
	for (uint16_t i = 0; i < slots->live_count; i++) {
		struct slot *slot = &server->slots.all[slots->live[i]];
		struct unread_senders senders;
		const enum unread_state state = unread_judge(slot, &senders);

		some |= state == UNREAD_SOME;
		late |= state == UNREAD_LATE;
		if (state == UNREAD_LATE)
			unread_add(unread, &senders, wire_block_bit(slot->qpn_first));
	}
	for (uint16_t i = 0; i < slots->live_count; i++)
		unread_tell(&slots->all[slots->live[i]], unread[slots->live[i]]);
	server->unread_looks.due_ns = server->now_ns + UNREAD_LOOK_NS;
	server->unread_looks.wake_ns = some   ? server->unread_looks.due_ns
				       : late ? server->now_ns + UNREAD_LATE_NS
					      : UINT64_MAX;
}
