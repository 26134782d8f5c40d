/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of a slot from its welcome on, and what comes back when its process ends. */
#include "slot.h"

#include <assert.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "base/log.h"
#include "control.h"
#include "event.h"
#include "isolated.h"
#include "direct.h"
#include "memif/server_end.h"
#include "memif/socket.h"
#include "owner/arbiter.h"
#include "report/set.h"
#include "pause.h"
#include "psocks.h"
#include "resume.h"
#include "server.h"
#include "server_poll.h"

static_assert(SERVE_SLOTS_MAX <= SPACES_SLOTS && SERVE_SLOTS_MAX <= CONNECTIONS_SLOTS,
	      "the arbiter has room for each slot");
static_assert(SERVE_SLOTS_MAX <= TENANTS_SLOTS && SERVER_ISOLATED_MAX + 1 <= TENANTS_MAX,
	      "there is room for the attached processes, and a tenant for each isolated one");

/* The longest time to drain a slot: longer than its packets wait for a receiver or for the port. */
#define SLOT_DRAIN_NS UINT64_C(50000000)

uint16_t slot_of(const struct server *server, uint32_t qpn)
{
	const uint16_t number = blocks_find(&server->slots.blocks, qpn);

	if (number == BLOCK_NONE ||
	    qpn - server->slots.all[number].qpn_first >= server->slots.all[number].qpn_count)
		return BLOCK_NONE;
	return slot_engine_of(&server->slots.all[number], number, qpn);
}

void slot_give_full_share(struct server *server, uint16_t number)
{
	server->slots.all[number].has_full_share = true;
	server->arena.ownership.quotas[number] = server->arena.held_max;
	server->slots.full_shares++;
}

void slot_give_full_shares(struct server *server)
{
	const uint32_t reserved = resume_needs(server, USER_TRUSTED).shares;

	for (uint16_t i = 0; i < server->slots.live_count; i++) {
		const uint16_t other = server->slots.live[i];
		const struct slot *slot = &server->slots.all[other];

		if (server->slots.full_shares + reserved >= SERVER_FULL_SHARES)
			return;
		if (slot->state == SLOT_LIVE && !slot->isolated && !slot->has_full_share)
			slot_give_full_share(server, other);
	}
}

/* Take back the full share of a process that has ended, and those that its further engines have not
 * used. */
static void slot_take_full_shares(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];

	server->slots.full_shares -= slot->engine_shares;
	slot->engine_shares = 0;
	if (slot->has_full_share) {
		slot->has_full_share = false;
		server->arena.ownership.quotas[number] = arena_held_min(server);
		server->slots.full_shares--;
	}
	slot_give_full_shares(server);
}

static void free_buffer(uint32_t buffer, void *arg)
{
	const struct server *server = arg;

	rte_pktmbuf_free(server->arena.mbufs[buffer]);
}

void slot_release(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];

	resume_forget(server, number);
	ownership_reclaim(&server->arena.ownership, number, free_buffer, server);
	(void)psocks_end(server, number);
	if (slot->qpn_first != 0 && !slot->is_further)
		blocks_free(&server->slots.blocks, slot->qpn_first, server->now_ns);
	arbiter_end(server->gsi.arbiter, number, server->now_ns);
	report_set_remove(server->status.reports, slot->report);
	if (slot->page)
		munmap(slot->page, share_ring_offset(SHARE_RINGS));
	/* The process may keep its epoll set busy, which keeps us from closing what is in there. */
	memif_socket_discard(slot->process_fd);
	memif_socket_discard(slot->direct_fd);
	memif_socket_discard(slot->wake_set_fd);
	/* Remove it from the epoll set first: the process has it open too, so closing alone
	 * would leave it there. */
	if (slot->doorbell_fd >= 0) {
		epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, slot->doorbell_fd, NULL);
		memif_socket_discard(slot->doorbell_fd);
	}
	if (slot->pidfd >= 0)
		close(slot->pidfd);
	server->slots.isolated_count -= slot->isolated != NULL;
	tenants_leave(&server->tenants, slot->tenant);
	slot->tenant = TENANTS_NONE;
	pause_forget_slot(server, slot);
	isolated_destroy(server, slot);
	slot_take_full_shares(server, number);
	slot_engine_forget(server, number);
	slot->state = SLOT_FREE;
}

