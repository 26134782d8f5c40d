/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs one poll of the owner: moves packets of all processes, in both directions. */
#include "server_poll.h"

#include <unistd.h>

#include "event.h"
#include "forward.h"
#include "isolated.h"
#include "kernel.h"
#include "server.h"
#include "slot.h"

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

static unsigned int server_poll_serve_shared(struct server *server, uint16_t number)
{
	const struct slot *slot = &server->slots.all[number];
	unsigned int work;

	work = forward_take_returns(server, number);
	if (unlikely(slot->mads.count > 0))
		work += mad_queue_serve(server, number);
	if (!slot->broke_rule)
		work += forward_take(server, number, SERVER_BURST);
	if (!slot->broke_rule)
		forward_refill(server, number);
	return work;
}

uint32_t server_poll_drain(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];
	const uint32_t taken =
		forward_take(server, number, RTE_MIN(slot->drain_left, (uint32_t)SERVER_BURST));

	slot->drain_left -= taken;
	return taken;
}

static unsigned int server_poll_serve(struct server *server, uint16_t number)
{
	const struct slot *slot = &server->slots.all[number];
	unsigned int work;

	if (slot->state == SLOT_DRAINING)
		work = server_poll_drain(server, number);
	else if (slot->isolated)
		work = forward_take(server, number, SERVER_BURST);
	else
		work = server_poll_serve_shared(server, number);
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

bool server_poll_waits(struct server *server)
{
	for (uint16_t i = 0; i < server->slots.live_count; i++) {
		struct slot *slot = &server->slots.all[server->slots.live[i]];

		if (slot->state == SLOT_DRAINING || server_poll_slot_waits(slot) ||
		    (!slot->isolated && share_ring_count(&slot->rings[SHARE_RING_RETURN]) > 0))
			return true;
	}
	return false;
}

unsigned int server_poll_run(struct server *server)
{
	struct rte_mbuf *mbufs[SERVER_BURST];
	uint16_t numbers[SERVE_SLOTS_MAX];
	const uint16_t count = server->slots.live_count;
	unsigned int work;

	server->now_ns = event_now_ns();
	work = port_rx_burst(&server->uplink.link.port, mbufs, SERVER_BURST);
	server->totals.rx_packets += work;
	for (unsigned int i = 0; i < work; i++)
		forward_input(server, mbufs[i]);
	work += kernel_poll(server);
	/* Each slot is first in turn, because the port has limited room. Copy the list, because
	 * it changes meanwhile. */
	if (count > 0)
		server->slots.first = (uint16_t)((server->slots.first + 1) % count);
	for (uint16_t i = 0; i < count; i++)
		numbers[i] = server->slots.live[(server->slots.first + i) % count];
	for (uint16_t i = 0; i < count; i++) {
		if (slot_is_served(&server->slots.all[numbers[i]]))
			work += server_poll_serve(server, numbers[i]);
	}
	forward_flush(server);
	server_poll_wake(server);
	if (work > 0)
		server->worked_ns = server->now_ns;
	return work;
}
