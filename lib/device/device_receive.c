/* SPDX-License-Identifier: BSD-3-Clause */
/* Reception: the checks that a frame must pass before a queue pair sees it, and their counters. */
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "device/device.h"
#include "device/gsi.h"
#include "device/mcast.h"
#include "qp/qp.h"
#include "wire/gid.h"
#include "wire/headers.h"
#include "wire/mad.h"
#include "wire/packet.h"

/* Reasons to drop a packet, in the order of the checks (IBTA 9.6); DROP_NONE: it is accepted. */
enum drop {
	DROP_NONE,
	DROP_MALFORMED,
	DROP_CHECKSUM,
	DROP_OPCODE,
	DROP_ICRC,
	DROP_GID,
	DROP_SOURCE,
	DROP_PKEY,
	DROP_QPN,
	DROP_QKEY,
};

static const enum counter drop_counters[] = {
	[DROP_MALFORMED] = COUNTER_rx_malformed, [DROP_CHECKSUM] = COUNTER_rx_checksum_errors,
	[DROP_OPCODE] = COUNTER_rx_wrong_opcode, [DROP_ICRC] = COUNTER_rx_icrc_errors,
	[DROP_GID] = COUNTER_rx_wrong_gid,	 [DROP_PKEY] = COUNTER_rx_wrong_pkey,
	[DROP_QPN] = COUNTER_rx_wrong_qpn,	 [DROP_QKEY] = COUNTER_rx_wrong_qkey,
	[DROP_SOURCE] = COUNTER_rx_own_source,
};

static enum drop check_parsed(enum packet_status status)
{
	switch (status) {
	case PACKET_OK:
		return DROP_NONE;
	case PACKET_BAD_CHECKSUM:
		return DROP_CHECKSUM;
	case PACKET_BAD_OPCODE:
		return DROP_OPCODE;
	default:
		return DROP_MALFORMED;
	}
}

static bool is_gid(const struct device_gid *entry, const struct packet *packet)
{
	return entry->vlan_id == packet->vlan_id &&
	       memcmp(entry->gid.raw, packet->dgid, GID_LEN) == 0;
}

/* Return true if the packet is to the address of ours to which the last one was. */
static bool is_to_us_again(const struct device_engine *engine, const struct packet *packet)
{
	/* A free entry is all zeros: do not accept a packet to the GID of all zeros. */
	return is_gid(&engine->device->gids[engine->gid_hint], packet) &&
	       !gid_is_zero(packet->dgid);
}

/* Return true if the packet is to an address of ours. An address may be in the table once for each
 * VLAN. */
static __rte_noinline bool is_to_us(struct device_engine *engine, const struct packet *packet)
{
	const struct device *device = engine->device;

	for (uint32_t i = 0; i < DEVICE_GIDS_MAX && !gid_is_zero(packet->dgid); i++) {
		if (is_gid(&device->gids[i], packet)) {
			engine->gid_hint = i;
			return true;
		}
	}
	return false;
}

/*
 * Return true if the packet's source is an address of ours, in any VLAN. Such a packet from the
 * network is forged, or it has come back to us (RFC 1122, 3.2.1.3). Only programs of this host send
 * from our address, and their packets do not come from the network.
 */
static __rte_noinline bool is_from_us(const struct device *device, const struct packet *packet)
{
	for (uint32_t i = 0; i < device->gid_end; i++) {
		if (memcmp(device->gids[i].gid.raw, packet->sgid, GID_LEN) == 0)
			return true;
	}
	return false;
}

/* Return true if the VLAN of a packet to a group is one of the port's. */
static __rte_noinline bool is_of_our_network(const struct device *device,
					     const struct packet *packet)
{
	for (int i = 0; i < DEVICE_GIDS_MAX; i++) {
		if (device->gids[i].vlan_id == packet->vlan_id)
			return true;
	}
	return false;
}

static enum drop check(struct device_engine *engine, const struct packet *packet,
		       unsigned int known, bool *to_group)
{
	*to_group = false;
	if (!(known & (FRAME_TRUSTED | FRAME_ICRC_GOOD)) && !packet_icrc_ok(packet))
		return DROP_ICRC;
	if (unlikely(!is_to_us_again(engine, packet))) {
		/* A group's address is not in the table. */
		*to_group = gid_is_multicast(packet->dgid);
		if (*to_group ? !is_of_our_network(engine->device, packet)
			      : !is_to_us(engine, packet))
			return DROP_GID;
	}
	if (!(known & (FRAME_TRUSTED | FRAME_SOURCE_GOOD)) && is_from_us(engine->device, packet))
		return DROP_SOURCE;
	if (!wire_is_our_pkey(packet->pkey))
		return DROP_PKEY;
	return DROP_NONE;
}

static enum drop deliver_mad(struct device *device, const struct packet *packet, uint64_t now_ns)
{
	switch (gsi_receive(device, packet, now_ns)) {
	case GSI_TAKEN:
		return DROP_NONE;
	case GSI_NO_MAD:
		return DROP_OPCODE;
	case GSI_WRONG_KEY:
		return DROP_QKEY;
	default:
		return DROP_QPN;
	}
}

