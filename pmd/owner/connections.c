/* SPDX-License-Identifier: BSD-3-Clause */
/* Records the connections of a shared device's processes, so that the owner can end them. */
#include "owner/connections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_byteorder.h>
#include <rte_jhash.h>

#include "wire/vlan.h"

enum connection_state {
	CONNECTION_ASKED,
	CONNECTION_TAKEN,
	CONNECTION_UP,
	CONNECTION_CLOSING,
};

struct connection {
	LIST_ENTRY(connection) by_id;  /* the peer's id if TAKEN, else the process's */
	LIST_ENTRY(connection) by_qpn; /* UP */
	TAILQ_ENTRY(connection) next;
	enum connection_state state;
	uint16_t slot;	 /* SLOT_NONE: its process has ended */
	uint8_t tries;	 /* if its process has ended: messages sent */
	uint64_t due_ns; /* if its process has ended: time of the next message */
	uint64_t tid;
	uint32_t local_id;
	uint32_t remote_id;
	uint32_t remote_qpn;
	uint64_t guid; /* ASKED: the device's, as the REQ says it */
	struct connections_path path;
};

int connections_init(struct connections *connections)
{
	for (uint32_t i = 0; i < CONNECTIONS_SLOTS; i++) {
		TAILQ_INIT(&connections->slots[i].taken);
		TAILQ_INIT(&connections->slots[i].own);
	}
	for (uint32_t i = 0; i <= CONNECTIONS_TRIES; i++)
		TAILQ_INIT(&connections->left[i]);
	/* Peers choose their ids. The seed is random, so that they cannot choose our buckets. */
	return getrandom(&connections->seed, sizeof(connections->seed), 0) ==
			       (ssize_t)sizeof(connections->seed)
		       ? 0
		       : -EIO;
}

static struct connections_bucket *bucket_of(struct connections *connections,
					    struct connections_bucket *buckets, uint32_t key)
{
	return &buckets[rte_jhash_1word(key, connections->seed) % CONNECTIONS_BUCKETS];
}

static uint32_t id_of(const struct connection *connection)
{
	return connection->state == CONNECTION_TAKEN ? connection->remote_id : connection->local_id;
}

static struct connections_queue *queue_of(struct connections *connections,
					  const struct connection *connection)
{
	if (connection->slot == SLOT_NONE)
		return &connections->left[connection->tries];
	return connection->state == CONNECTION_TAKEN ? &connections->slots[connection->slot].taken
						     : &connections->slots[connection->slot].own;
}

static uint32_t *count_of(struct connections *connections, const struct connection *connection)
{
	if (connection->slot == SLOT_NONE)
		return &connections->left_count;
	return connection->state == CONNECTION_TAKEN
		       ? &connections->slots[connection->slot].taken_count
		       : &connections->slots[connection->slot].own_count;
}

/* Insert a connection into the lists that its state, ids and slot select. */
static void enter(struct connections *connections, struct connection *connection)
{
	LIST_INSERT_HEAD(bucket_of(connections, connections->by_id, id_of(connection)), connection,
			 by_id);
	if (connection->state == CONNECTION_UP)
		LIST_INSERT_HEAD(
			bucket_of(connections, connections->by_qpn, connection->remote_qpn),
			connection, by_qpn);
	TAILQ_INSERT_TAIL(queue_of(connections, connection), connection, next);
	(*count_of(connections, connection))++;
}

/* Remove a connection from these lists, before its state, ids or slot change. */
static void leave(struct connections *connections, struct connection *connection)
{
	LIST_REMOVE(connection, by_id);
	if (connection->state == CONNECTION_UP)
		LIST_REMOVE(connection, by_qpn);
	TAILQ_REMOVE(queue_of(connections, connection), connection, next);
	(*count_of(connections, connection))--;
}

static void forget(struct connections *connections, struct connection *connection)
{
	if (!connection)
		return;
	leave(connections, connection);
	free(connection);
}

static void forget_all(struct connections *connections, struct connections_queue *queue)
{
	while (!TAILQ_EMPTY(queue))
		forget(connections, TAILQ_FIRST(queue));
}

void connections_fini(struct connections *connections)
{
	for (uint32_t i = 0; i < CONNECTIONS_SLOTS; i++) {
		forget_all(connections, &connections->slots[i].taken);
		forget_all(connections, &connections->slots[i].own);
	}
	for (uint32_t i = 0; i <= CONNECTIONS_TRIES; i++)
		forget_all(connections, &connections->left[i]);
}

static bool is_between(const struct connection *connection, const struct connections_path *path)
{
	return vlan_of_tci(connection->path.vlan_tci) == vlan_of_tci(path->vlan_tci) &&
	       memcmp(connection->path.theirs, path->theirs, sizeof(path->theirs)) == 0 &&
	       memcmp(connection->path.ours, path->ours, sizeof(path->ours)) == 0;
}

