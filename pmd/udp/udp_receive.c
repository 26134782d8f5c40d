/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives messages, divides runs into their packets, and gives each packet its headers. */
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "udp_internal.h"
#include "wire/gid.h"
#include "wire/headers.h"
#include "wire/icrc.h"

/* What the kernel says about a message. */
struct arrival {
	uint8_t to[GID_LEN];
	bool has_to;
	uint8_t tclass;
	uint8_t hop_limit;
	int segment_len; /* 0: the message is one packet */
};

void udp_receive_init(struct udp_socket *udp)
{
	struct udp_receive *receive = &udp->receive;

	for (uint32_t i = 0; i < RECEIVE_MESSAGES; i++) {
		receive->iovs[i] =
			(struct iovec){receive->memory + (size_t)i * MESSAGE_BYTES, MESSAGE_BYTES};
		receive->headers[i].msg_hdr = (struct msghdr){
			.msg_name = &receive->sources[i],
			.msg_namelen = sizeof(receive->sources[i]),
			.msg_iov = &receive->iovs[i],
			.msg_iovlen = 1,
			.msg_control = receive->controls[i],
			.msg_controllen = CONTROL_BYTES,
		};
	}
}

static int control_int(const struct cmsghdr *control)
{
	int value;

	memcpy(&value, CMSG_DATA(control), sizeof(value));
	return value;
}

static void note_ip(const struct cmsghdr *control, struct arrival *arrival)
{
	struct in_pktinfo info;

	switch (control->cmsg_type) {
	case IP_PKTINFO:
		memcpy(&info, CMSG_DATA(control), sizeof(info));
		gid_from_ipv4(&info.ipi_addr, arrival->to);
		arrival->has_to = true;
		break;
	case IP_TOS:
		arrival->tclass = *CMSG_DATA(control);
		break;
	case IP_TTL:
		arrival->hop_limit = (uint8_t)control_int(control);
		break;
	}
}

static void note_ipv6(const struct cmsghdr *control, struct arrival *arrival)
{
	switch (control->cmsg_type) {
	case IPV6_PKTINFO:
		memcpy(arrival->to, CMSG_DATA(control), sizeof(arrival->to));
		arrival->has_to = true;
		break;
	case IPV6_TCLASS:
		arrival->tclass = (uint8_t)control_int(control);
		break;
	case IPV6_HOPLIMIT:
		arrival->hop_limit = (uint8_t)control_int(control);
		break;
	}
}

/* Count what the kernel has dropped; its count wraps. */
static void note_missed(struct udp_socket *udp, const struct cmsghdr *control)
{
	uint32_t now;

	memcpy(&now, CMSG_DATA(control), sizeof(now));
	udp->counts.missed += (uint32_t)(now - udp->receive.kernel_missed);
	udp->receive.kernel_missed = now;
}

static void read_control(struct udp_socket *udp, struct msghdr *message, struct arrival *arrival)
{
	struct cmsghdr *control;

	for (control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control)) {
		if (control->cmsg_level == IPPROTO_IP)
			note_ip(control, arrival);
		else if (control->cmsg_level == IPPROTO_IPV6)
			note_ipv6(control, arrival);
		else if (control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_GRO)
			arrival->segment_len = control_int(control);
		else if (control->cmsg_level == SOL_SOCKET && control->cmsg_type == SO_RXQ_OVFL)
			note_missed(udp, control);
	}
}

/* Get the sender's address, and return its port. */
static rte_be16_t get_source(const struct udp_socket *udp, const struct sockaddr_in6 *source,
			     uint8_t gid[GID_LEN])
{
	const struct sockaddr_in *source4 = (const struct sockaddr_in *)(const void *)source;

	if (udp->ipv6) {
		memcpy(gid, &source->sin6_addr, GID_LEN);
		return source->sin6_port;
	}
	gid_from_ipv4(&source4->sin_addr, gid);
	return source4->sin_port;
}

static void write_ipv4(uint8_t *at, const struct arrival *arrival, const uint8_t from[GID_LEN])
{
	struct rte_ipv4_hdr ip = {
		.version_ihl = RTE_IPV4_VHL_DEF,
		.type_of_service = arrival->tclass,
		.fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG),
		.time_to_live = arrival->hop_limit,
		.next_proto_id = IPPROTO_UDP,
	};

	memcpy(&ip.src_addr, from + GID_IPV4_OFFSET, sizeof(ip.src_addr));
	memcpy(&ip.dst_addr, arrival->to + GID_IPV4_OFFSET, sizeof(ip.dst_addr));
	memcpy(at, &ip, sizeof(ip));
}

