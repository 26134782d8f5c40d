/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/cm/cm_request.c: a full backlog, and what a flood of requests costs. */
#include <string.h>

#include "cm_fixture.h"

#define FLOOD 100000

TEST_FIXTURE(cm_fixture_set_up, cm_fixture_tear_down);

static void listen_with(uint32_t backlog)
{
	const struct cm_listen_attr attr = {
		.service_id = RIG_SERVICE, .any_address = true, .backlog = backlog};

	cm_unlisten(rig.listener, rig.now_ns);
	assert_int_equal(cm_listen(rig.cm, &attr, &rig.listener), 0);
}

/* The i-th of many hosts. */
static struct gsi_address address_of(uint32_t i)
{
	struct gsi_address from = rig.peer;

	memcpy(from.remote + 12, &i, sizeof(i));
	return from;
}

/* Receive the first REQ of peer `i`. */
static void receive_of(uint32_t i)
{
	const struct gsi_address from = address_of(i);
	struct cm_mad req = rig_req();

	memcpy(req.req.primary.local_gid, from.remote, 16);
	rig_receive_from(&rig, &from, &req);
}

/* A request keeps its place until the program has seen it, and the peer of another one hears
 * nothing, so that it asks again. */
TEST(backlog__full_drops)
{
	struct cm_conn *conn;

	listen_with(1);
	receive_of(1);
	receive_of(2);
	rig_event(&rig, CM_EVENT_REQ);
	conn = rig.event.conn;
	receive_of(2);
	rig_no_event(&rig);
	assert_int_equal(cm_stats(rig.cm)->full, 2);
	assert_int_equal(cm_conn_count(rig.cm), 1);
	cm_conn_take(conn);
	receive_of(2);
	rig_event(&rig, CM_EVENT_REQ);
	receive_of(3);
	assert_int_equal(cm_stats(rig.cm)->full, 3);
	assert_int_equal(rig.sent, 0);
	/* The first one's place is not given back twice. */
	cm_conn_take(conn);
	cm_conn_destroy(conn, rig.now_ns);
	receive_of(3);
	assert_int_equal(cm_stats(rig.cm)->full, 4);
}

/* The i-th host gives its REQ up before it knows our id. */
static void give_up_of(uint32_t i)
{
	const struct gsi_address from = address_of(i);
	const rte_be64_t guid = rte_cpu_to_be_64(RIG_PEER_GUID);
	const struct cm_mad rej = {.message = CM_REJ,
				   .local_id = RIG_PEER_ID,
				   .rej = {.about = CM_ABOUT_REQ,
					   .reason = CM_REJ_TIMEOUT,
					   .info = (const uint8_t *)&guid,
					   .info_len = sizeof(guid)}};

	rig_receive_from(&rig, &from, &rej);
}

/* Such a request is not half open any more, but it still uses memory. It keeps its place in the
 * backlog until the program has read its event. */
TEST(backlog__request_that_its_peer_has_given_up)
{
	struct cm_conn *conn;

	listen_with(4);
	receive_of(0);
	rig_event(&rig, CM_EVENT_REQ);
	conn = rig.event.conn;
	for (uint32_t i = 0; i < 100; i++) {
		receive_of(i);
		give_up_of(i);
	}
	assert_int_equal(cm_conn_state(conn), CM_STATE_IDLE);
	assert_int_equal(cm_conn_count(rig.cm), 4);
	cm_conn_destroy(conn, rig.now_ns);
	receive_of(200);
	assert_int_equal(cm_conn_count(rig.cm), 4);
}

TEST(backlog__full_rejects_datagrams)
{
	const struct cm_listen_attr attr = {
		.service_id = RIG_SERVICE, .any_address = true, .datagrams = true, .backlog = 1};
	struct cm_mad req = rig_sidr_req();
	struct cm_listener *listener;

	assert_int_equal(cm_listen(rig.cm, &attr, &listener), 0);
	req.sidr_req.service_id = RIG_SERVICE;
	rig_receive(&rig, &req);
	rig_event(&rig, CM_EVENT_SIDR_REQ);
	assert_int_equal(rig.sent, 0);
	req.local_id++;
	rig_receive(&rig, &req);
	assert_int_equal(rig_sent(&rig).sidr_rep.status, CM_SIDR_REJECTED);
	cm_conn_destroy(rig.event.conn, rig.now_ns);
	rig_receive(&rig, &req);
	rig_event(&rig, CM_EVENT_SIDR_REQ);
}

/* Receive the first REQ of each peer from `first` to `last`. */
static void receive_of_all(uint32_t first, uint32_t last)
{
	for (uint32_t i = first; i <= last; i++)
		receive_of(i);
}

/* All of the backlog is for peers that ask once, as with Linux. A quarter on top of it is for peers
 * that ask again. */
