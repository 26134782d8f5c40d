/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner's part in XRC domains that processes share. Only this process knows all of them, so it
 * checks what each process says of the others' numbers. */
#include "xrc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/xrc_share.h"
#include "server.h"
#include "share/message.h"

#define OPENS_MAX 4096 /* of all domains, by a process */
/* Notes to a process whose socket is full, before it gets no new links. */
#define WAITING_MAX 4096

/* A process that has opened the domain of a file. */
struct xrc_member {
	LIST_ENTRY(xrc_member) by_file;
	LIST_ENTRY(xrc_member) of_process;
	uint16_t slot;
	uint32_t opens;
	uint64_t dev;
	uint64_t ino;
};

struct xrc_target {
	LIST_ENTRY(xrc_target) by_number;
	LIST_ENTRY(xrc_target) of_process;
	LIST_HEAD(, xrc_join) joins; /* at most one to each process */
	uint16_t slot;
	uint32_t qpn;
	uint64_t dev;
	uint64_t ino;
};

/* A link from a target to the process with a shared receive queue. */
struct xrc_join {
	LIST_ENTRY(xrc_join) by_alias;
	LIST_ENTRY(xrc_join) of_target;
	LIST_ENTRY(xrc_join) of_process; /* `to` */
	struct xrc_target *target;
	uint16_t to;	/* slot of the process with the queue */
	bool answered;	/* `to` has said whether it can be used */
	uint32_t alias; /* of the numbers of the target's process: it identifies the link */
};

struct xrc_waiting {
	STAILQ_ENTRY(xrc_waiting) link;
	struct xrc_note note;
};

void xrc_init(struct xrc *xrc)
{
	memset(xrc, 0, sizeof(*xrc));
	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++)
		STAILQ_INIT(&xrc->processes[i].queue.notes);
}

/* Allocate a record of zeros, or return NULL. */
static void *xrc_alloc(struct server *server, size_t size)
{
	void *record = calloc(1, size);

	server->xrc.records += record != NULL;
	return record;
}

static void xrc_free(struct server *server, void *record)
{
	server->xrc.records--;
	free(record);
}

static uint32_t bucket_of_file(uint64_t dev, uint64_t ino)
{
	return (uint32_t)((dev ^ ino) % XRC_BUCKETS);
}

static uint32_t bucket_of_number(uint32_t number)
{
	return (number ^ blocks_index(number)) % XRC_BUCKETS;
}

static int xrc_send_now(struct server *server, uint16_t number, const struct xrc_note *note)
{
	struct slot *slot = &server->slots.all[number];
	const struct share_message message = {
		.type = SHARE_XRC, .version = SHARE_VERSION, .xrc = *note};
	const int rc = message_send(slot->socket, &message, NULL, 0);

	/* Wake it at the end of the poll: it may sleep. */
	slot->touched |= rc == 0;
	return rc;
}

/* Send a note to a process, after those that wait for it. */
static void xrc_send(struct server *server, uint16_t number, const struct xrc_note *note)
{
	struct xrc_queue *queue = &server->xrc.processes[number].queue;
	struct xrc_waiting *waiting;

	/* Links go on with the next owner. */
	if (server->slots.all[number].state != SLOT_LIVE || server->resume.hands_over)
		return;
	if (queue->count == 0 && xrc_send_now(server, number, note) != -EAGAIN)
		return;
	waiting = xrc_alloc(server, sizeof(*waiting));
	if (!waiting) {
		log_warn("no memory for a message to process %d", server->slots.all[number].pid);
		return;
	}
	waiting->note = *note;
	STAILQ_INSERT_TAIL(&queue->notes, waiting, link);
	queue->count++;
}

/* Return true if a process has not read its notes for so long that it gets no more of those whose
 * number the links do not limit. */
static bool xrc_is_behind(const struct server *server, uint16_t number)
{
	return server->xrc.processes[number].queue.count >= WAITING_MAX;
}

static void drop_first(struct server *server, struct xrc_queue *queue)
{
	struct xrc_waiting *waiting = STAILQ_FIRST(&queue->notes);

	STAILQ_REMOVE_HEAD(&queue->notes, link);
	queue->count--;
	xrc_free(server, waiting);
}

void xrc_send_waiting(struct server *server)
{
	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++) {
		struct xrc_queue *queue = &server->xrc.processes[i].queue;

		/* The first one that finds no room holds the others back, to keep their order. */
		while (queue->count > 0 &&
		       xrc_send_now(server, i, &STAILQ_FIRST(&queue->notes)->note) != -EAGAIN)
			drop_first(server, queue);
	}
}

static void xrc_tell(struct server *server, uint16_t number, enum xrc_note_type type,
		     uint32_t alias, int32_t result)
{
	const struct xrc_note note = {.type = type, .alias = alias, .result = result};

	xrc_send(server, number, &note);
}

