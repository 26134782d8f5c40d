/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/arbiter.c: who gets a MAD, and what nobody gets. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arbiter_mads.h"
#include "wire/cm_ip.h"
#include "test.h"

#define FLOOD 100000u
#define NOW   1000u

static struct arbiter *arbiter;
static uint32_t ids[SPACES_SLOTS]; /* one of each process that has begun */
static uint16_t given;
static struct cm_mad answer;
static uint8_t answer_bytes[MAD_LEN];

static void begin(uint16_t slot)
{
	uint32_t value;

	assert_int_equal(arbiter_begin(arbiter, slot, USER_TRUSTED, NOW, &value), 0);
	ids[slot] = value | (0x5a5a5a & ~IDS_MASK);
}

static int setup(TEST_STATE)
{
	assert_int_equal(arbiter_create(&arbiter), 0);
	begin(0);
	begin(1);
	return 0;
}

static int teardown(TEST_STATE)
{
	arbiter_destroy(arbiter);
	return 0;
}

TEST_FIXTURE(setup, teardown);

/* Listen; returns the port's id. */
static uint32_t serve(uint16_t slot, enum cm_port_space space, const uint8_t *gid)
{
	struct cm_port_claim claim = {
		.space = space, .port = PORT, .any_address = gid == NULL, .vlan_id = -1};
	uint32_t id;

	if (gid) {
		memcpy(claim.address, gid, GID_LEN);
		claim.ip_version = gid_is_ipv4(gid) ? 4 : 6;
	}
	assert_int_equal(arbiter_claim(arbiter, slot, &claim, &id), 0);
	assert_int_equal(arbiter_listen(arbiter, slot, id), 0);
	return id;
}

static enum arbiter_verdict route_bytes(const uint8_t *bytes, size_t len, bool local)
{
	const struct arbiter_mad mad = {.bytes = bytes,
					.len = len,
					.sgid = local ? host : peer,
					.dgid = host,
					.vlan_tci = -1,
					.local = local};
	enum arbiter_verdict verdict;

	given = ARBITER_NOBODY;
	verdict = arbiter_route(arbiter, &mad, NOW, &given, answer_bytes);
	if (verdict == ARBITER_ANSWER)
		(void)cm_mad_parse(answer_bytes, sizeof(answer_bytes), &answer);
	return verdict;
}

static enum arbiter_verdict route(struct cm_mad mad)
{
	uint8_t bytes[MAD_LEN];

	assert_int_equal(cm_mad_build(&mad, bytes), 0);
	return route_bytes(bytes, sizeof(bytes), false);
}

static void assert_given(struct cm_mad mad, uint16_t slot)
{
	assert_int_equal(route(mad), ARBITER_GIVE);
	assert_int_equal(given, slot);
}

TEST(arbiter_route__brings_requests_to_who_listens)
{
	serve(0, CM_PS_TCP, NULL);
	serve(1, CM_PS_UDP, host);
	assert_given(req_to(PORT, PEER_ID), 0);
	assert_given(sidr_req_to(PORT, PEER_ID), 1);
}

TEST(arbiter_route__answers_for_a_port_without_listener)
{
	assert_int_equal(route(req_to(PORT, PEER_ID)), ARBITER_ANSWER);
	assert_int_equal(answer.message, CM_REJ);
	assert_int_equal(answer.rej.about, CM_ABOUT_REQ);
	assert_int_equal(answer.rej.reason, CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(answer.remote_id, PEER_ID);
	assert_int_equal(answer.tid, TID);
	assert_int_equal(route(sidr_req_to(PORT, PEER_ID)), ARBITER_ANSWER);
	assert_int_equal(answer.message, CM_SIDR_REP);
	assert_int_equal(answer.sidr_rep.status, CM_SIDR_UNSUPPORTED_SERVICE);
	assert_int_equal(answer.sidr_rep.service_id, cm_service_id(CM_PS_UDP, PORT));
	assert_int_equal(answer.local_id, PEER_ID);
}

TEST(arbiter_route__goes_by_the_receivers_id)
{
	static const enum cm_message messages[] = {CM_MRA, CM_REJ, CM_RTU, CM_DREP,
						   CM_LAP, CM_APR, CM_REP, CM_DREQ};

	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		for (uint16_t slot = 0; slot < 2; slot++) {
			struct cm_mad mad = mad_of(messages[i], PEER_ID, ids[slot]);

			if (messages[i] == CM_REP)
				mad.rep.qpn = QPN;
			if (messages[i] == CM_DREQ)
				mad.dreq_qpn = QPN;
			if (messages[i] == CM_LAP)
				mad.lap.remote_qpn = QPN;
			assert_given(mad, slot);
		}
	}
}

