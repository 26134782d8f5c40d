/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes of the connection manager's messages behind the MAD header (IBTA 12.6, 12.8, 12.11).
 * Private to the room. */
#ifndef WIRE_CM_LAYOUT_H
#define WIRE_CM_LAYOUT_H

#include "wire/cm.h"

#define CM_DATA_LEN (MAD_LEN - sizeof(struct mad_header))

struct mad_path {
	rte_be16_t local_lid;
	rte_be16_t remote_lid;
	uint8_t local_gid[16];
	uint8_t remote_gid[16];
	rte_be32_t flow_rate; /* flow label << 12, packet rate in the lower 6 bits */
	uint8_t tclass;
	uint8_t hop_limit;
	uint8_t sl;	     /* SL << 4, MAD_PATH_SUBNET_LOCAL */
	uint8_t ack_timeout; /* << 3; alternate path of a REQ: MAD_REQ_SAP */
} __attribute__((packed));
static_assert(sizeof(struct mad_path) == 44, "a path is 44 bytes");

#define MAD_PATH_FLOW_SHIFT   12
#define MAD_PATH_RATE_MASK    0x3f
#define MAD_PATH_SUBNET_LOCAL 0x08
#define MAD_REQ_SAP	      0x04
#define MAD_TIME_SHIFT	      3 /* 5-bit times stand in the upper bits of their byte */
#define MAD_TIME_MASK	      0x1f

/* Table 106. */
struct mad_req {
	rte_be32_t local_id;
	uint8_t reserved1;
	uint8_t vendor_id[3];
	rte_be64_t service_id;
	rte_be64_t ca_guid;
	rte_be32_t reserved2;
	rte_be32_t qkey;
	uint8_t qpn[3];
	uint8_t responder_resources;
	uint8_t local_eecn[3];
	uint8_t initiator_depth;
	uint8_t remote_eecn[3];
	uint8_t remote_timeout; /* << 3, transport << 1, MAD_REQ_FLOW_CONTROL */
	uint8_t psn[3];
	uint8_t local_timeout; /* << 3, retry count */
	rte_be16_t pkey;
	uint8_t mtu;		/* << 4, MAD_REQ_RDC, RNR retry count */
	uint8_t max_cm_retries; /* << 4, MAD_REQ_SRQ, extended transport type */
	struct mad_path primary;
	struct mad_path alternate;
	uint8_t private_data[CM_REQ_PRIVATE];
} __attribute__((packed));
static_assert(sizeof(struct mad_req) == CM_DATA_LEN, "a REQ fills its MAD");

#define MAD_REQ_TRANSPORT_SHIFT 1
#define MAD_REQ_TRANSPORT_MASK	0x3
#define MAD_REQ_FLOW_CONTROL	0x01
#define MAD_REQ_RDC		0x08
#define MAD_REQ_SRQ		0x08
#define MAD_COUNT_MASK		0x07 /* 3-bit counts in the lower bits */

/* Table 107. */
struct mad_mra {
	rte_be32_t local_id;
	rte_be32_t remote_id;
	uint8_t about;		 /* << 6 */
	uint8_t service_timeout; /* << 3 */
	uint8_t private_data[CM_MRA_PRIVATE];
} __attribute__((packed));
static_assert(sizeof(struct mad_mra) == CM_DATA_LEN, "an MRA fills its MAD");

#define MAD_ABOUT_SHIFT 6

/* Table 108. */
struct mad_rej {
	rte_be32_t local_id;
	rte_be32_t remote_id;
	uint8_t about;	  /* << 6 */
	uint8_t info_len; /* << 1 */
	rte_be16_t reason;
	uint8_t info[CM_INFO_MAX];
	uint8_t private_data[CM_REJ_PRIVATE];
} __attribute__((packed));
static_assert(sizeof(struct mad_rej) == CM_DATA_LEN, "a REJ fills its MAD");

