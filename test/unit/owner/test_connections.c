/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/connections.c: what peers are told when a process has ended. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "arbiter_mads.h"
#include "owner/connections.h"
#include "test.h"

#define OUR_ID	 0x5001u
#define PEER_QPN 0x77u
#define GUID	 UINT64_C(0x0200aafffe01bb03)
#define NOW	 UINT64_C(1000000)
#define SLOT	 3

static struct connections *connections;
static struct connections_path path;
static struct cm_mad told;

static int setup(TEST_STATE)
{
	connections = calloc(1, sizeof(*connections));
	path = (struct connections_path){.mac = {2, 0, 0, 0, 0, 2}, .vlan_tci = -1};
	memcpy(path.ours, host, GID_LEN);
	memcpy(path.theirs, peer, GID_LEN);
	return connections_init(connections);
}

static int teardown(TEST_STATE)
{
	connections_fini(connections);
	free(connections);
	return 0;
}

TEST_FIXTURE(setup, teardown);

static void say(struct cm_mad mad)
{
	connections_sent(connections, SLOT, &mad, &path);
}

static void give(struct cm_mad mad)
{
	connections_given(connections, SLOT, &mad, &path);
}

static void hear(enum cm_message message)
{
	const struct cm_mad mad = mad_of(message, PEER_ID, OUR_ID);

	connections_heard(connections, &mad, &path);
}

static struct cm_mad req(uint32_t id)
{
	struct cm_mad mad = req_to(PORT, id);

	mad.req.qpn = PEER_QPN;
	return mad;
}

static struct cm_mad rep(uint32_t local_id, uint32_t remote_id)
{
	struct cm_mad mad = mad_of(CM_REP, local_id, remote_id);

	mad.rep.qpn = PEER_QPN;
	return mad;
}

static struct cm_mad rej(uint32_t local_id, uint32_t remote_id, enum cm_rej_reason reason)
{
	struct cm_mad mad = mad_of(CM_REJ, local_id, remote_id);

	mad.rej.about = CM_ABOUT_REQ;
	mad.rej.reason = (uint16_t)reason;
	return mad;
}

static void connect_active(void)
{
	say(req_to(PORT, OUR_ID));
	give(rep(PEER_ID, OUR_ID));
	say(mad_of(CM_RTU, OUR_ID, PEER_ID));
}

static void connect_passive(void)
{
	give(req(PEER_ID));
	say(rep(OUR_ID, PEER_ID));
	give(mad_of(CM_RTU, PEER_ID, OUR_ID));
}

static bool tells(uint64_t now_ns)
{
	struct connections_path to;

	if (!connections_disconnect_orphan(connections, now_ns, &told, &to))
		return false;
	assert_memory_equal(&to, &path, sizeof(to));
	return true;
}

static void assert_told_dreq(void)
{
	assert_true(tells(NOW));
	assert_int_equal(told.message, CM_DREQ);
	assert_int_equal(told.local_id, OUR_ID);
	assert_int_equal(told.remote_id, PEER_ID);
	assert_int_equal(told.dreq_qpn, PEER_QPN);
	assert_false(tells(NOW));
}

static void assert_told_rej(enum cm_about about, enum cm_rej_reason reason, uint32_t local_id,
			    uint32_t remote_id)
{
	assert_true(tells(NOW));
	assert_int_equal(told.message, CM_REJ);
	assert_int_equal(told.rej.about, about);
	assert_int_equal(told.rej.reason, reason);
	assert_int_equal(told.local_id, local_id);
	assert_int_equal(told.remote_id, remote_id);
	assert_int_equal(connections_due_ns(connections), UINT64_MAX);
}

TEST(end__tells_the_peer_that_accepted)
{
	connect_active();
	assert_int_equal(connections_due_ns(connections), UINT64_MAX);
	assert_false(tells(NOW));
	connections_end(connections, SLOT, NOW);
	assert_int_equal(connections_due_ns(connections), NOW);
	assert_told_dreq();
}

TEST(end__tells_the_peer_that_asked)
{
	connect_passive();
	connections_end(connections, SLOT, NOW);
	assert_told_dreq();
}

