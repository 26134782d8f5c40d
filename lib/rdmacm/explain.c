/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells why calls of rdma_cm fail, and why events were raised that are failures, to a user who
 * wants to know (base/reason.h). */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "id.h"

#define NAME_MAX_LEN (2 * (INET6_ADDRSTRLEN + 24) + 16)
#define WHY_MAX	     320

bool explain_wanted;
bool inject_rules;

/* Another libibverbs.so.1 does not have this symbol. */
#pragma weak uroce_private_cm

/* uroce-run has set the variables (config/environ.c). The library of the devices reads them at the
 * first call, and is not loaded before that: the program may still choose it. */
__attribute__((constructor)) static void explain_start(void)
{
	const char *value = secure_getenv("UROCE_EXPLAIN");

	explain_wanted = value && strcmp(value, "yes") == 0 && uroce_private_cm;
	inject_rules = secure_getenv("UROCE_INJECT") && uroce_private_cm;
}

int id_failure(const char *call)
{
	return cm_calls() ? -cm_calls()->inject_into_rdma_call(call) : 0;
}

void explain_say(int error, const char *format, ...)
{
	char text[WHY_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (cm_calls())
		cm_calls()->reason_say(error, "%s", text);
}

struct id_call explain_enter(const char *name)
{
	const bool entered = cm_calls() != NULL;

	if (entered)
		cm_calls()->reason_enter(name);
	return (struct id_call){.entered = entered};
}

void explain_leave(void)
{
	cm_calls()->reason_leave();
}

void explain_failure(int error)
{
	if (cm_calls())
		cm_calls()->explain_call(error);
}

/* Write "ADDRESS:PORT", or the GID and the service of AF_IB. */
static void write_address(const struct sockaddr *address, char *text, size_t size)
{
	char ip[INET6_ADDRSTRLEN] = "?";
	uint8_t gid[GID_LEN];

	if (!address_gid(address, gid)) {
		snprintf(text, size, "no address");
		return;
	}
	if (address->sa_family == AF_INET)
		inet_ntop(AF_INET, gid + GID_IPV4_OFFSET, ip, sizeof(ip));
	else
		inet_ntop(AF_INET6, gid, ip, sizeof(ip));
	snprintf(text, size, address->sa_family == AF_INET ? "%s:%u" : "[%s]:%u", ip,
		 rte_be_to_cpu_16(address_port(address)));
}

/* Write an id as a user knows it: by its addresses. */
static void write_name(const struct cm_id *id, char name[NAME_MAX_LEN])
{
	const struct rdma_addr *addr = &id->public.route.addr;
	char from[INET6_ADDRSTRLEN + 24], to[INET6_ADDRSTRLEN + 24];

	write_address(&addr->src_addr, from, sizeof(from));
	write_address(&addr->dst_addr, to, sizeof(to));
	if (address_len(&addr->src_addr) == 0)
		snprintf(name, NAME_MAX_LEN, "the id %p, which has no address,",
			 (const void *)&id->public);
	else if (address_len(&addr->dst_addr) == 0)
		snprintf(name, NAME_MAX_LEN, "the id of %s", from);
	else
		snprintf(name, NAME_MAX_LEN, "the id %s -> %s", from, to);
}

static const char *state_name(enum id_state state)
{
	static const char *const names[] = {
#define STATE(name) #name,
		ID_STATES(STATE)
#undef STATE
	};

	return names[state];
}

void explain_state_wrong(struct cm_id *id, const char *needed)
{
	char name[NAME_MAX_LEN];

	write_name(id, name);
	explain_say(EINVAL, "%s is in the state %s; it must be in %s", name,
		    state_name(id_state(id)), needed);
}

/* A REJ of a connection manager itself, or of its program, and what to do. */
static const struct rejection {
	uint16_t reason;
	const char *meaning;
} rejections[] = {
	{CM_REJ_NO_RESOURCES, "it has no resources for another connection: connect again later"},
	{CM_REJ_TIMEOUT, "it got no answer from this host in time, and gave up: a program must "
			 "read its events and answer in time"},
	{CM_REJ_UNSUPPORTED_REQUEST, "the request names another partition than the default one"},
	{CM_REJ_INVALID_COMM_ID, "it has no such connection any more: it gave up, or was "
				 "restarted"},
	{CM_REJ_INVALID_SERVICE_ID, "no program listens on this port there"},
	{CM_REJ_INVALID_TRANSPORT_TYPE, "its program listens for queue pairs of another type (RC, "
					"UC or XRC): both sides need the same ai_qp_type"},
	{CM_REJ_STALE_CONNECTION, "it still has a connection with the same queue pair number, "
				  "which it ends now: connect again"},
	{CM_REJ_INVALID_GID, "the addresses in the request are not those of its packet: is there "
			     "address translation between the hosts?"},
	{CM_REJ_INVALID_MTU, "its port does not support the path MTU of the queue pair"},
	{CM_REJ_VENDOR_OPTION_NOT_SUPPORTED, "its program does not accept the ECE options "
					     "(rdma_reject_ece)"},
};

static const char *rejection_name(uint16_t reason)
{
	switch (reason) {
#define REASON(name, number, words) \
	case number:                \
		return words;
		CM_REJ_REASONS(REASON)
#undef REASON
	default:
		return "unknown";
	}
}

static const char *rejection_meaning(uint16_t reason, bool of_request)
{
	for (size_t i = 0; i < RTE_DIM(rejections); i++) {
		if (rejections[i].reason == reason)
			return rejections[i].meaning;
	}
	if (reason != CM_REJ_CONSUMER_DEFINED)
		return "its connection manager does not accept it";
	return of_request ? "its program has rejected the request (rdma_reject), or has ended "
			    "without accepting it"
			  : "its program could not make its queue pair ready, or has given up";
}

static void write_rejected(const struct cm_event *told, char *why)
{
	const uint16_t reason = (uint16_t)told->status;
	const bool ours = told->has_mad && told->mad.message == CM_REP;

	if (ours)
		snprintf(why, WHY_MAX,
			 "this host has rejected the acceptance, because it has another connection "
			 "with the peer's queue pair 0x%x (REJ %u, %s; IBTA 12.6.7)",
			 cm_rep_qpn(&told->mad.rep), reason, rejection_name(reason));
	else
		snprintf(why, WHY_MAX, "the peer has sent a REJ: %s (REJ %u, %s; IBTA 12.6.7)",
			 rejection_meaning(reason, told->active), reason, rejection_name(reason));
}

static void write_tries(const struct cm_event *told, const char *message, const char *hint,
			char *why)
{
	snprintf(why, WHY_MAX, "no answer to %u times %s, %.1f s each: %s", told->tries, message,
		 (double)told->try_ns / 1e9, hint);
}

/* Statuses of a SIDR_REP. */
static const char *refused_service(int status)
{
	switch (status) {
	case CM_SIDR_UNSUPPORTED_SERVICE:
		return "no program listens on this port there";
	case CM_SIDR_REJECTED:
		return "its program has rejected the request, or the listener's backlog is full";
	case CM_SIDR_NO_QP:
		return "it has no queue pair for this program";
	case CM_SIDR_REDIRECT:
		return "it redirects to another port, which uroce does not follow";
	default:
		return "it has another version of the service";
	}
}

static void write_unreachable(const struct cm_event *told, char *why)
{
	if (told->type == CM_EVENT_SIDR_REP)
		snprintf(why, WHY_MAX, "the peer has sent a SIDR_REP: %s (status %d; IBTA 12.11.2)",
			 refused_service(told->status), told->status);
	else if (told->active)
		write_tries(told, "a request",
			    "does RoCE v2 run there, is UDP port 4791 open in both directions, and "
			    "does its program read its events (rdma_get_cm_event)?",
			    why);
	else
		write_tries(told, "the acceptance (REP)",
			    "the peer's program has ended, or does not read its events", why);
}

static void write_disconnected(const struct cm_id *id, const struct cm_event *told, char *why)
{
	if (told->status == -ETIMEDOUT)
		write_tries(told, "the disconnection (DREQ)",
			    "the connection is over here, and the peer may not know it", why);
	else if (!id->disconnects && told->has_mad && told->mad.message == CM_DREQ)
		snprintf(why, WHY_MAX,
			 "the peer has sent a DREQ: its program has called rdma_disconnect, has "
			 "destroyed its id, or has ended");
	else if (!id->disconnects)
		snprintf(why, WHY_MAX,
			 "the peer has begun another connection with the same queue pair number: "
			 "it does not know this connection any more");
}

static void write_unresolved(const struct cm_id *id, int status, char *why)
{
	switch (status) {
	case -ENETUNREACH:
		snprintf(why, WHY_MAX,
			 "no device has a route to this address: is it in the network of one, and "
			 "is there a gateway or a route (--ip, --gateway, --route)?");
		break;
	case -EADDRNOTAVAIL:
		snprintf(why, WHY_MAX, "no device has an address of this IP version, or scope");
		break;
	case -ENODEV:
		snprintf(why, WHY_MAX, "the device that has a route to this address is lost");
		break;
	case -ETIMEDOUT:
		snprintf(why, WHY_MAX,
			 "no host has answered to %s within %d ms (timeout_ms of "
			 "rdma_resolve_addr): is the peer up, and in this network?",
			 id->public.route.addr.dst_addr.sa_family == AF_INET
				 ? "ARP"
				 : "neighbour discovery",
			 id->resolve_ms);
		break;
	default:
		snprintf(why, WHY_MAX, "%s", strerror(-status));
		break;
	}
}

/* Write why an event was raised; nothing if it is no failure. */
static void write_why(const struct id_event *event, const struct cm_event *told, char *why)
{
	const struct cm_id *id = cm_id_of(event->public.id);

	switch (event->public.event) {
	case RDMA_CM_EVENT_REJECTED:
		write_rejected(told, why);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		write_unreachable(told, why);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		write_disconnected(id, told, why);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		write_unresolved(id, event->public.status, why);
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		snprintf(why, WHY_MAX,
			 "the address that rdma_resolve_addr has found is not on the device any "
			 "more");
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		snprintf(why, WHY_MAX, "its own address is not on the device any more");
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		snprintf(why, WHY_MAX,
			 "its device is lost: uroced has ended, or the interface or the NIC was "
			 "removed");
		break;
	default:
		break;
	}
}

static void keep_why(struct id_event *event, const char *why)
{
	char name[NAME_MAX_LEN];

	free(event->why);
	event->why = NULL;
	write_name(cm_id_of(event->public.id), name);
	/* Without memory the event has no reason. */
	if (asprintf(&event->why, "%s of %s: %s", rdma_event_str(event->public.event), name, why) <
	    0)
		event->why = NULL;
}

void explain_event(struct id_event *event, const struct cm_event *told)
{
	char why[WHY_MAX] = "";

	if (likely(!explain_wanted))
		return;
	write_why(event, told, why);
	if (why[0] != '\0')
		keep_why(event, why);
}

void explain_by_reason(struct id_event *event, int error)
{
	const char *reason;

	if (likely(!explain_wanted))
		return;
	reason = cm_calls()->reason_take(error);
	keep_why(event, reason ? reason : strerror(abs(error)));
}

void explain_taken(const struct id_event *event)
{
	unsigned int depth;

	if (likely(!event->why))
		return;
	(void)cm_calls()->reason_call(&depth);
	if (depth == 1)
		cm_calls()->log_print(LOG_LEVEL_ERROR, "%s", event->why);
}

int explain_result(const struct rdma_cm_event *public, int error)
{
	const struct id_event *event = (const struct id_event *)public;

	return event->why ? ID_REASON(error, "%s", event->why) : error;
}

bool explain_wait_locked(struct cm_id *id)
{
	char name[NAME_MAX_LEN];
	struct timespec until;
	unsigned int depth;
	const char *call;

	if (id->wait_told)
		return false;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 2;
	if (pthread_cond_timedwait(&id->acked, &id->lock, &until) != ETIMEDOUT)
		return true;
	id->wait_told = true;
	call = cm_calls()->reason_call(&depth);
	write_name(id, name);
	cm_calls()->log_print(
		LOG_LEVEL_ERROR,
		"%s: %s has events that the program has taken, and has not acknowledged "
		"(rdma_ack_cm_event): the call waits for that",
		call ? call : "a call", name);
	return true;
}
