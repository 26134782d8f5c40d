/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the resume table of an owner, and takes back the processes of the last one. */
#include "resume.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "config/devargs.h"
#include "config/settings.h"
#include "control.h"
#include "event.h"
#include "isolated.h"
#include "owner/arbiter.h"
#include "port/drivers.h"
#include "server.h"
#include "slot.h"

#define RESUME_NS_PER_MS UINT64_C(1000000)

static uint64_t until_ns(const struct resume *resume)
{
	return resume->begun_ns + RESUME_AWAY_MS * RESUME_NS_PER_MS;
}

/* Return true if the port is there again as soon as it is opened again, with the same address. A
 * port of a DPDK driver is not: its device starts anew, and its link may take seconds. */
static bool resume_suits(const struct server *server, const struct settings *settings)
{
	const struct devargs *devargs = &server->uplink.link.port.devargs;

	if (server->uplink.link.port.mac_is_random || settings->kernel[0] != '\0')
		return false;
	return settings->netdev[0] != '\0' || settings->udp || devargs_is(devargs, LOCAL_DRIVER) ||
	       devargs_is(devargs, "net_memif");
}

/* Keep the numbers of the last owner's processes until they come. 0 or -ENOMEM. */
static int resume_await(struct server *server, const struct resume_table *copy)
{
	struct resume *resume = &server->resume;

	resume->awaited = calloc(RESUME_ENTRIES, sizeof(resume->awaited[0]));
	if (!resume->awaited)
		return -ENOMEM;
	for (uint32_t i = 0; i < RESUME_ENTRIES; i++) {
		const struct resume_entry *entry = &copy->entries[i];

		if (entry->used == 0)
			continue;
		resume->awaited[resume->awaited_count++] =
			(struct resume_awaited){.entry = *entry, .index = i};
		blocks_keep(&server->slots.blocks, entry->qpn_first, until_ns(resume), entry->user);
		ids_keep(&server->gsi.arbiter->ids, entry->id_value, until_ns(resume), entry->user);
	}
	resume->count = resume->awaited_count;
	resume->gathers = resume->count > 0;
	return 0;
}

/* Take the table that the last owner has left. Return false if there is none that is right. */
static bool resume_adopt(struct server *server, int fd)
{
	struct resume *resume = &server->resume;
	struct resume_table *copy;
	const char *wrong = "its length";
	int rc = -ENOMEM;

	copy = malloc(sizeof(*copy));
	if (copy && resume_table_map(fd, &resume->table) == 0) {
		memcpy(copy, resume->table, sizeof(*copy));
		wrong = resume_table_check(copy, server->unique, server->uplink.link.port.mac);
		rc = wrong ? -EINVAL : resume_await(server, copy);
	}
	free(copy);
	if (rc == 0)
		return true;
	log_warn("the programs of the last uroced cannot go on: its resume table is wrong (%s)",
		 wrong ? wrong : "no memory");
	resume_table_unmap(resume->table);
	resume->table = NULL;
	return false;
}

void resume_open(struct server *server, const struct serve_config *config)
{
	struct resume *resume = &server->resume;
	int *passed;

	if (!config->tables || !resume_suits(server, &config->settings[config->number]))
		return;
	passed = &config->tables[config->number];
	resume->begun_ns = event_now_ns();
	if (*passed >= 0 && resume_adopt(server, *passed)) {
		resume->fd = *passed;
		*passed = -1;
		server->totals.resumed = ++resume->table->times;
	} else {
		resume->fd = resume_table_create(server->unique, server->uplink.link.port.mac,
						 &resume->table);
	}
	if (resume->fd < 0)
		log_warn("programs will not survive the end of uroced: %s", strerror(-resume->fd));
	else
		resume->away_ms = resume->kept_ms = config->tables_are_kept ? RESUME_AWAY_MS : 0;
}

void resume_close(struct server *server)
{
	struct resume *resume = &server->resume;

	resume_table_unmap(resume->table);
	free(resume->awaited);
	if (resume->fd >= 0)
		close(resume->fd);
}

bool resume_hand_over(struct server *server)
{
	server->resume.hands_over = server->resume.away_ms > 0;
	return server->resume.hands_over;
}

