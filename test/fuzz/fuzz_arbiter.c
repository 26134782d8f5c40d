/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fuzz target for the arbiter of QP 1: MADs of any content to processes that come and go, claim
 * ports and listen. A process may get only its own MADs, and nothing may be left at the end.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus.h"
#include "owner/arbiter.h"
#include "wire/cm_ip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define RECORDS_MAX 128
#define SLOTS	    4u
#define PORTS_MAX   16u
#define PORT	    7000u
#define QPNS	    0x4000u
#define PEER_ID	    0x50u

enum kind {
	KIND_MAD, /* the bytes follow a valid header; ids and service are made valid */
	KIND_RAW, /* the bytes are a whole MAD */
	KIND_VET, /* as KIND_MAD, but from a process */
	KIND_BEGIN,
	KIND_END,
	KIND_CLAIM,
	KIND_LISTEN,
	KIND_CHANGE,
	KIND_RELEASE,
	KIND_WAIT,
	KINDS,
};

#define KEEP_IDS     0x01 /* else those of process `slot` */
#define KEEP_SERVICE 0x02 /* else a port that may have a listener */
#define LOCAL	     0x04 /* from this host */
#define PATCH	     0x08 /* the MAD's byte at `at` is changed by `patch` */

struct record {
	uint8_t kind;
	uint8_t flags;
	uint8_t slot;
	uint8_t what; /* message, space, port's index, or exponent of a time */
	uint8_t at;
	uint8_t patch;
	uint8_t len;
};

static struct arbiter *arbiter;
static uint64_t now_ns;
static uint32_t ports[PORTS_MAX]; /* ids of claims */
static uint32_t port_count;

/* Counts of each message: given to a process, answered by the arbiter, allowed to leave, and sent
 * to peers of processes that have ended. */
static struct {
	uint64_t given, answered, sent, told;
} messages[CM_LAST_MESSAGE + 1];

static const uint8_t host[16] = {[10] = 0xff, 0xff, 10, 9, 0, 1};
static const uint8_t peer[16] = {[10] = 0xff, 0xff, 10, 9, 0, 2};

static void check(bool condition)
{
	if (!condition)
		abort();
}

static void begin(uint16_t slot)
{
	uint32_t value;

	if (!arbiter->slots[slot].live)
		check(arbiter_begin(arbiter, slot, slot % 2 ? user_of_uid(slot) : USER_TRUSTED,
				    now_ns, &value) == 0);
}

static void claim(const struct record *record, const uint8_t *data, size_t len)
{
	static const enum cm_port_space spaces[] = {CM_PS_TCP, CM_PS_UDP, CM_PS_IPOIB, CM_PS_IB};
	struct cm_port_claim wanted = {
		.space = spaces[record->what % 4],
		.port = record->at % 4 ? (uint16_t)(PORT + record->at % 4) : 0,
		.ip_version = record->patch % 8,
		.any_address = record->flags & 1,
		.reuse = record->flags & 2,
		.vlan_id = -1,
	};
	uint32_t id;

	memcpy(wanted.address, len >= 16 ? data : host, 16);
	if (arbiter_claim(arbiter, record->slot % SLOTS, &wanted, &id) != 0)
		return;
	check(wanted.port != 0 && arbiter->slots[record->slot % SLOTS].live);
	ports[port_count++ % PORTS_MAX] = id;
}

static void fit(const struct record *record, struct cm_mad *mad)
{
	const uint32_t own = arbiter->slots[record->slot % SLOTS].id_value | 7;
	const bool vetted = record->kind % KINDS == KIND_VET;

	if (!(record->flags & KEEP_IDS)) {
		if (vetted)
			mad->local_id = own;
		else
			mad->remote_id = own;
		if (mad->message == CM_SIDR_REP && !vetted)
			mad->local_id = own;
	}
	if (record->flags & KEEP_SERVICE)
		return;
	if (mad->message == CM_REQ) {
		mad->req.service_id = cm_service_id(CM_PS_TCP, PORT + record->at % 4);
		memcpy(mad->req.primary.local_gid, host, sizeof(host));
	}
	if (mad->message == CM_SIDR_REQ)
		mad->sidr_req.service_id = cm_service_id(CM_PS_UDP, PORT + record->at % 4);
}

