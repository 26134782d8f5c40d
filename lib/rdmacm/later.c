/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of releases of rdma-core later than 44: names that are resolved by an event, and events of
 * the program's own. */
#include "later.h"

#include <string.h>

#include "id.h"

/* Give the id its result, and drop the one that the program has not taken. */
static void keep(struct cm_id *id, struct rdma_addrinfo *info)
{
	struct rdma_addrinfo *old;

	pthread_mutex_lock(&id->lock);
	old = id->addrinfo;
	id->addrinfo = info;
	pthread_mutex_unlock(&id->lock);
	rdma_freeaddrinfo(old);
}

int later_resolve_addrinfo(struct rdma_cm_id *public, const char *node, const char *service,
			   const struct rdma_addrinfo *hints)
{
	ID_CALL_OF("rdma_resolve_addrinfo");
	struct rdma_addrinfo *info = NULL;
	int rc = id_check(public);

	if (rc == 0 && hints && (hints->ai_flags & LATER_RAI_SA))
		rc = ID_REASON(-EOPNOTSUPP, "RoCE has no subnet administrator (RAI_SA)");
	if (rc == 0 && !node && !service && !hints)
		rc = explain_argument("node, service and hints are all NULL");
	if (rc != 0)
		return id_result(rc);
	if (rdma_getaddrinfo(node, service, hints, &info) == 0) {
		keep(cm_id_of(public), info);
		rc = event_tell(cm_id_of(public), LATER_EVENT_ADDRINFO_RESOLVED, 0);
	} else {
		rc = event_tell(cm_id_of(public), LATER_EVENT_ADDRINFO_ERROR, -errno);
	}
	return id_result(rc != 0 ? rc : event_complete(cm_id_of(public)));
}

int later_query_addrinfo(struct rdma_cm_id *public, struct rdma_addrinfo **info)
{
	ID_CALL_OF("rdma_query_addrinfo");
	struct cm_id *id = cm_id_of(public);
	int rc = id_check(public);

	if (rc != 0 || !info)
		return id_result(rc != 0 ? rc : explain_argument("info is NULL"));
	pthread_mutex_lock(&id->lock);
	*info = id->addrinfo;
	id->addrinfo = NULL;
	pthread_mutex_unlock(&id->lock);
	return id_result(
		*info ? 0
		      : explain_argument("the id has no result: rdma_resolve_addrinfo and its "
					 "event come first, and it is queried once"));
}

int later_write_cm_event(struct rdma_cm_id *public, enum rdma_cm_event_type type, int status,
			 uint64_t arg)
{
	ID_CALL_OF("rdma_write_cm_event");
	struct id_event *event;
	int rc = id_check(public);

	if (rc != 0 || type != LATER_EVENT_USER)
		return id_result(rc != 0 ? rc
					 : explain_argument("the event is not RDMA_CM_EVENT_USER"));
	event = event_create(cm_id_of(public), cm_id_of(public), type, status);
	if (!event)
		return id_result(-ENOMEM);
	/* Later releases have a member of the union for it: uint64_t arg. */
	memcpy(&event->public.param, &arg, sizeof(arg));
	event_raise(event);
	return 0;
}

/* An epoll of rsockets is not offered. */
#define UNSUPPORTED(symbol)                        \
	int later_##symbol(void) __asm__(#symbol); \
	int later_##symbol(void)                   \
	{                                          \
		return id_result(-EOPNOTSUPP);     \
	}

UNSUPPORTED(repoll_create)
UNSUPPORTED(repoll_ctl)
UNSUPPORTED(repoll_wait)
