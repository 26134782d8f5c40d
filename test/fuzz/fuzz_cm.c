/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fuzz target for the connection manager: MADs of any content, most with ids and addresses of
 * existing connections, and calls between them. After each input all connections are destroyed, and
 * nothing may be left.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm_record.h"
#include "cm_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORDS_MAX 128
#define CONNS_MAX   16
#define SERVICE	    0x0000000001061c06
#define IP_SERVICE  0x0000000001061c07
#define DATAGRAMS   0x0000000001111c06
#define OUR_QPN	    0x111
#define PEER_QPN    0x222

static struct {
	struct cm_sink sink;
	struct cm *cm;
	uint64_t now_ns;
	struct cm_listener *listeners[3];
	struct cm_conn *conns[CONNS_MAX]; /* the application's data; NULL: free */
} world;

/* Counts of each message: received, and received without being dropped. */
static struct {
	uint64_t came;
	uint64_t taken;
} messages[CM_LAST_MESSAGE + 1];

static const struct gsi_address peer = {.local = {[10] = 0xff, 0xff, 10, 9, 0, 1},
					.remote = {[10] = 0xff, 0xff, 10, 9, 0, 2},
					.vlan_id = -1,
					.mac_known = true};

static void check(bool condition)
{
	if (!condition)
		abort();
}

/* Check that each MAD that is sent can be parsed. */
static void check_sent(struct cm_sink *sink, const struct gsi_address *to, const uint8_t *mad)
{
	struct cm_mad parsed;

	check(sink == &world.sink && to->vlan_id == peer.vlan_id);
	check(mad[3] == MAD_GET_RESPONSE || cm_mad_parse(mad, MAD_LEN, &parsed) == CM_MAD_OK);
}

static void listen_all(void)
{
	const struct cm_listen_attr attrs[] = {
		{.service_id = SERVICE, .any_address = true, .backlog = 4},
		{.service_id = IP_SERVICE, .any_address = true, .ip = true, .backlog = 4},
		{.service_id = DATAGRAMS, .any_address = true, .datagrams = true, .backlog = 4},
	};

	for (int i = 0; i < 3; i++)
		check(cm_listen(world.cm, &attrs[i], &world.listeners[i]) == 0);
}

static void unlisten_all(void)
{
	for (int i = 0; i < 3; i++)
		cm_unlisten(world.listeners[i], world.now_ns);
}

static void set_up(void)
{
	const struct cm_config config = {.ca_guid = 1,
					 .ack_delay = 15,
					 .half_open_max = 12,
					 .lingering_max = 4,
					 .sink = &world.sink};

	memset(&world, 0, sizeof(world));
	world.sink.send = check_sent;
	check(cm_create(&config, &world.cm) == 0);
	listen_all();
}

static void keep(struct cm_conn *conn)
{
	for (int i = 0; i < CONNS_MAX; i++) {
		if (!world.conns[i]) {
			world.conns[i] = conn;
			return;
		}
	}
	cm_conn_destroy(conn, world.now_ns);
}

/* Return true if the application has the connection: no other one may have events. */
static bool is_kept(const struct cm_conn *conn)
{
	for (int i = 0; i < CONNS_MAX; i++) {
		if (world.conns[i] == conn)
			return true;
	}
	return false;
}

static void take_events(void)
{
	struct cm_event event;

	while (cm_next_event(world.cm, &event)) {
		if (event.type == CM_EVENT_REQ || event.type == CM_EVENT_SIDR_REQ)
			keep(event.conn);
		else
			check(is_kept(event.conn));
		if (event.has_mad) /* all of it may be read */
			check(event.private_data[event.private_len - 1] ==
			      event.mad.private_data[event.mad.private_len - 1]);
	}
}