/* Check that the process exists and that the MAD is its own: by its id, or because it is a
 * request. */
static void check_given(const struct cm_mad *mad, uint16_t slot)
{
	const uint32_t id = mad->message == CM_SIDR_REP ? mad->local_id : mad->remote_id;

	check(slot < SLOTS && arbiter->slots[slot].live);
	if (mad->message == CM_REQ || mad->message == CM_SIDR_REQ ||
	    (mad->message == CM_REJ && mad->remote_id == 0))
		return;
	check((id & IDS_MASK) == arbiter->slots[slot].id_value);
}

static void route(const uint8_t *bytes, size_t len, bool local)
{
	uint8_t *copy = malloc(len ? len : 1); /* a read beyond the end is detected */
	const struct arbiter_mad in = {.bytes = copy,
				       .len = len,
				       .sgid = local ? host : peer,
				       .dgid = host,
				       .vlan_tci = -1,
				       .local = local};
	struct cm_mad mad, answer;
	uint8_t out[MAD_LEN];
	enum arbiter_verdict verdict;
	uint16_t slot;
	bool ours;

	if (len > 0)
		memcpy(copy, bytes, len);
	ours = cm_mad_parse(copy, len, &mad) == CM_MAD_OK;
	verdict = arbiter_route(arbiter, &in, now_ns, &slot, out);
	if (verdict == ARBITER_GIVE) {
		check(ours);
		check_given(&mad, slot);
	}
	if (verdict == ARBITER_ANSWER)
		check(out[3] == MAD_GET_RESPONSE ||
		      cm_mad_parse(out, sizeof(out), &answer) == CM_MAD_OK);
	if (ours) {
		messages[mad.message].given += verdict == ARBITER_GIVE;
		messages[mad.message].answered += verdict == ARBITER_ANSWER;
	}
	free(copy);
}

/* Check that the peer's request went to the process that answers it. */
static void check_asked(uint16_t slot, uint32_t id, bool sidr)
{
	struct repeats_peer asker = {.vlan_id = -1, .id = id, .sidr = sidr};
	const struct repeat *repeat;

	memcpy(asker.gid, peer, sizeof(peer));
	repeat = repeats_last(&arbiter->repeats, &asker);
	check(repeat && repeat->slot == slot &&
	      repeat->generation == arbiter->slots[slot].generation);
}

static void vet(const struct record *record, const uint8_t *bytes)
{
	const uint16_t slot = record->slot % SLOTS;
	const struct arbiter_sender sender = {.slot = slot, .qpn_first = QPNS, .qpn_count = QPNS};
	const struct arbiter_mad out = {
		.bytes = bytes, .len = MAD_LEN, .sgid = host, .dgid = peer, .vlan_tci = -1};
	struct cm_mad mad;

	if (!arbiter_may_send(arbiter, &sender, &out))
		return;
	check(cm_mad_parse(bytes, MAD_LEN, &mad) == CM_MAD_OK);
	messages[mad.message].sent++;
	arbiter_sent(arbiter, slot, &out);
	if (mad.message != CM_SIDR_REP && !(mad.message == CM_REJ && mad.local_id == 0))
		check(arbiter->slots[slot].live &&
		      (mad.local_id & IDS_MASK) == arbiter->slots[slot].id_value);
	if (mad.message == CM_REQ)
		check(mad.req.qpn - QPNS < QPNS);
	if (mad.message == CM_REP)
		check(mad.rep.qpn - QPNS < QPNS);
	if (mad.message == CM_REP || mad.message == CM_SIDR_REP)
		check_asked(slot, mad.message == CM_REP ? mad.remote_id : mad.local_id,
			    mad.message == CM_SIDR_REP);
}

