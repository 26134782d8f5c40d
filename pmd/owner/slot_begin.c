/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives a process a slot: checks its other slots, finds a free one, and sends the welcome. */
#include "slot.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "base/log.h"
#include "forward.h"
#include "owner/ids.h"
#include "psocks.h"
#include "resume.h"
#include "report/read.h"
#include "report/set.h"
#include "report/write.h"
#include "server.h"
#include "share/message.h"
#include "server_poll.h"

#define SLOTS_BEFORE_MAX 4 /* slots of one process that it hung up */

/* Take all packets of a draining slot now, whatever credit its tenant has: there is no time to
 * drain it in later polls. */
static void slot_finish_draining(struct server *server, uint16_t number)
{
	struct tenants_take take = {.credit = INT64_MAX};
	struct slot *slot = &server->slots.all[number];

	while (slot->drain_left > 0 && server_poll_drain(server, number, &take) > 0)
		forward_flush(server);
	tenants_charge(&server->tenants, slot->tenant, &take, server->now_ns);
	slot->drain_left = 0;
	slot_advance(server, number);
}

/*
 * Check the slots that a process already has when it asks for one for its first engine. Return 0 if
 * it may have one more:
 *
 * - A process that is attached gets no second attachment (-EBUSY), because each limit is meant for
 *   one process.
 * - A process that closed its socket, but has not ended, may attach again. Its earlier slots are
 *   kept, because it may still write to their memory: perhaps it only closed all its descriptors.
 *   At SLOTS_BEFORE_MAX such slots it is refused (-EUSERS). The slots of its further engines do not
 *   count.
 * - If the process has executed another program since (`holds_nothing`), it has lost the mappings
 *   of its earlier slots, and they are freed now.
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
		if (slot->state == SLOT_FREE || slot->is_further)
			continue;
		if (++before == SLOTS_BEFORE_MAX)
			return -EUSERS;
	}
	return 0;
}

/* Find the first free slot. */
static int slot_find_free(const struct server *server)
{
	for (int i = 0; i < server->slots.max; i++) {
		if (server->slots.all[i].state == SLOT_FREE)
			return i;
	}
	return -ENOSPC;
}

uint32_t slot_unreserved(const struct server *server, bool returns)
{
	uint32_t reserved = returns ? 0 : resume_needs(server, USER_TRUSTED).slots;
	uint32_t free = 0;

	for (uint16_t i = 0; i < server->slots.max; i++) {
		free += server->slots.all[i].state == SLOT_FREE;
		reserved += server->slots.all[i].engine_shares;
	}
	return free - RTE_MIN(free, reserved);
}

static void slot_welcome(const struct server *server, uint16_t number,
			 struct share_message *message)
{
	const struct slot *slot = &server->slots.all[number];
	const struct port *port = &server->uplink.link.port;
	struct share_welcome *welcome = &message->welcome;

	welcome->slot = number;
	welcome->generation = slot->generation;
	welcome->engines = RTE_MAX(slot->engine_count, 1u);
	welcome->qpn_first = slot->qpn_first;
	welcome->qpn_count = slot->qpn_count;
	welcome->id_mask = IDS_MASK;
	welcome->id_value = slot->id_value;
	welcome->buffers = server->arena.ownership.buffers;
	welcome->buffer_bytes = server->arena.ownership.buffer_bytes;
	welcome->buffer_stride = server->arena.stride;
	welcome->quota = server->arena.ownership.quotas[number];
	memcpy(welcome->mac, port->mac, sizeof(welcome->mac));
	welcome->mac_is_random = port->mac_is_random;
	welcome->mtu_bytes = port->mtu_bytes;
	welcome->link_mbps = port->link_mbps;
	welcome->tsc_hz = server->uplink.link.port.tsc_hz;
	welcome->spares_icrc = server->directs.spares_icrc;
	welcome->ports = server->ports;
	memcpy(welcome->name, server->name, sizeof(welcome->name));
	welcome->max_qp = slot->max_qp;
	welcome->max_memory = server->slots.max_memory;
	memcpy(welcome->cc, server->slots.cc, sizeof(welcome->cc));
	memcpy(welcome->unique, server->unique, sizeof(welcome->unique));
	message->addresses = server->uplink.link.addresses;
	message->link_up = server->uplink.up;
}

/* Return a packet socket for the process, or a negative value: its packets pass through us. */
static int slot_lend_psock(struct server *server, uint16_t number)
{
	const int fd = psocks_lend(server, number);

	if (fd < 0 && fd != -EOPNOTSUPP)
		log_info("process %d has no packet socket, and its packets pass through uroced: %s",
			 server->slots.all[number].pid, strerror(-fd));
	return fd;
}

static int slot_tell(struct server *server, uint16_t number, int page_fd,
		     const struct share_message *hello, const struct resume_awaited *kept,
		     struct share_message *message)
{
	struct slot *slot = &server->slots.all[number];
	int fds[SHARE_FDS] = {
		[SHARE_FD_ARENA] = server->arena.fd,
		[SHARE_FD_PAGE] = page_fd,
		[SHARE_FD_OWNER] = slot->doorbell_fd,
		[SHARE_FD_PROCESS] = slot->wake_set_fd,
		[SHARE_FD_PSOCK] = -1,
	};
	int rc;