/* Give a packet to a queue pair. The second one in turn for it may begin a flow. */
static bool give(struct device_burst *burst, const uint8_t *frame, unsigned int known,
		 struct qp *qp)
{
	const struct packet *packet = &burst->flow.packet;

	if (burst->qp == qp && qp_expects(qp, packet)) {
		packet_flow_begin(&burst->flow, frame);
		burst->known = known;
	}
	burst->qp = qp;
	return qp_receive(qp, packet, burst->now_ns);
}

static enum drop deliver(struct device_burst *burst, const uint8_t *frame, unsigned int known,
			 bool to_group, struct qp **needs_run)
{
	const struct packet *packet = &burst->flow.packet;
	struct device_engine *engine = burst->engine;
	struct device *device = engine->device;
	struct qp *qp;

	if (unlikely(to_group)) {
		if (packet->dest_qpn != WIRE_QPN_MULTICAST)
			return DROP_QPN;
		/* These are datagrams, for which no queue pair owes an answer, so none needs
		 * qp_run. A queue pair that fails is kicked by mcast_deliver. */
		return mcast_deliver(engine, packet, burst->now_ns) ? DROP_NONE : DROP_GID;
	}
	if (unlikely(packet->dest_qpn == GSI_QPN))
		return deliver_mad(device, packet, burst->now_ns);
	/* The queue pair of another engine is not ours to touch. */
	if (unlikely(device_engine_of_qpn(device, packet->dest_qpn) != engine->number))
		return DROP_QPN;
	qp = device_find_qp(device, packet->dest_qpn);
	if (!qp)
		return DROP_QPN;
	if (give(burst, frame, known, qp))
		*needs_run = qp;
	return DROP_NONE;
}

/* Return the offset of the BTH in an untagged frame. Other frames are not prefetched. */
static size_t bth_offset(const uint8_t *frame)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)frame;
	const size_t ip_len = eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4)
				      ? sizeof(struct rte_ipv4_hdr)
				      : sizeof(struct rte_ipv6_hdr);

	return sizeof(*eth) + ip_len + sizeof(struct rte_udp_hdr);
}

void device_prefetch(const struct device *device, const uint8_t *frame, size_t len)
{
	const struct bth *bth;
	const struct qp *qp;

	if (len < sizeof(struct rte_ether_hdr) || len < bth_offset(frame) + sizeof(*bth))
		return;
	bth = (const struct bth *)(frame + bth_offset(frame));
	qp = device_find_qp(device, wire_get24(bth->dest_qpn));
	if (qp)
		qp_prefetch_receive(qp, opcode_info(bth->opcode)->flags & OPCODE_REQUEST);
}

static void count(struct device_engine *engine, const uint8_t *frame, size_t len,
		  unsigned int known)
{
	if (known & FRAME_TRUSTED) {
		counters_add(&engine->counters, COUNTER_rx_loopback_packets, 1);
	} else if (engine->number == 0 || !(frame[0] & RTE_ETHER_GROUP_ADDR)) {
		/* Further engines get copies of packets to a group. */
		counters_add(&engine->counters, COUNTER_rx_packets, 1);
		counters_add(&engine->counters, COUNTER_rx_bytes, len);
	}
}

/* Process a frame that does not continue a flow. */
static __rte_noinline bool receive_first(struct device_burst *burst, const uint8_t *frame,
					 size_t len, unsigned int known, struct qp **qp)
{
	struct device_engine *engine = burst->engine;
	struct packet *packet = &burst->flow.packet;
	enum packet_status status;
	enum drop drop;
	bool to_group;

	burst->flow.begun = false;
	status = packet_parse(frame, len, known & (FRAME_TRUSTED | FRAME_SUMS_GOOD), packet);
	if (status == PACKET_NOT_ROCE)
		return false;
	count(engine, frame, len, known);
	drop = likely(status == PACKET_OK) ? DROP_NONE : check_parsed(status);
	if (drop == DROP_NONE)
		drop = check(engine, packet, known, &to_group);
	if (drop == DROP_NONE)
		drop = deliver(burst, frame, known, to_group, qp);
	if (drop != DROP_NONE)
		counters_add(&engine->counters, drop_counters[drop], 1);
	return true;
}

/* Return true if a frame continues the flow, and parse it. */
static __rte_always_inline bool continues(struct device_burst *burst, const uint8_t *frame,
					  size_t len, unsigned int known)
{
	return burst->flow.begun && known == burst->known &&
	       packet_parse_next(&burst->flow, frame, len,
				 known & (FRAME_TRUSTED | FRAME_SUMS_GOOD)) &&
	       ((known & (FRAME_TRUSTED | FRAME_ICRC_GOOD)) || packet_icrc_ok(&burst->flow.packet));
}

bool device_receive_next(struct device_burst *burst, const uint8_t *frame, size_t len,
			 unsigned int known, struct qp **qp)
{
	*qp = NULL;
	if (unlikely(!continues(burst, frame, len, known)))
		return receive_first(burst, frame, len, known, qp);
	count(burst->engine, frame, len, known);
	if (qp_receive_expected(burst->qp, &burst->flow.packet, burst->now_ns))
		*qp = burst->qp;
	return true;
}