/* Take the messages to the peers of processes that have ended. At the end there are no more. */
static void tell_peers(void)
{
	struct connections_path path;
	uint8_t bytes[MAD_LEN];
	struct cm_mad mad;

	for (uint64_t due_ns; (due_ns = arbiter_due_ns(arbiter)) != UINT64_MAX; now_ns = due_ns) {
		while (arbiter_disconnect_orphan(arbiter, due_ns, &path, bytes)) {
			check(cm_mad_parse(bytes, sizeof(bytes), &mad) == CM_MAD_OK);
			check(mad.message == CM_DREQ || mad.message == CM_REJ);
			messages[mad.message].told++;
		}
	}
	check(arbiter->connections.left_count == 0);
}

static void play_mad(const struct record *record, const uint8_t *data, size_t len)
{
	const uint8_t message =
		CM_FIRST_MESSAGE + record->what % (CM_LAST_MESSAGE - CM_FIRST_MESSAGE + 1);
	uint8_t bytes[MAD_LEN] = {1, MAD_CLASS_CM, CM_CLASS_VERSION, MAD_SEND, [17] = message};
	struct cm_mad mad;

	if (len > MAD_LEN - sizeof(struct mad_header))
		len = MAD_LEN - sizeof(struct mad_header);
	if (len > 0)
		memcpy(bytes + sizeof(struct mad_header), data, len);
	if (cm_mad_parse(bytes, MAD_LEN, &mad) == CM_MAD_OK) {
		uint8_t fitted[MAD_LEN];

		fit(record, &mad);
		check(cm_mad_build(&mad, fitted) == 0);
		memcpy(bytes, fitted, MAD_LEN);
	}
	if (record->flags & PATCH)
		bytes[record->at] ^= record->patch;
	if (record->kind % KINDS == KIND_VET)
		vet(record, bytes);
	else
		route(bytes, MAD_LEN, record->flags & LOCAL);
}

