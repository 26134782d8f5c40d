/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/cm/cm.c and conn.c: deadlines, events, and what is counted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm_fixture.h"

#define MANY   5000
#define ALMOST 30000 /* in each bucket of the tables, but for a case in a thousand */

TEST_FIXTURE(cm_fixture_set_up, cm_fixture_tear_down);

TEST(deadline__never_without_a_timer)
{
	assert_true(cm_deadline_ns(rig.cm) == UINT64_MAX);
	rig_bring(&rig, CM_STATE_ESTABLISHED);
	assert_true(cm_deadline_ns(rig.cm) == UINT64_MAX);
}

TEST(expire__nothing_before_its_time)
{
	unsigned int sent;

	rig_bring(&rig, CM_STATE_REQ_SENT);
	sent = rig.sent;
	cm_expire(rig.cm, cm_deadline_ns(rig.cm) - 1);
	assert_int_equal(rig.sent, sent);
	cm_expire(rig.cm, cm_deadline_ns(rig.cm));
	assert_int_equal(rig.sent, sent + 1);
}

TEST(expire__unreachable_has_its_errno)
{
	rig_bring(&rig, CM_STATE_REQ_SENT);
	while (!cm_next_event(rig.cm, &rig.event))
		rig_expire(&rig);
	assert_int_equal(rig.event.type, CM_EVENT_UNREACHABLE);
	assert_int_equal(rig.event.status, -ETIMEDOUT);
	assert_ptr_equal(rig.event.user, &rig);
	assert_false(rig.event.has_mad);
}

TEST(events__come_in_their_order_with_their_own_data)
{
	struct cm_mad mad;

	rig_bring(&rig, CM_STATE_REP_SENT);
	cm_conn_set_user(rig.conn, &mad);
	mad = rig_message(&rig, CM_RTU);
	mad.private_data = (const uint8_t *)"rtu!";
	rig_receive(&rig, &mad);
	mad = rig_message(&rig, CM_DREQ);
	mad.private_data = (const uint8_t *)"dreq";
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_ESTABLISHED);
	assert_ptr_equal(rig.event.user, &mad);
	assert_int_equal(rig.event.private_len, CM_RTU_PRIVATE);
	assert_memory_equal(rig.event.private_data, "rtu!", 4);
	rig_event(&rig, CM_EVENT_DISCONNECTED);
	assert_int_equal(rig.event.private_len, CM_DREQ_PRIVATE);
	assert_memory_equal(rig.event.private_data, "dreq", 4);
	assert_int_equal(rig.event.status, 0);
}

/* Only a request has the IP header, whatever the private data of another message looks like. */
TEST(events__of_a_connection_have_no_ip_header)
{
	const struct cm_listen_attr attr = {
		.service_id = RIG_SERVICE, .ip = true, .any_address = true};
	const struct cm_accept_attr accept = rig_accept_attr();
	uint8_t data[CM_RTU_PRIVATE] = {0};
	struct cm_ip ip = {.version = 4};
	struct cm_mad mad = rig_req();

	cm_unlisten(rig.listener, rig.now_ns);
	assert_int_equal(cm_listen(rig.cm, &attr, &rig.listener), 0);
	memcpy(ip.src, rig.peer.remote, 16);
	memcpy(ip.dst, rig.peer.local, 16);
	assert_int_equal(cm_ip_build(&ip, data), 0);
	mad.private_data = data;
	mad.private_len = CM_IP_LEN;
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_REQ);
	assert_true(rig.event.has_ip);
	assert_int_equal(cm_accept(rig.event.conn, &accept, rig.now_ns), 0);
	rig.our_id = rig_sent(&rig).local_id;
	mad = rig_message(&rig, CM_RTU);
	mad.private_data = data;
	mad.private_len = sizeof(data);
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_ESTABLISHED);
	assert_false(rig.event.has_ip);
	assert_int_equal(rig.event.private_len, CM_RTU_PRIVATE);
}

