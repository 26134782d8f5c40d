/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends frames without their Ethernet, IP and UDP headers, each run as one message. */
#include <errno.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "base/log.h"
#include "base/tuning.h"
#include "udp_internal.h"
#include "wire/gid.h"
#include "wire/headers.h"
#include "wire/icrc.h"

/* The addresses and other fields that the kernel writes again. */
struct target {
	uint8_t from[GID_LEN], to[GID_LEN];
	uint8_t tclass, hop_limit;
};

static void read_target(const uint8_t *frame, const struct udp_frame *layout, struct target *target)
{
	struct rte_ipv4_hdr ip;
	struct rte_ipv6_hdr ipv6;

	if (layout->ipv6) {
		memcpy(&ipv6, frame + layout->l3_off, sizeof(ipv6));
		memcpy(target->from, &ipv6.src_addr, GID_LEN);
		memcpy(target->to, &ipv6.dst_addr, GID_LEN);
		target->tclass = (uint8_t)(rte_be_to_cpu_32(ipv6.vtc_flow) >> 20);
		target->hop_limit = ipv6.hop_limits;
		return;
	}
	memcpy(&ip, frame + layout->l3_off, sizeof(ip));
	gid_from_ipv4(&ip.src_addr, target->from);
	gid_from_ipv4(&ip.dst_addr, target->to);
	target->tclass = ip.type_of_service;
	target->hop_limit = ip.time_to_live;
}

static void *add_control(struct msghdr *message, int level, int type, size_t len)
{
	struct cmsghdr *control = (struct cmsghdr *)(void *)((uint8_t *)message->msg_control +
							     message->msg_controllen);

	control->cmsg_level = level;
	control->cmsg_type = type;
	control->cmsg_len = CMSG_LEN(len);
	message->msg_controllen += CMSG_SPACE(len);
	return CMSG_DATA(control);
}

static void add_int(struct msghdr *message, int level, int type, int value)
{
	memcpy(add_control(message, level, type, sizeof(value)), &value, sizeof(value));
}

/* Groups and link-local addresses belong to an interface. For all others the kernel has routes. */
static unsigned int interface_of(const struct udp_socket *udp, const struct target *target)
{
	return gid_is_multicast(target->to) || gid_is_link_local(target->to) ? udp->ifindex : 0;
}

static void add_target4(struct udp_socket *udp, struct msghdr *message, const struct target *target)
{
	struct in_pktinfo info = {.ipi_ifindex = (int)interface_of(udp, target)};

	memcpy(&info.ipi_spec_dst, target->from + GID_IPV4_OFFSET, sizeof(info.ipi_spec_dst));
	memcpy(add_control(message, IPPROTO_IP, IP_PKTINFO, sizeof(info)), &info, sizeof(info));
	add_int(message, IPPROTO_IP, IP_TOS, target->tclass);
	if (target->hop_limit > 0)
		add_int(message, IPPROTO_IP, IP_TTL, target->hop_limit);
}

static void add_target6(struct udp_socket *udp, struct msghdr *message, const struct target *target)
{
	struct in6_pktinfo info = {.ipi6_ifindex = interface_of(udp, target)};

	memcpy(&info.ipi6_addr, target->from, sizeof(info.ipi6_addr));
	memcpy(add_control(message, IPPROTO_IPV6, IPV6_PKTINFO, sizeof(info)), &info, sizeof(info));
	add_int(message, IPPROTO_IPV6, IPV6_TCLASS, target->tclass);
	add_int(message, IPPROTO_IPV6, IPV6_HOPLIMIT, target->hop_limit);
}

static void set_name(struct udp_socket *udp, struct msghdr *message, struct sockaddr_in6 *name,
		     const struct target *target)
{
	struct sockaddr_in *name4 = (struct sockaddr_in *)(void *)name;

	message->msg_name = name;
	if (!udp->ipv6) {
		*name4 = (struct sockaddr_in){.sin_family = AF_INET,
					      .sin_port = rte_cpu_to_be_16(WIRE_UDP_PORT)};
		memcpy(&name4->sin_addr, target->to + GID_IPV4_OFFSET, sizeof(name4->sin_addr));
		message->msg_namelen = sizeof(*name4);
		return;
	}
	*name = (struct sockaddr_in6){.sin6_family = AF_INET6,
				      .sin6_port = rte_cpu_to_be_16(WIRE_UDP_PORT),
				      .sin6_scope_id = interface_of(udp, target)};
	memcpy(&name->sin6_addr, target->to, GID_LEN);
	message->msg_namelen = sizeof(*name);
}