static void play(const struct record *record, const uint8_t *data, size_t len)
{
	const uint16_t slot = record->slot % SLOTS;

	switch (record->kind % KINDS) {
	case KIND_RAW:
		route(data, len, record->flags & LOCAL);
		break;
	case KIND_BEGIN:
		begin(slot);
		break;
	case KIND_END:
		arbiter_end(arbiter, slot, now_ns);
		break;
	case KIND_CLAIM:
		claim(record, data, len);
		break;
	case KIND_LISTEN:
		arbiter_listen(arbiter, slot, ports[record->what % PORTS_MAX]);
		break;
	case KIND_CHANGE:
		arbiter_change(arbiter, slot, ports[record->what % PORTS_MAX], record->at % 8,
			       record->flags & 1);
		break;
	case KIND_RELEASE:
		arbiter_release(arbiter, slot, ports[record->what % PORTS_MAX]);
		break;
	case KIND_WAIT:
		now_ns += UINT64_C(1) << record->what % 40;
		break;
	default:
		play_mad(record, data, len);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Use one arbiter for all inputs, because it is large. Of earlier inputs it keeps only
	 * entries that expire. */
	if (!arbiter)
		check(arbiter_create(&arbiter) == 0);
	now_ns += 2 * REPEATS_NS + IDS_QUARANTINE_NS;
	port_count = 0;
	memset(ports, 0, sizeof(ports));
	for (int i = 0; i < RECORDS_MAX && size >= sizeof(struct record); i++) {
		struct record record;
		size_t len;

		memcpy(&record, data, sizeof(record));
		data += sizeof(record);
		size -= sizeof(record);
		len = record.len < size ? record.len : size;
		play(&record, data, len);
		data += len;
		size -= len;
	}
	for (uint16_t slot = 0; slot < SLOTS; slot++)
		arbiter_end(arbiter, slot, now_ns);
	tell_peers();
	check(arbiter->spaces.count == 0 && arbiter->spaces.isolated == 0);
	return 0;
}

static void put(FILE *file, uint8_t kind, uint8_t what)
{
	const struct record record = {
		.kind = kind, .what = what, .at = 1, .flags = kind == KIND_CLAIM ? 1 : 0};

	fwrite(&record, sizeof(record), 1, file);
}

/* A process may also send this message, so it is tried in both directions. */
static void put_mad(FILE *file, uint8_t kind, enum cm_message message)
{
	struct record record = {.kind = kind,
				.flags = kind == KIND_VET && message == CM_SIDR_REP ? KEEP_IDS : 0,
				.what = (uint8_t)(message - CM_FIRST_MESSAGE),
				.at = 1,
				.len = MAD_LEN - sizeof(struct mad_header)};
	struct cm_mad mad = {.message = message, .local_id = PEER_ID, .remote_id = PEER_ID};
	uint8_t bytes[MAD_LEN];

	if (message == CM_REQ)
		mad.req.qpn = QPNS;
	if (message == CM_REP)
		mad.rep.qpn = QPNS;
	if (message == CM_DREQ)
		mad.dreq_qpn = QPNS;
	if (message == CM_LAP)
		mad.lap.remote_qpn = QPNS;
	if (message == CM_SIDR_REP)
		mad.sidr_rep.qpn = QPNS;
	if (cm_mad_build(&mad, bytes) != 0)
		return;
	fwrite(&record, sizeof(record), 1, file);
	fwrite(bytes + sizeof(struct mad_header), record.len, 1, file);
}

/* A process connects, and ends. */
static void write_established(void)
{
	FILE *file = corpus_file("established");

	if (!file)
		return;
	put(file, KIND_BEGIN, 0);
	put_mad(file, KIND_VET, CM_REQ);
	put_mad(file, KIND_MAD, CM_REP);
	put_mad(file, KIND_VET, CM_RTU);
	put(file, KIND_END, 0);
	fclose(file);
}

/* Send each message while no process is there, to a process that listens, and from that process as
 * an answer. */
static void write_all(void)
{
	write_established();
	for (int message = CM_FIRST_MESSAGE; message <= CM_LAST_MESSAGE; message++) {
		FILE *file = corpus_file(cm_message_name((unsigned int)message));

		if (!file)
			return;
		put_mad(file, KIND_MAD, (enum cm_message)message);
		put(file, KIND_BEGIN, 0);
		put(file, KIND_CLAIM, 0);
		put(file, KIND_LISTEN, 0);
		put(file, KIND_CLAIM, 1);
		put(file, KIND_LISTEN, 1);
		put_mad(file, KIND_MAD, (enum cm_message)message);
		put_mad(file, KIND_MAD, CM_REQ);
		put_mad(file, KIND_MAD, CM_SIDR_REQ);
		put_mad(file, KIND_VET, (enum cm_message)message);
		put(file, KIND_RELEASE, 0);
		put_mad(file, KIND_MAD, (enum cm_message)message);
		put(file, KIND_WAIT, 39);
		put(file, KIND_END, 0);
		fclose(file);
	}
}

static unsigned int report(void)
{
	unsigned int missing = 0;

	for (unsigned int i = CM_FIRST_MESSAGE; i <= CM_LAST_MESSAGE; i++) {
		/* There are no alternate paths, so no process may send these. */
		const bool kept = i == CM_LAP || i == CM_APR;
		const bool answered =
			i == CM_REQ || i == CM_SIDR_REQ || i == CM_REP || i == CM_DREQ;
		const bool reached = messages[i].given > 0 && (messages[i].sent > 0 || kept) &&
				     (messages[i].answered > 0 || !answered) &&
				     (messages[i].told > 0 || (i != CM_DREQ && i != CM_REJ));

		missing += !reached;
		printf("fuzz: %-9s %8llu given, %8llu answered, %8llu sent, %8llu told%s\n",
		       cm_message_name(i), (unsigned long long)messages[i].given,
		       (unsigned long long)messages[i].answered,
		       (unsigned long long)messages[i].sent, (unsigned long long)messages[i].told,
		       reached ? "" : "  MISSING");
	}
	fflush(stdout);
	return missing;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	corpus_begin(argc, argv, write_all, report);
	return 0;
}
