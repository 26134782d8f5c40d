/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/cm/cm_listen.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm_fixture.h"

static char of_any, of_version, of_address, of_vlan;

static int set_up(void **state)
{
	cm_fixture_set_up(state);
	cm_unlisten(rig.listener, rig.now_ns);
	return 0;
}

TEST_FIXTURE(set_up, cm_fixture_tear_down);

static struct cm_listen_attr any(void)
{
	return (struct cm_listen_attr){
		.service_id = RIG_SERVICE, .any_address = true, .user = &of_any};
}

static struct cm_listen_attr bound(void)
{
	struct cm_listen_attr attr = {
		.service_id = RIG_SERVICE, .ip_version = 4, .vlan_id = -1, .user = &of_address};

	memcpy(attr.address, rig.peer.local, sizeof(attr.address));
	return attr;
}

static void listen_at(const struct cm_listen_attr *attr)
{
	struct cm_listener *listener;

	assert_int_equal(cm_listen(rig.cm, attr, &listener), 0);
}

/* Return the listener of a request from the peer. */
static void *taker(uint32_t id)
{
	struct cm_mad req = rig_req();

	req.local_id = id;
	req.req.qpn = id;
	rig_receive(&rig, &req);
	return cm_next_event(rig.cm, &rig.event) ? rig.event.user : NULL;
}

TEST(listen__narrower_one_takes_it)
{
	struct cm_listen_attr attr = any();

	assert_null(taker(10));
	attr.ip_version = 6;
	listen_at(&attr);
	assert_null(taker(11));
	attr.ip_version = 0;
	listen_at(&attr);
	assert_ptr_equal(taker(12), &of_any);
	attr.ip_version = 4;
	attr.user = &of_version;
	listen_at(&attr);
	assert_ptr_equal(taker(13), &of_version);
	attr = bound();
	attr.vlan_id = 5;
	attr.user = &of_vlan;
	listen_at(&attr);
	assert_ptr_equal(taker(14), &of_version);
	attr = bound();
	listen_at(&attr);
	assert_ptr_equal(taker(15), &of_address);
}

TEST(listen__narrower_one_takes_it_though_it_is_older)
{
	struct cm_listen_attr attr = any();

	attr.ip_version = 4;
	attr.user = &of_version;
	listen_at(&attr);
	attr = any();
	listen_at(&attr);
	assert_ptr_equal(taker(10), &of_version);
}

TEST(listen__of_ipv6_takes_ipv6)
{
	struct cm_listen_attr attr = any();
	struct cm_mad req = rig_req();

	attr.ip_version = 6;
	listen_at(&attr);
	rig.peer.local[0] = rig.peer.remote[0] = 0xfd;
	memcpy(req.req.primary.local_gid, rig.peer.remote, 16);
	memcpy(req.req.primary.remote_gid, rig.peer.local, 16);
	rig_receive(&rig, &req);
	rig_event(&rig, CM_EVENT_REQ);
	assert_ptr_equal(rig.event.user, &of_any);
}

TEST(listen__another_address_does_not_take_it)
{
	struct cm_listen_attr attr = bound();

	attr.address[15]++;
	listen_at(&attr);
	assert_null(taker(10));
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_INVALID_SERVICE_ID);
}

TEST(listen__twice_the_same_is_in_use)
{
	struct cm_listen_attr attr = bound();
	struct cm_listener *listener;

	listen_at(&attr);
	assert_int_equal(cm_listen(rig.cm, &attr, &listener), -EADDRINUSE);
	attr.address[15]++;
	listen_at(&attr);
	attr = any();
	listen_at(&attr);
	assert_int_equal(cm_listen(rig.cm, &attr, &listener), -EADDRINUSE);
	attr.datagrams = true;
	listen_at(&attr);
}

/* The fixture listens for datagrams, too. */
static struct gsi_conn seen[3];
static uint32_t seen_count;

static void see(const struct gsi_conn *conn, void *arg)
{
	(void)arg;
	assert_true(seen_count < 3);
	seen[seen_count++] = *conn;
}

TEST(each__listeners_and_connections)
{
	const struct cm_listen_attr attr = bound();
	static const uint8_t any_gid[16];

	listen_at(&attr);
	cm_each(rig.cm, see, NULL);
	assert_int_equal(seen_count, 2);
	assert_int_not_equal(seen[0].number, seen[1].number);
	assert_string_equal(seen[0].state, "LISTEN");
	assert_memory_equal(seen[0].local, rig.peer.local, 16);
	assert_memory_equal(seen[0].remote, any_gid, 16);
	assert_ptr_equal(taker(15), &of_address);
	seen_count = 0;
	cm_each(rig.cm, see, NULL);
	assert_int_equal(seen_count, 3);
	assert_string_equal(seen[2].state, "REQ_RCVD");
	assert_false(seen[2].active);
	assert_true(seen[2].service_id == RIG_SERVICE);
	assert_memory_equal(seen[2].local, rig.peer.local, 16);
	assert_memory_equal(seen[2].remote, rig.peer.remote, 16);
	cm_conn_destroy(rig.event.conn, rig.now_ns);
	rig_expire(&rig);
	rig_bring(&rig, CM_STATE_REQ_SENT);
	seen_count = 0;
	cm_each(rig.cm, see, NULL);
	assert_string_equal(seen[2].state, "REQ_SENT");
	assert_true(seen[2].active);
	assert_true(seen[2].service_id == RIG_SERVICE);
	assert_int_equal(seen[2].qpn, RIG_OUR_QPN);
}

TEST(unlisten__rejects_what_nobody_has_taken)
{
	const struct cm_listen_attr attr = any();
	struct cm_listener *listener;
	struct cm_conn *taken;
	struct cm_mad req = rig_req();

	assert_int_equal(cm_listen(rig.cm, &attr, &listener), 0);
	assert_non_null(taker(10));
	taken = rig.event.conn;
	req.local_id = req.req.qpn = 11;
	rig_receive(&rig, &req);
	req.local_id = req.req.qpn = 12;
	rig_receive(&rig, &req);
	assert_int_equal(rig.sent, 0);
	cm_unlisten(listener, rig.now_ns);
	assert_int_equal(rig.sent, 2);
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_CONSUMER_DEFINED);
	assert_int_equal(cm_conn_state(taken), CM_STATE_REQ_RCVD);
	rig_no_event(&rig);
	assert_null(taker(13));
	cm_conn_take(taken);
}
