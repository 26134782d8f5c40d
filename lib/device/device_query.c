/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to ibv_query_device_ex(3) and ibv_query_port(3): only what this version really
 * supports. */
#include <stdio.h>
#include <string.h>

#include "base/verbs_later.h"
#include "device/device.h"
#include "device/limits.h"
#include "like/like.h"
#include "wire/headers.h"

/* IBTA 14.2.5.6, PortInfo:PortPhysicalState. */
enum phys_state {
	PHYS_STATE_DISABLED = 3,
	PHYS_STATE_LINK_UP = 5,
};

/* One bit for each page size from 4 KiB on: regions have no page table here, so any size will
 * do. */
#define PAGE_SIZE_CAP 0xfffffffffffff000u

/* IBV_DEVICE_MEM_MGT_EXTENSIONS stands for SEND with invalidate, LOCAL_INV and windows of type 2.
 * Only users within a kernel register memory by work requests. NVMe-oF targets invalidate their
 * initiator's keys only if they see this flag. */
#define CAP_FLAGS                                                                                  \
	(IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_UD_AV_PORT_ENFORCE |     \
	 IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID | \
	 IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_XRC |                      \
	 IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS)

/* Bits of Linux's enum ib_uverbs_device_cap_flags that do not fit into the older field. */
#define CAP_FLAGS_LATER (LATER_DEVICE_ATOMIC_WRITE | LATER_DEVICE_FLUSH_GLOBAL)

static void query_basic(const struct device *device, struct ibv_device_attr *attr)
{
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%s", UROCE_VERSION);
	attr->node_guid = device->node_guid_be;
	attr->sys_image_guid = device->node_guid_be;
	attr->max_mr_size = DEVICE_MAX_MR_BYTES;
	attr->page_size_cap = PAGE_SIZE_CAP;
	attr->vendor_id = DEVICE_VENDOR_ID;
	attr->vendor_part_id = DEVICE_VENDOR_PART_ID;
	attr->hw_ver = 1;
	attr->max_qp = (int)device->qp_max;
	attr->max_qp_wr = DEVICE_MAX_QP_WR;
	attr->device_cap_flags = CAP_FLAGS;
	attr->max_sge = DEVICE_MAX_SGE;
	attr->max_sge_rd = DEVICE_MAX_SGE;
	attr->max_cq = DEVICE_MAX_CQ;
	attr->max_cqe = DEVICE_MAX_CQE;
	attr->max_mr = DEVICE_MAX_MR;
	attr->max_mw = DEVICE_MAX_MW;
	attr->max_pd = DEVICE_MAX_PD;
	attr->max_qp_rd_atom = DEVICE_TOLD_RD_ATOMIC;
	attr->max_qp_init_rd_atom = DEVICE_TOLD_RD_ATOMIC;
	attr->max_res_rd_atom = (int)device->qp_max * DEVICE_TOLD_RD_ATOMIC;
	attr->atomic_cap = IBV_ATOMIC_HCA;
	attr->max_ah = DEVICE_MAX_AH;
	attr->max_srq = DEVICE_MAX_SRQ;
	attr->max_srq_wr = DEVICE_MAX_QP_WR;
	attr->max_srq_sge = DEVICE_MAX_SGE;
	attr->max_mcast_grp = DEVICE_MAX_MCAST_GRP;
	attr->max_mcast_qp_attach = DEVICE_MAX_MCAST_QP_ATTACH;
	attr->max_total_mcast_qp_attach = DEVICE_MAX_MCAST_GRP * DEVICE_MAX_MCAST_QP_ATTACH;
	attr->max_pkeys = 1;
	attr->local_ca_ack_delay = DEVICE_LOCAL_ACK_DELAY;
	attr->phys_port_cnt = 1;
}

/* Report on-demand paging for every operation: every access to a region may fault pages in. */
static void query_odp(struct ibv_device_attr_ex *attr)
{
	const uint32_t receive = IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
	const uint32_t send = IBV_ODP_SUPPORT_SEND;
	const uint32_t reliable =
		IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;

	attr->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = send | receive | reliable;
	attr->odp_caps.per_transport_caps.uc_odp_caps = send | receive | IBV_ODP_SUPPORT_WRITE;
	attr->odp_caps.per_transport_caps.ud_odp_caps = send | receive;
	attr->xrc_odp_caps = send | IBV_ODP_SUPPORT_SRQ_RECV | reliable;
}