/* Find a process with the domain of a file; -1: any process. */
static struct xrc_member *find_member(const struct server *server, int slot, uint64_t dev,
				      uint64_t ino)
{
	struct xrc_member *member;

	LIST_FOREACH (member, &server->xrc.members[bucket_of_file(dev, ino)], by_file) {
		if ((slot < 0 || member->slot == slot) && member->dev == dev && member->ino == ino)
			return member;
	}
	return NULL;
}

static struct xrc_target *find_target(const struct server *server, uint32_t qpn)
{
	struct xrc_target *target;

	LIST_FOREACH (target, &server->xrc.targets[bucket_of_number(qpn)], by_number) {
		if (target->qpn == qpn)
			return target;
	}
	return NULL;
}

static struct xrc_join *find_join(const struct server *server, uint32_t alias)
{
	struct xrc_join *join;

	LIST_FOREACH (join, &server->xrc.joins[bucket_of_number(alias)], by_alias) {
		if (join->alias == alias)
			return join;
	}
	return NULL;
}

/* Return true if a target has a link to a process. More links would only cost that process memory.
 */
static bool is_joined(const struct xrc_target *target, uint16_t to)
{
	const struct xrc_join *join;

	LIST_FOREACH (join, &target->joins, of_target) {
		if (join->to == to)
			return true;
	}
	return false;
}

static void free_join(struct server *server, struct xrc_join *join)
{
	LIST_REMOVE(join, by_alias);
	LIST_REMOVE(join, of_target);
	LIST_REMOVE(join, of_process);
	xrc_free(server, join);
}

static void free_member(struct server *server, struct xrc_member *member)
{
	LIST_REMOVE(member, by_file);
	LIST_REMOVE(member, of_process);
	xrc_free(server, member);
}

/* Return true if a number is the process's. */
static bool is_of(const struct server *server, uint16_t number, uint32_t qpn)
{
	return blocks_find(&server->slots.blocks, qpn) == number;
}

static int xrc_open(struct server *server, uint16_t number, const struct xrc_note *note)
{
	const bool exists = find_member(server, -1, note->dev, note->ino) != NULL;
	struct xrc_member *member = find_member(server, number, note->dev, note->ino);
	struct xrc_process *process = &server->xrc.processes[number];

	if (exists && (note->flags & XRC_FLAG_CREATE) && (note->flags & XRC_FLAG_EXCLUSIVE))
		return -EINVAL;
	if (!exists && !(note->flags & XRC_FLAG_CREATE))
		return -EAGAIN;
	if (process->opens == OPENS_MAX)
		return -ENOMEM;
	if (!member) {
		member = xrc_alloc(server, sizeof(*member));
		if (!member)
			return -ENOMEM;
		member->slot = number;
		member->dev = note->dev;
		member->ino = note->ino;
		LIST_INSERT_HEAD(&server->xrc.members[bucket_of_file(note->dev, note->ino)], member,
				 by_file);
		LIST_INSERT_HEAD(&process->members, member, of_process);
	}
	member->opens++;
	process->opens++;
	return 0;
}

/* A process has closed the domain: its shared receive queues cannot be reached any more. */
static void xrc_close(struct server *server, uint16_t number, const struct xrc_note *note)
{
	struct xrc_member *member = find_member(server, number, note->dev, note->ino);
	struct xrc_process *process = &server->xrc.processes[number];
	struct xrc_join *join, *next;

	if (!member)
		return;
	process->opens--;
	if (--member->opens > 0)
		return;
	free_member(server, member);
	for (join = LIST_FIRST(&process->joins); join; join = next) {
		next = LIST_NEXT(join, of_process);
		if (join->target->dev != note->dev || join->target->ino != note->ino)
			continue;
		xrc_tell(server, join->target->slot, XRC_LOST, join->alias, 0);
		free_join(server, join);
	}
}

static int xrc_add_target(struct server *server, uint16_t number, const struct xrc_note *note)
{
	struct xrc_target *target;

	if (!is_of(server, number, note->target) || find_target(server, note->target) ||
	    !find_member(server, number, note->dev, note->ino))
		return -EINVAL;
	target = xrc_alloc(server, sizeof(*target));
	if (!target)
		return -ENOMEM;
	*target = (struct xrc_target){
		.slot = number, .qpn = note->target, .dev = note->dev, .ino = note->ino};
	LIST_INSERT_HEAD(&server->xrc.targets[bucket_of_number(target->qpn)], target, by_number);
	LIST_INSERT_HEAD(&server->xrc.processes[number].targets, target, of_process);
	return 0;
}

static void xrc_end_target(struct server *server, struct xrc_target *target)
{
	struct xrc_join *join;

	while ((join = LIST_FIRST(&target->joins)) != NULL) {
		xrc_tell(server, join->to, XRC_UNLINK, join->alias, 0);
		free_join(server, join);
	}
	LIST_REMOVE(target, by_number);
	LIST_REMOVE(target, of_process);
	xrc_free(server, target);
}