/* Change a message so that it belongs to a connection, or can begin one. */
static void fit(const struct cm_record *record, const struct gsi_address *from, struct cm_mad *mad)
{
	const struct cm_conn *conn = world.conns[record->conn % CONNS_MAX];
	const bool fields = !(record->flags & CM_RECORD_KEEP_FIELDS);

	if (conn && !(record->flags & CM_RECORD_KEEP_IDS)) {
		mad->remote_id = conn->local_id;
		mad->local_id = mad->message == CM_SIDR_REP ? conn->local_id
				: conn->remote_id	    ? conn->remote_id
							    : mad->local_id;
		if (mad->message == CM_REQ || mad->message == CM_SIDR_REQ)
			mad->tid = conn->tid;
	}
	if (mad->message == CM_REQ && fields) {
		mad->req.service_id = SERVICE + (mad->req.service_id & 1);
		mad->req.pkey = 0xffff;
		mad->req.mtu = 5;
		mad->req.transport = CM_TRANSPORT_RC;
		memcpy(mad->req.primary.local_gid, from->remote, 16);
		memcpy(mad->req.primary.remote_gid, from->local, 16);
		if (conn && !(record->flags & CM_RECORD_KEEP_IDS) && conn->agreed.remote_qpn)
			mad->req.qpn = conn->agreed.remote_qpn;
	}
	if (mad->message == CM_DREQ && fields)
		mad->dreq_qpn = OUR_QPN;
	if (mad->message == CM_SIDR_REQ && fields)
		mad->sidr_req.service_id = DATAGRAMS;
	if (mad->message == CM_SIDR_REP && fields)
		mad->sidr_rep.service_id = DATAGRAMS;
}

static uint64_t dropped(void)
{
	const struct cm_stats *stats = cm_stats(world.cm);

	return stats->malformed + stats->unknown + stats->unexpected + stats->no_room +
	       stats->grey + stats->full;
}

static void receive(const struct gsi_address *from, const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1); /* a read beyond the end is detected */
	const uint64_t before = dropped();
	struct cm_mad mad;

	memcpy(copy, bytes, len);
	cm_receive(world.cm, copy, len, from, world.now_ns);
	if (cm_mad_parse(bytes, len, &mad) == CM_MAD_OK) {
		messages[mad.message].came++;
		messages[mad.message].taken += dropped() == before;
	}
	free(copy);
}

static void receive_mad(const struct cm_record *record, const uint8_t *data, size_t len)
{
	const uint8_t message =
		CM_FIRST_MESSAGE + record->what % (CM_LAST_MESSAGE - CM_FIRST_MESSAGE + 1);
	uint8_t bytes[MAD_LEN] = {1, MAD_CLASS_CM, CM_CLASS_VERSION, MAD_SEND, [17] = message};
	struct gsi_address from = peer;
	struct cm_mad mad;

	memcpy(bytes + sizeof(struct mad_header), data, len);
	from.remote[15] += (record->flags & CM_RECORD_OTHER_HOST) != 0;
	if (message == CM_REQ && !bytes[sizeof(struct mad_header) + 34])
		bytes[sizeof(struct mad_header) + 34] = 2; /* a queue pair */
	if (cm_mad_parse(bytes, MAD_LEN, &mad) == CM_MAD_OK) {
		uint8_t copy[MAD_LEN];

		fit(record, &from, &mad);
		check(cm_mad_build(&mad, copy) == 0);
		memcpy(bytes, copy, MAD_LEN);
	}
	if (record->flags & CM_RECORD_PATCH)
		bytes[record->patch_at] ^= record->patch;
	receive(&from, bytes, MAD_LEN);
}

static void ask(const struct cm_record *record, const uint8_t *data, uint8_t len)
{
	const struct cm_ip ip = {.version = 4,
				 .src = {[10] = 0xff, 0xff, 10, 9, 0, 1},
				 .dst = {[10] = 0xff, 0xff, 10, 9, 0, 2}};
	const struct cm_connect_attr connect = {.to = peer,
						.service_id = SERVICE,
						.ip = record->flags & 1 ? &ip : NULL,
						.qpn = OUR_QPN,
						.mtu = 5,
						.packet_life_time = record->patch % 33,
						.response_timeout = record->patch_at % 33,
						.max_cm_retries = record->flags >> 4,
						.private_data = data,
						.private_len = len};
	const struct cm_resolve_attr resolve = {.to = peer,
						.service_id = DATAGRAMS,
						.ip = connect.ip,
						.response_timeout = connect.response_timeout,
						.max_cm_retries = connect.max_cm_retries,
						.private_data = data,
						.private_len = len};
	struct cm_conn *conn;

	if (record->what % CM_CALLS == CM_CALL_CONNECT) {
		if (cm_connect(world.cm, &connect, world.now_ns, &conn) == 0)
			keep(conn);
	} else if (cm_resolve(world.cm, &resolve, world.now_ns, &conn) == 0) {
		keep(conn);
	}
}

