/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/cm/agent.c. */
#include <errno.h>
#include <string.h>

#include "agent_rig.h"
#include "test.h"

#define SERVICE 0x0000000001061c06
#define SECOND	UINT64_C(1000000000)
#define MANY	1500 /* requests */

static int set_up(TEST_STATE)
{
	agent_rig_init();
	return 0;
}

static int set_up_bare(TEST_STATE)
{
	agent_rig_init_bare();
	return 0;
}

static int tear_down(TEST_STATE)
{
	agent_rig_fini();
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* Connect to this host; with another last byte, to a host that does not answer. */
static struct cm_conn *connect_to(uint8_t last)
{
	struct cm_connect_attr attr = {
		.to = {.vlan_id = -1, .mac_known = true, .mac = {2}},
		.service_id = SERVICE,
		.qpn = 5,
		.mtu = 3,
		.packet_life_time = 16,
		.response_timeout = 18,
		.max_cm_retries = 2,
	};
	struct cm_conn *conn;
	uint64_t now_ns;
	struct cm *cm;

	memcpy(attr.to.local, agent_rig_gid(AGENT_RIG_IPV4), sizeof(attr.to.local));
	memcpy(attr.to.remote, agent_rig_gid(AGENT_RIG_IPV4), sizeof(attr.to.remote));
	attr.to.remote[15] = last;
	cm = agent_enter(agent_rig.agent, &now_ns);
	assert_int_equal(cm_connect(cm, &attr, now_ns, &conn), 0);
	agent_leave(agent_rig.agent);
	return conn;
}

static struct cm_listener *listen(void)
{
	const struct cm_listen_attr attr = {.service_id = SERVICE, .any_address = true};
	struct cm_listener *listener;
	uint64_t now_ns;

	assert_int_equal(cm_listen(agent_enter(agent_rig.agent, &now_ns), &attr, &listener), 0);
	agent_leave(agent_rig.agent);
	return listener;
}

TEST(agent_get__one_of_a_device)
{
	struct agent *agent;

	assert_int_equal(agent_get(agent_rig.device, &agent_rig_notify, &agent), 0);
	assert_ptr_equal(agent, agent_rig.agent);
}

TEST(agent_get__somebody_else_receives_the_mads, .setup = set_up_bare)
{
	static const struct gsi_ops others;
	struct agent *agent;

	agent_rig.device->gsi = &others;
	assert_int_equal(agent_get(agent_rig.device, &agent_rig_notify, &agent), -EBUSY);
	assert_ptr_equal(agent_rig.device->gsi, &others);
	agent_rig.device->gsi = NULL;
}

TEST(agent_get__keeper_of_the_ports_has_gone, .setup = set_up_bare)
{
	struct agent *agent;

	agent_rig.ids_result = -ENODEV;
	assert_int_equal(agent_get(agent_rig.device, &agent_rig_notify, &agent), -ENODEV);
	assert_null(agent_rig.device->gsi);
}

TEST(agent_destroy__leaves_no_receiver)
{
	agent_destroy(agent_rig.agent);
	agent_rig.agent = NULL;
	assert_null(agent_rig.device->gsi);
	assert_null(agent_rig.device->gsi_user);
}

TEST(agent_ports__are_the_devices_or_our_own)
{
	void *user = NULL;

	agent_rig.device->cm_ports_user = &agent_rig;
	assert_ptr_equal(agent_ports(agent_rig.agent, &user), agent_rig.device->cm_ports);
	assert_ptr_equal(user, &agent_rig);
	agent_rig.device->cm_ports = NULL;
	assert_ptr_equal(agent_ports(agent_rig.agent, &user), &cm_ports_local);
}

/* MADs and events, without waiting for anybody. */
TEST(agent_run__request_reaches_the_own_listener)
{
	listen();
	connect_to(1);
	assert_int_equal(agent_rig.frames, 0);
	assert_int_equal(agent_rig.events, 0);
	agent_rig_run();
	assert_int_equal(agent_rig.events, 1);
	assert_int_equal(agent_rig.event_types[0], CM_EVENT_REQ);
}

/* An engine may send the answers first. */
TEST(agent_receive__leaves_its_events_to_be_told_later)
{
	listen();
	connect_to(1);
	agent_rig.device->gsi_holds = true;
	agent_rig_run();
	assert_int_equal(agent_rig.events, 0);
	assert_true(agent_rig.device->gsi_untold);
	agent_rig.device->gsi_holds = false;
	agent_rig.locked = true;
	gsi_tell(agent_rig.device, agent_rig.now_ns);
	agent_rig.locked = false;
	assert_int_equal(agent_rig.events, 1);
	assert_int_equal(agent_rig.event_types[0], CM_EVENT_REQ);
	assert_false(agent_rig.device->gsi_untold);
}

TEST(agent_run__refused_without_a_listener)
{
	connect_to(1);
	agent_rig_run();
	assert_int_equal(agent_rig.events, 1);
	assert_int_equal(agent_rig.event_types[0], CM_EVENT_REJECTED);
}

/* A full port is asked again in a later pass. */
TEST(agent_run__mads_wait_for_room)
{
	connect_to(9);
	connect_to(9);
	agent_rig.room = 0;
	assert_int_equal(agent_rig_run(), 0);
	assert_int_equal(agent_rig.frames, 0);
	assert_true(gsi_deadline_ns(agent_rig.device) == 0);
	agent_rig.room = 1;
	agent_rig_run();
	assert_int_equal(agent_rig.frames, 1);
	agent_rig.room = 8;
	agent_rig_run();
	assert_int_equal(agent_rig.frames, 2);
	assert_true(gsi_deadline_ns(agent_rig.device) > agent_rig.now_ns);
}

/* The one that finds the port full leaves first in the next pass, and none is lost. */
TEST(agent_run__mads_leave_in_their_order)
{
	for (uint8_t i = 0; i < 6; i++)
		connect_to(9 + i);
	for (unsigned int sent = 0; sent <= 6; sent += 2) {
		assert_int_equal(agent_rig.frames, sent);
		agent_rig.room = 2;
		agent_rig_run();
	}
	for (unsigned int i = 0; i < 6; i++)
		assert_int_equal(agent_rig_dest(i), 9 + i);
}

/* A program may connect as often as it likes before the first pass. */
TEST(agent_run__burst_of_mads_is_kept)
{
	for (unsigned int i = 0; i < MANY; i++)
		connect_to(9);
	agent_rig_run();
	assert_int_equal(agent_rig.frames, MANY);
}

/* An address that went away meanwhile: the MAD is lost, and holds up none behind it. */
TEST(agent_run__mad_that_cannot_be_sent_is_dropped)
{
	connect_to(9);
	memset(&agent_rig.device->gids[AGENT_RIG_IPV4], 0, sizeof(struct device_gid));
	agent_rig_run();
	assert_int_equal(agent_rig.frames, 0);
	assert_true(gsi_deadline_ns(agent_rig.device) > agent_rig.now_ns);
}

TEST(agent_run__timers_end_what_nobody_answers)
{
	connect_to(9);
	for (int i = 0; i < 20; i++)
		agent_rig_pass(2 * SECOND);
	assert_int_equal(agent_rig.events, 1);
	assert_int_equal(agent_rig.event_types[0], CM_EVENT_UNREACHABLE);
	assert_int_equal(agent_rig.frames, 4);
	assert_true(gsi_deadline_ns(agent_rig.device) == UINT64_MAX);
}

TEST(agent_run__timer_and_mads_are_work)
{
	connect_to(9);
	agent_rig.now_ns += 2 * SECOND;
	assert_int_equal(agent_rig_run(), 1 + 2);
	assert_int_equal(agent_rig.frames, 2);
}

TEST(agent_leave__tells_what_the_call_has_brought)
{
	struct cm_listener *listener = listen();
	uint64_t now_ns;

	connect_to(1);
	agent_rig_run();
	agent_rig.events = 0;
	agent_enter(agent_rig.agent, &now_ns);
	cm_conn_destroy(agent_rig.conns[0], now_ns);
	cm_unlisten(listener, now_ns);
	agent_leave(agent_rig.agent);
	assert_int_equal(agent_rig.events, 0);
	agent_rig_run();
	assert_int_equal(agent_rig.events, 1);
	assert_int_equal(agent_rig.event_types[0], CM_EVENT_REJECTED);
}

TEST(agent_leave__tells_before_other_events_come)
{
	const struct cm_accept_attr accept = {.qpn = 6};
	uint64_t now_ns;

	listen();
	connect_to(1);
	agent_rig_run();
	agent_enter(agent_rig.agent, &now_ns);
	assert_int_equal(cm_accept(agent_rig.conns[0], &accept, now_ns), 0);
	assert_int_equal(cm_data_arrived(agent_rig.conns[0], now_ns), 0);
	agent_leave(agent_rig.agent);
	assert_int_equal(agent_rig.events, 2);
	assert_int_equal(agent_rig.event_types[1], CM_EVENT_ESTABLISHED);
}

static unsigned int losses, changes;

static void count_loss(struct agent *agent, uint64_t now_ns)
{
	(void)agent;
	assert_true(now_ns == agent_rig.now_ns);
	losses++;
}

static void count_change(struct agent *agent)
{
	(void)agent;
	changes++;
}

TEST(agent_device_event__loss_and_addresses, .setup = set_up_bare)
{
	const struct agent_notify notify = {.lost = count_loss, .addresses = count_change};

	assert_int_equal(agent_get(agent_rig.device, &notify, &agent_rig.agent), 0);
	losses = changes = 0;
	device_raise(agent_rig.device, IBV_EVENT_PORT_ERR);
	assert_int_equal(changes, 0);
	device_raise(agent_rig.device, IBV_EVENT_GID_CHANGE);
	assert_int_equal(changes, 1);
	assert_int_equal(losses, 0);
	device_raise(agent_rig.device, IBV_EVENT_DEVICE_FATAL);
	assert_int_equal(changes, 1);
	assert_int_equal(losses, 1);
}

/* The process ends: its peers are told in the last passes. */
TEST(agent_end__gives_all_connections_up)
{
	connect_to(9);
	agent_rig_run();
	agent_rig.frames = 0;
	agent_rig.locked = true;
	gsi_end(agent_rig.device, agent_rig.now_ns);
	agent_rig.locked = false;
	agent_rig_run();
	assert_int_equal(agent_rig.frames, 1);
	assert_int_equal(agent_rig.events, 0);
}

TEST(agent_wait__tells_the_engine)
{
	agent_wait(agent_rig.agent);
	assert_int_equal(agent_rig.waits, 1);
}

static void note_service(const struct gsi_conn *conn, void *arg)
{
	assert_int_equal(*(uint64_t *)arg, 0);
	*(uint64_t *)arg = conn->service_id;
}

TEST(gsi_each_conn__tells_the_agents_listeners)
{
	uint64_t service = 0;

	listen();
	gsi_each_conn(agent_rig.device, note_service, &service);
	assert_int_equal(service, SERVICE);
}