static int xrc_find(const struct server *server, uint16_t number, const struct xrc_note *note)
{
	const struct xrc_target *target = find_target(server, note->target);

	if (!target || target->dev != note->dev || target->ino != note->ino ||
	    !find_member(server, number, note->dev, note->ino))
		return -EINVAL;
	return 0;
}

/* Ask the process with a shared receive queue for a stand-in. */
static int xrc_link(struct server *server, uint16_t number, const struct xrc_note *note)
{
	struct xrc_target *target = find_target(server, note->target);
	const uint16_t to = blocks_find(&server->slots.blocks, note->srqn);
	struct xrc_note request = *note;
	struct xrc_join *join;

	if (!target || target->slot != number || !is_of(server, number, note->alias) ||
	    find_join(server, note->alias) || to == BLOCK_NONE || to == number ||
	    is_joined(target, to) || !find_member(server, to, target->dev, target->ino))
		return -ENOENT;
	if (xrc_is_behind(server, to) || xrc_is_behind(server, number))
		return -EBUSY;
	join = xrc_alloc(server, sizeof(*join));
	if (!join)
		return -ENOMEM;
	join->target = target;
	join->to = to;
	join->alias = note->alias;
	LIST_INSERT_HEAD(&server->xrc.joins[bucket_of_number(join->alias)], join, by_alias);
	LIST_INSERT_HEAD(&target->joins, join, of_target);
	LIST_INSERT_HEAD(&server->xrc.processes[to].joins, join, of_process);
	request.dev = target->dev;
	request.ino = target->ino;
	xrc_send(server, to, &request);
	return 0;
}

static void xrc_linked(struct server *server, uint16_t number, const struct xrc_note *note)
{
	struct xrc_join *join = find_join(server, note->alias);
	struct xrc_note answer = *note;

	if (!join || join->to != number || join->answered)
		return;
	join->answered = true;
	if (answer.result == 0 && !is_of(server, number, note->stand_in))
		answer.result = -EINVAL;
	xrc_send(server, join->target->slot, &answer);
	if (answer.result != 0)
		free_join(server, join);
}

/* One side of a link has ended it. */
static void xrc_unlink(struct server *server, uint16_t number, const struct xrc_note *note)
{
	struct xrc_join *join = find_join(server, note->alias);
	const bool by_target = note->type == XRC_UNLINK;

	if (!join || (by_target ? join->target->slot : join->to) != number)
		return;
	xrc_tell(server, by_target ? join->to : join->target->slot, note->type, join->alias, 0);
	free_join(server, join);
}

/* Tell a process why it gets no link. 0, or -ENOBUFS: it asks, and does not read the answers. */
static int xrc_refuse(struct server *server, uint16_t number, uint32_t alias, int result)
{
	if (xrc_is_behind(server, number))
		return -ENOBUFS;
	xrc_tell(server, number, XRC_LINKED, alias, result);
	return 0;
}

int xrc_hear(struct server *server, uint16_t number, const struct xrc_note *note, bool *answered)
{
	struct xrc_target *target;
	int rc;

	*answered = note->type == XRC_OPEN || note->type == XRC_TARGET || note->type == XRC_FIND;
	/* An isolated process shares nothing with others. */
	if (server->slots.all[number].isolated)
		return *answered ? -EOPNOTSUPP : -EPROTO;
	switch (note->type) {
	case XRC_OPEN:
		return xrc_open(server, number, note);
	case XRC_TARGET:
		return xrc_add_target(server, number, note);
	case XRC_FIND:
		return xrc_find(server, number, note);
	case XRC_CLOSE:
		xrc_close(server, number, note);
		return 0;
	case XRC_TARGET_END:
		target = find_target(server, note->target);
		if (target && target->slot == number)
			xrc_end_target(server, target);
		return 0;
	case XRC_LINK:
		rc = xrc_link(server, number, note);
		return rc == 0 ? 0 : xrc_refuse(server, number, note->alias, rc);
	case XRC_LINKED:
		xrc_linked(server, number, note);
		return 0;
	case XRC_UNLINK:
	case XRC_LOST:
		xrc_unlink(server, number, note);
		return 0;
	default:
		return -EPROTO;
	}
}

void xrc_end(struct server *server, uint16_t number)
{
	struct xrc_process *process = &server->xrc.processes[number];
	struct xrc_join *join;

	while (!LIST_EMPTY(&process->targets))
		xrc_end_target(server, LIST_FIRST(&process->targets));
	while ((join = LIST_FIRST(&process->joins)) != NULL) {
		xrc_tell(server, join->target->slot, XRC_LOST, join->alias, 0);
		free_join(server, join);
	}
	while (!LIST_EMPTY(&process->members))
		free_member(server, LIST_FIRST(&process->members));
	process->opens = 0;
	while (process->queue.count > 0)
		drop_first(server, &process->queue);
}