/* A SIDR message has one id, of who has asked. */
TEST(arbiter_route__brings_a_sidr_rep_to_who_asked)
{
	struct cm_mad mad = mad_of(CM_SIDR_REP, ids[1], 0);

	mad.sidr_rep.status = CM_SIDR_REJECTED;
	assert_given(mad, 1);
}

TEST(arbiter_route__answers_what_waits_for_an_answer)
{
	struct cm_mad rep = mad_of(CM_REP, PEER_ID, ids[1]),
		      dreq = mad_of(CM_DREQ, PEER_ID, ids[1]);

	rep.rep.qpn = QPN;
	dreq.dreq_qpn = QPN;
	arbiter_end(arbiter, 1, NOW);
	assert_int_equal(route(rep), ARBITER_ANSWER);
	assert_int_equal(answer.message, CM_REJ);
	assert_int_equal(answer.rej.about, CM_ABOUT_REP);
	assert_int_equal(answer.rej.reason, CM_REJ_INVALID_COMM_ID);
	assert_int_equal(route(dreq), ARBITER_ANSWER);
	assert_int_equal(answer.message, CM_DREP);
	assert_int_equal(answer.local_id, ids[1]);
	assert_int_equal(answer.remote_id, PEER_ID);
	assert_int_equal(route(mad_of(CM_RTU, PEER_ID, ids[1])), ARBITER_DROP);
	assert_int_equal(route(mad_of(CM_REJ, PEER_ID, ids[1])), ARBITER_DROP);
	assert_int_equal(route(mad_of(CM_DREP, PEER_ID, ids[1])), ARBITER_DROP);
	assert_int_equal(route(mad_of(CM_MRA, PEER_ID, ids[1])), ARBITER_DROP);
}

/* A server that listens for one connection has given its port back before the REQ comes again. */
TEST(arbiter_route__brings_a_repeated_request_to_the_same)
{
	struct cm_mad mad = req_to(PORT, PEER_ID);
	uint32_t id;

	id = serve(0, CM_PS_TCP, NULL);
	assert_given(mad, 0);
	assert_int_equal(arbiter_release(arbiter, 0, id), 0);
	assert_given(mad, 0);
	serve(1, CM_PS_TCP, NULL);
	assert_given(mad, 0);
	/* This is another request of this peer, with the same id. */
	mad.tid++;
	assert_given(mad, 1);
	assert_given(mad, 1);
}

TEST(arbiter_route__brings_no_repeat_to_the_next_process)
{
	serve(0, CM_PS_TCP, NULL);
	assert_given(req_to(PORT, PEER_ID), 0);
	arbiter_end(arbiter, 0, NOW);
	assert_int_equal(route(req_to(PORT, PEER_ID)), ARBITER_ANSWER);
	begin(0);
	assert_int_equal(route(req_to(PORT, PEER_ID)), ARBITER_ANSWER);
	serve(1, CM_PS_TCP, NULL);
	assert_given(req_to(PORT, PEER_ID), 1);
}

/* A peer that never got an answer names its own id alone. */
TEST(arbiter_route__brings_a_timeout_to_who_has_the_request)
{
	struct cm_mad rej = mad_of(CM_REJ, PEER_ID, 0);

	rej.rej.reason = CM_REJ_TIMEOUT;
	assert_int_equal(route(rej), ARBITER_DROP);
	serve(1, CM_PS_TCP, NULL);
	assert_given(req_to(PORT, PEER_ID), 1);
	assert_given(rej, 1);
	rej.local_id++;
	assert_int_equal(route(rej), ARBITER_DROP);
}

/* Processes on a device without the loopback address do the same through Linux's loopback binding.
 */