static void answer(struct cm_conn *conn, const struct cm_record *record, const uint8_t *data,
		   uint8_t len)
{
	const struct cm_accept_attr accept = {.qpn = OUR_QPN,
					      .responder_resources = record->patch,
					      .initiator_depth = record->patch_at,
					      .private_data = data,
					      .private_len = len};
	const struct cm_reply_attr reply = {
		.qpn = OUR_QPN, .status = record->patch, .private_data = data, .private_len = len};

	cm_conn_take(conn);
	switch (record->what % CM_CALLS) {
	case CM_CALL_ACCEPT:
		cm_accept(conn, &accept, world.now_ns);
		break;
	case CM_CALL_ESTABLISH:
		cm_establish(conn, data, len, world.now_ns);
		break;
	case CM_CALL_REJECT:
		cm_reject(conn, record->patch, data, len, world.now_ns);
		break;
	case CM_CALL_REPLY:
		cm_reply(conn, &reply, world.now_ns);
		break;
	case CM_CALL_DATA:
		cm_data_arrived(conn, world.now_ns);
		break;
	default:
		cm_disconnect(conn, data, len, world.now_ns);
		break;
	}
}

static void call(const struct cm_record *record, const uint8_t *data, uint8_t len)
{
	struct cm_conn **conn = &world.conns[record->conn % CONNS_MAX];

	switch (record->what % CM_CALLS) {
	case CM_CALL_CONNECT:
	case CM_CALL_RESOLVE:
		ask(record, data, len);
		break;
	case CM_CALL_LISTEN:
		unlisten_all();
		listen_all();
		break;
	case CM_CALL_DESTROY:
		if (*conn)
			cm_conn_destroy(*conn, world.now_ns);
		*conn = NULL;
		break;
	default:
		if (*conn)
			answer(*conn, record, data, len);
		break;
	}
}

/* Let time go on to the next deadline, if there is one. */
static bool fire(void)
{
	if (cm_deadline_ns(world.cm) == UINT64_MAX)
		return false;
	check(cm_deadline_ns(world.cm) > world.now_ns || world.now_ns == 0);
	world.now_ns = cm_deadline_ns(world.cm);
	cm_expire(world.cm, world.now_ns);
	check(cm_deadline_ns(world.cm) > world.now_ns);
	return true;
}

static void play(const struct cm_record *record, const uint8_t *data, uint8_t len)
{
	switch (record->kind % CM_RECORD_KINDS) {
	case CM_RECORD_RAW:
		receive(&peer, data, len);
		break;
	case CM_RECORD_CALL:
		call(record, data, len);
		break;
	case CM_RECORD_WAIT:
		world.now_ns += UINT64_C(1) << record->what % 38;
		cm_expire(world.cm, world.now_ns);
		break;
	case CM_RECORD_TIMER:
		fire();
		break;
	default:
		receive_mad(record, data,
			    len < MAD_LEN - sizeof(struct mad_header)
				    ? len
				    : MAD_LEN - sizeof(struct mad_header));
		break;
	}
	take_events();
}

/* Destroy everything, run all timers, and check that nothing is left. */
static void tear_down(void)
{
	unlisten_all();
	for (int i = 0; i < CONNS_MAX; i++) {
		if (world.conns[i])
			cm_conn_destroy(world.conns[i], world.now_ns);
	}
	while (fire()) {
	}
	check(cm_conn_count(world.cm) == 0);
	check(world.cm->half_open == 0 && world.cm->lingering_count == 0);
	cm_destroy(world.cm);
}

unsigned int cm_coverage_report(void)
{
	unsigned int missing = 0;

	for (unsigned int i = CM_FIRST_MESSAGE; i <= CM_LAST_MESSAGE; i++) {
		/* On RoCE, connections ignore these. */
		const bool dropped_always = i == CM_LAP || i == CM_APR;
		const bool reached = dropped_always ? messages[i].came > 0 : messages[i].taken > 0;

		missing += !reached;
		printf("fuzz: %-9s %8llu came, %8llu taken%s\n", cm_message_name(i),
		       (unsigned long long)messages[i].came, (unsigned long long)messages[i].taken,
		       reached ? "" : "  NEVER");
	}
	printf("fuzz: the seeds reach %u of %u messages\n",
	       CM_LAST_MESSAGE - CM_FIRST_MESSAGE + 1 - missing,
	       CM_LAST_MESSAGE - CM_FIRST_MESSAGE + 1);
	fflush(stdout);
	return missing;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	set_up();
	for (int i = 0; i < RECORDS_MAX && size >= sizeof(struct cm_record); i++) {
		struct cm_record record;
		uint8_t len;

		memcpy(&record, data, sizeof(record));
		data += sizeof(record);
		size -= sizeof(record);
		len = (uint8_t)(record.len < size ? record.len : size);
		play(&record, data, len);
		data += len;
		size -= len;
	}
	tear_down();
	return 0;
}
