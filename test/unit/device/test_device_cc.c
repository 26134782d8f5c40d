/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/device/device_cc.c and device_cc_change.c: the algorithm of one queue pair, of all,
 * and of new ones. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "device/device.h"
#include "mem/pd.h"
#include "queue/cq.h"
#include "queues.h"
#include "test.h"

#define QPS 3

static const enum ibv_qp_type types[QPS] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
static struct device *device;
static struct pd *pd;
static struct cq *cq;
static struct qp *qps[QPS];
static uint32_t qpns[QPS];
static unsigned int changed;

static void create(uint32_t i)
{
	struct qp_init init = {.pd = pd,
			       .send_cq = cq,
			       .recv_cq = cq,
			       .type = types[i],
			       .cap = {.max_send_wr = 1, .max_recv_wr = 1},
			       .home = device_first(device),
			       .counters = &device_first(device)->counters,
			       .cc = device_engine_cc(device_first(device)),
			       .port_mtu = IBV_MTU_1024};
	struct ibv_qp_cap cap;

	qpns[i] = (uint32_t)device_alloc_qpn(device_first(device));
	init.qpn = qpns[i];
	assert_int_equal(qp_create(&init, &cap, &qps[i]), 0);
	device_set_qp(device, qpns[i], qps[i]);
}

static int set_up(TEST_STATE)
{
	const struct device_config config = {
		.name = "uroce0", .port_mtu_bytes = 1500, .link_mbps = 10000, .unique = "x"};

	assert_int_equal(device_create(&config, &device), 0);
	assert_int_equal(pd_create(device->keys, &pd), 0);
	assert_int_equal(cq_create_in(&(struct cq_attr){.cqe = 16}, &cq), 0);
	for (uint32_t i = 0; i < QPS; i++)
		create(i);
	changed = 0;
	return 0;
}

static int tear_down(TEST_STATE)
{
	for (uint32_t i = 0; i < QPS; i++) {
		device_set_qp(device, qpns[i], NULL);
		qp_retire(qps[i]);
		qp_destroy(qps[i]);
		device_free_qpn(device, qpns[i]);
	}
	assert_int_equal(cq_destroy(cq), 0);
	assert_int_equal(pd_destroy(pd), 0);
	device_destroy(device);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static void each(struct qp *qp, void *arg)
{
	assert_ptr_equal(arg, device);
	assert_non_null(qp);
	changed++;
}

static int change(uint32_t qpn, int kind)
{
	return device_change_cc(device, qpn, (enum cc_kind)kind, each, device);
}

static enum cc_kind kind_of(uint32_t i)
{
	struct qp_view view;

	qp_look(qps[i], &view);
	return view.cc;
}

TEST(device_change_cc__of_one_queue_pair)
{
	assert_int_equal(change(qpns[0], CC_SWIFT), 0);
	assert_int_equal(changed, 1);
	assert_int_equal(kind_of(0), CC_SWIFT);
	assert_int_equal(kind_of(1), CC_NONE);
	assert_int_equal(device_cc_kind(device), CC_NONE);
	/* The shortest round trips have a place from now on. */
	assert_non_null(device_engine_cc(device_first(device)).paths);
	assert_int_equal(change(qpns[0], CC_NONE), 0);
	assert_int_equal(kind_of(0), CC_NONE);
}

TEST(device_change_cc__refuses)
{
	assert_int_equal(change(qpns[0], CC_KINDS), -EINVAL);
	assert_int_equal(change(qpns[0], 255), -EINVAL);
	assert_int_equal(change(qpns[1], CC_SWIFT), -EOPNOTSUPP);
	assert_int_equal(change(qpns[2], CC_DCQCN), -EOPNOTSUPP);
	assert_int_equal(change(1, CC_DCQCN), -ENOENT);
	assert_int_equal(change(0xffffff, CC_DCQCN), -ENOENT);
	assert_int_equal(change(UINT32_MAX, CC_DCQCN), -ENOENT);
	assert_int_equal(changed, 0);
}

TEST(device_change_cc__of_all_and_of_new_ones)
{
	assert_int_equal(change(0, CC_DCQCN), 0);
	assert_int_equal(changed, 2);
	assert_int_equal(kind_of(0), CC_DCQCN);
	assert_int_equal(kind_of(1), CC_DCQCN);
	assert_int_equal(kind_of(2), CC_NONE);
	assert_int_equal(device_cc_kind(device), CC_DCQCN);
	/* Where it does not fit, the former one stays. */
	assert_int_equal(change(0, CC_SWIFT), 0);
	assert_int_equal(kind_of(0), CC_SWIFT);
	assert_int_equal(kind_of(1), CC_DCQCN);
}
