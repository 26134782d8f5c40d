/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/device/mcast.c. Stand-ins for queue pairs count what they are given. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "device/device.h"
#include "device/limits.h"
#include "device/mcast.h"
#include "qp/qp.h"
#include "wire/packet.h"
#include "test.h"

#define QPS (DEVICE_MAX_MCAST_QP_ATTACH + 1)

struct qp {
	uint32_t number;
	unsigned int received;
	enum ibv_qp_state state;
	unsigned int kicked;
	uint32_t home; /* number of its engine */
};

static const union ibv_gid ipv4_group = {.raw = {[10] = 0xff, 0xff, 239, 1, 2, 3}};
static const union ibv_gid ipv6_group = {.raw = {0xff, 0x0e, [15] = 7}};
static const union ibv_gid own_gid = {.raw = {[10] = 0xff, 0xff, 10, 0, 0, 1}};

static struct device *device;
static struct qp qps[QPS];
static unsigned int joins, leaves;
static unsigned int others_kicks; /* stands for the driver of the second engine */
static int join_result;
static uint32_t locked; /* engines that are stopped for a control call */

uint32_t qp_number(const struct qp *qp)
{
	return qp->number;
}

struct device_engine *qp_home(const struct qp *qp)
{
	return device->engines[qp->home];
}

void qp_prefetch_receive(const struct qp *qp, bool request)
{
	(void)qp;
	(void)request;
}

bool qp_receive(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	(void)packet;
	assert_int_equal(now_ns, 77);
	qp->received++;
	return true;
}

enum ibv_qp_state qp_state(const struct qp *qp)
{
	return qp->state;
}

static void kick(void *engine, struct qp *qp)
{
	assert_ptr_equal(engine, qp->home == 0 ? &joins : &others_kicks);
	qp->kicked++;
}

static int join(void *engine, const union ibv_gid *gid)
{
	(void)gid;
	assert_ptr_equal(engine, &joins);
	/* It may take seconds: the engines run. */
	assert_int_equal(locked, 0);
	joins += join_result == 0;
	return join_result;
}

static void leave(void *engine, const union ibv_gid *gid)
{
	(void)gid;
	assert_ptr_equal(engine, &joins);
	assert_int_equal(locked, 0);
	leaves++;
}

static void lock(void *engine)
{
	(void)engine;
	locked++;
}

static void unlock(void *engine)
{
	(void)engine;
	locked--;
}

static const struct engine_ops ops = {.kick = kick, .lock = lock, .unlock = unlock};
static const struct device_net_ops net = {.join = join, .leave = leave};

static int set_up(TEST_STATE)
{
	const struct device_config config = {
		.name = "uroce0", .port_mtu_bytes = 1500, .engines = 2};

	memset(qps, 0, sizeof(qps));
	for (uint32_t i = 0; i < QPS; i++)
		qps[i].number = 100 + i;
	joins = leaves = 0;
	join_result = 0;
	if (device_create(&config, &device) != 0)
		return -1;
	for (uint32_t i = 0; i < device->engine_count; i++) {
		device->engines[i]->ops = &ops;
		device->engines[i]->driver = i == 0 ? &joins : &others_kicks;
	}
	device->net = &net;
	device->net_user = &joins;
	return device_add_gid(device, &own_gid, -1, 0);
}