/* Return the distance of a difference `bytes` before the end of what the ICRC covers. */
static uint32_t distance(struct udp_send *send, uint32_t bytes)
{
	if (send->distance_of != bytes) {
		send->distance_of = bytes;
		send->distance = icrc_distance((int32_t)bytes);
	}
	return send->distance;
}

/* Return how the ICRC differs if the source port and the identification differ so, `bytes` before
 * the end of what it covers. Packets of a run, and of a queue pair, repeat what others had. */
static uint32_t move(struct udp_send *send, uint16_t port, uint16_t id, uint32_t bytes)
{
	const uint32_t change = (uint32_t)port << 16 | id;
	struct udp_move *known =
		&send->moves[(port * 61u + rte_bswap16(id)) % RTE_DIM(send->moves)];

	if (unlikely(known->change != change || known->bytes != bytes))
		*known = (struct udp_move){
			.change = change,
			.bytes = bytes,
			.moved = icrc_move(port ^ icrc_move(id, send->id_to_udp),
					   distance(send, bytes)),
		};
	return known->moved;
}

/*
 * Write the ICRC that a packet has with the kernel's headers: with our socket's source port, and
 * the identification `id`. An ICRC that was wrong stays wrong.
 */
static void write_icrc(struct udp_send *send, const uint8_t *frame, uint32_t len,
		       const struct udp_frame *layout, uint16_t id, uint8_t icrc[WIRE_ICRC_LEN])
{
	static const uint8_t port[] = {WIRE_UDP_PORT >> 8, WIRE_UDP_PORT & 0xff};
	const uint8_t *udp = frame + layout->l4_off;
	const uint16_t port_change = (uint16_t)((udp[0] ^ port[0]) | (udp[1] ^ port[1]) << 8);
	const uint16_t id_change =
		layout->ipv6 ? 0 : rte_bswap16((uint16_t)(udp_frame_id(frame, layout) ^ id));
	const uint32_t moved =
		move(send, port_change, id_change, len - layout->l4_off - WIRE_ICRC_LEN);

	icrc_store(icrc_load(frame + len - WIRE_ICRC_LEN) ^ moved, icrc);
}

static void add_iov(struct msghdr *message, const void *at, size_t len)
{
	message->msg_iov[message->msg_iovlen++] = (struct iovec){(void *)(uintptr_t)at, len};
}

/* Make one message of the packets of a run. `at` is the number of packets before them. */
static void put_run(struct udp_socket *udp, const struct run *run, struct rte_mbuf *const *mbufs,
		    uint32_t at)
{
	struct udp_send *send = &udp->send;
	const uint32_t index = send->messages++;
	struct msghdr *message = &send->headers[index].msg_hdr;
	struct target target;

	*message = (struct msghdr){.msg_iov = &send->iovs[(size_t)at * IOVS_PER_PACKET],
				   .msg_control = send->controls[index]};
	send->packets[index] = (uint16_t)run->count;
	read_target(run->first, &run->headers, &target);
	set_name(udp, message, &send->targets[index], &target);
	if (run->headers.ipv6)
		add_target6(udp, message, &target);
	else
		add_target4(udp, message, &target);
	if (run->count > 1) {
		const uint16_t len = (uint16_t)run->segment_len;

		memcpy(add_control(message, IPPROTO_UDP, UDP_SEGMENT, sizeof(len)), &len,
		       sizeof(len));
	}
	for (uint32_t i = 0; i < run->count; i++) {
		const uint8_t *frame = rte_pktmbuf_mtod(mbufs[i], const uint8_t *);
		const uint32_t len = mbufs[i]->data_len;
		uint8_t *icrc = send->icrcs[at + i];

		write_icrc(send, frame, len, &run->headers, (uint16_t)i, icrc);
		add_iov(message, frame + run->headers.len, len - run->headers.len - WIRE_ICRC_LEN);
		add_iov(message, icrc, WIRE_ICRC_LEN);
	}
}