static void write_ipv6(uint8_t *at, const struct arrival *arrival, const uint8_t from[GID_LEN])
{
	struct rte_ipv6_hdr ip = {
		.vtc_flow = rte_cpu_to_be_32(6u << 28 | (uint32_t)arrival->tclass << 20),
		.proto = IPPROTO_UDP,
		.hop_limits = arrival->hop_limit,
	};

	memcpy(&ip.src_addr, from, GID_LEN);
	memcpy(&ip.dst_addr, arrival->to, GID_LEN);
	memcpy(at, &ip, sizeof(ip));
}

/* Write the headers that all packets of a message have. */
static void write_headers(const struct udp_socket *udp, struct udp_message *message,
			  const struct sockaddr_in6 *source, const struct arrival *arrival)
{
	struct rte_ether_hdr ether;
	struct rte_udp_hdr header = {.dst_port = rte_cpu_to_be_16(WIRE_UDP_PORT)};
	struct udp_frame *layout = &message->layout;
	uint8_t from[GID_LEN];

	header.src_port = get_source(udp, source, from);
	layout->ipv6 = !gid_is_ipv4(from);
	layout->l3_off = sizeof(ether);
	layout->l4_off = (uint8_t)(sizeof(ether) + (layout->ipv6 ? sizeof(struct rte_ipv6_hdr)
								 : sizeof(struct rte_ipv4_hdr)));
	layout->len = (uint8_t)(layout->l4_off + sizeof(header));
	memcpy(&ether.dst_addr, udp->mac, sizeof(ether.dst_addr));
	memcpy(&ether.src_addr, udp->gateway, sizeof(ether.src_addr));
	ether.ether_type = layout->ipv6 ? rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6)
					: rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
	memcpy(message->header, &ether, sizeof(ether));
	if (layout->ipv6)
		write_ipv6(message->header + layout->l3_off, arrival, from);
	else
		write_ipv4(message->header + layout->l3_off, arrival, from);
	memcpy(message->header + layout->l4_off, &header, sizeof(header));
}

/* Begin with the next message that the kernel has given. Nothing of it is left if it is bad. */
static void begin_message(struct udp_socket *udp, uint32_t index)
{
	struct udp_receive *receive = &udp->receive;
	struct udp_message *message = &receive->message;
	struct mmsghdr *header = &receive->headers[index];
	struct arrival arrival = {.hop_limit = WIRE_HOP_LIMIT};

	read_control(udp, &header->msg_hdr, &arrival);
	/* The kernel has shortened them. */
	header->msg_hdr.msg_namelen = sizeof(receive->sources[index]);
	header->msg_hdr.msg_controllen = CONTROL_BYTES;
	message->left = 0;
	if (unlikely(!arrival.has_to || header->msg_len == 0 || arrival.segment_len < 0 ||
		     (header->msg_hdr.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))) {
		udp->counts.dropped++;
		return;
	}
	message->payload = receive->iovs[index].iov_base;
	message->left = header->msg_len;
	message->segment_len =
		arrival.segment_len > 0 ? (uint32_t)arrival.segment_len : message->left;
	message->id = 0;
	write_headers(udp, message, &receive->sources[index], &arrival);
}

/* Ask the kernel for messages. Return false if there are none. */
static bool ask(struct udp_socket *udp)
{
	struct udp_receive *receive = &udp->receive;
	int count;

	if (unlikely(!udp_is_ours(udp)))
		return false;
	count = recvmmsg(udp->fd, receive->headers, RECEIVE_MESSAGES, MSG_DONTWAIT, NULL);
	receive->next = 0;
	__atomic_store_n(&receive->count, count > 0 ? (uint32_t)count : 0, __ATOMIC_RELAXED);
	return count > 0;
}

/* Go on to the next message if nothing is left of this one. Return false if there is none. Nothing
 * is left of the next one either if it was dropped. */
static bool find(struct udp_socket *udp)
{
	struct udp_receive *receive = &udp->receive;

	if (receive->message.left > 0)
		return true;
	if (receive->next == receive->count && !ask(udp))
		return false;
	begin_message(udp, receive->next++);
	return true;
}

