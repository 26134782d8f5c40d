/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots of the further engines of a process: who may have one, and how they end. */
#include "slot.h"

#include <errno.h>
#include <sys/socket.h>

#include "resume.h"
#include "server.h"
#include "share/message.h"
#include "share/user.h"

/* Return true if the first engine's slot is live, and the other end of a socket is its process. */
static bool engine_is_of(const struct slot *first, int socket, const struct share_engine *engine)
{
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);

	if (first->state != SLOT_LIVE || first->isolated || first->is_further ||
	    first->generation != engine->generation)
		return false;
	/* A process that has ended still has its number, until it is another process's. */
	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.pid != 0 &&
	       peer.pid == first->pid && !user_has_ended(first->pidfd);
}

/* Return the number of slots that further engines have or may have. */
static uint32_t engine_count_further(const struct server *server)
{
	uint32_t count = 0;

	for (int i = 0; i < SERVE_SLOTS_MAX; i++) {
		const struct slot *slot = &server->slots.all[i];

		if (slot->state != SLOT_FREE && !slot->is_further && slot->engine_count > 1)
			count += slot->engine_count - 1;
	}
	return count;
}

void slot_engine_reserve(struct server *server, uint16_t number, uint32_t count, bool returns)
{
	const struct resume_needs needs =
		returns ? (struct resume_needs){0} : resume_needs(server, USER_TRUSTED);
	struct slot *slot = &server->slots.all[number];
	const uint32_t most = RTE_MIN(SERVER_FURTHER_MAX, server->slots.max / 4u);

	/* An engine without a full share would have few buffers, and no packet socket. */
	if (count <= 1 || count > SHARE_ENGINES_MAX || !slot->has_full_share ||
	    slot_unreserved(server, returns) < count ||
	    engine_count_further(server) + needs.further + count - 1 > most ||
	    server->slots.full_shares + needs.shares + count - 1 > SERVER_FULL_SHARES)
		return;
	slot->engine_count = count;
	slot->engine_shares = count - 1;
	server->slots.full_shares += count - 1;
	for (uint32_t i = 0; i < SHARE_ENGINES_MAX; i++)
		slot->engine_slots[i] = BLOCK_NONE;
}

int slot_engine_check(const struct server *server, int socket, const struct share_engine *engine)
{
	const struct slot *first;

	if (engine->slot >= SERVE_SLOTS_MAX)
		return -EINVAL;
	first = &server->slots.all[engine->slot];
	if (!engine_is_of(first, socket, engine) || first->engine_count <= 1 ||
	    first->engine_count != engine->count || engine->number == 0 ||
	    engine->number >= engine->count || first->engine_shares == 0)
		return -EINVAL;
	return first->engine_slots[engine->number] == BLOCK_NONE ? 0 : -EINVAL;
}

void slot_engine_add(struct server *server, uint16_t number, const struct share_engine *engine)
{
	struct slot *slot = &server->slots.all[number];
	struct slot *first = &server->slots.all[engine->slot];

	first->engine_shares--;
	server->slots.full_shares--;
	first->engine_slots[engine->number] = number;
	slot->is_further = true;
	slot->first = engine->slot;
	slot->engine = engine->number;
	slot->qpn_first = first->qpn_first;
	slot->qpn_count = first->qpn_count;
	slot->id_value = first->id_value;
}

/* The first engine's slot ends. Packets that the others have sent before still leave, unless the
 * process has broken a rule. */
static void engine_end_further(struct server *server, const struct slot *first)
{
	for (uint32_t i = 1; i < first->engine_count; i++) {
		const uint16_t number = first->engine_slots[i];

		if (number == BLOCK_NONE)
			continue;
		if (first->broke_rule || first->dismissed)
			slot_dismiss(server, number);
		else
			slot_hang_up(server, number);
	}
}

/*
 * The slot of a further engine ends, and so does the process's first one. If the process broke a
 * rule, no packet is taken from the first slot any more, not even if that slot is drained already,
 * nor from the others, which end with it. Otherwise a first slot that is drained ends by itself.
 */
static void engine_end_first(struct server *server, const struct slot *slot)
{
	const struct slot *first = &server->slots.all[slot->first];

	if (!slot_is_served(first))
		return;
	if (slot->broke_rule || slot->dismissed)
		slot_dismiss(server, slot->first);
	else
		slot_hang_up(server, slot->first);
}

/* Return false if the first engine's slot has ended, and may be another process's. */
static bool engine_is_in(const struct slot *first, uint32_t engine, uint16_t number)
{
	return engine < first->engine_count && first->engine_slots[engine] == number;
}

void slot_engine_forget(struct server *server, uint16_t number)
{
	const struct slot *slot = &server->slots.all[number];
	struct slot *first = &server->slots.all[slot->first];

	if (slot->is_further && engine_is_in(first, slot->engine, number))
		first->engine_slots[slot->engine] = BLOCK_NONE;
}

void slot_engine_withdraw(struct server *server, uint16_t number)
{
	const struct slot *slot = &server->slots.all[number];
	bool is_in;

	if (!slot->is_further) {
		engine_end_further(server, slot);
		return;
	}
	/* Forget it first: the end of the first slot ends those that it still knows. */
	is_in = engine_is_in(&server->slots.all[slot->first], slot->engine, number);
	slot_engine_forget(server, number);
	if (is_in)
		engine_end_first(server, slot);
}

uint16_t slot_engine_first(const struct server *server, uint16_t number)
{
	const struct slot *slot = &server->slots.all[number];

	return slot->is_further ? slot->first : number;
}

uint32_t slot_engine_served(const struct server *server, uint16_t number)
{
	const struct slot *slot = &server->slots.all[number];
	uint32_t served = 0;

	if (slot->is_further)
		return 1u << slot->engine;
	if (slot->engine_count <= 1)
		return 1;
	for (uint32_t i = 0; i < slot->engine_count; i++) {
		if (slot->engine_slots[i] == BLOCK_NONE)
			served |= 1u << i;
	}
	return served;
}
