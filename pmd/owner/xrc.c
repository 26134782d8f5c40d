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
	LIST_ENTRY(xrc_member) link;
	uint16_t slot;
	uint32_t opens;
	uint64_t dev;
	uint64_t ino;
};

struct xrc_target {
	LIST_ENTRY(xrc_target) link;
	uint16_t slot;
	uint32_t qpn;
	uint64_t dev;
	uint64_t ino;
};

/* A link from a target to the process with a shared receive queue. */
struct xrc_join {
	LIST_ENTRY(xrc_join) link;
	uint16_t from; /* slot of the target */
	uint16_t to;
	bool answered; /* `to` has said whether it can be used */
	uint32_t target;
	uint32_t alias; /* of the numbers of `from`: it identifies the link */
	uint64_t dev;
	uint64_t ino;
};

struct xrc_waiting {
	STAILQ_ENTRY(xrc_waiting) link;
	uint16_t slot;
	struct share_xrc note;
};

void xrc_init(struct xrc *xrc)
{
	LIST_INIT(&xrc->members);
	LIST_INIT(&xrc->targets);
	LIST_INIT(&xrc->joins);
	STAILQ_INIT(&xrc->waiting);
}

static int xrc_send_now(struct server *server, uint16_t number, const struct share_xrc *note)
{
	struct slot *slot = &server->slots.all[number];
	const struct share_message message = {
		.type = SHARE_XRC, .version = SHARE_VERSION, .xrc = *note};
	const int rc = message_send(slot->socket, &message, NULL, 0);

	/* Wake it at the end of the turn: it may sleep. */
	slot->touched |= rc == 0;
	return rc;
}

/* Send a note to a process, after those that wait for it. */
static void xrc_send(struct server *server, uint16_t number, const struct share_xrc *note)
{
	struct xrc_waiting *waiting;

	if (server->slots.all[number].state != SLOT_LIVE)
		return;
	STAILQ_FOREACH (waiting, &server->xrc.waiting, link) {
		if (waiting->slot == number)
			break;
	}
	if (!waiting && xrc_send_now(server, number, note) != -EAGAIN)
		return;
	waiting = calloc(1, sizeof(*waiting));
	if (!waiting) {
		log_warn("no memory for a message to process %d", server->slots.all[number].pid);
		return;
	}
	waiting->slot = number;
	waiting->note = *note;
	STAILQ_INSERT_TAIL(&server->xrc.waiting, waiting, link);
}

/* Return true if a process has not read its notes for so long that it gets no more of those whose
 * number the links do not limit. */
static bool xrc_is_behind(const struct server *server, uint16_t number)
{
	const struct xrc_waiting *waiting;
	unsigned int count = 0;

	STAILQ_FOREACH (waiting, &server->xrc.waiting, link)
		count += waiting->slot == number;
	return count >= WAITING_MAX;
}

void xrc_send_waiting(struct server *server)
{
	STAILQ_HEAD(, xrc_waiting) left = STAILQ_HEAD_INITIALIZER(left);
	struct xrc_waiting *waiting;

	while ((waiting = STAILQ_FIRST(&server->xrc.waiting)) != NULL) {
		STAILQ_REMOVE_HEAD(&server->xrc.waiting, link);
		if (xrc_send_now(server, waiting->slot, &waiting->note) == -EAGAIN)
			STAILQ_INSERT_TAIL(&left, waiting, link);
		else
			free(waiting);
	}
	STAILQ_CONCAT(&server->xrc.waiting, &left);
}

static void xrc_tell(struct server *server, uint16_t number, enum xrc_note_type type,
		     uint32_t alias, int32_t result)
{
	const struct share_xrc note = {.type = type, .alias = alias, .result = result};

	xrc_send(server, number, &note);
}

/* Find a process with the domain of a file; -1: any process. */
static struct xrc_member *find_member(const struct server *server, int slot, uint64_t dev,
				      uint64_t ino)
{
	struct xrc_member *member;

	LIST_FOREACH (member, &server->xrc.members, link) {
		if ((slot < 0 || member->slot == slot) && member->dev == dev && member->ino == ino)
			return member;
	}
	return NULL;
}

static struct xrc_target *find_target(const struct server *server, uint32_t qpn)
{
	struct xrc_target *target;