/* Return true if the frame is a UDP packet that this socket can send. */
static bool is_for(const struct udp_socket *udp, const struct rte_mbuf *mbuf)
{
	const uint8_t *frame = rte_pktmbuf_mtod(mbuf, const uint8_t *);
	struct udp_frame layout;

	return udp_frame_find(frame, mbuf->data_len, &layout) && (udp->ipv6 || !layout.ipv6) &&
	       mbuf->data_len >= layout.len + sizeof(struct bth) + WIRE_ICRC_LEN;
}

/* Make messages of the packets up to one that the socket cannot send. */
static void make_batch(struct udp_socket *udp, struct rte_mbuf *const *mbufs, uint32_t n, bool runs)
{
	struct run run;

	udp->send.messages = 0;
	for (uint32_t i = 0; i < n && is_for(udp, mbufs[i]); i += run.count) {
		run_gather(&run, &mbufs[i], n - i, runs);
		put_run(udp, &run, &mbufs[i], i);
	}
}

/* Send the batch. Returns how many messages were sent, or -errno. */
static int send_batch(struct udp_socket *udp)
{
	int sent;

	if (udp->send.messages == 0)
		return -EPROTONOSUPPORT;
	if (unlikely(!udp_is_ours(udp)))
		return -EBADF;
	sent = sendmmsg(udp->fd, udp->send.headers, udp->send.messages, MSG_DONTWAIT);
	return sent < 0 ? -errno : sent;
}

/* Return true if this error may mean that the kernel takes no run, or only not this one: its
 * packets are longer than the path's MTU, or their source is no address of this host any more. */
static bool refuses_run(const struct udp_send *send, int err)
{
	return send->messages > 0 && send->packets[0] > 1 && (err == EINVAL || err == EIO);
}

/* Note that the kernel takes no runs: it has taken the first packet of one that it refused. */
static void stop_runs(struct udp_send *send)
{
	log_debug("the kernel takes no runs of packets");
	send->runs = false;
}

/* Say once why packets are lost; that a path's MTU is too small once more. */
static void tell(struct udp_send *send, int err)
{
	bool *told = err == EMSGSIZE ? &send->told_of_size : &send->told;

	if (*told || err == ENOBUFS || err == EBADF)
		return;
	*told = true;
	log_warn("packets are lost, because the kernel does not send them: %s%s", strerror(err),
		 err == EMSGSIZE ? ": the path's MTU is smaller than the interface's (--mtu)" : "");
}

/* Drop the packets of the first message, or the first packet, as a network would lose them. */
static uint32_t refuse(struct udp_socket *udp, struct rte_mbuf *const *mbufs, int err)
{
	const uint32_t packets = udp->send.messages == 0 ? 1 : udp->send.packets[0];

	udp->counts.refused_packets += packets;
	for (uint32_t i = 0; i < packets; i++)
		udp->counts.refused_bytes += mbufs[i]->pkt_len;
	tell(&udp->send, err);
	return packets;
}

uint16_t udp_tx_burst(struct udp_socket *udp, struct rte_mbuf **mbufs, uint16_t n)
{
	uint32_t alone = 0; /* packets of a run that the kernel has refused */
	uint16_t done = 0;

	while (done < n) {
		const bool runs = alone == 0 && udp->send.runs && tuning.runs;
		const uint32_t most = RTE_MIN((uint32_t)n - done, (uint32_t)SEND_BURST);
		uint32_t packets = 0;
		int sent;

		make_batch(udp, mbufs + done, alone > 0 ? RTE_MIN(alone, most) : most, runs);
		sent = send_batch(udp);
		if (sent == -EAGAIN)
			break;
		if (unlikely(sent < 0 && refuses_run(&udp->send, -sent))) {
			alone = udp->send.packets[0];
			continue;
		}
		if (unlikely(alone > 0 && sent > 0 && udp->send.runs))
			stop_runs(&udp->send);
		if (unlikely(sent < 0))
			packets = refuse(udp, mbufs + done, -sent);
		for (int i = 0; i < sent; i++)
			packets += udp->send.packets[i];
		rte_pktmbuf_free_bulk(mbufs + done, packets);
		done = (uint16_t)(done + packets);
		alone -= RTE_MIN(alone, packets);
	}
	return done;
}
