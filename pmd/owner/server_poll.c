/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs one poll of the owner: moves packets of all processes, in both directions. */
#include "server_poll.h"

#include <string.h>
#include <unistd.h>

#include "event.h"
#include "forward.h"
#include "isolated.h"
#include "kernel.h"
#include "server.h"
#include "slot.h"
#include "unread.h"

#define ROUNDS 4 /* of a poll, if there are several tenants */

static bool server_poll_is_broken(const struct slot *slot)
{
	if (slot->isolated)
		return isolated_is_broken(slot);
	for (int kind = 0; kind < SHARE_RINGS; kind++) {
		if (slot->rings[kind].broken)
			return true;
	}
	return false;
}

static unsigned int server_poll_serve_shared(struct server *server, uint16_t number,
					     struct tenants_take *take)
{
	const struct slot *slot = &server->slots.all[number];
	unsigned int work;

	work = forward_take_returns(server, number);
	if (unlikely(slot->mads.count > 0))
		work += mad_queue_serve(server, number);
	if (!slot->broke_rule)
		work += forward_take(server, number, SERVER_BURST, take);
	if (!slot->broke_rule)
		forward_refill(server, number);
	return work;
}

uint32_t server_poll_drain(struct server *server, uint16_t number, struct tenants_take *take)
{
	struct slot *slot = &server->slots.all[number];
	const uint32_t taken = forward_take(
		server, number, RTE_MIN(slot->drain_left, (uint32_t)SERVER_BURST), take);

	slot->drain_left -= taken;
	return taken;
}

/* Serve a slot. A credit of 0 takes none of its packets, but does all other work. */
static unsigned int server_poll_serve(struct server *server, uint16_t number,
				      struct tenants_take *take)
{
	const struct slot *slot = &server->slots.all[number];
	unsigned int work;

	if (slot->state == SLOT_DRAINING)
		work = server_poll_drain(server, number, take);
	else if (slot->isolated)
		work = forward_take(server, number, SERVER_BURST, take);
	else
		work = server_poll_serve_shared(server, number, take);
	if (unlikely(!slot->broke_rule && server_poll_is_broken(slot)))
		forward_refuse(server, number);
	if (unlikely(slot->broke_rule || slot->state == SLOT_DRAINING))
		slot_advance(server, number);
	return work;
}

static void server_poll_wake_shared(const struct slot *slot)
{
	const uint64_t one = 1;

	if (__atomic_load_n(&slot->page->process_sleeps, __ATOMIC_RELAXED) == 0)
		return;
	__atomic_store_n(&slot->page->process_sleeps, 0, __ATOMIC_RELAXED);
	/* Nobody else has this eventfd, so the counter has room, and the write does not block. */
	if (write(slot->process_fd, &one, sizeof(one)) < 0)
		return;
}

