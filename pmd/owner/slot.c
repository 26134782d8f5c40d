/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process's time in a slot: its page, its numbers, and its end.
 *
 * Each process gets a new page, so nothing that an earlier process left behind can access the
 * memory of a later one.
 */
#include "slot.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "base/log.h"
#include "config/settings.h"
#include "control.h"
#include "event.h"
#include "forward.h"
#include "isolated.h"
#include "lanes.h"
#include "memif/server_end.h"
#include "memif/socket.h"
#include "owner/arbiter.h"
#include "report/set.h"
#include "report/write.h"
#include "pause.h"
#include "psocks.h"
#include "server.h"
#include "share/message.h"
#include "turn.h"

static_assert(SERVE_SLOTS_MAX <= SPACES_SLOTS && SERVE_SLOTS_MAX <= CONNECTIONS_SLOTS,
	      "the arbiter has room for each slot");

#define SLOTS_BEFORE_MAX 4 /* slots of one process that it hung up */
/* The longest time to drain a slot: longer than its packets wait for a receiver or for the port. */
#define SLOT_DRAIN_NS UINT64_C(50000000)

/* Take all packets of a draining slot now: there is no time to drain it in later turns. */
static void slot_finish_draining(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];

	while (slot->drain_left > 0 && turn_drain(server, number) > 0)
		forward_flush(server);
	slot->drain_left = 0;
	slot_advance(server, number);
}

/*
 * Check the other slots of a process. Limits are set for each process, so a process has one live
 * slot. A process that goes on after it hung up gets another slot. If it has executed another
 * program since, nothing of its earlier slots is left, and they are freed now. Otherwise they
 * count, because the process may still use their memory: perhaps it closed all its descriptors.
 */
static int slot_check_others(struct server *server, int socket, bool holds_nothing)
{
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);
	int before = 0;

	getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	/* The process is in another PID namespace, as only isolated processes may be. The limits of
	 * a user apply to these. */
	if (peer.pid == 0)
		return 0;
	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++) {
		const struct slot *slot = &server->slots.all[i];
		struct pollfd other_end = {.fd = slot->socket};

		if (slot->state == SLOT_FREE || slot->pid != peer.pid)
			continue;
		/* The owner may not have noticed yet that the process hung up. */
		if (slot->state == SLOT_LIVE && poll(&other_end, 1, 0) > 0)
			slot_hang_up(server, i);
		if (slot->state == SLOT_LIVE)
			return -EBUSY;
		/* An isolated process keeps nothing, so its slot can be freed now. */
		if (slot->isolated || holds_nothing)
			slot_finish_draining(server, i);
		/* The process has ended as far as this slot is concerned. */
		if (holds_nothing)
			slot_end(server, i);
		if (slot->state == SLOT_FREE)
			continue;
		if (++before == SLOTS_BEFORE_MAX)
			return -EUSERS;
	}
	return 0;
}

uint16_t slot_of(const struct server *server, uint32_t qpn)
{
	const uint16_t number = blocks_find(&server->slots.blocks, qpn);

	if (number == BLOCK_NONE ||
	    qpn - server->slots.all[number].qpn_first >= server->slots.all[number].qpn_count)
		return BLOCK_NONE;
	return number;
}

static int slot_find_free(const struct server *server)
{
	for (int i = 0; i < server->slots.max; i++) {
		if (server->slots.all[i].state == SLOT_FREE)
			return i;
	}
	return -ENOSPC;
}

/* Find the process at the other end, and open a pidfd that reports its end. The socket does not
 * always do so, because a child of the process may keep it open. */
static int slot_identify(struct slot *slot, int socket, bool isolated)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct pollfd ended;

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
		return -errno;
	slot->pid = peer.pid;
	slot->uid = peer.uid;
	slot->user = isolated ? user_of(socket) : USER_TRUSTED;
	/* The process is in a PID namespace that ours does not contain. An isolated process needs
	 * no pidfd: the end of its socket is enough. */
	if (peer.pid == 0)
		return isolated ? 0 : -EPERM;
	slot->pidfd = user_pidfd(socket, &peer);
	if (slot->pidfd < 0)
		return slot->pidfd;
	/* If the process has not ended, no other process has its number, and what was found by
	 * the number is true. */
	ended = (struct pollfd){.fd = slot->pidfd, .events = POLLIN};
	return poll(&ended, 1, 0) == 0 ? 0 : -ESRCH;
}