	slot->state = SLOT_LIVE;
	slot_welcome(server, number, message);
	resume_enter(server, number, kept, message);
	/* A process without a token could not come back. */
	message->away_ms = slot->resume_entry > 0 || slot->is_further ? server->resume.away_ms : 0;
	if (slot->isolated)
		return message_send(slot->socket, message, NULL, 0);
	slot->page->link_up = server->uplink.connected;
	forward_refill(server, number);
	/* A process that is back, or a further engine of it, has one, or none. */
	if (psocks_keep(server, number, hello->psock_ifindex))
		message->psock_ifindex = hello->psock_ifindex;
	else if (!kept && hello->psock_ifindex == 0)
		fds[SHARE_FD_PSOCK] = slot_lend_psock(server, number);
	rc = message_send(slot->socket, message, fds, SHARE_FDS - (fds[SHARE_FD_PSOCK] < 0));
	/* The process alone has it open, so it goes with the process. */
	if (fds[SHARE_FD_PSOCK] >= 0)
		close(fds[SHARE_FD_PSOCK]);
	close(slot->wake_set_fd);
	slot->wake_set_fd = -1;
	return rc;
}

/* Fill in a slot, and tell the process. */
static int slot_open(struct server *server, uint16_t number, int socket, bool isolated,
		     const struct share_message *hello, const struct resume_awaited *kept,
		     struct share_message *message)
{
	const struct share_engine *engine = &hello->engine;
	struct slot *slot = &server->slots.all[number];
	int page_fd = -1;
	int rc;

	*slot = (struct slot){.generation = slot->generation + 1,
			      .socket = socket,
			      .tenant = TENANTS_NONE,
			      .pidfd = -1,
			      .process_fd = -1,
			      .direct_fd = -1,
			      .wake_set_fd = -1,
			      .doorbell_fd = -1};
	rc = engine->number > 0 ? slot_prepare_further(server, number, socket, engine, &page_fd)
				: slot_prepare(server, number, socket, isolated,
					       isolated ? 1 : engine->count, kept, &page_fd);
	if (rc == 0)
		rc = slot_tell(server, number, page_fd, hello, kept, message);
	if (page_fd >= 0)
		close(page_fd);
	return rc;
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

/* Untrusted processes must not fill the log. */
static void slot_tell_refused(int socket, bool isolated, int rc)
{
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);
	char comm[32];

	getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	report_comm(peer.pid, comm);
	log_print(isolated ? LOG_LEVEL_INFO : LOG_LEVEL_WARN,
		  "process %d (%s) of user %u cannot attach%s: %s", peer.pid, comm, peer.uid,
		  isolated ? ", isolated" : "", strerror(-rc));
}

/* Find what is kept for the process of a token. 1; 0: the token is zero; -ESTALE: nothing is. */
static int slot_find_kept(struct server *server, int socket, bool isolated, const uint8_t *token,
			  struct resume_awaited *kept)
{
	static const uint8_t none[SHARE_TOKEN_BYTES];
	int rc;

	if (memcmp(token, none, sizeof(none)) == 0)
		return 0;
	rc = resume_find(server, token, isolated, isolated ? user_of(socket) : USER_TRUSTED, kept);
	return rc == 0 ? 1 : rc;
}

int slot_begin(struct server *server, int socket, int report_fd, unsigned int flags,
	       const struct share_message *hello)
{
	const bool isolated = (flags & SLOT_ISOLATED) != 0;
	struct share_message message = {.type = SHARE_WELCOME, .version = SHARE_VERSION};
	struct slot *slot;
	struct resume_awaited kept;
	char comm[32];
	int number, found, rc;

	number = server->uplink.lost
			 ? -ENODEV
			 : slot_check_others(server, socket, (flags & SLOT_HOLDS_NOTHING) != 0);
	found = slot_find_kept(server, socket, isolated, hello->token, &kept);
	if (number == 0)
		number = found;
	if (number >= 0)
		number = slot_unreserved(server, found > 0) > 0 ? slot_find_free(server) : -ENOSPC;
	rc = number;

	if (number >= 0) {
		slot = &server->slots.all[number];
		rc = slot_open(server, (uint16_t)number, socket, isolated, hello,
			       found ? &kept : NULL, &message);
		if (rc == 0) {
			server->slots.live[server->slots.live_count++] = (uint16_t)number;
			if (found > 0)
				resume_taken(server, &kept);
			server->totals.attached++;
			slot_take_report(server, slot, report_fd);
			report_comm(slot->pid, comm);
			log_info("process %d (%s) attaches%s%s: slot %d, queue pairs from %#x",
				 slot->pid, comm, found ? " again" : "",
				 isolated ? ", isolated" : "", number, slot->qpn_first);
			return 0;
		}
		/* It may ask again: the numbers stay its own. */
		if (found > 0)
			resume_put_back(server, (uint16_t)number, &kept);
		else
			slot_release(server, (uint16_t)number);
	}
	slot_tell_refused(socket, isolated, rc);
	message.result = rc;
	message.welcome.ports = server->ports;
	message_send(socket, &message, NULL, 0);
	return rc;
}

int slot_begin_further(struct server *server, int socket, const struct share_message *hello)
{
	const struct share_engine *engine = &hello->engine;
	struct share_message message = {.type = SHARE_WELCOME, .version = SHARE_VERSION};
	int number = server->uplink.lost ? -ENODEV : slot_engine_check(server, socket, engine);
	int rc;

	if (number == 0)
		number = slot_find_free(server);
	rc = number;
	if (number >= 0) {
		rc = slot_open(server, (uint16_t)number, socket, false, hello, NULL, &message);
		if (rc == 0) {
			server->slots.live[server->slots.live_count++] = (uint16_t)number;
			log_info("process %d: slot %d for engine %u", server->slots.all[number].pid,
				 number, engine->number);
			return 0;
		}
		slot_release(server, (uint16_t)number);
	}
	message.result = rc;
	message_send(socket, &message, NULL, 0);
	return rc;
}