/* Find a connection of a slot; SLOT_NONE: one of a process that has ended. `taken`: `id` is the
 * peer's, and the connection is TAKEN; else `id` is the process's. */
static struct connection *find(struct connections *connections, uint16_t slot, uint32_t id,
			       bool taken, const struct connections_path *path)
{
	struct connection *connection;

	LIST_FOREACH (connection, bucket_of(connections, connections->by_id, id), by_id) {
		if (connection->slot == slot && id_of(connection) == id &&
		    (connection->state == CONNECTION_TAKEN) == taken &&
		    is_between(connection, path))
			return connection;
	}
	return NULL;
}

/* Make an entry. Without memory for it, the peer is not told that the process ends: it notices
 * when its retries fail. */
static struct connection *make(struct connections *connections, uint16_t slot,
			       enum connection_state state, const struct cm_mad *mad,
			       const struct connections_path *path)
{
	struct connections_slot *of = &connections->slots[slot];
	struct connection *made = calloc(1, sizeof(*made));

	if (!made)
		return NULL;
	if (state == CONNECTION_TAKEN && of->taken_count == CONNECTIONS_TAKEN_MAX)
		forget(connections, TAILQ_FIRST(&of->taken));
	if (state != CONNECTION_TAKEN && of->own_count == CONNECTIONS_OWN_MAX)
		forget(connections, TAILQ_FIRST(&of->own));
	made->slot = slot;
	made->state = state;
	made->tid = mad->tid;
	made->path = *path;
	return made;
}

/* Record a REQ that a process sends: a new request, whatever its id was used for before. */
static void sent_req(struct connections *connections, uint16_t slot, const struct cm_mad *mad,
		     const struct connections_path *path)
{
	struct connection *made;

	forget(connections, find(connections, slot, mad->local_id, false, path));
	made = make(connections, slot, CONNECTION_ASKED, mad, path);
	if (!made)
		return;
	made->local_id = mad->local_id;
	made->guid = mad->req.ca_guid;
	enter(connections, made);
}

static void given_req(struct connections *connections, uint16_t slot, const struct cm_mad *mad,
		      const struct connections_path *path)
{
	struct connection *made;

	forget(connections, find(connections, slot, mad->local_id, true, path));
	made = make(connections, slot, CONNECTION_TAKEN, mad, path);
	if (!made)
		return;
	made->remote_id = mad->local_id;
	made->remote_qpn = mad->req.qpn;
	enter(connections, made);
}

/* Record a REP that a process sends. A repeated REP finds no request, unless the REQ was
 * repeated, too. */
static void sent_rep(struct connections *connections, uint16_t slot, const struct cm_mad *mad,
		     const struct connections_path *path)
{
	struct connection *taken = find(connections, slot, mad->remote_id, true, path);
	struct connection *made;

	if (!taken)
		return;
	forget(connections, find(connections, slot, mad->local_id, false, path));
	made = make(connections, slot, CONNECTION_UP, mad, path);
	if (made) {
		made->local_id = mad->local_id;
		made->remote_id = mad->remote_id;
		made->remote_qpn = taken->remote_qpn;
		enter(connections, made);
	}
	forget(connections, taken);
}

static void given_rep(struct connections *connections, uint16_t slot, const struct cm_mad *mad,
		      const struct connections_path *path)
{
	struct connection *asked = find(connections, slot, mad->remote_id, false, path);

	if (!asked || asked->state != CONNECTION_ASKED)
		return;
	leave(connections, asked);
	asked->state = CONNECTION_UP;
	asked->remote_id = mad->local_id;
	asked->remote_qpn = cm_rep_qpn(&mad->rep);
	enter(connections, asked);
}

static void close_up(struct connections *connections, struct connection *connection)
{
	if (!connection || connection->state != CONNECTION_UP)
		return;
	leave(connections, connection);
	connection->state = CONNECTION_CLOSING;
	enter(connections, connection);
}

void connections_sent(struct connections *connections, uint16_t slot, const struct cm_mad *mad,
		      const struct connections_path *path)
{
	switch (mad->message) {
	case CM_REQ:
		sent_req(connections, slot, mad, path);
		break;
	case CM_REP:
		sent_rep(connections, slot, mad, path);
		break;
	case CM_REJ:
		if (mad->rej.about == CM_ABOUT_REQ)
			forget(connections, find(connections, slot, mad->remote_id, true, path));
		forget(connections, find(connections, slot, mad->local_id, false, path));
		break;
	case CM_DREQ:
		close_up(connections, find(connections, slot, mad->local_id, false, path));
		break;
	case CM_DREP:
		forget(connections, find(connections, slot, mad->local_id, false, path));
		break;
	default:
		break;
	}
}

