/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/owner/arbiter.c: what an untrusted process may send. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arbiter_mads.h"
#include "test.h"

#define ALICE	  3
#define BOB	  4
#define NOW	  1000u
#define OTHER_QPN 0x8001u

static struct arbiter *arbiter;
static uint32_t own_id, bobs_id;
static const struct arbiter_sender alice = {
	.slot = ALICE, .qpn_first = 0x4000, .qpn_count = 0x4000};

static int setup(TEST_STATE)
{
	assert_int_equal(arbiter_create(&arbiter), 0);
	assert_int_equal(arbiter_begin(arbiter, ALICE, user_of_uid(1000), NOW, &own_id), 0);
	assert_int_equal(arbiter_begin(arbiter, BOB, user_of_uid(1001), NOW, &bobs_id), 0);
	own_id |= 5;
	bobs_id |= 5;
	return 0;
}

static int teardown(TEST_STATE)
{
	arbiter_destroy(arbiter);
	return 0;
}

TEST_FIXTURE(setup, teardown);

/* Return true if Alice may send it to the peer. */
static bool may_bytes(const uint8_t *bytes, size_t len)
{
	const struct arbiter_mad mad = {
		.bytes = bytes, .len = len, .sgid = host, .dgid = peer, .vlan_tci = -1};

	return arbiter_may_send(arbiter, &alice, &mad);
}

static bool may(struct cm_mad mad)
{
	uint8_t bytes[MAD_LEN];

	assert_int_equal(cm_mad_build(&mad, bytes), 0);
	return may_bytes(bytes, sizeof(bytes));
}

/* The peer's REQ or SIDR_REQ comes to a process, which listens. */
static void ask(uint16_t slot, struct cm_mad mad)
{
	struct cm_port_claim claim = {.space = mad.message == CM_REQ ? CM_PS_TCP : CM_PS_UDP,
				      .port = PORT,
				      .any_address = true,
				      .vlan_id = -1};
	uint8_t bytes[MAD_LEN], answer[MAD_LEN];
	const struct arbiter_mad in = {
		.bytes = bytes, .len = sizeof(bytes), .sgid = peer, .dgid = host, .vlan_tci = -1};
	uint16_t given;
	uint32_t id;

	assert_int_equal(arbiter_claim(arbiter, slot, &claim, &id), 0);
	assert_int_equal(arbiter_listen(arbiter, slot, id), 0);
	assert_int_equal(cm_mad_build(&mad, bytes), 0);
	assert_int_equal(arbiter_route(arbiter, &in, NOW, &given, answer), ARBITER_GIVE);
	assert_int_equal(given, slot);
}

static struct cm_mad own_req(void)
{
	struct cm_mad mad = req_to(PORT, own_id);

	memcpy(mad.req.primary.local_gid, host, GID_LEN);
	memcpy(mad.req.primary.remote_gid, peer, GID_LEN);
	return mad;
}

static struct cm_mad with_ip(struct cm_mad mad, const uint8_t *src, uint8_t *private_data)
{
	struct cm_ip ip = {.version = 4};

	memcpy(ip.src, src, GID_LEN);
	memcpy(ip.dst, peer, GID_LEN);
	assert_int_equal(cm_ip_build(&ip, private_data), 0);
	mad.private_data = private_data;
	mad.private_len = CM_IP_LEN;
	return mad;
}

TEST(may_send__requests_of_its_own)
{
	uint8_t private_data[CM_IP_LEN];
	struct cm_mad mad;

	assert_true(may(own_req()));
	assert_true(may(with_ip(own_req(), host, private_data)));
	assert_false(may(with_ip(own_req(), peer, private_data)));
	mad = own_req();
	mad.local_id = bobs_id;
	assert_false(may(mad));
	mad = own_req();
	mad.req.qpn = OTHER_QPN;
	assert_false(may(mad));
	mad = own_req();
	memcpy(mad.req.primary.local_gid, peer, GID_LEN);
	assert_false(may(mad));
	assert_true(may(sidr_req_to(PORT, own_id)));
	assert_false(may(sidr_req_to(PORT, bobs_id)));
	assert_false(may(with_ip(sidr_req_to(PORT, own_id), peer, private_data)));
}

static struct cm_mad rep(uint32_t local_id, uint32_t qpn)
{
	struct cm_mad mad = mad_of(CM_REP, local_id, PEER_ID);

	mad.rep.qpn = qpn;
	return mad;
}

TEST(may_send__a_rep_of_its_own)
{
	ask(ALICE, req_to(PORT, PEER_ID));
	assert_true(may(rep(own_id, QPN)));
	assert_false(may(rep(bobs_id, QPN)));
	assert_false(may(rep(own_id, OTHER_QPN)));
}