int resume_find(struct server *server, const uint8_t token[SHARE_TOKEN_BYTES], bool isolated,
		user_t user, struct resume_awaited *kept)
{
	struct resume *resume = &server->resume;

	for (uint32_t i = 0; i < resume->awaited_count; i++) {
		const struct resume_entry *entry = &resume->awaited[i].entry;

		if (!resume_table_same(entry->token, token))
			continue;
		if (entry->user != user || entry->isolated != isolated)
			break;
		*kept = resume->awaited[i];
		return 0;
	}
	return -ESTALE;
}

void resume_taken(struct server *server, const struct resume_awaited *kept)
{
	struct resume *resume = &server->resume;

	for (uint32_t i = 0; i < resume->awaited_count; i++) {
		if (resume->awaited[i].index != kept->index)
			continue;
		resume->awaited[i] = resume->awaited[--resume->awaited_count];
		/* The process may have got fewer full shares than were reserved for it: others get
		 * the rest. */
		slot_give_full_shares(server);
		return;
	}
}

void resume_put_back(struct server *server, uint16_t number, const struct resume_awaited *kept)
{
	struct slot *slot = &server->slots.all[number];

	slot->resume_entry = 0;
	slot->returns = false;
	slot_release(server, number);
	blocks_keep(&server->slots.blocks, kept->entry.qpn_first, until_ns(&server->resume),
		    kept->entry.user);
}

struct resume_needs resume_needs(const struct server *server, user_t user)
{
	const struct resume *resume = &server->resume;
	struct resume_needs needs = {0};

	for (uint32_t i = 0; i < resume->awaited_count; i++) {
		const struct resume_entry *entry = &resume->awaited[i].entry;

		needs.slots += entry->engines;
		needs.isolated += entry->isolated;
		needs.of_user += entry->isolated && entry->user == user;
		needs.further += entry->engines - 1;
		needs.shares += entry->isolated ? 0 : entry->engines;
		needs.engine_shares += entry->engines > 1 ? entry->engines : 0;
	}
	return needs;
}

bool resume_awaits(const struct server *server, uint32_t qpn)
{
	const struct resume *resume = &server->resume;

	for (uint32_t i = 0; i < resume->awaited_count; i++) {
		if (blocks_index(resume->awaited[i].entry.qpn_first) == blocks_index(qpn))
			return true;
	}
	return false;
}

int resume_give_numbers(struct server *server, uint16_t number, const struct resume_entry *entry)
{
	struct slot *slot = &server->slots.all[number];
	int rc = blocks_take(&server->slots.blocks, entry->qpn_first, number, slot->user);

	if (rc != 0)
		return rc;
	slot->qpn_first = entry->qpn_first;
	rc = arbiter_begin_again(server->gsi.arbiter, number, slot->user, entry->id_value);
	slot->id_value = entry->id_value;
	return rc;
}

void resume_enter(struct server *server, uint16_t number, const struct resume_awaited *kept,
		  struct share_message *welcome)
{
	struct resume *resume = &server->resume;
	struct slot *slot = &server->slots.all[number];
	struct resume_entry entry = {.user = slot->user,
				     .qpn_first = slot->qpn_first,
				     .qpn_count = slot->qpn_count,
				     .id_value = slot->id_value,
				     .engines = RTE_MAX(slot->engine_count, 1u),
				     .isolated = slot->isolated != NULL};
	int index;

	if (!resume->table || slot->is_further)
		return;
	if (kept) {
		slot->resume_entry = (uint16_t)(kept->index + 1);
		slot->returns = true;
		memcpy(welcome->token, kept->entry.token, sizeof(welcome->token));
		return;
	}
	if (getrandom(entry.token, sizeof(entry.token), 0) != (ssize_t)sizeof(entry.token))
		return;
	index = resume_table_put(resume->table, &entry);
	if (index < 0)
		return;
	slot->resume_entry = (uint16_t)(index + 1);
	memcpy(welcome->token, entry.token, sizeof(welcome->token));
}

void resume_forget(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];

	if (slot->resume_entry > 0 && !server->resume.hands_over)
		resume_table_clear(server->resume.table, slot->resume_entry - 1u);
	slot->resume_entry = 0;
	/* It has ended before it had told all. */
	if (slot->returns)
		resume_note_returned(server, number);
}

