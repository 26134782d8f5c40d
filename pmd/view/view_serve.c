/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server of a view. It sleeps until a process rings the doorbell. While a process has a device,
 * it also looks at the counters once in VIEW_PERIOD_MS.
 *
 * The counters of a device are sums over all processes that had it in this view, as a port's are.
 */
#include "view/view_serve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rte_common.h>

#include "view/counter_files.h"
#include "view/tree.h"

/* A device that the files show. */
struct shown {
	bool is_there;
	struct view_facts facts;
	uint64_t ended[COUNTER_COUNT]; /* sums of processes that have ended */
	uint64_t sums[COUNTER_COUNT];  /* of all processes, in this poll */
	struct counter_files counters;
};

struct view_state {
	struct view_server server;
	struct shown shown[VIEW_DEVICES_MAX];
	uint32_t sequences[VIEW_SLOTS]; /* of the facts that were taken over; 0: none */
	uint32_t numbers[VIEW_SLOTS];	/* of the slot's device */
	uint64_t starts[VIEW_SLOTS];	/* of the slot's process; 0: not read */
};

static void state_show(struct view_state *state, const struct view_facts *facts)
{
	struct shown *shown = &state->shown[facts->number];

	if (shown->is_there && strcmp(shown->facts.name, facts->name) != 0) {
		view_tree_hide(state->server.root, &shown->facts);
		counter_files_close(&shown->counters);
		*shown = (struct shown){0};
	}
	(void)view_tree_show(state->server.root, facts, shown->is_there ? &shown->facts : NULL);
	if (!shown->is_there)
		(void)counter_files_write(&shown->counters, state->server.root, facts, shown->sums);
	shown->facts = *facts;
	shown->is_there = true;
}

struct view_state *view_state_create(const struct view_server *server)
{
	struct view_state *state = calloc(1, sizeof(*state));

	if (!state)
		return NULL;
	state->server = *server;
	for (size_t i = 0; i < server->expected_count; i++)
		if (server->expected[i].number < VIEW_DEVICES_MAX)
			state_show(state, &server->expected[i]);
	return state;
}

void view_state_destroy(struct view_state *state)
{
	for (size_t i = 0; i < VIEW_DEVICES_MAX; i++)
		counter_files_close(&state->shown[i].counters);
	free(state);
}

