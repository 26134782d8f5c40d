/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/device/device_query.c. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/verbs_later.h"
#include "device/device.h"
#include "device/limits.h"
#include "test.h"

static struct device *device;

static int set_up(TEST_STATE)
{
	const struct device_config config = {
		.name = "uroce0", .port_mtu_bytes = 4200, .link_mbps = 25000};

	return device_create(&config, &device);
}

static int tear_down(TEST_STATE)
{
	device_destroy(device);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

TEST(device_query__the_limits_are_told)
{
	struct ibv_device_attr_ex attr;
	const struct ibv_device_attr *basic = &attr.orig_attr;

	memset(&attr, 0xff, sizeof(attr));
	device_query(device, &attr);
	assert_int_equal(basic->max_qp, DEVICE_MAX_QP);
	assert_int_equal(basic->max_qp_wr, DEVICE_MAX_QP_WR);
	assert_int_equal(basic->max_sge, DEVICE_MAX_SGE);
	assert_true(basic->max_sge >= 32);
	assert_int_equal(basic->max_sge_rd, DEVICE_MAX_SGE);
	assert_int_equal(basic->max_cq, DEVICE_MAX_CQ);
	assert_int_equal(basic->max_cqe, DEVICE_MAX_CQE);
	assert_int_equal(basic->max_mr, DEVICE_MAX_MR);
	assert_true(basic->max_mr >= 1 << 20);
	assert_int_equal(basic->max_mw, DEVICE_MAX_MW);
	assert_true(basic->device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	assert_true(basic->device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	assert_int_equal(basic->max_pd, DEVICE_MAX_PD);
	assert_int_equal(basic->max_ah, DEVICE_MAX_AH);
	assert_int_equal(basic->max_srq, DEVICE_MAX_SRQ);
	assert_int_equal(basic->max_srq_wr, DEVICE_MAX_QP_WR);
	assert_int_equal(basic->max_srq_sge, DEVICE_MAX_SGE);
	assert_true(basic->device_cap_flags & IBV_DEVICE_XRC);
	assert_true(basic->device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
	assert_int_equal(basic->max_qp_rd_atom, DEVICE_TOLD_RD_ATOMIC);
	assert_int_equal(basic->max_qp_init_rd_atom, DEVICE_TOLD_RD_ATOMIC);
	assert_int_equal(basic->max_res_rd_atom, DEVICE_MAX_QP * DEVICE_TOLD_RD_ATOMIC);
	assert_int_equal(basic->atomic_cap, IBV_ATOMIC_HCA);
	assert_int_equal(basic->max_pkeys, 1);
	assert_int_equal(basic->phys_port_cnt, 1);
	assert_int_equal(attr.phys_port_cnt_ex, 1);
	assert_int_equal(attr.device_cap_flags_ex & UINT32_MAX, basic->device_cap_flags);
	assert_int_equal(attr.device_cap_flags_ex >> 32,
			 (LATER_DEVICE_ATOMIC_WRITE | LATER_DEVICE_FLUSH_GLOBAL) >> 32);
	assert_int_equal(attr.max_dm_size, DEVICE_MAX_DM_BYTES);
	/* Every page size of the system and above. */
	assert_int_equal(basic->page_size_cap & 0x200fff, 0x200000);
}

TEST(device_query__stamps_are_nanoseconds)
{
	struct ibv_device_attr_ex attr;

	device_query(device, &attr);
	assert_true(attr.completion_timestamp_mask == UINT64_MAX);
	assert_int_equal(attr.hca_core_clock, 1000000);
	assert_int_equal(attr.cq_mod_caps.max_cq_count, UINT16_MAX);
	assert_int_equal(attr.cq_mod_caps.max_cq_period, UINT16_MAX);
}

TEST(device_query__who_sends_can_be_paced)
{
	const struct ibv_packet_pacing_caps *caps;
	struct ibv_device_attr_ex attr;

	device_query(device, &attr);
	caps = &attr.packet_pacing_caps;
	assert_int_equal(caps->qp_rate_limit_min, 1);
	assert_int_equal(caps->qp_rate_limit_max, DEVICE_MAX_RATE_KBPS);
	assert_int_equal(caps->supported_qpts, 1 << IBV_QPT_RC | 1 << IBV_QPT_UC | 1 << IBV_QPT_UD |
						       1 << IBV_QPT_XRC_SEND);
}

TEST(device_query__what_is_not_built_is_not_told)
{
	const unsigned int not_built =
		IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_UD_IP_CSUM | IBV_DEVICE_AUTO_PATH_MIG;
	struct ibv_device_attr_ex attr;

	memset(&attr, 0xff, sizeof(attr));
	device_query(device, &attr);
	assert_int_equal(attr.orig_attr.device_cap_flags & not_built, 0);
	assert_int_equal(attr.orig_attr.max_raw_ethy_qp, 0);
	assert_int_equal(attr.raw_packet_caps, 0);
	assert_int_equal(attr.comp_mask, 0);
}

/* SPDK's target and Linux's send with invalidate only to and from devices with this flag. */
TEST(device_query__memory_management_extensions)
{
	struct ibv_device_attr_ex attr;

	device_query(device, &attr);
	assert_true(attr.orig_attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS);
}

TEST(device_query__on_demand_paging_is_told_by_type)
{
	const uint32_t send = IBV_ODP_SUPPORT_SEND;
	const uint32_t receive = IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
	struct ibv_device_attr_ex attr;

	device_query(device, &attr);
	assert_int_equal(attr.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	assert_int_equal(attr.odp_caps.per_transport_caps.rc_odp_caps,
			 send | receive | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
				 IBV_ODP_SUPPORT_ATOMIC);
	assert_int_equal(attr.odp_caps.per_transport_caps.uc_odp_caps,
			 send | receive | IBV_ODP_SUPPORT_WRITE);
	assert_int_equal(attr.odp_caps.per_transport_caps.ud_odp_caps, send | receive);
	assert_int_equal(attr.xrc_odp_caps, send | IBV_ODP_SUPPORT_SRQ_RECV |
						    IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
						    IBV_ODP_SUPPORT_ATOMIC);
}

TEST(device_query__it_is_its_own_device)
{
	static const uint32_t taken[] = {0, 0xffffff, 0x15b3, 5157, 0x8086};
	struct ibv_device_attr_ex attr;

	device_query(device, &attr);
	assert_string_equal(attr.orig_attr.fw_ver, UROCE_VERSION);
	assert_int_equal(attr.orig_attr.node_guid, device->node_guid_be);
	assert_int_equal(attr.orig_attr.sys_image_guid, device->node_guid_be);
	assert_int_not_equal(attr.orig_attr.node_guid, 0);
	assert_true(attr.orig_attr.vendor_id < 1 << 24);
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		assert_int_not_equal(attr.orig_attr.vendor_id, taken[i]);
	/* The first octet has the group bit: no vendor can have it. */
	assert_int_equal(attr.orig_attr.vendor_id >> 16 & 1, 1);
}

TEST(device_query_port__follows_the_link)
{
	struct ibv_port_attr attr;

	device_query_port(device, &attr);
	assert_int_equal(attr.state, IBV_PORT_DOWN);
	assert_int_equal(attr.phys_state, 3);
	device->link_up = true;
	device_query_port(device, &attr);
	assert_int_equal(attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(attr.phys_state, 5);
}

TEST(device_query_port__it_is_a_roce_port)
{
	struct ibv_port_attr attr;

	memset(&attr, 0xff, sizeof(attr));
	counters_add(&device_first(device)->counters, COUNTER_rx_wrong_pkey, 3);
	device_query_port(device, &attr);
	assert_int_equal(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(attr.flags, IBV_QPF_GRH_REQUIRED);
	assert_int_equal(attr.max_mtu, IBV_MTU_4096);
	assert_int_equal(attr.active_mtu, IBV_MTU_4096);
	assert_int_equal(attr.gid_tbl_len, DEVICE_GIDS_MAX);
	assert_int_equal(attr.pkey_tbl_len, 1);
	assert_int_equal(attr.max_msg_sz, 0x80000000);
	assert_int_equal(attr.bad_pkey_cntr, 3);
	assert_int_equal(attr.lid, 0);
	assert_int_equal(attr.sm_lid, 0);
	assert_int_equal(attr.port_cap_flags, IBV_PORT_IP_BASED_GIDS);
	assert_int_equal(attr.port_cap_flags2, 0);
}

TEST(device_query_port__the_rate_is_that_of_the_link)
{
	static const struct {
		uint64_t mbps;
		uint8_t width;
		uint8_t speed;
	} cases[] = {
		{0, 1, 1},	 {1000, 1, 1},	   {1001, 1, 8},	 {10000, 1, 8},
		{25000, 1, 32},	 {40000, 2, 8},	   {50000, 2, 32},	 {100000, 2, 32},
		{200000, 2, 64}, {400000, 2, 128}, {UINT64_MAX, 2, 128},
	};
	struct ibv_port_attr attr;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		device->config.link_mbps = cases[i].mbps;
		device_query_port(device, &attr);
		assert_int_equal(attr.active_width, cases[i].width);
		assert_int_equal(attr.active_speed, cases[i].speed);
	}
}