void device_query(const struct device *device, struct ibv_device_attr_ex *attr)
{
	memset(attr, 0, sizeof(*attr));
	query_basic(device, &attr->orig_attr);
	attr->device_cap_flags_ex = CAP_FLAGS | CAP_FLAGS_LATER;
	attr->phys_port_cnt_ex = 1;
	/* Completion time stamps are in nanoseconds, as those of a clock of 1 GHz. */
	attr->completion_timestamp_mask = UINT64_MAX;
	attr->hca_core_clock = 1000000; /* kHz */
	attr->cq_mod_caps.max_cq_count = DEVICE_MAX_CQ_MODERATION;
	attr->cq_mod_caps.max_cq_period = DEVICE_MAX_CQ_MODERATION;
	attr->max_dm_size = DEVICE_MAX_DM_BYTES;
	attr->packet_pacing_caps.qp_rate_limit_min = 1;
	attr->packet_pacing_caps.qp_rate_limit_max = DEVICE_MAX_RATE_KBPS;
	attr->packet_pacing_caps.supported_qpts =
		1u << IBV_QPT_RC | 1u << IBV_QPT_UC | 1u << IBV_QPT_UD | 1u << IBV_QPT_XRC_SEND;
	query_odp(attr);
	like_limit(attr);
}

/* Codes of PortInfo:LinkWidthActive and LinkSpeedActive, with the values of verbs. */
enum {
	WIDTH_1X = 1,
	WIDTH_4X = 2,
	SPEED_SDR = 1,
	SPEED_DDR = 2,
	SPEED_FDR10 = 8,
	SPEED_EDR = 32,
	SPEED_HDR = 64,
	SPEED_NDR = 128,
};

/* Set the InfiniBand rate that represents the rate of an Ethernet link, as Linux chooses it. */
static void query_rate(uint64_t mbps, struct ibv_port_attr *attr)
{
	static const struct {
		uint64_t mbps;
		uint8_t width;
		uint8_t speed;
	} rates[] = {
		{1000, WIDTH_1X, SPEED_SDR},	{10000, WIDTH_1X, SPEED_FDR10},
		{20000, WIDTH_4X, SPEED_DDR},	{25000, WIDTH_1X, SPEED_EDR},
		{40000, WIDTH_4X, SPEED_FDR10}, {100000, WIDTH_4X, SPEED_EDR},
		{200000, WIDTH_4X, SPEED_HDR},	{UINT64_MAX, WIDTH_4X, SPEED_NDR},
	};
	size_t i = 0;

	while (mbps > rates[i].mbps)
		i++;
	attr->active_width = rates[i].width;
	attr->active_speed = rates[i].speed;
}

void device_query_port(const struct device *device, struct ibv_port_attr *attr)
{
	const bool up = __atomic_load_n(&device->link_up, __ATOMIC_ACQUIRE);

	memset(attr, 0, sizeof(*attr));
	attr->state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	attr->phys_state = up ? PHYS_STATE_LINK_UP : PHYS_STATE_DISABLED;
	attr->max_mtu = IBV_MTU_4096;
	attr->active_mtu = device->mtu;
	attr->gid_tbl_len = DEVICE_GIDS_MAX;
	attr->port_cap_flags = IBV_PORT_IP_BASED_GIDS;
	attr->max_msg_sz = (uint32_t)like_most(LIKE_max_msg_sz, WIRE_MESSAGE_MAX);
	attr->bad_pkey_cntr = (uint32_t)device_counter(device, COUNTER_rx_wrong_pkey);
	attr->qkey_viol_cntr = (uint32_t)device_counter(device, COUNTER_rx_wrong_qkey);
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	attr->link_layer = IBV_LINK_LAYER_ETHERNET;
	attr->flags = IBV_QPF_GRH_REQUIRED;
	query_rate(device->config.link_mbps, attr);
}
