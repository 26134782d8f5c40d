/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses queries and builds reports of multicast memberships (IGMP and MLD). */
#include "net/membership.h"

#include <assert.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>

#define TOS_CONTROL	  0xc0 /* RFC 3376, 4: internetwork control */
#define IGMP_QUERY	  0x11
#define IGMP_V2_REPORT	  0x16
#define IGMP_V2_LEAVE	  0x17
#define IGMP_V3_REPORT	  0x22
#define IGMP_V3_QUERY_LEN 12 /* older queries are 8 bytes, RFC 3376, 7.1 */
#define MLD_QUERY	  130
#define MLD_V1_REPORT	  131
#define MLD_V1_DONE	  132
#define MLD_V2_REPORT	  143
#define MLD_V2_QUERY_LEN  28			/* older queries are 24 bytes, RFC 3810, 8.1 */
#define V1_DELAY_NS	  UINT64_C(10000000000) /* IGMPv1 gives none, RFC 2236, 4 */

/* Types of a record of a group, RFC 3376, 4.2.12 and RFC 3810, 5.2.12. */
enum record_type {
	RECORD_IS_EXCLUDE = 2,
	RECORD_TO_INCLUDE = 3,
	RECORD_TO_EXCLUDE = 4,
};

struct igmp {
	uint8_t type;
	uint8_t max_resp;
	rte_be16_t checksum;
	uint8_t group[4];
};
static_assert(sizeof(struct igmp) == 8, "RFC 2236, 2");

struct igmp_report {
	uint8_t type;
	uint8_t reserved;
	rte_be16_t checksum;
	rte_be16_t reserved2;
	rte_be16_t records;
	uint8_t record_type;
	uint8_t aux_len;
	rte_be16_t sources;
	uint8_t group[4];
};
static_assert(sizeof(struct igmp_report) == 16, "RFC 3376, 4.2, with one record");

struct mld {
	uint8_t type;
	uint8_t code;
	rte_be16_t checksum;
	rte_be16_t max_resp;
	rte_be16_t reserved;
	uint8_t group[16];
};
static_assert(sizeof(struct mld) == 24, "RFC 2710, 3");

struct mld_report {
	uint8_t type;
	uint8_t reserved;
	rte_be16_t checksum;
	rte_be16_t reserved2;
	rte_be16_t records;
	uint8_t record_type;
	uint8_t aux_len;
	rte_be16_t sources;
	uint8_t group[16];
};
static_assert(sizeof(struct mld_report) == 28, "RFC 3810, 5.2, with one record");

/* Both protocols' packets carry the router alert option. */
static const uint8_t router_alert4[4] = {0x94, 4, 0, 0};
static const uint8_t router_alert6[8] = {IPPROTO_ICMPV6, 0, 5, 2, 0, 0, 1, 0};

/* Decode a time: large values are a mantissa and an exponent (RFC 3376, 4.1.1 and RFC 3810,
 * 5.1.3). */
static uint64_t decode_code(unsigned int code, unsigned int mantissa_bits)
{
	const unsigned int threshold = 1u << (mantissa_bits + 3);
	const unsigned int mantissa = code & ((1u << mantissa_bits) - 1);
	const unsigned int exponent = (code >> mantissa_bits) & 7;

	if (code < threshold)
		return code;
	return (uint64_t)(mantissa | 1u << mantissa_bits) << (exponent + 3);
}

static bool parse_igmp(const uint8_t *frame, size_t len, struct membership_query *query)
{
	static const uint8_t every_group[4];
	const size_t l3 = sizeof(struct rte_ether_hdr);
	struct rte_ipv4_hdr ip;
	size_t ip_len, total;
	struct igmp igmp;

	memcpy(&ip, frame + l3, sizeof(ip));
	ip_len = rte_ipv4_hdr_len(&ip);
	total = rte_be_to_cpu_16(ip.total_length);
	if ((ip.version_ihl >> 4) != 4 || ip_len < sizeof(ip) || ip.next_proto_id != IPPROTO_IGMP ||
	    total > len - l3 || total < ip_len + sizeof(igmp))
		return false;
	if (rte_raw_cksum(frame + l3, ip_len) != 0xffff ||
	    rte_raw_cksum(frame + l3 + ip_len, total - ip_len) != 0xffff)
		return false;
	memcpy(&igmp, frame + l3 + ip_len, sizeof(igmp));
	if (igmp.type != IGMP_QUERY)
		return false;
	*query = (struct membership_query){.ipv4 = true, .old = total - ip_len < IGMP_V3_QUERY_LEN};
	if (memcmp(igmp.group, every_group, sizeof(every_group)) != 0)
		gid_from_ipv4(igmp.group, query->group);
	/* Tenths of a second. */
	query->max_delay_ns =
		igmp.max_resp == 0 && query->old
			? V1_DELAY_NS
			: (query->old ? igmp.max_resp : decode_code(igmp.max_resp, 4)) *
				  UINT64_C(100000000);
	return true;
}