	LIST_FOREACH (target, &server->xrc.targets, link) {
		if (target->qpn == qpn)
			return target;
	}
	return NULL;
}

static struct xrc_join *find_join(const struct server *server, uint32_t alias)
{
	struct xrc_join *join;

	LIST_FOREACH (join, &server->xrc.joins, link) {
		if (join->alias == alias)
			return join;
	}
	return NULL;
}

/* Return true if a target has a link to a process. More links would only cost that process memory.
 */
static bool is_joined(const struct server *server, uint32_t target, uint16_t to)
{
	const struct xrc_join *join;

	LIST_FOREACH (join, &server->xrc.joins, link) {
		if (join->target == target && join->to == to)
			return true;
	}
	return false;
}

static void free_join(struct xrc_join *join)
{
	LIST_REMOVE(join, link);
	free(join);
}

/* Return true if a number is the process's. */
static bool is_of(const struct server *server, uint16_t number, uint32_t qpn)
{
	return blocks_find(&server->slots.blocks, qpn) == number;
}

static uint32_t count_opens(const struct server *server, uint16_t number)
{
	const struct xrc_member *member;
	uint32_t opens = 0;

	LIST_FOREACH (member, &server->xrc.members, link)
		opens += member->slot == number ? member->opens : 0;
	return opens;
}

static int xrc_open(struct server *server, uint16_t number, const struct share_xrc *note)
{
	const bool exists = find_member(server, -1, note->dev, note->ino) != NULL;
	struct xrc_member *member = find_member(server, number, note->dev, note->ino);

	if (exists && (note->flags & XRC_FLAG_CREATE) && (note->flags & XRC_FLAG_EXCLUSIVE))
		return -EINVAL;
	if (!exists && !(note->flags & XRC_FLAG_CREATE))
		return -EAGAIN;
	if (count_opens(server, number) == OPENS_MAX)
		return -ENOMEM;
	if (!member) {
		member = calloc(1, sizeof(*member));
		if (!member)
			return -ENOMEM;
		member->slot = number;
		member->dev = note->dev;
		member->ino = note->ino;
		LIST_INSERT_HEAD(&server->xrc.members, member, link);
	}
	member->opens++;
	return 0;
}

/* A process has closed the domain: its shared receive queues cannot be reached any more. */
static void xrc_close(struct server *server, uint16_t number, const struct share_xrc *note)
{
	struct xrc_member *member = find_member(server, number, note->dev, note->ino);
	struct xrc_join *join, *next;

	if (!member || --member->opens > 0)
		return;
	LIST_REMOVE(member, link);
	free(member);
	for (join = LIST_FIRST(&server->xrc.joins); join; join = next) {
		next = LIST_NEXT(join, link);
		if (join->to != number || join->dev != note->dev || join->ino != note->ino)
			continue;
		xrc_tell(server, join->from, XRC_LOST, join->alias, 0);
		free_join(join);
	}
}

static int xrc_add_target(struct server *server, uint16_t number, const struct share_xrc *note)
{
	struct xrc_target *target;

	if (!is_of(server, number, note->target) || find_target(server, note->target) ||
	    !find_member(server, number, note->dev, note->ino))
		return -EINVAL;
	target = calloc(1, sizeof(*target));
	if (!target)
		return -ENOMEM;
	*target = (struct xrc_target){
		.slot = number, .qpn = note->target, .dev = note->dev, .ino = note->ino};
	LIST_INSERT_HEAD(&server->xrc.targets, target, link);
	return 0;
}

static void xrc_end_target(struct server *server, struct xrc_target *target)
{
	struct xrc_join *join, *next;

	for (join = LIST_FIRST(&server->xrc.joins); join; join = next) {
		next = LIST_NEXT(join, link);
		if (join->target != target->qpn)
			continue;
		xrc_tell(server, join->to, XRC_UNLINK, join->alias, 0);
		free_join(join);
	}
	LIST_REMOVE(target, link);
	free(target);
}

static int xrc_find(const struct server *server, uint16_t number, const struct share_xrc *note)
{
	const struct xrc_target *target = find_target(server, note->target);

	if (!target || target->dev != note->dev || target->ino != note->ino ||
	    !find_member(server, number, note->dev, note->ino))
		return -EINVAL;
	return 0;
}