/* Alice has the same address as Bob, and may have learnt the peer's id. */
TEST(may_send__no_answer_to_anothers_request)
{
	struct cm_mad rej = mad_of(CM_REJ, 0, PEER_ID), mra = mad_of(CM_MRA, own_id, PEER_ID);

	rej.rej.reason = CM_REJ_CONSUMER_DEFINED;
	ask(BOB, req_to(PORT, PEER_ID));
	assert_false(may(rep(own_id, QPN)));
	assert_false(may(rej));
	assert_false(may(mra));
	rej.local_id = own_id;
	assert_false(may(rej));
	rej.rej.about = CM_ABOUT_OTHER;
	assert_false(may(rej));
	/* The process after Bob is not Bob, and nobody's answer counts. */
	arbiter_end(arbiter, BOB, NOW);
	assert_false(may(rep(own_id, QPN)));
}

/* The ids of a Linux peer follow each other: who has had one can tell the next, and would answer a
 * request to Bob while that is under way. */
TEST(may_send__no_answer_before_a_request)
{
	struct cm_mad rej = mad_of(CM_REJ, 0, PEER_ID), mra = mad_of(CM_MRA, own_id, PEER_ID);
	struct cm_mad sidr_rep = mad_of(CM_SIDR_REP, PEER_ID, 0);

	sidr_rep.sidr_rep.qpn = QPN;
	rej.rej.reason = CM_REJ_CONSUMER_DEFINED;
	assert_false(may(rep(own_id, QPN)));
	assert_false(may(rej));
	assert_false(may(mra));
	assert_false(may(sidr_rep));
	rej.local_id = own_id;
	assert_false(may(rej));
	/* An answer of the other kind with the same id is refused. */
	ask(ALICE, sidr_req_to(PORT, PEER_ID));
	assert_true(may(sidr_rep));
	assert_false(may(rep(own_id, QPN)));
	ask(ALICE, req_to(PORT, PEER_ID));
	assert_true(may(rep(own_id, QPN)));
	assert_true(may(rej));
	assert_true(may(mra));
}

TEST(may_send__a_sidr_rep_with_a_queue_pair_of_its_own)
{
	struct cm_mad mad = mad_of(CM_SIDR_REP, PEER_ID, 0);

	ask(ALICE, sidr_req_to(PORT, PEER_ID));
	mad.sidr_rep.qpn = QPN;
	assert_true(may(mad));
	mad.sidr_rep.qpn = OTHER_QPN;
	assert_false(may(mad));
	mad.sidr_rep.status = CM_SIDR_REJECTED;
	assert_true(may(mad));
}

TEST(may_send__no_answer_to_anothers_sidr_req)
{
	struct cm_mad mad = mad_of(CM_SIDR_REP, PEER_ID, 0);

	ask(BOB, sidr_req_to(PORT, PEER_ID));
	mad.sidr_rep.qpn = QPN;
	assert_false(may(mad));
}

TEST(may_send__the_rest_with_its_own_id)
{
	static const enum cm_message messages[] = {CM_RTU, CM_DREQ, CM_DREP, CM_MRA, CM_REJ};

	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		struct cm_mad mad = mad_of(messages[i], own_id, PEER_ID);

		if (messages[i] == CM_DREQ)
			mad.dreq_qpn = OTHER_QPN; /* the peer's */
		if (messages[i] == CM_REJ)
			mad.rej.about = CM_ABOUT_REP;
		if (messages[i] == CM_MRA)
			mad.mra.about = CM_ABOUT_REP;
		assert_true(may(mad));
		mad.local_id = bobs_id;
		assert_false(may(mad));
		mad.local_id = 0;
		assert_false(may(mad));
	}
}

TEST(may_send__no_alternate_paths)
{
	struct cm_mad lap = mad_of(CM_LAP, own_id, PEER_ID);

	lap.lap.remote_qpn = QPN;
	assert_false(may(lap));
	assert_false(may(mad_of(CM_APR, own_id, PEER_ID)));
}

TEST(may_send__no_other_class_method_or_length)
{
	static const uint8_t classes[] = {0x01, 0x03, 0x04, 0x81};
	struct cm_mad mad = own_req();
	uint8_t bytes[MAD_LEN];

	assert_int_equal(cm_mad_build(&mad, bytes), 0);
	assert_false(may_bytes(bytes, sizeof(bytes) - 4));
	for (size_t i = 0; i < sizeof(classes); i++) {
		bytes[1] = classes[i];
		assert_false(may_bytes(bytes, sizeof(bytes)));
	}
	bytes[1] = MAD_CLASS_CM;
	assert_true(may_bytes(bytes, sizeof(bytes)));
	bytes[3] = MAD_GET_RESPONSE;
	assert_false(may_bytes(bytes, sizeof(bytes)));
}

TEST(may_send__nothing_after_its_end)
{
	assert_true(may(own_req()));
	arbiter_end(arbiter, ALICE, NOW);
	assert_false(may(own_req()));
}