static bool parse_mld(const uint8_t *frame, size_t len, struct membership_query *query)
{
	const size_t l3 = sizeof(struct rte_ether_hdr);
	const size_t l4 = l3 + sizeof(struct rte_ipv6_hdr) + sizeof(router_alert6);
	const uint8_t *extension = frame + l3 + sizeof(struct rte_ipv6_hdr);
	struct rte_ipv6_hdr ip;
	unsigned int max_resp;
	struct mld mld;
	size_t l4_len;

	if (len < l4 + sizeof(mld))
		return false;
	memcpy(&ip, frame + l3, sizeof(ip));
	memcpy(&mld, frame + l4, sizeof(mld));
	l4_len = rte_be_to_cpu_16(ip.payload_len);
	/* A hop-by-hop header of the shortest length precedes the ICMPv6 message. */
	if ((rte_be_to_cpu_32(ip.vtc_flow) >> 28) != 6 || ip.proto != IPPROTO_HOPOPTS ||
	    extension[0] != IPPROTO_ICMPV6 || extension[1] != 0 ||
	    l4_len < sizeof(router_alert6) + sizeof(mld) || l4_len > len - l3 - sizeof(ip))
		return false;
	l4_len -= sizeof(router_alert6);
	ip.payload_len = rte_cpu_to_be_16((uint16_t)l4_len);
	ip.proto = IPPROTO_ICMPV6;
	if (mld.type != MLD_QUERY || mld.code != 0 ||
	    !gid_is_link_local((const uint8_t *)&ip.src_addr) ||
	    rte_ipv6_udptcp_cksum_verify(&ip, frame + l4) != 0)
		return false;
	*query = (struct membership_query){.old = l4_len < MLD_V2_QUERY_LEN};
	memcpy(query->group, mld.group, sizeof(query->group));
	/* Milliseconds. */
	max_resp = rte_be_to_cpu_16(mld.max_resp);
	query->max_delay_ns =
		(query->old ? max_resp : decode_code(max_resp, 12)) * UINT64_C(1000000);
	return true;
}

bool membership_parse(const uint8_t *frame, size_t len, struct membership_query *query)
{
	struct rte_ether_hdr eth;

	if (len < sizeof(eth) + sizeof(struct rte_ipv4_hdr))
		return false;
	memcpy(&eth, frame, sizeof(eth));
	if (eth.ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4))
		return parse_igmp(frame, len, query);
	if (eth.ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6))
		return parse_mld(frame, len, query);
	return false;
}

static uint8_t record_type(enum membership_change change)
{
	switch (change) {
	case MEMBERSHIP_JOINED:
		return RECORD_TO_EXCLUDE;
	case MEMBERSHIP_LEFT:
		return RECORD_TO_INCLUDE;
	default:
		return RECORD_IS_EXCLUDE;
	}
}

static void build_ether(uint8_t *frame, const uint8_t mac[6], const uint8_t to[GID_LEN],
			uint16_t type)
{
	struct rte_ether_hdr eth = {.ether_type = rte_cpu_to_be_16(type)};

	address_multicast_mac(to, eth.dst_addr.addr_bytes);
	memcpy(&eth.src_addr, mac, sizeof(eth.src_addr));
	memcpy(frame, &eth, sizeof(eth));
}

/* Build the message of an IGMP report, and get the group to which it is sent. Returns its length.
 */
static size_t build_igmp(uint8_t *message, const uint8_t group[GID_LEN],
			 enum membership_change change, bool old, uint8_t to[GID_LEN])
{
	static const uint8_t routers[4] = {224, 0, 0, 2}, reports[4] = {224, 0, 0, 22};
	struct igmp_report report = {.type = IGMP_V3_REPORT,
				     .records = rte_cpu_to_be_16(1),
				     .record_type = record_type(change)};
	struct igmp igmp = {.type = change == MEMBERSHIP_LEFT ? IGMP_V2_LEAVE : IGMP_V2_REPORT};

	if (old) {
		memcpy(igmp.group, group + GID_IPV4_OFFSET, sizeof(igmp.group));
		igmp.checksum = (rte_be16_t)~rte_raw_cksum(&igmp, sizeof(igmp));
		memcpy(message, &igmp, sizeof(igmp));
		memcpy(to, group, GID_LEN);
		if (change == MEMBERSHIP_LEFT)
			gid_from_ipv4(routers, to);
		return sizeof(igmp);
	}
	memcpy(report.group, group + GID_IPV4_OFFSET, sizeof(report.group));
	report.checksum = (rte_be16_t)~rte_raw_cksum(&report, sizeof(report));
	memcpy(message, &report, sizeof(report));
	gid_from_ipv4(reports, to);
	return sizeof(report);
}