void server_poll_wake(struct server *server)
{
	/* Order the stores of the packets before the loads of process_sleeps, and of the flags of
	 * memif's rings. Pairs with client_arm and with memif_arm. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint16_t i = 0; i < server->slots.live_count; i++) {
		struct slot *slot = &server->slots.all[server->slots.live[i]];

		if (!slot->touched)
			continue;
		slot->touched = false;
		if (slot->isolated)
			isolated_wake(slot);
		else
			server_poll_wake_shared(slot);
	}
}

bool server_poll_slot_waits(struct slot *slot)
{
	return slot->isolated ? isolated_waits(slot)
			      : share_ring_count(&slot->rings[SHARE_RING_TX]) > 0;
}

/* Return true if a slot's packets can be taken at once. */
static bool server_poll_slot_is_due(struct server *server, struct slot *slot, uint64_t now_ns)
{
	return server_poll_slot_waits(slot) &&
	       (!server->tenants.are_many ||
		!tenants_is_held(&server->tenants, slot->tenant, now_ns));
}

bool server_poll_waits(struct server *server)
{
	const uint64_t now_ns = server->tenants.are_many ? event_now_ns() : 0;

	/* What waits may be for a program that is not back: serve_longest_ms looks again soon. */
	if (unlikely(server->resume.gathers))
		return false;
	/* Nothing tells the port's descriptor of these any more. */
	if (unlikely(server->uplink.held_count > 0))
		return true;
	for (uint16_t i = 0; i < server->slots.live_count; i++) {
		struct slot *slot = &server->slots.all[server->slots.live[i]];

		if (slot->state == SLOT_DRAINING || server_poll_slot_is_due(server, slot, now_ns) ||
		    (!slot->isolated && share_ring_count(&slot->rings[SHARE_RING_RETURN]) > 0))
			return true;
	}
	return false;
}

/* Serve slots of one tenant. */
static unsigned int server_poll_serve_all(struct server *server, const uint16_t *numbers,
					  uint16_t count)
{
	unsigned int work = 0;

	for (uint16_t i = 0; i < count; i++) {
		struct tenants_take take = {.credit = INT64_MAX};

		if (slot_is_served(&server->slots.all[numbers[i]]))
			work += server_poll_serve(server, numbers[i], &take);
	}
	return work;
}

/* Return true if a slot must be served in each poll, whether or not it has a turn: its process
 * shares memory, and needs buffers; or the slot has drained for long enough. */
static bool server_poll_needs_more(const struct server *server, const struct slot *slot)
{
	return !slot->isolated ||
	       (slot->state == SLOT_DRAINING && server->now_ns >= slot->drain_end_ns);
}

/* Do all work but to take packets, and note the slots whose packets wait. */
static unsigned int server_poll_begin_round(struct server *server, const uint16_t *numbers,
					    uint16_t count, bool is_first)
{
	unsigned int work = 0;

	tenants_begin(&server->tenants);
	for (uint16_t i = 0; i < count; i++) {
		struct slot *slot = &server->slots.all[numbers[i]];
		struct tenants_take nothing = {0};
		bool waits;

		if (!slot_is_served(slot))
			continue;
		waits = server_poll_slot_waits(slot);
		if (waits)
			tenants_want(&server->tenants, slot->tenant, numbers[i]);
		if (is_first && (!waits || server_poll_needs_more(server, slot)))
			work += server_poll_serve(server, numbers[i], &nothing);
	}
	return work;
}

/* Take packets of the slots that wait, in turns. */
static unsigned int server_poll_run_round(struct server *server)
{
	struct tenants *tenants = &server->tenants;
	struct tenants_take take;
	unsigned int work = 0;
	uint16_t number;

	tenants_start(tenants, server->now_ns);
	while ((number = tenants_next(tenants, server->now_ns, &take)) != TENANTS_NONE) {
		const struct slot *slot = &server->slots.all[number];
		const uint16_t tenant = slot->tenant;

		if (!slot_is_served(slot))
			continue;
		work += server_poll_serve(server, number, &take);
		tenants_charge(tenants, tenant, &take, server->now_ns);
	}
	return work;
}

/* Take packets from the port while processes of the last owner come back. Behind a packet that must
 * wait, all wait, so that they stay in order; the others stay in the port. */
static __rte_noinline unsigned int server_poll_receive_some(struct server *server)
{
	struct uplink *uplink = &server->uplink;
	uint16_t moved = 0;

	if (uplink->held_count == 0) {
		uplink->held_count = port_rx_burst(&uplink->link.port, uplink->held, SERVER_BURST);
		server->totals.rx_packets += uplink->held_count;
	}
	while (moved < uplink->held_count &&
	       !(server->resume.gathers && forward_must_wait(server, uplink->held[moved])))
		forward_input(server, uplink->held[moved++]);
	uplink->held_count = (uint16_t)(uplink->held_count - moved);
	memmove(uplink->held, uplink->held + moved, uplink->held_count * sizeof(uplink->held[0]));
	return moved;
}

/* Take packets that have come from the port. Return how many. */
static unsigned int server_poll_receive(struct server *server)
{
	struct rte_mbuf *mbufs[SERVER_BURST];
	uint16_t received;

	if (unlikely(server->resume.gathers || server->uplink.held_count > 0))
		return server_poll_receive_some(server);
	received = port_rx_burst(&server->uplink.link.port, mbufs, SERVER_BURST);
	server->totals.rx_packets += received;
	for (uint16_t i = 0; i < received; i++)
		forward_input(server, mbufs[i]);
	return received;
}

/* Serve slots of several tenants. There are several rounds, because a poll costs as much as many
 * packets. Packets that arrive meanwhile have their turn in the next round, and those from the port
 * before it. */
static unsigned int server_poll_serve_in_turns(struct server *server, const uint16_t *numbers,
					       uint16_t count)
{
	unsigned int work = 0, moved = 1;

	for (int round = 0; round < ROUNDS && moved > 0; round++) {
		if (round > 0)
			work += server_poll_receive(server);
		work += server_poll_begin_round(server, numbers, count, round == 0);
		moved = server_poll_run_round(server);
		work += moved;
	}
	return work;
}

unsigned int server_poll_run(struct server *server)
{
	uint16_t numbers[SERVE_SLOTS_MAX];
	const uint16_t count = server->slots.live_count;
	unsigned int work;

	server->now_ns = event_now_ns();
	work = server_poll_receive(server);
	work += kernel_poll(server);
	/* Each slot is first in turn, because the port has limited room. Copy the list, because
	 * it changes meanwhile. */
	if (count > 0)
		server->slots.first = (uint16_t)((server->slots.first + 1) % count);
	for (uint16_t i = 0; i < count; i++)
		numbers[i] = server->slots.live[(server->slots.first + i) % count];
	work += unlikely(server->tenants.are_many)
			? server_poll_serve_in_turns(server, numbers, count)
			: server_poll_serve_all(server, numbers, count);
	forward_flush(server);
	unread_look(server);
	server_poll_wake(server);
	if (work > 0)
		server->worked_ns = server->now_ns;
	return work;
}
