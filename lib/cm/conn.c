/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections, and the tables that find them. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_jhash.h>

#include "cm_internal.h"

#define ID_TRIES 16 /* the first try nearly always finds a free id */

static struct cm_bucket *local_bucket(const struct cm *cm, uint32_t id)
{
	return (struct cm_bucket *)&cm
		->by_local[rte_jhash_1word(id, cm->hash_seed) & (CM_BUCKETS - 1)];
}

static uint32_t hash_peer(const struct cm *cm, const struct gsi_address *peer, uint32_t number)
{
	uint32_t words[6] = {(uint32_t)peer->vlan_id, number};

	memcpy(words + 2, peer->remote, sizeof(peer->remote));
	return rte_jhash_32b(words, RTE_DIM(words), cm->hash_seed) & (CM_BUCKETS - 1);
}

/* Draw the id and the TID of a new connection, and the PSN with which its peer begins. */
static bool draw(struct cm_conn *conn)
{
	const struct cm *cm = conn->cm;
	struct {
		uint64_t tid;
		uint32_t id;
		uint32_t psn;
	} random;

	for (int i = 0; i < ID_TRIES; i++) {
		if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
			return false;
		conn->tid = random.tid;
		conn->agreed.rq_psn = psn_make(random.psn);
		conn->local_id = (random.id & ~cm->config.id_mask) | cm->config.id_value;
		if (conn->local_id != 0 && !conn_find_local(cm, conn->local_id))
			return true;
	}
	return false;
}

struct cm_conn *conn_create(struct cm *cm, const struct gsi_address *peer)
{
	struct cm_conn *conn;

	if (timers_reserve(&cm->timers, cm->conns + 1) != 0)
		return NULL;
	conn = calloc(1, sizeof(*conn));
	if (!conn)
		return NULL;
	conn->cm = cm;
	conn->peer = *peer;
	conn->owned = true;
	if (!draw(conn)) {
		free(conn);
		return NULL;
	}
	cm->conns++;
	LIST_INSERT_HEAD(local_bucket(cm, conn->local_id), conn, by_local);
	return conn;
}

/* A connection that is over has no timer, and only table by_local has it. */
void conn_free(struct cm_conn *conn)
{
	events_drop(conn);
	conn_leave_backlog(conn);
	LIST_REMOVE(conn, by_local);
	conn->cm->conns--;
	free(conn);
}

struct cm_conn *conn_find_local(const struct cm *cm, uint32_t local_id)
{
	struct cm_conn *conn;

	LIST_FOREACH (conn, local_bucket(cm, local_id), by_local) {
		if (conn->local_id == local_id)
			return conn;
	}
	return NULL;
}

static bool same_host(const struct gsi_address *a, const struct gsi_address *b)
{
	return a->vlan_id == b->vlan_id && memcmp(a->remote, b->remote, sizeof(a->remote)) == 0;
}

struct cm_conn *conn_find_remote(const struct cm *cm, const struct gsi_address *peer,
				 uint32_t remote_id, bool sidr)
{
	struct cm_conn *conn;

	LIST_FOREACH (conn, &cm->by_remote[hash_peer(cm, peer, remote_id)], by_remote) {
		if (conn->remote_id == remote_id && conn->sidr == sidr &&
		    same_host(&conn->peer, peer))
			return conn;
	}
	return NULL;
}

struct cm_conn *conn_find_qpn(const struct cm *cm, const struct gsi_address *peer, uint32_t qpn)
{
	struct cm_conn *conn;

	LIST_FOREACH (conn, &cm->by_qpn[hash_peer(cm, peer, qpn)], by_qpn) {
		if (conn->agreed.remote_qpn == qpn && same_host(&conn->peer, peer))
			return conn;
	}
	return NULL;
}

void conn_enter_remote(struct cm_conn *conn)
{
	struct cm *cm = conn->cm;
	const uint32_t id = hash_peer(cm, &conn->peer, conn->remote_id);
	const uint32_t qpn = hash_peer(cm, &conn->peer, conn->agreed.remote_qpn);

	LIST_INSERT_HEAD(&cm->by_remote[id], conn, by_remote);
	conn->in_remote = true;
	if (conn->sidr)
		return;
	LIST_INSERT_HEAD(&cm->by_qpn[qpn], conn, by_qpn);
	conn->in_qpn = true;
}

void conn_leave_remote(struct cm_conn *conn)
{
	if (conn->in_remote)
		LIST_REMOVE(conn, by_remote);
	conn->in_remote = false;
}

void conn_leave_qpn(struct cm_conn *conn)
{
	if (conn->in_qpn)
		LIST_REMOVE(conn, by_qpn);
	conn->in_qpn = false;
}

bool conn_is_peer(const struct cm_conn *conn, const struct gsi_address *from)
{
	return same_host(&conn->peer, from) &&
	       memcmp(conn->peer.local, from->local, sizeof(from->local)) == 0;
}

uint64_t conn_bounded_ns(uint8_t exponent)
{
	return cm_time_ns(RTE_MIN(exponent, CM_EXPONENT_MAX));
}

enum cm_state cm_conn_state(const struct cm_conn *conn)
{
	return conn->state;
}

void cm_conn_take(struct cm_conn *conn)
{
	conn_leave_backlog(conn);
}

void cm_conn_set_user(struct cm_conn *conn, void *user)
{
	conn->user = user;
}

void cm_conn_agreed(const struct cm_conn *conn, struct cm_agreed *agreed)
{
	*agreed = conn->agreed;
	agreed->address = conn->peer;
}