static size_t build_ipv4(uint8_t *frame, const uint8_t mac[6], const uint8_t own[GID_LEN],
			 const uint8_t group[GID_LEN], enum membership_change change, bool old)
{
	uint8_t *l3 = frame + sizeof(struct rte_ether_hdr);
	uint8_t *message = l3 + sizeof(struct rte_ipv4_hdr) + sizeof(router_alert4);
	struct rte_ipv4_hdr ip = {
		.version_ihl = 0x46, /* with one option */
		.type_of_service = TOS_CONTROL,
		.time_to_live = 1,
		.next_proto_id = IPPROTO_IGMP,
	};
	uint8_t to[GID_LEN];
	size_t len;

	len = sizeof(ip) + sizeof(router_alert4) + build_igmp(message, group, change, old, to);
	ip.total_length = rte_cpu_to_be_16((uint16_t)len);
	memcpy(&ip.src_addr, own + GID_IPV4_OFFSET, sizeof(ip.src_addr));
	memcpy(&ip.dst_addr, to + GID_IPV4_OFFSET, sizeof(ip.dst_addr));
	memcpy(l3, &ip, sizeof(ip));
	memcpy(l3 + sizeof(ip), router_alert4, sizeof(router_alert4));
	ip.hdr_checksum = (rte_be16_t)~rte_raw_cksum(l3, sizeof(ip) + sizeof(router_alert4));
	memcpy(l3, &ip, sizeof(ip));
	build_ether(frame, mac, to, RTE_ETHER_TYPE_IPV4);
	return sizeof(struct rte_ether_hdr) + len;
}

/* Build the message of an MLD report with a checksum of 0, and get the group to which it is sent.
 * Returns its length. */
static size_t build_mld(uint8_t *message, const uint8_t group[GID_LEN],
			enum membership_change change, bool old, uint8_t to[GID_LEN])
{
	static const uint8_t routers[GID_LEN] = {0xff, 0x02, [15] = 2};
	static const uint8_t reports[GID_LEN] = {0xff, 0x02, [15] = 0x16};
	struct mld_report report = {.type = MLD_V2_REPORT,
				    .records = rte_cpu_to_be_16(1),
				    .record_type = record_type(change)};
	struct mld mld = {.type = change == MEMBERSHIP_LEFT ? MLD_V1_DONE : MLD_V1_REPORT};

	if (old) {
		memcpy(mld.group, group, sizeof(mld.group));
		memcpy(message, &mld, sizeof(mld));
		memcpy(to, change == MEMBERSHIP_LEFT ? routers : group, GID_LEN);
		return sizeof(mld);
	}
	memcpy(report.group, group, sizeof(report.group));
	memcpy(message, &report, sizeof(report));
	memcpy(to, reports, GID_LEN);
	return sizeof(report);
}

static size_t build_ipv6(uint8_t *frame, const uint8_t mac[6], const uint8_t own[GID_LEN],
			 const uint8_t group[GID_LEN], enum membership_change change, bool old)
{
	uint8_t *l3 = frame + sizeof(struct rte_ether_hdr);
	uint8_t *message = l3 + sizeof(struct rte_ipv6_hdr) + sizeof(router_alert6);
	struct rte_ipv6_hdr ip = {
		.vtc_flow = rte_cpu_to_be_32(6u << 28),
		.proto = IPPROTO_ICMPV6,
		.hop_limits = 1,
	};
	uint8_t to[GID_LEN];
	uint16_t checksum;
	size_t len;

	len = build_mld(message, group, change, old, to);
	ip.payload_len = rte_cpu_to_be_16((uint16_t)len);
	memcpy(&ip.src_addr, own, sizeof(ip.src_addr));
	memcpy(&ip.dst_addr, to, sizeof(ip.dst_addr));
	checksum = rte_ipv6_udptcp_cksum(&ip, message);
	memcpy(message + offsetof(struct mld, checksum), &checksum, sizeof(checksum));
	ip.payload_len = rte_cpu_to_be_16((uint16_t)(len + sizeof(router_alert6)));
	ip.proto = IPPROTO_HOPOPTS;
	memcpy(l3, &ip, sizeof(ip));
	memcpy(l3 + sizeof(ip), router_alert6, sizeof(router_alert6));
	build_ether(frame, mac, to, RTE_ETHER_TYPE_IPV6);
	return (size_t)(message - frame) + len;
}

size_t membership_build(uint8_t *frame, const uint8_t mac[6], const uint8_t own[GID_LEN],
			const uint8_t group[GID_LEN], enum membership_change change, bool old)
{
	return gid_is_ipv4(group) ? build_ipv4(frame, mac, own, group, change, old)
				  : build_ipv6(frame, mac, own, group, change, old);
}