/* The peer repeats its REQ, and the process its REP. */
TEST(end__tells_once_what_was_said_twice)
{
	connect_passive();
	give(req(PEER_ID));
	say(rep(OUR_ID, PEER_ID));
	connections_end(connections, SLOT, NOW);
	assert_told_dreq();
}

TEST(end__of_another_process_tells_nobody)
{
	connect_active();
	connections_end(connections, SLOT + 1, NOW);
	assert_false(tells(NOW));
}

TEST(end__rejects_a_request_that_waits)
{
	give(req(PEER_ID));
	connections_end(connections, SLOT, NOW);
	assert_told_rej(CM_ABOUT_REQ, CM_REJ_CONSUMER_DEFINED, 0, PEER_ID);
}

/* The peer has told no id, so it finds the request by our id and GUID. */
TEST(end__takes_a_request_back)
{
	const rte_be64_t guid_be = rte_cpu_to_be_64(GUID);
	struct cm_mad mad = req_to(PORT, OUR_ID);

	mad.req.ca_guid = GUID;
	say(mad);
	connections_end(connections, SLOT, NOW);
	assert_told_rej(CM_ABOUT_OTHER, CM_REJ_TIMEOUT, OUR_ID, 0);
	assert_int_equal(told.rej.info_len, sizeof(guid_be));
	assert_memory_equal(told.rej.info, &guid_be, sizeof(guid_be));
}

/* The REP of an XRC connection has the target queue pair in the place of its EE context. */
TEST(end__tells_the_peer_of_an_xrc_connection)
{
	struct cm_mad mad = rep(PEER_ID, OUR_ID);

	mad.rep.eecn = mad.rep.qpn;
	mad.rep.qpn = 0;
	say(req_to(PORT, OUR_ID));
	give(mad);
	connections_end(connections, SLOT, NOW);
	assert_told_dreq();
}

static void assert_nobody_is_told(void)
{
	connections_end(connections, SLOT, NOW);
	assert_int_equal(connections_due_ns(connections), UINT64_MAX);
	assert_false(tells(NOW));
}

TEST(end__after_a_disconnect_tells_nobody)
{
	connect_active();
	say(mad_of(CM_DREQ, OUR_ID, PEER_ID));
	give(mad_of(CM_DREP, PEER_ID, OUR_ID));
	assert_nobody_is_told();
}

TEST(end__after_a_peers_disconnect_tells_nobody)
{
	connect_passive();
	give(mad_of(CM_DREQ, PEER_ID, OUR_ID));
	say(mad_of(CM_DREP, OUR_ID, PEER_ID));
	assert_nobody_is_told();
}

TEST(end__after_a_rejection_tells_nobody)
{
	say(req_to(PORT, OUR_ID));
	give(rej(0, OUR_ID, CM_REJ_INVALID_SERVICE_ID));
	give(req(PEER_ID));
	say(rej(0, PEER_ID, CM_REJ_CONSUMER_DEFINED));
	give(req(PEER_ID + 1));
	give(rej(PEER_ID + 1, 0, CM_REJ_TIMEOUT));
	assert_nobody_is_told();
}

/* An attacker's REP, REJ or DREP comes from another address, or knows no id. */
TEST(given__from_an_attacker_changes_nothing)
{
	say(req_to(PORT, OUR_ID));
	path.theirs[15]++;
	give(rep(PEER_ID, OUR_ID));
	give(rej(0, OUR_ID, CM_REJ_INVALID_SERVICE_ID));
	path.theirs[15]--;
	give(rep(PEER_ID, OUR_ID + 1));
	give(rep(PEER_ID, OUR_ID));
	path.theirs[15]++;
	give(mad_of(CM_DREP, PEER_ID, OUR_ID));
	path.theirs[15]--;
	/* An established connection takes no other REP. */
	give(rep(PEER_ID + 1, OUR_ID));
	connections_end(connections, SLOT, NOW);
	assert_told_dreq();
}