TEST(arbiter_route__knows_loopback_from_this_host_alone)
{
	static const uint8_t loopback[GID_LEN] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
	struct cm_ip ip = {.version = 4};
	uint8_t private_data[CM_IP_LEN], bytes[MAD_LEN];
	struct arbiter_mad other = {
		.len = sizeof(bytes), .sgid = host, .dgid = host, .vlan_tci = -1};
	struct cm_mad mad = req_to(PORT, PEER_ID);

	serve(0, CM_PS_TCP, loopback);
	memcpy(ip.src, loopback, GID_LEN);
	memcpy(ip.dst, loopback, GID_LEN);
	assert_int_equal(cm_ip_build(&ip, private_data), 0);
	mad.private_data = private_data;
	mad.private_len = sizeof(private_data);
	assert_int_equal(cm_mad_build(&mad, bytes), 0);
	assert_int_equal(route_bytes(bytes, sizeof(bytes), false), ARBITER_ANSWER);
	/* A packet from outside may have a forged source. */
	other.bytes = bytes;
	assert_int_equal(arbiter_route(arbiter, &other, NOW, &given, answer_bytes), ARBITER_ANSWER);
	/* A packet between two addresses is not of this host to itself. */
	other.local = true;
	other.sgid = peer;
	assert_int_equal(arbiter_route(arbiter, &other, NOW, &given, answer_bytes), ARBITER_ANSWER);
	assert_int_equal(route_bytes(bytes, sizeof(bytes), true), ARBITER_GIVE);
	assert_int_equal(given, 0);
	/* The device's own address is another one. */
	memcpy(ip.dst, host, GID_LEN);
	assert_int_equal(cm_ip_build(&ip, private_data), 0);
	mad.tid++;
	assert_int_equal(cm_mad_build(&mad, bytes), 0);
	assert_int_equal(route_bytes(bytes, sizeof(bytes), true), ARBITER_ANSWER);
	serve(1, CM_PS_TCP, host);
	assert_int_equal(route_bytes(bytes, sizeof(bytes), true), ARBITER_GIVE);
	assert_int_equal(given, 1);
}

/* A request of this host to itself names no loopback address: its VLAN counts. */
TEST(arbiter_route__looks_in_the_vlan_of_a_request_of_this_host)
{
	struct cm_port_claim claim = {
		.space = CM_PS_TCP, .port = PORT, .ip_version = 4, .vlan_id = 5};
	struct cm_ip ip = {.version = 4};
	uint8_t private_data[CM_IP_LEN], bytes[MAD_LEN];
	const struct arbiter_mad own = {.bytes = bytes,
					.len = sizeof(bytes),
					.sgid = host,
					.dgid = host,
					.vlan_tci = 5,
					.local = true};
	struct cm_mad mad = req_to(PORT, PEER_ID);
	uint32_t id;

	memcpy(claim.address, host, GID_LEN);
	assert_int_equal(arbiter_claim(arbiter, 1, &claim, &id), 0);
	assert_int_equal(arbiter_listen(arbiter, 1, id), 0);
	memcpy(ip.src, host, GID_LEN);
	memcpy(ip.dst, host, GID_LEN);
	assert_int_equal(cm_ip_build(&ip, private_data), 0);
	mad.private_data = private_data;
	mad.private_len = sizeof(private_data);
	assert_int_equal(cm_mad_build(&mad, bytes), 0);
	assert_int_equal(arbiter_route(arbiter, &own, NOW, &given, answer_bytes), ARBITER_GIVE);
	assert_int_equal(given, 1);
}

TEST(arbiter_end__frees_ports_at_once)
{
	struct cm_port_claim claim = {
		.space = CM_PS_TCP, .port = PORT, .any_address = true, .vlan_id = -1};
	uint32_t id;

	serve(0, CM_PS_TCP, NULL);
	assert_int_equal(arbiter_claim(arbiter, 1, &claim, &id), -EADDRINUSE);
	arbiter_end(arbiter, 0, NOW);
	assert_int_equal(arbiter_claim(arbiter, 1, &claim, &id), 0);
	/* Calls in the name of the ended process fail. */
	claim.port++;
	assert_int_equal(arbiter_claim(arbiter, 0, &claim, &id), -EINVAL);
	arbiter_end(arbiter, 0, NOW);
}

TEST(arbiter_route__drops_what_is_no_message)
{
	uint8_t bytes[MAD_LEN] = {0};
	struct cm_mad mad = req_to(PORT, PEER_ID);

	serve(0, CM_PS_TCP, NULL);
	assert_int_equal(route_bytes(bytes, 0, false), ARBITER_DROP);
	assert_int_equal(route_bytes(bytes, sizeof(bytes), false), ARBITER_DROP);
	assert_int_equal(cm_mad_build(&mad, bytes), 0);
	assert_int_equal(route_bytes(bytes, sizeof(bytes) - 1, false), ARBITER_DROP);
	bytes[1] = 0x04; /* another class */
	assert_int_equal(route_bytes(bytes, sizeof(bytes), false), ARBITER_DROP);
	bytes[3] = MAD_GET;
	assert_int_equal(route_bytes(bytes, sizeof(bytes), false), ARBITER_ANSWER);
}