TEST(backlog__peers_beyond_it_must_ask_twice)
{
	listen_with(8);
	receive_of_all(1, 8);
	assert_int_equal(cm_conn_count(rig.cm), 8);
	receive_of_all(9, 20);
	assert_int_equal(cm_conn_count(rig.cm), 8);
	receive_of(9);
	assert_int_equal(cm_conn_count(rig.cm), 9);
	receive_of(10);
	assert_int_equal(cm_conn_count(rig.cm), 10);
	receive_of(11);
	assert_int_equal(cm_conn_count(rig.cm), 10);
	assert_int_equal(cm_stats(rig.cm)->full, 13);
	assert_int_equal(rig.sent, 0);
}

/* A peer that asks again gets no more than another one as long as the backlog is not full. */
TEST(backlog__small_one_has_no_quarter_on_top)
{
	listen_with(3);
	receive_of_all(1, 5);
	receive_of_all(4, 5);
	assert_int_equal(cm_conn_count(rig.cm), 3);
}

/* No program accepts while 100,000 made-up hosts send one REQ each. Then one more host sends a REQ
 * and repeats it. An established connection goes on meanwhile. */
TEST(flood__leaves_room_for_who_asks_again)
{
	struct cm_conn *established;
	struct cm_mad dreq;

	listen_with(256);
	rig_bring(&rig, CM_STATE_ESTABLISHED);
	established = rig.conn;
	for (uint32_t i = 0; i < FLOOD; i++) {
		receive_of(i + 1000000);
		rig.now_ns += 10000;
	}
	assert_in_range(cm_conn_count(rig.cm), 1 + 256, 1 + 256 + 64);
	assert_int_equal(cm_conn_state(established), CM_STATE_ESTABLISHED);
	/* A slow server: most of the requests still wait, and the backlog stays full. */
	for (int i = 0; i < 10; i++) {
		rig_event(&rig, CM_EVENT_REQ);
		cm_conn_destroy(rig.event.conn, rig.now_ns);
	}
	receive_of(1);
	rig.now_ns += cm_time_ns(RIG_TIME);
	receive_of(1);
	while (cm_next_event(rig.cm, &rig.event)) {
		if (memcmp(rig.event.mad.req.primary.local_gid + 12, "\1\0\0\0", 4) == 0)
			break;
	}
	assert_int_equal(rig.event.type, CM_EVENT_REQ);
	dreq = rig_message(&rig, CM_DREQ);
	rig_receive(&rig, &dreq);
	assert_int_equal(cm_conn_state(established), CM_STATE_DREQ_RCVD);
}

/* A server that accepts whatever comes. */
TEST(flood__the_last_quarter_of_half_open_connections_is_for_who_asks_again)
{
	const struct cm_config config = {.half_open_max = 100};
	const struct cm_accept_attr accept = rig_accept_attr();

	rig_fini(&rig);
	rig_init_with(&rig, &config);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 100; i++) {
			receive_of(i);
			if (cm_next_event(rig.cm, &rig.event))
				assert_int_equal(cm_accept(rig.event.conn, &accept, rig.now_ns), 0);
		}
		assert_int_equal(cm_conn_count(rig.cm), round == 0 ? 75 : 100);
	}
	assert_int_equal(cm_stats(rig.cm)->grey, 25);
}

/* A server that accepts whatever comes: half-open connections are bounded, and end by their timers.
 */
TEST(flood__half_open_connections_are_bounded)
{
	const struct cm_config config = {.half_open_max = 100, .lingering_max = 10};
	const struct cm_accept_attr accept = rig_accept_attr();
	const struct cm_stats *stats;
	uint64_t accepted = 0;

	rig_fini(&rig);
	rig_init_with(&rig, &config);
	for (uint32_t i = 0; i < FLOOD; i++) {
		receive_of(i);
		while (cm_next_event(rig.cm, &rig.event)) {
			assert_int_equal(cm_accept(rig.event.conn, &accept, rig.now_ns), 0);
			accepted++;
		}
	}
	/* Peers that repeat their requests get all places; then there is no room for anybody. */
	for (uint32_t i = 0; cm_conn_count(rig.cm) < 100; i++) {
		receive_of(i);
		if (!cm_next_event(rig.cm, &rig.event))
			continue;
		assert_int_equal(cm_accept(rig.event.conn, &accept, rig.now_ns), 0);
		accepted++;
	}
	receive_of(FLOOD);
	stats = cm_stats(rig.cm);
	assert_true(stats->no_room > 0);
	assert_int_equal(stats->full, 0);
	assert_true(stats->received == accepted + stats->no_room + stats->grey);
	assert_in_range(cm_conn_count(rig.cm), 75, 100);
	while (cm_deadline_ns(rig.cm) != UINT64_MAX) {
		rig_expire(&rig);
		while (cm_next_event(rig.cm, &rig.event)) {
			assert_int_equal(rig.event.type, CM_EVENT_UNREACHABLE);
			cm_conn_destroy(rig.event.conn, rig.now_ns);
		}
	}
	assert_int_equal(cm_conn_count(rig.cm), 0);
}