/* The process has sent a DREQ at its end, whose DREP may be on its way. */
TEST(end__waits_for_the_answer_to_a_disconnect)
{
	connect_active();
	say(mad_of(CM_DREQ, OUR_ID, PEER_ID));
	connections_end(connections, SLOT, NOW);
	assert_false(tells(NOW));
	assert_int_equal(connections_due_ns(connections), NOW + CONNECTIONS_RETRY_NS);
	hear(CM_DREP);
	assert_int_equal(connections_due_ns(connections), UINT64_MAX);
}

TEST(disconnect_orphan__ends_with_the_answer)
{
	static const enum cm_message answers[] = {CM_DREP, CM_DREQ, CM_REJ};

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		connect_active();
		connections_end(connections, SLOT, NOW);
		assert_told_dreq();
		hear(CM_RTU);
		assert_true(connections_due_ns(connections) < UINT64_MAX);
		hear(answers[i]);
		assert_int_equal(connections_due_ns(connections), UINT64_MAX);
	}
}

TEST(disconnect_orphan__gives_up)
{
	uint64_t now_ns = NOW;
	unsigned int count = 0;

	connect_active();
	connections_end(connections, SLOT, now_ns);
	while ((now_ns = connections_due_ns(connections)) != UINT64_MAX) {
		assert_false(tells(now_ns - 1));
		count += tells(now_ns);
	}
	assert_int_equal(count, CONNECTIONS_TRIES);
	assert_int_equal(connections->left_count, 0);
}

/* Peers that were told go behind those that were not. */
TEST(disconnect_orphan__tells_all)
{
	for (uint32_t i = 0; i < 1000; i++) {
		say(req_to(PORT, OUR_ID + i));
		give(rep(PEER_ID + i, OUR_ID + i));
	}
	connections_end(connections, SLOT, NOW);
	for (uint32_t i = 0; i < 1000; i++) {
		assert_true(tells(NOW));
		assert_int_equal(told.remote_id, PEER_ID + i);
	}
	assert_false(tells(NOW));
}

TEST(given__of_a_flood_is_bounded)
{
	connect_active();
	for (uint32_t i = 0; i < 4 * CONNECTIONS_TAKEN_MAX; i++)
		give(req(i));
	assert_int_equal(connections->slots[SLOT].taken_count, CONNECTIONS_TAKEN_MAX);
	assert_int_equal(connections->slots[SLOT].own_count, 1);
	/* Those that are left are the newest ones. */
	say(rep(OUR_ID + 1, 4 * CONNECTIONS_TAKEN_MAX - 1));
	assert_int_equal(connections->slots[SLOT].own_count, 2);
}

TEST(sent__is_bounded)
{
	for (uint32_t i = 0; i <= CONNECTIONS_OWN_MAX; i++)
		say(req_to(PORT, OUR_ID + i));
	assert_int_equal(connections->slots[SLOT].own_count, CONNECTIONS_OWN_MAX);
}

TEST(end__is_bounded)
{
	for (uint32_t n = 0; n <= CONNECTIONS_LEFT_MAX / CONNECTIONS_OWN_MAX; n++) {
		for (uint32_t i = 0; i < CONNECTIONS_OWN_MAX; i++)
			say(req_to(PORT, OUR_ID + i));
		connections_end(connections, SLOT, NOW);
		assert_int_equal(connections->slots[SLOT].own_count, 0);
	}
	assert_int_equal(connections->left_count, CONNECTIONS_LEFT_MAX);
}

TEST(stale__names_who_has_the_connection_once)
{
	const struct cm_mad again = req(PEER_ID + 9);
	struct cm_mad other = again;

	connect_passive();
	other.req.qpn++;
	assert_int_equal(connections_stale(connections, &other, &path), SLOT_NONE);
	path.theirs[15]++;
	assert_int_equal(connections_stale(connections, &again, &path), SLOT_NONE);
	path.theirs[15]--;
	assert_int_equal(connections_stale(connections, &again, &path), SLOT);
	assert_int_equal(connections_stale(connections, &again, &path), SLOT_NONE);
}

TEST(stale__forgets_who_has_ended)
{
	const struct cm_mad again = req(PEER_ID + 9);

	connect_active();
	connections_end(connections, SLOT, NOW);
	assert_int_equal(connections_stale(connections, &again, &path), SLOT_NONE);
	assert_false(tells(NOW));
}