static int tear_down(TEST_STATE)
{
	assert_int_equal(device->group_count, 0);
	assert_int_equal(joins, leaves);
	device_destroy(device);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static bool deliver_to(uint32_t engine, const union ibv_gid *group, uint32_t src_qpn,
		       const union ibv_gid *source)
{
	struct packet packet = {.src_qpn = src_qpn};

	memcpy(packet.dgid, group->raw, sizeof(packet.dgid));
	memcpy(packet.sgid, source->raw, sizeof(packet.sgid));
	return mcast_deliver(device->engines[engine], &packet, 77);
}

static bool deliver(const union ibv_gid *group, uint32_t src_qpn, const union ibv_gid *source)
{
	return deliver_to(0, group, src_qpn, source);
}

TEST(mcast_attach__one_copy_to_each)
{
	assert_int_equal(mcast_attach(device, &ipv4_group, &qps[0], false), 1);
	assert_int_equal(mcast_attach(device, &ipv4_group, &qps[1], false), 1);
	assert_int_equal(mcast_attach(device, &ipv4_group, &qps[1], false), 0);
	assert_int_equal(mcast_attach(device, &ipv6_group, &qps[1], false), 1);
	assert_int_equal(joins, 2);
	assert_true(deliver(&ipv4_group, 5, &ipv6_group));
	assert_int_equal(qps[0].received, 1);
	assert_int_equal(qps[1].received, 1);
	assert_true(deliver(&ipv6_group, 5, &ipv6_group));
	assert_int_equal(qps[0].received, 1);
	assert_int_equal(qps[1].received, 2);
	assert_int_equal(mcast_detach(device, &ipv4_group, &qps[0]), 0);
	assert_int_equal(mcast_detach(device, &ipv4_group, &qps[0]), -EINVAL);
	assert_int_equal(leaves, 0);
	assert_true(deliver(&ipv4_group, 5, &ipv6_group));
	assert_int_equal(qps[0].received, 1);
	assert_int_equal(qps[1].received, 3);
	assert_int_equal(mcast_detach(device, &ipv4_group, &qps[1]), 0);
	assert_int_equal(leaves, 1);
	assert_false(deliver(&ipv4_group, 5, &ipv6_group));
	assert_int_equal(mcast_detach(device, &ipv4_group, &qps[1]), -EINVAL);
	assert_int_equal(mcast_detach(device, &ipv6_group, &qps[1]), 0);
}

/* A queue pair knows its own datagrams by the source QPN and an address of this device. */
TEST(mcast_attach__own_datagrams_may_be_blocked)
{
	const union ibv_gid other = {.raw = {[10] = 0xff, 0xff, 10, 0, 0, 2}};

	assert_int_equal(mcast_attach(device, &ipv4_group, &qps[0], true), 1);
	assert_int_equal(mcast_attach(device, &ipv4_group, &qps[1], false), 1);
	assert_true(deliver(&ipv4_group, qps[0].number, &own_gid));
	assert_int_equal(qps[0].received, 0);
	assert_int_equal(qps[1].received, 1);
	assert_true(deliver(&ipv4_group, qps[1].number, &own_gid));
	assert_true(deliver(&ipv4_group, qps[0].number, &other));
	assert_int_equal(qps[0].received, 2);
	assert_int_equal(qps[1].received, 3);
	assert_int_equal(mcast_detach(device, &ipv4_group, &qps[0]), 0);
	assert_int_equal(mcast_detach(device, &ipv4_group, &qps[1]), 0);
}

TEST(mcast_deliver__who_fails_is_run)
{
	assert_int_equal(mcast_attach(device, &ipv4_group, &qps[0], false), 1);
	assert_int_equal(mcast_attach(device, &ipv4_group, &qps[1], false), 1);
	qps[0].state = IBV_QPS_RTR;
	qps[1].state = IBV_QPS_ERR;
	assert_true(deliver(&ipv4_group, 5, &ipv6_group));
	assert_int_equal(qps[0].kicked, 0);
	assert_int_equal(qps[1].kicked, 1);
	assert_int_equal(mcast_detach(device, &ipv4_group, &qps[0]), 0);
	assert_int_equal(mcast_detach(device, &ipv4_group, &qps[1]), 0);
}

/* Each engine has a copy of the packet for its own queue pairs. */
TEST(mcast_deliver__to_the_queue_pairs_of_its_engine)
{
	for (int i = 0; i < 4; i++) {
		qps[i].home = i % 2;
		assert_int_equal(mcast_attach(device, &ipv4_group, &qps[i], false), 1);
	}
	assert_int_equal(joins, 1);
	qps[3].state = IBV_QPS_ERR;
	assert_true(deliver_to(0, &ipv4_group, 5, &ipv6_group));
	for (int i = 0; i < 4; i++)
		assert_int_equal(qps[i].received, i % 2 == 0);
	assert_int_equal(qps[3].kicked, 0);
	assert_true(deliver_to(1, &ipv4_group, 5, &ipv6_group));
	for (int i = 0; i < 4; i++)
		assert_int_equal(qps[i].received, 1);
	assert_int_equal(qps[3].kicked, 1);
	for (int i = 0; i < 4; i++)
		mcast_detach_all(device, &qps[i]);
}

/* A group that only another engine has members of is known, and its packets are no errors. */
TEST(mcast_deliver__an_engine_without_members)
{
	qps[0].home = 1;
	assert_int_equal(mcast_attach(device, &ipv4_group, &qps[0], false), 1);
	assert_true(deliver_to(0, &ipv4_group, 5, &ipv6_group));
	assert_int_equal(qps[0].received, 0);
	assert_int_equal(mcast_detach(device, &ipv4_group, &qps[0]), 0);
}

TEST(mcast_attach__keeps_the_limits)
{
	union ibv_gid gid = ipv6_group;
	struct ibv_device_attr_ex attr;

	device_query(device, &attr);
	assert_int_equal(attr.orig_attr.max_mcast_qp_attach, DEVICE_MAX_MCAST_QP_ATTACH);
	for (int i = 0; i < attr.orig_attr.max_mcast_qp_attach; i++)
		assert_int_equal(mcast_attach(device, &ipv4_group, &qps[i], false), 1);
	assert_int_equal(mcast_attach(device, &ipv4_group, &qps[QPS - 1], false), -ENOMEM);
	assert_true(deliver(&ipv4_group, 5, &ipv6_group));
	for (int i = 0; i < attr.orig_attr.max_mcast_qp_attach; i++) {
		assert_int_equal(qps[i].received, 1);
		assert_int_equal(mcast_detach(device, &ipv4_group, &qps[i]), 0);
	}
	for (int i = 0; i < attr.orig_attr.max_mcast_grp; i++) {
		gid.raw[12] = (uint8_t)(i >> 8);
		gid.raw[15] = (uint8_t)i;
		assert_int_equal(mcast_attach(device, &gid, &qps[0], false), 1);
	}
	assert_int_equal(mcast_attach(device, &ipv4_group, &qps[0], false), -ENOMEM);
	for (int i = 0; i < attr.orig_attr.max_mcast_grp; i++) {
		gid.raw[12] = (uint8_t)(i >> 8);
		gid.raw[15] = (uint8_t)i;
		assert_true(deliver(&gid, 5, &ipv6_group));
		assert_int_equal(mcast_detach(device, &gid, &qps[0]), 0);
	}
}

TEST(mcast_attach__fails_where_the_port_cannot_join)
{
	join_result = -ENODEV;
	assert_int_equal(mcast_attach(device, &ipv4_group, &qps[0], false), -ENODEV);
	assert_false(deliver(&ipv4_group, 5, &ipv6_group));
}

TEST(mcast_attach__takes_groups_only)
{
	assert_int_equal(mcast_attach(device, &own_gid, &qps[0], false), -EINVAL);
}