void connections_given(struct connections *connections, uint16_t slot, const struct cm_mad *mad,
		       const struct connections_path *path)
{
	switch (mad->message) {
	case CM_REQ:
		given_req(connections, slot, mad, path);
		break;
	case CM_REP:
		given_rep(connections, slot, mad, path);
		break;
	case CM_REJ:
		if (mad->rej.reason == CM_REJ_TIMEOUT)
			forget(connections, find(connections, slot, mad->local_id, true, path));
		forget(connections, find(connections, slot, mad->remote_id, false, path));
		break;
	case CM_DREP:
		forget(connections, find(connections, slot, mad->remote_id, false, path));
		break;
	default:
		break;
	}
}

void connections_heard(struct connections *connections, const struct cm_mad *mad,
		       const struct connections_path *path)
{
	if (mad->message == CM_DREQ || mad->message == CM_DREP || mad->message == CM_REJ)
		forget(connections, find(connections, SLOT_NONE, mad->remote_id, false, path));
}

/* Keep a connection whose process has ended. If the process sent a DREQ at its end, the peer may
 * still answer it, so the next message waits. */
static void let_go(struct connections *connections, struct connection *connection, uint64_t now_ns)
{
	leave(connections, connection);
	if (connections->left_count == CONNECTIONS_LEFT_MAX) {
		free(connection);
		return;
	}
	connection->slot = SLOT_NONE;
	connection->tries = connection->state == CONNECTION_CLOSING;
	connection->due_ns = now_ns + connection->tries * CONNECTIONS_RETRY_NS;
	enter(connections, connection);
}

void connections_end(struct connections *connections, uint16_t slot, uint64_t now_ns)
{
	struct connections_slot *ended = &connections->slots[slot];

	while (!TAILQ_EMPTY(&ended->taken))
		let_go(connections, TAILQ_FIRST(&ended->taken), now_ns);
	while (!TAILQ_EMPTY(&ended->own))
		let_go(connections, TAILQ_FIRST(&ended->own), now_ns);
}

uint16_t connections_stale(struct connections *connections, const struct cm_mad *req,
			   const struct connections_path *path)
{
	struct connection *connection;
	uint16_t slot;

	LIST_FOREACH (connection, bucket_of(connections, connections->by_qpn, req->req.qpn),
		      by_qpn) {
		if (connection->remote_qpn == req->req.qpn && is_between(connection, path))
			break;
	}
	if (!connection)
		return SLOT_NONE;
	slot = connection->slot;
	/* The REQ shows that the peer does not have the connection any more. */
	if (slot == SLOT_NONE)
		forget(connections, connection);
	else
		close_up(connections, connection);
	return slot;
}

/* Find the entry that is due next. All entries of a queue have the same delay, so its first
 * entry is due first. */
static struct connection *next_due(const struct connections *connections)
{
	struct connection *next = NULL;

	for (uint32_t i = 0; i <= CONNECTIONS_TRIES; i++) {
		struct connection *first = TAILQ_FIRST(&connections->left[i]);

		if (first && (!next || first->due_ns < next->due_ns))
			next = first;
	}
	return next;
}

uint64_t connections_due_ns(const struct connections *connections)
{
	const struct connection *next = next_due(connections);

	return next ? next->due_ns : UINT64_MAX;
}

/* Build the message that ends a connection. As long as the peer has sent no REP, we know no id of
 * the peer. So the REJ of our request names our id and GUID, by which the peer finds the request
 * (12.6.7). */
static struct cm_mad message_for(struct connections *connections,
				 const struct connection *connection)
{
	struct cm_mad mad = {.message = CM_REJ,
			     .tid = connection->tid,
			     .local_id = connection->local_id,
			     .remote_id = connection->remote_id,
			     .rej = {.about = CM_ABOUT_REQ, .reason = CM_REJ_TIMEOUT}};

	switch (connection->state) {
	case CONNECTION_ASKED:
		connections->guid_be = rte_cpu_to_be_64(connection->guid);
		mad.rej.about = CM_ABOUT_OTHER;
		mad.rej.info = (const uint8_t *)&connections->guid_be;
		mad.rej.info_len = sizeof(connections->guid_be);
		break;
	case CONNECTION_TAKEN:
		mad.rej.reason = CM_REJ_CONSUMER_DEFINED;
		break;
	case CONNECTION_UP:
	case CONNECTION_CLOSING:
		mad.message = CM_DREQ;
		mad.dreq_qpn = connection->remote_qpn;
		break;
	}
	return mad;
}

bool connections_disconnect_orphan(struct connections *connections, uint64_t now_ns,
				   struct cm_mad *mad, struct connections_path *path)
{
	struct connection *next;

	while ((next = next_due(connections)) != NULL && next->due_ns <= now_ns) {
		const bool is_last = next->tries == CONNECTIONS_TRIES;

		*mad = message_for(connections, next);
		*path = next->path;
		/* A REJ is sent once: a peer that does not get it notices without it. */
		if (is_last || mad->message == CM_REJ) {
			forget(connections, next);
			if (is_last)
				continue;
			return true;
		}
		leave(connections, next);
		next->due_ns = now_ns + (CONNECTIONS_RETRY_NS << next->tries);
		next->tries++;
		enter(connections, next);
		return true;
	}
	return false;
}