/* Whatever made-up peers ask for: connections go on, and an honest request gets through. */
TEST(arbiter_route__of_a_flood_disturbs_nobody)
{
	struct cm_mad dreq = mad_of(CM_DREQ, PEER_ID, ids[0]);

	dreq.dreq_qpn = QPN;
	serve(0, CM_PS_TCP, NULL);
	for (uint32_t i = 0; i < FLOOD; i++) {
		struct cm_mad mad = req_to(i % 2 ? PORT : PORT + 1, i);

		mad.tid = i;
		assert_int_equal(route(mad), i % 2 ? ARBITER_GIVE : ARBITER_ANSWER);
		if (i % 1000 == 0)
			assert_given(dreq, 0);
	}
	assert_given(req_to(PORT, PEER_ID), 0);
	assert_given(req_to(PORT, PEER_ID), 0);
}

/* Send a MAD from a process to the peer. */
static void sent(uint16_t slot, struct cm_mad mad)
{
	uint8_t bytes[MAD_LEN];
	const struct arbiter_mad out = {
		.bytes = bytes, .len = sizeof(bytes), .sgid = host, .dgid = peer, .vlan_tci = -1};

	assert_int_equal(cm_mad_build(&mad, bytes), 0);
	arbiter_sent(arbiter, slot, &out);
}

static void accept_from_peer(uint16_t slot)
{
	struct cm_mad rep = mad_of(CM_REP, ids[slot], PEER_ID);

	assert_given(req_to(PORT, PEER_ID), slot);
	rep.rep.qpn = QPN + 1;
	sent(slot, rep);
	assert_given(mad_of(CM_RTU, PEER_ID, ids[slot]), slot);
}

static bool disconnects_orphan(struct cm_mad *mad)
{
	struct connections_path path;
	uint8_t bytes[MAD_LEN];

	if (!arbiter_disconnect_orphan(arbiter, NOW, &path, bytes))
		return false;
	assert_memory_equal(path.theirs, peer, GID_LEN);
	assert_memory_equal(path.ours, host, GID_LEN);
	assert_int_equal(cm_mad_parse(bytes, sizeof(bytes), mad), CM_MAD_OK);
	return true;
}

TEST(arbiter_end__tells_peers)
{
	struct cm_mad mad;

	serve(0, CM_PS_TCP, NULL);
	accept_from_peer(0);
	assert_int_equal(arbiter_due_ns(arbiter), UINT64_MAX);
	arbiter_end(arbiter, 0, NOW);
	assert_int_equal(arbiter_due_ns(arbiter), NOW);
	assert_true(disconnects_orphan(&mad));
	assert_int_equal(mad.message, CM_DREQ);
	assert_int_equal(mad.local_id, ids[0]);
	assert_int_equal(mad.remote_id, PEER_ID);
	assert_int_equal(mad.dreq_qpn, QPN);
	assert_false(disconnects_orphan(&mad));
	/* The id is nobody's any more, but the answer is heard. */
	assert_int_equal(route(mad_of(CM_DREP, PEER_ID, ids[0])), ARBITER_DROP);
	assert_int_equal(arbiter_due_ns(arbiter), UINT64_MAX);
}

TEST(arbiter_end__tells_nobody_twice)
{
	struct cm_mad mad;

	serve(0, CM_PS_TCP, NULL);
	accept_from_peer(0);
	arbiter_end(arbiter, 0, NOW);
	arbiter_end(arbiter, 0, NOW);
	assert_true(disconnects_orphan(&mad));
	assert_false(disconnects_orphan(&mad));
}

/* The peer's queue pair asks another process: the one that still has a connection with it rejects
 * that as stale, and disconnects. */
TEST(arbiter_route__brings_a_stale_request_to_who_has_the_connection)
{
	struct cm_mad again = req_to(PORT, PEER_ID + 1);
	uint32_t port;

	port = serve(0, CM_PS_TCP, NULL);
	accept_from_peer(0);
	assert_int_equal(arbiter_release(arbiter, 0, port), 0);
	serve(1, CM_PS_TCP, NULL);
	again.tid++;
	assert_given(again, 0);
	/* A repetition of the request also goes to that process. The next request goes to the
	 * process that listens. */
	assert_given(again, 0);
	again.local_id++;
	assert_given(again, 1);
}