/* Return the distance by which the ICRC's difference goes back to that of the identification, which
 * is `bytes` before the end of what the ICRC covers. */
static uint32_t distance_back(struct udp_receive *receive, uint32_t bytes)
{
	if (receive->back_of != bytes) {
		receive->back_of = bytes;
		receive->back = icrc_distance(-(int32_t)bytes);
	}
	return receive->back;
}

/*
 * Check the ICRC, and set the identification that an IPv4 packet must have had for it to be right.
 * `state` is that of the packet with the expected identification. Return false if there is none.
 */
static bool find_id(struct udp_socket *udp, uint8_t *frame, uint32_t payload_len, uint32_t state)
{
	struct udp_message *message = &udp->receive.message;
	const struct udp_frame *layout = &message->layout;
	const uint32_t bytes =
		(uint32_t)ID_TO_UDP + sizeof(struct rte_udp_hdr) + payload_len - WIRE_ICRC_LEN;
	uint32_t difference = state ^ icrc_load(frame + layout->len + payload_len - WIRE_ICRC_LEN);

	if (difference == 0)
		return true;
	if (layout->ipv6)
		return false;
	difference = icrc_move(difference, distance_back(&udp->receive, bytes));
	if (difference > UINT16_MAX)
		return false;
	message->id ^= rte_bswap16((uint16_t)difference);
	udp_frame_set(frame, layout, payload_len, message->id);
	return true;
}

/* Write the next packet's frame into a buffer. Return true if its ICRC is right. */
static bool write_frame(struct udp_socket *udp, uint32_t payload_len, uint8_t *frame)
{
	struct udp_message *message = &udp->receive.message;
	const struct udp_frame *layout = &message->layout;
	const uint8_t *l3 = frame + layout->l3_off;
	const uint32_t l3_len = (uint32_t)(layout->l4_off - layout->l3_off);
	uint8_t *bth = frame + layout->len;
	uint32_t state;

	memcpy(frame, message->header, layout->len);
	memcpy(bth, message->payload, sizeof(struct bth));
	udp_frame_set(frame, layout, payload_len, message->id);
	state = icrc_headers(l3, l3_len, (size_t)(bth - l3) + sizeof(struct bth));
	state = icrc_copy(state, bth + sizeof(struct bth), message->payload + sizeof(struct bth),
			  payload_len - sizeof(struct bth) - WIRE_ICRC_LEN);
	memcpy(bth + payload_len - WIRE_ICRC_LEN, message->payload + payload_len - WIRE_ICRC_LEN,
	       WIRE_ICRC_LEN);
	return find_id(udp, frame, payload_len, state);
}

/* Take the next packet. Return false if there is no buffer for it; `mbuf` is NULL if it was
 * dropped. One whose ICRC is wrong is left to the device, which counts it. */
static bool take(struct udp_socket *udp, struct rte_mbuf **mbuf)
{
	struct udp_message *message = &udp->receive.message;
	const uint32_t len = RTE_MIN(message->left, message->segment_len);

	*mbuf = NULL;
	if (unlikely(len < sizeof(struct bth) + WIRE_ICRC_LEN ||
		     len > udp->room - message->layout.len)) {
		udp->counts.dropped++;
	} else {
		*mbuf = rte_pktmbuf_alloc(udp->pool);
		if (unlikely(!*mbuf))
			return false;
		(*mbuf)->port = write_frame(udp, len, rte_pktmbuf_mtod(*mbuf, uint8_t *))
					? UDP_VERIFIED
					: 0;
		(*mbuf)->ol_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
		(*mbuf)->data_len = (uint16_t)(message->layout.len + len);
		(*mbuf)->pkt_len = (*mbuf)->data_len;
	}
	message->payload += len;
	message->left -= len;
	message->id++;
	return true;
}

uint16_t udp_rx_burst(struct udp_socket *udp, struct rte_mbuf **mbufs, uint16_t n)
{
	uint16_t received = 0;

	for (uint16_t i = 0; i < n && find(udp); i++) {
		if (unlikely(udp->receive.message.left == 0))
			continue;
		if (!take(udp, &mbufs[received]))
			break;
		received += mbufs[received] != NULL;
	}
	return received;
}

bool udp_holds(const struct udp_socket *udp)
{
	return __atomic_load_n(&udp->receive.count, __ATOMIC_RELAXED) > 0;
}