static void slot_leave_live(struct server *server, uint16_t number)
{
	for (uint16_t i = 0; i < server->slots.live_count; i++) {
		if (server->slots.live[i] == number) {
			server->slots.live[i] = server->slots.live[--server->slots.live_count];
			return;
		}
	}
}

/* Close the process's socket: no more messages are received or sent. */
static void slot_close_socket(struct server *server, struct slot *slot)
{
	pause_forget_slot(server, slot);
	if (slot->isolated)
		memif_socket_end(server->epoll_fd, slot->socket);
	else if (slot->socket >= 0)
		close(slot->socket);
	slot->socket = -1;
}

/* Start to drain: packets that the process sent before its end must go out, above all
 * acknowledgements. */
static void slot_drain(struct server *server, struct slot *slot)
{
	slot->state = SLOT_DRAINING;
	slot->drain_left = slot->isolated ? 1u << MEMIF_ISOLATED_LOG2_MAX : SHARE_TX_WORDS;
	slot->drain_end_ns = event_now_ns() + SLOT_DRAIN_NS;
	slot_close_socket(server, slot);
	if (slot->isolated)
		isolated_hang_up(server, slot);
}

static bool slot_is_drained(const struct server *server, struct slot *slot)
{
	return slot->drain_left == 0 || server->now_ns >= slot->drain_end_ns ||
	       !server_poll_slot_waits(slot);
}

static void slot_withdraw(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];

	slot->state = SLOT_CLOSING;
	resume_forget(server, number);
	slot_leave_live(server, number);
	mad_queue_drop(server, number);
	control_leave_all(server, number);
	xrc_end(server, number);
	arbiter_end(server->gsi.arbiter, number, server->now_ns);
	slot_engine_withdraw(server, number);
	directs_close(server, number);
	directs_forget(server, number);
	unread_forget(server, number);
	slot_close_socket(server, slot);
	/* An isolated process shares no memory, so its slot need not wait until it ends. */
	slot->ended |= slot->isolated != NULL;
}

static void slot_free(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];

	if (!server->resume.hands_over)
		log_info("process %d has ended: slot %u is free, %u buffers come back", slot->pid,
			 number, server->arena.ownership.held[number]);
	server->totals.ended += !slot->is_further;
	slot_release(server, number);
}

void slot_advance(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];
	/* Charge the slot's user for the descriptors that are closed here. The owner may be
	 * handling a message of another user now, who is charged again afterwards. */
	const user_t before = memif_socket_charge(slot->user);
	const bool at_once = slot->broke_rule || slot->dismissed;

	if (slot->state == SLOT_LIVE && !at_once && (slot->hung_up || slot->ended))
		slot_drain(server, slot);
	if ((slot->state == SLOT_LIVE && at_once) ||
	    (slot->state == SLOT_DRAINING && (at_once || slot_is_drained(server, slot))))
		slot_withdraw(server, number);
	if (slot->state == SLOT_CLOSING && slot->ended)
		slot_free(server, number);
	memif_socket_charge(before);
}

void slot_close(struct server *server, uint16_t number)
{
	server->slots.all[number].broke_rule = true;
	slot_advance(server, number);
}

void slot_dismiss(struct server *server, uint16_t number)
{
	server->slots.all[number].dismissed = true;
	slot_advance(server, number);
}

void slot_hang_up(struct server *server, uint16_t number)
{
	server->slots.all[number].hung_up = true;
	slot_advance(server, number);
}

void slot_end(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];

	/* Close the pidfd: it would report the end as long as it is watched. */
	if (slot->state != SLOT_FREE && slot->pidfd >= 0) {
		close(slot->pidfd);
		slot->pidfd = -1;
	}
	slot->ended = true;
	slot_advance(server, number);
}

void slot_abandon(struct server *server, uint16_t number)
{
	if (server->slots.all[number].state == SLOT_FREE)
		return;
	slot_close(server, number);
	if (server->slots.all[number].state != SLOT_FREE)
		slot_release(server, number);
}