/* Take over new facts of a slot, and tell its process that the files show them. */
static void state_take_facts(struct view_state *state, size_t i)
{
	struct view_slot *slot = &state->server.table->slots[i];
	struct view_facts facts;
	uint32_t sequence;

	if (__atomic_load_n(&slot->sequence, __ATOMIC_RELAXED) == state->sequences[i])
		return;
	sequence = view_slot_read(slot, &facts);
	if (sequence == 0 || sequence == state->sequences[i])
		return;
	state_show(state, &facts);
	state->sequences[i] = sequence;
	state->numbers[i] = facts.number;
	__atomic_store_n(&slot->shown_sequence, sequence, __ATOMIC_RELEASE);
	syscall(SYS_futex, &slot->shown_sequence, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void slot_add(const struct view_slot *slot, uint64_t *sums)
{
	for (int i = 0; i < COUNTER_COUNT; i++)
		sums[i] += __atomic_load_n(&slot->counters[i], __ATOMIC_RELAXED);
}

/* Free the slot of a process that has ended or left it, and keep its counters. */
static void state_free_slot(struct view_state *state, size_t i)
{
	struct view_slot *slot = &state->server.table->slots[i];

	if (state->sequences[i] != 0)
		slot_add(slot, state->shown[state->numbers[i]].ended);
	state->sequences[i] = 0;
	state->starts[i] = 0;
	slot->sequence = 0;
	slot->shown_sequence = 0;
	memset(slot->counters, 0, sizeof(slot->counters));
	__atomic_store_n(&slot->pid, 0, __ATOMIC_RELEASE);
}

static void state_show_counters(struct view_state *state, struct shown *shown)
{
	if (shown->is_there)
		(void)counter_files_write(&shown->counters, state->server.root, &shown->facts,
					  shown->sums);
}

/* Read the state and the start time of a process: fields 3 and 22 of its file stat. The name, field
 * 2, is in parentheses and may have any character. Return 0 or -errno. */
static int read_stat(int32_t pid, char *state, uint64_t *start)
{
	char path[32], text[1024], *at;
	ssize_t len = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	/* It ended between open and read. */
	if (len <= 0)
		return -ESRCH;
	text[len] = '\0';
	at = strrchr(text, ')');
	if (!at || sscanf(at + 1, " %c", state) != 1)
		return -EINVAL;
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	*start = at ? strtoull(at, NULL, 10) : 0;
	return 0;
}

/* The same as has_ended, without a pidfd. If there is no /proc, a zombie counts as alive. */
static bool has_ended_by_stat(int32_t pid, uint64_t *start)
{
	uint64_t now = 0;
	char state = '\0';
	const int rc = read_stat(pid, &state, &now);

	if (rc != 0)
		return rc == -ESRCH || (kill(pid, 0) < 0 && errno == ESRCH);
	/* Another process has the number if it started at another time. */
	if (*start == 0)
		*start = now;
	return state == 'Z' || state == 'X' || now != *start;
}

/* Return true if a process has ended, or if the process of a slot has left it. Do not wait for its
 * parent: process 1 of a container may never wait for its children, and kill(2) finds a zombie.
 * `start` is 0 at the first call for a process, and kept for the next ones. */
static bool has_ended(int32_t pid, uint64_t *start)
{
	struct pollfd end = {.events = POLLIN};
	bool ended;

	if (pid < 0)
		return true;
	end.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	/* A seccomp filter may refuse pidfds. */
	if (end.fd < 0)
		return has_ended_by_stat(pid, start);
	ended = poll(&end, 1, 0) == 1;
	close(end.fd);
	return ended;
}

unsigned int view_state_poll(struct view_state *state)
{
	unsigned int used = 0;

	for (size_t i = 0; i < VIEW_SLOTS; i++) {
		struct view_slot *slot = &state->server.table->slots[i];
		const int32_t pid = __atomic_load_n(&slot->pid, __ATOMIC_ACQUIRE);

		if (pid == 0)
			continue;
		/* Look for the end first: what the process wrote before it is taken over. */
		const bool ended = has_ended(pid, &state->starts[i]);

		state_take_facts(state, i);
		if (ended)
			state_free_slot(state, i);
		else
			used++;
	}
	for (size_t i = 0; i < VIEW_DEVICES_MAX; i++)
		memcpy(state->shown[i].sums, state->shown[i].ended, sizeof(state->shown[i].sums));
	for (size_t i = 0; i < VIEW_SLOTS; i++)
		if (state->sequences[i] != 0)
			slot_add(&state->server.table->slots[i],
				 state->shown[state->numbers[i]].sums);
	for (size_t i = 0; i < VIEW_DEVICES_MAX; i++)
		state_show_counters(state, &state->shown[i]);
	return used;
}

static void doorbell_clear(int doorbell)
{
	char bytes[256];

	while (read(doorbell, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes))
		;
}

void view_serve(const struct view_server *server, int ready)
{
	struct pollfd fds[] = {
		{.fd = server->entry.doorbell, .events = POLLIN},
		{.fd = (int)syscall(SYS_pidfd_open, server->watched, 0), .events = POLLIN},
		{.fd = server->entry.door, .events = POLLIN}};
	struct view_state *state = view_state_create(server);
	uint64_t watched_start = 0;
	unsigned int used = 0;
	bool watching = true;

	if (!state)
		return;
	if (write(ready, "", 1) != 1)
		return;
	close(ready);
	do {
		if (poll(fds, RTE_DIM(fds), used > 0 || fds[1].fd < 0 ? VIEW_PERIOD_MS : -1) < 0 &&
		    errno != EINTR)
			break;
		view_table_admit(&server->entry);
		doorbell_clear(server->entry.doorbell);
		used = view_state_poll(state);
		if (fds[1].fd >= 0 ? fds[1].revents != 0
				   : watching && has_ended(server->watched, &watched_start)) {
			watching = false;
			fds[1].fd = -1;
		}
	} while (used > 0 || watching);
	view_state_destroy(state);
}