/* Table 110. */
struct mad_rep {
	rte_be32_t local_id;
	rte_be32_t remote_id;
	rte_be32_t qkey;
	uint8_t qpn[3];
	uint8_t vendor_id_high; /* bits 23 to 16; the next ones: 15 to 8, 7 to 0 */
	uint8_t eecn[3];
	uint8_t vendor_id_middle;
	uint8_t psn[3];
	uint8_t vendor_id_low;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t target_ack_delay; /* << 3, failover << 1, MAD_REP_FLOW_CONTROL */
	uint8_t rnr_retry_count;  /* << 5, MAD_REP_SRQ */
	rte_be64_t ca_guid;
	uint8_t private_data[CM_REP_PRIVATE];
} __attribute__((packed));
static_assert(sizeof(struct mad_rep) == CM_DATA_LEN, "a REP fills its MAD");

#define MAD_REP_FAILOVER_SHIFT 1
#define MAD_REP_FAILOVER_MASK  0x3
#define MAD_REP_FLOW_CONTROL   0x01
#define MAD_REP_RNR_SHIFT      5
#define MAD_REP_SRQ	       0x10

/* Tables 111 and 113: RTU and DREP have the two ids only. */
struct mad_ids {
	rte_be32_t local_id;
	rte_be32_t remote_id;
	uint8_t private_data[CM_RTU_PRIVATE];
} __attribute__((packed));
static_assert(sizeof(struct mad_ids) == CM_DATA_LEN, "an RTU fills its MAD");
static_assert((int)CM_RTU_PRIVATE == (int)CM_DREP_PRIVATE, "a DREP is as an RTU");

/* Table 112. */
struct mad_dreq {
	rte_be32_t local_id;
	rte_be32_t remote_id;
	uint8_t remote_qpn[3];
	uint8_t reserved;
	uint8_t private_data[CM_DREQ_PRIVATE];
} __attribute__((packed));
static_assert(sizeof(struct mad_dreq) == CM_DATA_LEN, "a DREQ fills its MAD");

/* Table 119. */
struct mad_sidr_req {
	rte_be32_t request_id;
	rte_be16_t pkey;
	rte_be16_t reserved;
	rte_be64_t service_id;
	uint8_t private_data[CM_SIDR_REQ_PRIVATE];
} __attribute__((packed));
static_assert(sizeof(struct mad_sidr_req) == CM_DATA_LEN, "a SIDR_REQ fills its MAD");

/* Table 120. */
struct mad_sidr_rep {
	rte_be32_t request_id;
	uint8_t status;
	uint8_t info_len;
	rte_be16_t reserved1;
	uint8_t qpn[3];
	uint8_t reserved2;
	rte_be64_t service_id;
	rte_be32_t qkey;
	uint8_t info[CM_INFO_MAX];
	uint8_t private_data[CM_SIDR_REP_PRIVATE];
} __attribute__((packed));
static_assert(sizeof(struct mad_sidr_rep) == CM_DATA_LEN, "a SIDR_REP fills its MAD");

/* Table 115. */
struct mad_lap {
	rte_be32_t local_id;
	rte_be32_t remote_id;
	rte_be32_t reserved1;
	uint8_t remote_qpn[3];
	uint8_t remote_timeout; /* << 3 */
	rte_be32_t reserved2;
	rte_be16_t local_lid;
	rte_be16_t remote_lid;
	uint8_t local_gid[16];
	uint8_t remote_gid[16];
	uint8_t flow_label[3]; /* << 4 */
	uint8_t tclass;
	uint8_t hop_limit;
	uint8_t packet_rate;
	uint8_t sl;	     /* SL << 4, MAD_PATH_SUBNET_LOCAL */
	uint8_t ack_timeout; /* << 3 */
	uint8_t private_data[CM_LAP_PRIVATE];
} __attribute__((packed));
static_assert(sizeof(struct mad_lap) == CM_DATA_LEN, "a LAP fills its MAD");

#define MAD_LAP_FLOW_SHIFT 4

/* Table 116. */
struct mad_apr {
	rte_be32_t local_id;
	rte_be32_t remote_id;
	uint8_t info_len;
	uint8_t status;
	rte_be16_t reserved;
	uint8_t info[CM_INFO_MAX];
	uint8_t private_data[CM_APR_PRIVATE];
} __attribute__((packed));
static_assert(sizeof(struct mad_apr) == CM_DATA_LEN, "an APR fills its MAD");

#endif
