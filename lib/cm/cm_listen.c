/* SPDX-License-Identifier: BSD-3-Clause */
/* Listeners, and the choice of a request's listener. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm_internal.h"
#include "wire/gid.h"

static bool is_same(const struct cm_listen_attr *a, const struct cm_listen_attr *b)
{
	if (a->service_id != b->service_id || a->datagrams != b->datagrams ||
	    a->ip_version != b->ip_version || a->any_address != b->any_address)
		return false;
	return a->any_address || (a->vlan_id == b->vlan_id &&
				  memcmp(a->address, b->address, sizeof(a->address)) == 0);
}

int cm_listen(struct cm *cm, const struct cm_listen_attr *attr, struct cm_listener **listener)
{
	struct cm_listener *made;

	LIST_FOREACH (made, &cm->listeners, next) {
		if (is_same(&made->attr, attr))
			return -EADDRINUSE;
	}
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	made->cm = cm;
	made->number = ++cm->listened;
	made->attr = *attr;
	LIST_INIT(&made->backlog);
	made->waiting = attr->waiting ? attr->waiting : &made->own_waiting;
	if (made->attr.backlog == 0)
		made->attr.backlog = CM_BACKLOG_DEFAULT;
	LIST_INSERT_HEAD(&cm->listeners, made, next);
	*listener = made;
	return 0;
}

/* Reject the requests that cm_next_event has not returned; the caller owns the others. */
void cm_unlisten(struct cm_listener *listener, uint64_t now_ns)
{
	struct cm_conn *conn;

	LIST_REMOVE(listener, next);
	while ((conn = LIST_FIRST(&listener->backlog)) != NULL) {
		if (conn->told)
			conn_leave_backlog(conn);
		else
			cm_conn_destroy(conn, now_ns);
	}
	free(listener);
}

uint32_t listener_waiting(const struct cm_listener *listener)
{
	return __atomic_load_n(listener->waiting, __ATOMIC_RELAXED);
}

bool listener_take_place(struct cm_listener *listener, uint32_t most)
{
	if (__atomic_add_fetch(listener->waiting, 1, __ATOMIC_RELAXED) <= most)
		return true;
	listener_give_place(listener);
	return false;
}

void listener_give_place(struct cm_listener *listener)
{
	__atomic_sub_fetch(listener->waiting, 1, __ATOMIC_RELAXED);
}

static bool is_for(const struct cm_listen_attr *attr, uint64_t service_id, bool datagrams,
		   const struct gsi_address *target)
{
	const uint8_t version = gid_is_ipv4(target->local) ? 4 : 6;

	if (attr->service_id != service_id || attr->datagrams != datagrams ||
	    (attr->ip_version != 0 && attr->ip_version != version))
		return false;
	if (attr->any_address)
		return true;
	return (attr->vlan_id == target->vlan_id || gid_is_loopback(attr->address)) &&
	       memcmp(attr->address, target->local, sizeof(attr->address)) == 0;
}

/* Return how narrowly a listener is bound: to an address, to a version, or to neither. */
static int narrowness(const struct cm_listen_attr *attr)
{
	return 2 * !attr->any_address + (attr->ip_version != 0);
}

struct cm_listener *listener_find(struct cm *cm, uint64_t service_id, bool datagrams,
				  const struct gsi_address *target)
{
	struct cm_listener *listener, *best = NULL;

	LIST_FOREACH (listener, &cm->listeners, next) {
		if (is_for(&listener->attr, service_id, datagrams, target) &&
		    (!best || narrowness(&listener->attr) > narrowness(&best->attr)))
			best = listener;
	}
	return best;
}