static int slot_make_page(struct slot *slot, int *page_fd)
{
	const size_t bytes = share_ring_offset(SHARE_RINGS);
	void *memory;

	*page_fd = memfd_create("uroced-slot", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*page_fd < 0)
		return -errno;
	if (ftruncate(*page_fd, (off_t)bytes) != 0 ||
	    fcntl(*page_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return -errno;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *page_fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	slot->page = memory;
	for (int kind = 0; kind < SHARE_RINGS; kind++)
		share_ring_init(&slot->rings[kind],
				(uint8_t *)memory + share_ring_offset((enum share_ring_kind)kind),
				share_ring_words((enum share_ring_kind)kind));
	return 0;
}

static void slot_welcome(const struct server *server, uint16_t number,
			 struct share_message *message)
{
	const struct slot *slot = &server->slots.all[number];
	const struct port *port = &server->uplink.link.port;
	struct share_welcome *welcome = &message->welcome;

	welcome->slot = number;
	welcome->generation = slot->generation;
	welcome->qpn_first = slot->qpn_first;
	welcome->qpn_count = slot->qpn_count;
	welcome->id_mask = IDS_MASK;
	welcome->id_value = slot->id_value;
	welcome->buffers = server->arena.ledger.buffers;
	welcome->buffer_bytes = server->arena.ledger.buffer_bytes;
	welcome->buffer_stride = server->arena.stride;
	welcome->quota = server->arena.ledger.quotas[number];
	memcpy(welcome->mac, port->mac, sizeof(welcome->mac));
	welcome->mac_is_random = port->mac_is_random;
	welcome->mtu_bytes = port->mtu_bytes;
	welcome->link_mbps = port->link_mbps;
	welcome->tsc_hz = rte_get_tsc_hz();
	welcome->spares_icrc = server->lanes.spares_icrc;
	welcome->ports = server->ports;
	memcpy(welcome->name, server->name, sizeof(welcome->name));
	welcome->max_qp = server->slots.max_qp;
	welcome->max_memory = server->slots.max_memory;
	memcpy(welcome->cc, server->slots.cc, sizeof(welcome->cc));
	memcpy(welcome->unique, server->unique, sizeof(welcome->unique));
	message->addresses = server->uplink.link.addresses;
	message->link_up = server->uplink.up;
}

static void slot_give_full_share(struct server *server, uint16_t number)
{
	server->slots.all[number].has_full_share = true;
	server->arena.ledger.quotas[number] = server->arena.held_max;
	server->slots.full_shares++;
}

/* Give the full share of a process that has ended to the next one that has none. */
static void slot_pass_full_share(struct server *server, uint16_t number)
{
	if (!server->slots.all[number].has_full_share)
		return;
	server->slots.all[number].has_full_share = false;
	server->arena.ledger.quotas[number] = arena_held_min(server);
	server->slots.full_shares--;
	for (uint16_t i = 0; i < server->slots.live_count; i++) {
		const uint16_t other = server->slots.live[i];
		const struct slot *slot = &server->slots.all[other];

		if (slot->state == SLOT_LIVE && !slot->isolated && !slot->has_full_share) {
			slot_give_full_share(server, other);
			return;
		}
	}
}

/* Release everything that a slot has of its own. Members that it does not have are -1 or NULL. */
static void slot_release(struct server *server, struct slot *slot)
{
	(void)psocks_end(server, (uint16_t)(slot - server->slots.all));
	if (slot->qpn_first != 0)
		blocks_free(&server->slots.blocks, slot->qpn_first, server->now_ns);
	arbiter_end(server->gsi.arbiter, (uint16_t)(slot - server->slots.all), server->now_ns);
	report_set_remove(server->status.reports, slot->report);
	if (slot->page)
		munmap(slot->page, share_ring_offset(SHARE_RINGS));
	if (slot->process_fd >= 0)
		close(slot->process_fd);
	/* Remove it from the epoll set first: the process has it open too, so closing alone
	 * would leave it there. */
	if (slot->bell_fd >= 0) {
		epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, slot->bell_fd, NULL);
		close(slot->bell_fd);
	}
	if (slot->pidfd >= 0)
		close(slot->pidfd);
	server->slots.isolated_count -= slot->isolated != NULL;
	pause_forget_slot(server, slot);
	isolated_destroy(server, slot);
	slot_pass_full_share(server, (uint16_t)(slot - server->slots.all));
	slot->state = SLOT_FREE;
}

/* Make the page, which only processes that share memory have. */
static int slot_make_shared(struct server *server, uint16_t number, int *page_fd)
{
	struct slot *slot = &server->slots.all[number];
	const int rc = slot_make_page(slot, page_fd);

	if (rc != 0)
		return rc;
	if (server->slots.full_shares < SERVER_FULL_SHARES)
		slot_give_full_share(server, number);
	slot->process_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	slot->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (slot->process_fd < 0 || slot->bell_fd < 0)
		return -errno;
	return event_watch(server, slot->bell_fd, EVENT_BELL, number);
}

/* Return true if a user has as many slots as it may. So no user takes all slots from the others,
 * except the superuser, who could do so anyway. */
static bool slot_user_has_all(const struct server *server, user_t user)
{
	unsigned int count = 0;

	if (!user_is_limited(user))
		return false;
	for (int i = 0; i < SERVE_SLOTS_MAX; i++)
		count += server->slots.all[i].isolated && server->slots.all[i].user == user;
	return count >= RTE_MIN(SERVER_ISOLATED_USER_MAX, server->slots.max / 4u);
}

static int slot_make_isolated(struct server *server, struct slot *slot)
{
	int rc;

	if (server->slots.isolated_count >= RTE_MIN(SERVER_ISOLATED_MAX, server->slots.max / 2u) ||
	    slot_user_has_all(server, slot->user))
		return -ENOSPC;
	rc = isolated_create(slot);
	server->slots.isolated_count += rc == 0;
	return rc;
}

/* Prepare all that a slot needs before the welcome. */
static int slot_prepare(struct server *server, uint16_t number, int socket, bool isolated,
			int *page_fd)
{
	struct slot *slot = &server->slots.all[number];
	int rc;

	rc = slot_identify(slot, socket, isolated);
	if (rc == 0)
		rc = isolated ? slot_make_isolated(server, slot)
			      : slot_make_shared(server, number, page_fd);
	if (rc != 0)
		return rc;
	rc = blocks_alloc(&server->slots.blocks, number, server->now_ns, slot->user);
	if (rc < 0)
		return rc;
	slot->qpn_first = (uint32_t)rc;
	psocks_check(server);
	if (psocks_leave_out(server, slot->qpn_first))
		return -ENOMEM;
	rc = arbiter_begin(server->gsi.arbiter, number, slot->user, server->now_ns,
			   &slot->id_value);
	if (rc != 0)
		return rc;
	/* Give twice as many numbers as queue pairs: the number of a destroyed queue pair is not
	 * reused at once. */
	static_assert(2 * SETTINGS_QP_MAX == BLOCK_QPNS, "no more than a block has numbers for");
	slot->qpn_count = BLOCK_QPNS;
	if (server->slots.max_qp > 0)
		slot->qpn_count = RTE_MIN(2 * server->slots.max_qp, BLOCK_QPNS);
	rc = event_rewatch(server, socket, EVENT_SOCKET, number);
	if (rc != 0 || slot->pidfd < 0)
		return rc;
	return event_watch(server, slot->pidfd, EVENT_PIDFD, number);
}

/* Return a packet socket for the process, or a negative value: its packets pass through us. */
static int slot_lend_psock(struct server *server, uint16_t number, struct share_message *message)
{
	const int fd = psocks_lend(server, number, &message->welcome.ifindex);

	if (fd < 0 && fd != -EOPNOTSUPP)
		log_info("process %d has no packet socket, and its packets pass through uroced: %s",
			 server->slots.all[number].pid, strerror(-fd));
	return fd;
}

static int slot_tell(struct server *server, uint16_t number, int page_fd,
		     struct share_message *message)
{
	struct slot *slot = &server->slots.all[number];
	int fds[SHARE_FDS] = {
		[SHARE_FD_ARENA] = server->arena.fd,
		[SHARE_FD_PAGE] = page_fd,
		[SHARE_FD_OWNER] = slot->bell_fd,
		[SHARE_FD_PROCESS] = slot->process_fd,
		[SHARE_FD_PSOCK] = -1,
	};
	int rc;

	slot->state = SLOT_LIVE;
	slot_welcome(server, number, message);
	if (slot->isolated)
		return message_send(slot->socket, message, NULL, 0);
	slot->page->link_up = server->uplink.connected;
	forward_restock(server, number);
	fds[SHARE_FD_PSOCK] = slot_lend_psock(server, number, message);
	rc = message_send(slot->socket, message, fds, SHARE_FDS - (fds[SHARE_FD_PSOCK] < 0));
	/* The process alone has it open, so it goes with the process. */
	if (fds[SHARE_FD_PSOCK] >= 0)
		close(fds[SHARE_FD_PSOCK]);
	return rc;
}

static int slot_open(struct server *server, uint16_t number, int socket, bool isolated,
		     struct share_message *message)
{
	struct slot *slot = &server->slots.all[number];
	int page_fd = -1;
	int rc;

	*slot = (struct slot){.generation = slot->generation + 1,
			      .socket = socket,
			      .pidfd = -1,
			      .process_fd = -1,
			      .bell_fd = -1};
	rc = slot_prepare(server, number, socket, isolated, &page_fd);
	if (rc == 0)
		rc = slot_tell(server, number, page_fd, message);
	if (page_fd >= 0)
		close(page_fd);
	return rc;
}

static void free_buffer(uint32_t buffer, void *arg)
{
	const struct server *server = arg;

	rte_pktmbuf_free(server->arena.mbufs[buffer]);
}

/* Take a process's report. A process without one is served too, but readers do not see its
 * state. */
static void slot_take_report(struct server *server, struct slot *slot, int fd)
{
	struct report *report;

	/* The process is in another PID namespace: readers could not tell whose report it is. */
	if (slot->pid == 0 || report_map(fd, &report) != 0)
		return;
	if (report_set_add(server->status.reports, slot->pid, getpid(), report) == 0)
		slot->report = report;
	else
		report_unmap(report);
}

int slot_begin(struct server *server, int socket, int report_fd, unsigned int flags)
{
	const bool isolated = (flags & SLOT_ISOLATED) != 0;
	struct share_message message = {.type = SHARE_WELCOME, .version = SHARE_VERSION};
	struct slot *slot;
	int number, rc;

	number = server->uplink.lost
			 ? -ENODEV
			 : slot_check_others(server, socket, (flags & SLOT_HOLDS_NOTHING) != 0);
	if (number == 0)
		number = slot_find_free(server);
	rc = number;

	if (number >= 0) {
		slot = &server->slots.all[number];
		rc = slot_open(server, (uint16_t)number, socket, isolated, &message);
		if (rc == 0) {
			server->slots.live[server->slots.live_count++] = (uint16_t)number;
			server->totals.attached++;
			slot_take_report(server, slot, report_fd);
			log_info("process %d attaches%s: slot %d, queue pairs from %#x", slot->pid,
				 isolated ? ", isolated" : "", number, slot->qpn_first);
			return 0;
		}
		ledger_reclaim(&server->arena.ledger, (uint16_t)number, free_buffer, server);
		slot_release(server, slot);
	}
	message.result = rc;
	message.welcome.ports = server->ports;
	message_send(socket, &message, NULL, 0);
	return rc;
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
	       !turn_slot_waits(slot);
}

static void slot_withdraw(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];

	slot->state = SLOT_CONDEMNED;
	slot_leave_live(server, number);
	mad_queue_drop(server, number);
	control_leave_all(server, number);
	arbiter_end(server->gsi.arbiter, number, server->now_ns);
	lanes_close(server, number);
	slot_close_socket(server, slot);
	/* An isolated process shares no memory, so its slot need not wait until it ends. */
	slot->ended |= slot->isolated != NULL;
}

/* Take back the buffers of a process, and those that others held for it. */
static void slot_take_back(struct server *server, uint16_t number)
{
	lanes_end(server, number);
	ledger_reclaim(&server->arena.ledger, number, free_buffer, server);
	slot_release(server, &server->slots.all[number]);
}

static void slot_free(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];

	log_info("process %d has ended: slot %u is free, %u buffers come back", slot->pid, number,
		 server->arena.ledger.held[number]);
	slot_take_back(server, number);
	server->totals.ended++;
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
	if (slot->state == SLOT_CONDEMNED && slot->ended)
		slot_free(server, number);
	memif_socket_charge(before);
}

void slot_condemn(struct server *server, uint16_t number)
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
	slot_condemn(server, number);
	if (server->slots.all[number].state != SLOT_FREE)
		slot_take_back(server, number);
}