/* Ask the process with a shared receive queue for a stand-in. */
static int xrc_link(struct server *server, uint16_t number, const struct share_xrc *note)
{
	const struct xrc_target *target = find_target(server, note->target);
	const uint16_t to = blocks_find(&server->slots.blocks, note->srqn);
	struct share_xrc request = *note;
	struct xrc_join *join;

	if (!target || target->slot != number || !is_of(server, number, note->alias) ||
	    find_join(server, note->alias) || to == BLOCK_NONE || to == number ||
	    is_joined(server, target->qpn, to) ||
	    !find_member(server, to, target->dev, target->ino))
		return -ENOENT;
	if (xrc_is_behind(server, to) || xrc_is_behind(server, number))
		return -EBUSY;
	join = calloc(1, sizeof(*join));
	if (!join)
		return -ENOMEM;
	*join = (struct xrc_join){.from = number,
				  .to = to,
				  .target = target->qpn,
				  .alias = note->alias,
				  .dev = target->dev,
				  .ino = target->ino};
	LIST_INSERT_HEAD(&server->xrc.joins, join, link);
	request.dev = target->dev;
	request.ino = target->ino;
	xrc_send(server, to, &request);
	return 0;
}

static void xrc_linked(struct server *server, uint16_t number, const struct share_xrc *note)
{
	struct xrc_join *join = find_join(server, note->alias);
	struct share_xrc answer = *note;

	if (!join || join->to != number || join->answered)
		return;
	join->answered = true;
	if (answer.result == 0 && !is_of(server, number, note->stand_in))
		answer.result = -EINVAL;
	xrc_send(server, join->from, &answer);
	if (answer.result != 0)
		free_join(join);
}

/* One side of a link has ended it. */
static void xrc_unlink(struct server *server, uint16_t number, const struct share_xrc *note)
{
	struct xrc_join *join = find_join(server, note->alias);
	const bool by_target = note->type == XRC_UNLINK;

	if (!join || (by_target ? join->from : join->to) != number)
		return;
	xrc_tell(server, by_target ? join->to : join->from, note->type, join->alias, 0);
	free_join(join);
}

/* Tell a process why it gets no link. 0, or -ENOBUFS: it asks, and does not read the answers. */
static int xrc_refuse(struct server *server, uint16_t number, uint32_t alias, int result)
{
	if (xrc_is_behind(server, number))
		return -ENOBUFS;
	xrc_tell(server, number, XRC_LINKED, alias, result);
	return 0;
}

int xrc_hear(struct server *server, uint16_t number, const struct share_xrc *note, bool *answered)
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
	struct xrc_member *member, *next_member;
	struct xrc_target *target, *next_target;
	struct xrc_waiting *waiting, *next_waiting;
	struct xrc_join *join, *next_join;

	for (target = LIST_FIRST(&server->xrc.targets); target; target = next_target) {
		next_target = LIST_NEXT(target, link);
		if (target->slot == number)
			xrc_end_target(server, target);
	}
	for (join = LIST_FIRST(&server->xrc.joins); join; join = next_join) {
		next_join = LIST_NEXT(join, link);
		if (join->to != number)
			continue;
		xrc_tell(server, join->from, XRC_LOST, join->alias, 0);
		free_join(join);
	}
	for (member = LIST_FIRST(&server->xrc.members); member; member = next_member) {
		next_member = LIST_NEXT(member, link);
		if (member->slot != number)
			continue;
		LIST_REMOVE(member, link);
		free(member);
	}
	for (waiting = STAILQ_FIRST(&server->xrc.waiting); waiting; waiting = next_waiting) {
		next_waiting = STAILQ_NEXT(waiting, link);
		if (waiting->slot != number)
			continue;
		STAILQ_REMOVE(&server->xrc.waiting, waiting, xrc_waiting, link);
		free(waiting);
	}
}

uint32_t xrc_count(const struct xrc *xrc)
{
	const struct xrc_waiting *waiting;
	const struct xrc_member *member;
	const struct xrc_target *target;
	const struct xrc_join *join;
	uint32_t count = 0;

	LIST_FOREACH (member, &xrc->members, link)
		count++;
	LIST_FOREACH (target, &xrc->targets, link)
		count++;
	LIST_FOREACH (join, &xrc->joins, link)
		count++;
	STAILQ_FOREACH (waiting, &xrc->waiting, link)
		count++;
	return count;
}