static void resume_move_packets(struct server *server, uint64_t now_ns)
{
	struct resume *resume = &server->resume;

	resume->gathers = false;
	log_info("resumed %u of %u programs in %" PRIu64 " ms", resume->returned, resume->count,
		 (now_ns - resume->begun_ns) / RESUME_NS_PER_MS);
}

/* Return true if all processes of the last owner are back, and take packets. */
static bool resume_has_all(const struct server *server)
{
	if (server->resume.returned < server->resume.count)
		return false;
	for (uint16_t i = 0; i < server->slots.live_count; i++) {
		const struct slot *slot = &server->slots.all[server->slots.live[i]];

		if (slot->isolated && !isolated_is_connected(slot))
			return false;
	}
	return true;
}

void resume_note_returned(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];

	if (!slot->returns)
		return;
	slot->returns = false;
	server->totals.returned++;
	server->resume.returned++;
	resume_check(server);
}

void resume_check(struct server *server)
{
	struct resume *resume = &server->resume;
	uint64_t now_ns;

	if (likely(!resume->gathers && resume->awaited_count == 0))
		return;
	now_ns = event_now_ns();
	if (resume->gathers &&
	    (resume_has_all(server) || now_ns - resume->begun_ns >= RESUME_GATHER_NS))
		resume_move_packets(server, now_ns);
	if (now_ns < until_ns(resume))
		return;
	while (resume->awaited_count > 0)
		resume_table_clear(resume->table, resume->awaited[--resume->awaited_count].index);
	slot_give_full_shares(server);
}

static void resume_tell_all(struct server *server)
{
	for (uint16_t i = 0; i < server->slots.live_count; i++)
		control_send_addresses(server, server->slots.live[i]);
}

static void resume_promise(struct server *server, uint32_t away_ms)
{
	server->resume.away_ms = away_ms;
	resume_tell_all(server);
}

void resume_give_up(struct server *server)
{
	server->resume.kept_ms = 0;
	resume_promise(server, 0);
}

/* Return true if the process at the other end may take over: it has our rights, or more. */
static bool resume_may_replace(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

static void resume_leave(struct server *server)
{
	__atomic_store_n(&server->resume.must_leave, true, __ATOMIC_RELEASE);
}

void resume_next_ended(struct server *server, int fd)
{
	struct resume *resume = &server->resume;

	if (fd != resume->next_fd)
		return;
	resume->next_fd = -1;
	__atomic_store_n(&resume->must_leave, false, __ATOMIC_RELEASE);
	resume_promise(server, resume->kept_ms);
}

/* Return 0 if the process at the other end may replace this one, or the error. */
static int resume_check_next(const struct server *server, int fd)
{
	const struct resume *resume = &server->resume;

	if (!resume->table)
		return -EOPNOTSUPP;
	if (!resume_may_replace(fd))
		return -EPERM;
	return resume->next_fd < 0 || resume->next_fd == fd ? 0 : -EBUSY;
}

int resume_replace(struct server *server, int fd, const struct share_message *message)
{
	const struct pending_clients *clients = &server->pending_clients;
	const int fds[SHARE_REPLACE_FDS] = {server->resume.fd, clients->trusted.fd,
					    clients->isolated.fd};
	struct share_message answer = {.type = SHARE_REPLACE, .version = SHARE_VERSION};

	answer.result = resume_check_next(server, fd);
	if (answer.result != 0) {
		(void)message_send(fd, &answer, NULL, 0);
		return answer.result;
	}
	server->resume.next_fd = fd;
	if (message->number == SHARE_REPLACE_END) {
		log_warn("the next uroced does not have port %s: its programs get a fatal event",
			 server->unique);
		resume_promise(server, 0);
		resume_leave(server);
		return 0;
	}
	resume_promise(server, RESUME_AWAY_MS);
	if (message->number == SHARE_REPLACE_ASK) {
		/* Processes have been told early, because one may ask us something while we leave.
		 * But we leave only when the next owner says so. */
		server->resume.away_ms = server->resume.kept_ms;
		/* The number tells which sockets' files the next owner has to remove. */
		answer.number = (clients->trusted.path[0] != '\0') |
				(clients->isolated.path[0] != '\0') << 1;
		answer.welcome.ports = server->ports;
		return message_send(fd, &answer, fds, SHARE_REPLACE_FDS - (fds[2] < 0));
	}
	resume_leave(server);
	return 0;
}