/* Fill all ids, hash buckets and timers at the same time. */
TEST(many__are_found_and_end)
{
	static struct cm_conn *conns[MANY];
	const struct cm_connect_attr attr = rig_connect_attr(&rig);

	for (uint32_t i = 0; i < MANY; i++) {
		struct cm_mad rep;

		assert_int_equal(cm_connect(rig.cm, &attr, rig.now_ns + i, &conns[i]), 0);
		rig.our_id = rig_sent(&rig).local_id;
		rep = rig_message(&rig, CM_REP);
		rep.local_id = i + 1;
		rep.rep.qpn = i + 2;
		rig_receive(&rig, &rep);
		rig_event(&rig, CM_EVENT_REP);
		assert_ptr_equal(rig.event.conn, conns[i]);
		assert_int_equal(cm_establish(conns[i], NULL, 0, rig.now_ns), 0);
	}
	assert_int_equal(cm_conn_count(rig.cm), MANY);
	for (uint32_t i = 0; i < MANY; i++)
		cm_conn_destroy(conns[i], rig.now_ns + i);
	while (cm_deadline_ns(rig.cm) != UINT64_MAX)
		rig_expire(&rig);
	assert_int_equal(cm_conn_count(rig.cm), 0);
}

static void count_conn(const struct gsi_conn *view, void *arg)
{
	*(unsigned int *)arg += view->qpn != 0;
}

TEST(many__are_told_and_abandoned)
{
	const struct cm_connect_attr attr = rig_connect_attr(&rig);
	unsigned int told = 0;
	struct cm_conn *conn;

	for (uint32_t i = 0; i < ALMOST; i++)
		assert_int_equal(cm_connect(rig.cm, &attr, rig.now_ns, &conn), 0);
	cm_each(rig.cm, count_conn, &told);
	assert_int_equal(told, ALMOST);
	assert_int_equal(cm_abandon(rig.cm, UINT32_MAX, rig.now_ns), ALMOST);
	assert_int_equal(rig.sent, 2 * ALMOST);
}

/* The number of requests that wait may be another manager's, too. */
TEST(destroy__gives_places_in_the_backlog_back)
{
	uint32_t waiting = 3;
	const struct cm_listen_attr attr = {
		.service_id = RIG_SERVICE, .any_address = true, .waiting = &waiting};
	const struct cm_config config = {0};
	const struct cm_mad req = rig_req();

	cm_unlisten(rig.listener, rig.now_ns);
	assert_int_equal(cm_listen(rig.cm, &attr, &rig.listener), 0);
	rig_receive(&rig, &req);
	assert_int_equal(waiting, 4);
	rig_fini(&rig);
	assert_int_equal(waiting, 3);
	rig_init_with(&rig, &config);
}

/* With two ids to draw from, of which 0 is none, there is one connection at a time. */
TEST(connect__ids_are_not_used_twice)
{
	const struct cm_config config = {.id_mask = 0xfffffffe};
	const struct cm_connect_attr attr = rig_connect_attr(&rig);
	struct cm_conn *conn, *second;
	int rc = -ENOMEM;

	rig_fini(&rig);
	rig_init_with(&rig, &config);
	/* A manager that draws 0 sixteen times in a row gives up. */
	for (int i = 0; i < 10 && rc != 0; i++)
		rc = cm_connect(rig.cm, &attr, rig.now_ns, &conn);
	assert_int_equal(rc, 0);
	assert_int_equal(rig_sent(&rig).local_id, 1);
	for (int i = 0; i < 10; i++)
		assert_int_equal(cm_connect(rig.cm, &attr, rig.now_ns, &second), -ENOMEM);
	assert_int_equal(cm_conn_count(rig.cm), 1);
	assert_int_equal(rig.sent, 1);
}

TEST(stats__tell_what_was_done)
{
	struct cm_mad mad;

	rig_bring(&rig, CM_STATE_ESTABLISHED); /* REQ and RTU out, REP in */
	mad = rig_message(&rig, CM_REP);
	rig_receive(&rig, &mad);
	mad = rig_message(&rig, CM_RTU);
	rig_receive(&rig, &mad);
	mad = rig_message(&rig, CM_LAP);
	rig_receive(&rig, &mad);
	assert_int_equal(cm_stats(rig.cm)->received, 4);
	assert_int_equal(cm_stats(rig.cm)->sent, 2);
	assert_int_equal(cm_stats(rig.cm)->resent, 1);
	assert_int_equal(cm_stats(rig.cm)->unknown, 1);
	assert_int_equal(cm_stats(rig.cm)->unexpected, 1);
}
