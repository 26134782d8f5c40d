/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pauses clients and sockets: the owner ignores them for a while. A client is paused when it has
 * used its part of the owner's time, or while the descriptors that it sent cannot be closed. A
 * listening socket is paused while no client can be accepted. Messages wait in the kernel
 * meanwhile: nothing is lost, and nothing wakes the owner in vain.
 */
#include "pause.h"

#include <sys/epoll.h>

#include <rte_common.h>

#include "event.h"
#include "isolated.h"
#include "memif/socket.h"
#include "server.h"
#include "slot.h"

#define BUSY_NS UINT64_C(100000000) /* after a packet the owner expects more for so long */
#define LOOK_MS 1		    /* between two checks of paused clients */
/* The same while no packets pass. Descriptors may take hours to close, so do not look often. */
#define IDLE_MS 20

static void pause_fd(struct server *server, int fd)
{
	if (fd >= 0)
		epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

void pause_slot(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];

	if (slot->paused)
		return;
	pause_fd(server, slot->socket);
	pause_fd(server, isolated_socket(slot));
	slot->paused = true;
	server->paused++;
}

void pause_pending_client(struct server *server, struct pending_client *pending)
{
	if (pending->paused)
		return;
	pause_fd(server, pending->fd);
	pending->paused = true;
	server->paused++;
}

void pause_listener(struct server *server, struct listener *listener)
{
	if (listener->paused)
		return;
	pause_fd(server, listener->fd);
	listener->paused = true;
	server->paused++;
}

void pause_forget_slot(struct server *server, struct slot *slot)
{
	server->paused -= slot->paused;
	slot->paused = false;
}

void pause_forget_pending_client(struct server *server, struct pending_client *pending)
{
	server->paused -= pending->paused;
	pending->paused = false;
}

static bool is_stuck(user_t user)
{
	bool stuck;

	memif_socket_charge(user);
	stuck = memif_socket_is_stuck();
	memif_socket_charge(USER_TRUSTED);
	return stuck;
}

static void wake_slot(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];

	if (!slot->paused || is_stuck(slot->user) ||
	    budget_is_spent(&slot->budget, server->clock_ns))
		return;
	pause_forget_slot(server, slot);
	if (event_watch(server, slot->socket, EVENT_SOCKET, number) != 0 ||
	    (isolated_socket(slot) >= 0 &&
	     event_watch(server, isolated_socket(slot), EVENT_MEMIF, number) != 0))
		slot_close(server, number);
}

static void wake_pending_client(struct server *server, struct pending_client *pending)
{
	if (!pending->paused || is_stuck(pending->user) ||
	    budget_is_spent(&server->pending_clients.budget, server->clock_ns))
		return;
	pause_forget_pending_client(server, pending);
	if (event_watch(server, pending->fd, EVENT_PENDING_CLIENT, (uint32_t)pending->fd) != 0)
		pause_pending_client(server, pending);
}

static void wake_listener(struct server *server, struct listener *listener, enum server_event event)
{
	if (!listener->paused || server->clock_ns < listener->until_ns)
		return;
	if (event == EVENT_LISTEN_ISOLATED &&
	    (memif_socket_is_late() ||
	     budget_is_spent(&server->pending_clients.budget, server->clock_ns)))
		return;
	listener->paused = false;
	server->paused--;
	if (event_watch(server, listener->fd, event, 0) != 0)
		pause_listener(server, listener);
}

void pause_check(struct server *server)
{
	if (server->paused == 0)
		return;
	server->clock_ns = event_now_ns();
	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++)
		wake_slot(server, i);
	for (int i = 0; i < SERVER_PENDING_CLIENTS_MAX; i++)
		wake_pending_client(server, &server->pending_clients.all[i]);
	wake_listener(server, &server->pending_clients.trusted, EVENT_LISTEN);
	wake_listener(server, &server->pending_clients.isolated, EVENT_LISTEN_ISOLATED);
}

/* Return true if packets passed recently. Otherwise a client's messages delay no packet, so no
 * client is paused. */
static bool is_busy(const struct server *server)
{
	return server->clock_ns - server->worked_ns < BUSY_NS;
}

int pause_longest_ms(const struct server *server, int ms)
{
	if (server->paused == 0)
		return ms;
	return RTE_MIN(ms, is_busy(server) ? LOOK_MS : IDLE_MS);
}

void pause_charge_slot(struct server *server, uint16_t number, uint64_t took_ns)
{
	struct slot *slot = &server->slots.all[number];

	if (slot->state != SLOT_LIVE || !slot->isolated || !is_busy(server))
		return;
	budget_spend(&slot->budget, server->clock_ns, took_ns, server->slots.isolated_count);
	if (budget_is_spent(&slot->budget, server->clock_ns))
		pause_slot(server, number);
}

void pause_charge_pending_clients(struct server *server, uint64_t took_ns)
{
	if (!is_busy(server))
		return;
	budget_spend(&server->pending_clients.budget, server->clock_ns, took_ns, 1);
	if (!budget_is_spent(&server->pending_clients.budget, server->clock_ns))
		return;
	pause_listener(server, &server->pending_clients.isolated);
	for (int i = 0; i < SERVER_PENDING_CLIENTS_MAX; i++) {
		if (server->pending_clients.all[i].fd >= 0)
			pause_pending_client(server, &server->pending_clients.all[i]);
	}
}
