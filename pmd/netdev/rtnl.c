/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends one request and receives one answer, over a netlink socket for each query. */
#include "netdev/rtnl.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/own.h"

int watch_open(void)
{
	const struct sockaddr_nl address = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
		const int err = errno;

		close(fd);
		return -err;
	}
	own_mark(fd);
	return fd;
}

bool watch_changed(int fd)
{
	bool changed = false;
	char message;

	/* Any message counts as a change. If there were too many, some were lost (ENOBUFS). */
	while (own_is(fd)) {
		if (recv(fd, &message, sizeof(message), MSG_TRUNC) >= 0 || errno == ENOBUFS)
			changed = true;
		else if (errno != EINTR)
			break;
	}
	return changed;
}

#define RTNL_BUFFER_LEN 4096
#define RTNL_LINK_LEN	32768 /* interfaces have many attributes */
#define RTNL_TIMEOUT_S	1

/* A request: header, one of the fixed parts, and attributes of at most this size. */
struct rtnl_request {
	struct nlmsghdr header;
	union {
		struct rtmsg route;
		struct ndmsg neigh;
		struct ifinfomsg link;
	} fixed;
	uint8_t attributes[64];
};

static const uint8_t *gid_ip(const uint8_t gid[GID_LEN], unsigned char *family, size_t *len)
{
	const bool ipv4 = gid_is_ipv4(gid);

	*family = ipv4 ? AF_INET : AF_INET6;
	*len = ipv4 ? 4 : GID_LEN;
	return ipv4 ? gid + GID_LEN - 4 : gid;
}

static bool gid_from_ip(const void *ip, size_t len, uint8_t gid[GID_LEN])
{
	if (len == 4)
		gid_from_ipv4(ip, gid);
	else if (len == GID_LEN)
		memcpy(gid, ip, GID_LEN);
	else
		return false;
	return true;
}

static void rtnl_add(struct rtnl_request *request, unsigned short type, const void *data,
		     size_t len)
{
	struct rtattr *attr = (struct rtattr *)(void *)((uint8_t *)request +
							NLMSG_ALIGN(request->header.nlmsg_len));

	attr->rta_type = type;
	attr->rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(RTA_DATA(attr), data, len);
	request->header.nlmsg_len =
		NLMSG_ALIGN(request->header.nlmsg_len) + (uint32_t)RTA_ALIGN(attr->rta_len);
}

/* Send the request. Store the first message of the answer in `buffer`. Returns 0 or -errno. */
static int rtnl_ask(struct rtnl_request *request, void *buffer, size_t buffer_len,
		    struct nlmsghdr **answer)
{
	const struct timeval timeout = {.tv_sec = RTNL_TIMEOUT_S};
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct nlmsghdr *header = buffer;
	ssize_t len;
	int err = 0;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	request->header.nlmsg_flags = NLM_F_REQUEST;
	request->header.nlmsg_seq = 1;
	len = send(fd, request, request->header.nlmsg_len, 0);
	if (len >= 0)
		len = recv(fd, buffer, buffer_len, 0);
	if (len < 0)
		err = -errno;
	close(fd);
	if (err != 0)
		return err;
	if (!NLMSG_OK(header, (size_t)len))
		return -EPROTO;
	if (header->nlmsg_type == NLMSG_ERROR) {
		const struct nlmsgerr *e = NLMSG_DATA(header);

		return header->nlmsg_len < NLMSG_LENGTH(sizeof(*e)) || e->error == 0 ? -EPROTO
										     : e->error;
	}
	*answer = header;
	return 0;
}

static const struct rtattr *rtnl_find(const struct rtattr *attr, size_t len, unsigned short type)
{
	for (; RTA_OK(attr, len); attr = RTA_NEXT(attr, len)) {
		if ((attr->rta_type & NLA_TYPE_MASK) == type)
			return attr;
	}
	return NULL;
}

/* Parse RTA_VIA, a router of another address family, as in IPv4 routes over IPv6 routers (RFC
 * 5549). */
static bool rtnl_parse_via(const struct rtattr *attr, uint8_t gid[GID_LEN])
{
	const struct rtvia *via = RTA_DATA(attr);

	if (RTA_PAYLOAD(attr) < sizeof(*via))
		return false;
	return gid_from_ip(via->rtvia_addr, RTA_PAYLOAD(attr) - sizeof(*via), gid);
}

/* Ask for the route to a destination; with `ifindex` not 0, among those of that interface only. */
static int rtnl_ask_route(unsigned int ifindex, const uint8_t dgid[GID_LEN], unsigned int flags,
			  void *buffer, size_t buffer_len, struct nlmsghdr **answer)
{
	struct rtnl_request request = {
		.header.nlmsg_type = RTM_GETROUTE,
		.header.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
		.fixed.route.rtm_flags = flags,
	};
	const uint8_t *ip;
	size_t ip_len;
	int rc;

	ip = gid_ip(dgid, &request.fixed.route.rtm_family, &ip_len);
	request.fixed.route.rtm_dst_len = (unsigned char)(8 * ip_len);
	rtnl_add(&request, RTA_DST, ip, ip_len);
	if (ifindex != 0)
		rtnl_add(&request, RTA_OIF, &ifindex, sizeof(ifindex));
	rc = rtnl_ask(&request, buffer, buffer_len, answer);
	if (rc != 0)
		return rc;
	return (*answer)->nlmsg_type == RTM_NEWROUTE &&
			       (*answer)->nlmsg_len >= NLMSG_LENGTH(sizeof(struct rtmsg))
		       ? 0
		       : -EPROTO;
}

/* Look up a route once; if `ifindex` is not 0, among those of that interface only. */
static int rtnl_lookup(unsigned int ifindex, const uint8_t dgid[GID_LEN], unsigned int *via_ifindex,
		       uint8_t next_hop[GID_LEN])
{
	uint8_t buffer[RTNL_BUFFER_LEN] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct rtmsg *message;
	const struct rtattr *attr;
	struct nlmsghdr *answer;
	size_t len;
	int rc;

	rc = rtnl_ask_route(ifindex, dgid, 0, buffer, sizeof(buffer), &answer);
	if (rc != 0)
		return rc;
	message = NLMSG_DATA(answer);
	if (message->rtm_type != RTN_UNICAST)
		return -ENETUNREACH;
	*via_ifindex = 0;
	memcpy(next_hop, dgid, GID_LEN);
	len = RTM_PAYLOAD(answer);
	for (attr = RTM_RTA(message); RTA_OK(attr, len); attr = RTA_NEXT(attr, len)) {
		if (attr->rta_type == RTA_GATEWAY)
			gid_from_ip(RTA_DATA(attr), RTA_PAYLOAD(attr), next_hop);
		else if (attr->rta_type == RTA_VIA)
			rtnl_parse_via(attr, next_hop);
		else if (attr->rta_type == RTA_OIF && RTA_PAYLOAD(attr) == sizeof(*via_ifindex))
			memcpy(via_ifindex, RTA_DATA(attr), sizeof(*via_ifindex));
	}
	return 0;
}

int rtnl_route(unsigned int ifindex, const uint8_t dgid[GID_LEN], uint8_t next_hop[GID_LEN])
{
	unsigned int via_ifindex;
	int rc;

	rc = rtnl_lookup(0, dgid, &via_ifindex, next_hop);
	/* Ask for this interface second: the kernel then treats a destination without a route as a
	 * neighbour. */
	if (rc == 0 && via_ifindex != ifindex)
		rc = rtnl_lookup(ifindex, dgid, &via_ifindex, next_hop);
	return rc == 0 ? 0 : -ENETUNREACH;
}

int rtnl_local(const uint8_t gid[GID_LEN], unsigned int *ifindex)
{
	uint8_t buffer[RTNL_BUFFER_LEN] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct rtmsg *message;
	const struct rtattr *oif;
	struct nlmsghdr *answer;
	int rc;

	/* Without this flag the kernel returns the loopback interface, over which it would send. */
	rc = rtnl_ask_route(0, gid, RTM_F_FIB_MATCH, buffer, sizeof(buffer), &answer);
	if (rc != 0)
		return -ENOENT;
	message = NLMSG_DATA(answer);
	oif = rtnl_find(RTM_RTA(message), RTM_PAYLOAD(answer), RTA_OIF);
	if (message->rtm_type != RTN_LOCAL || !oif || RTA_PAYLOAD(oif) != sizeof(*ifindex))
		return -ENOENT;
	memcpy(ifindex, RTA_DATA(oif), sizeof(*ifindex));
	return 0;
}

int rtnl_neigh(unsigned int ifindex, const uint8_t gid[GID_LEN], uint8_t mac[6], bool *confirmed)
{
	struct rtnl_request request = {
		.header.nlmsg_type = RTM_GETNEIGH,
		.header.nlmsg_len = NLMSG_LENGTH(sizeof(struct ndmsg)),
		.fixed.neigh.ndm_ifindex = (int)ifindex,
	};
	uint8_t buffer[RTNL_BUFFER_LEN] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct ndmsg *message;
	const struct rtattr *attr;
	struct nlmsghdr *answer;
	const uint8_t *ip;
	size_t ip_len;
	size_t len;
	int rc;

	ip = gid_ip(gid, &request.fixed.neigh.ndm_family, &ip_len);
	rtnl_add(&request, NDA_DST, ip, ip_len);
	rc = rtnl_ask(&request, buffer, sizeof(buffer), &answer);
	if (rc != 0)
		return rc;
	if (answer->nlmsg_type != RTM_NEWNEIGH ||
	    answer->nlmsg_len < NLMSG_LENGTH(sizeof(*message)))
		return -EPROTO;
	message = NLMSG_DATA(answer);
	if (!(message->ndm_state &
	      (NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE)))
		return -ENOENT;
	*confirmed = message->ndm_state & (NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE);
	len = NLMSG_PAYLOAD(answer, sizeof(*message));
	attr = (const struct rtattr *)((const uint8_t *)message + NLMSG_ALIGN(sizeof(*message)));
	for (; RTA_OK(attr, len); attr = RTA_NEXT(attr, len)) {
		if (attr->rta_type == NDA_LLADDR && RTA_PAYLOAD(attr) == 6) {
			memcpy(mac, RTA_DATA(attr), 6);
			return 0;
		}
	}
	return -ENOENT;
}

static const struct rtattr *rtnl_find_in(const struct rtattr *nest, unsigned short type)
{
	return nest ? rtnl_find(RTA_DATA(nest), RTA_PAYLOAD(nest), type) : NULL;
}

/* Parse IFLA_LINKINFO of a VLAN: its kind, its protocol (802.1ad has the same kind) and its id. */
static int rtnl_parse_vlan(const struct rtattr *info, int32_t *vlan)
{
	static const char kind_vlan[] = "vlan";
	const struct rtattr *kind = rtnl_find_in(info, IFLA_INFO_KIND);
	const struct rtattr *data = rtnl_find_in(info, IFLA_INFO_DATA);
	const struct rtattr *id = rtnl_find_in(data, IFLA_VLAN_ID);
	const struct rtattr *protocol = rtnl_find_in(data, IFLA_VLAN_PROTOCOL);
	uint16_t value;

	if (!kind || RTA_PAYLOAD(kind) < sizeof(kind_vlan) ||
	    memcmp(RTA_DATA(kind), kind_vlan, sizeof(kind_vlan)) != 0)
		return -ENOENT;
	if (protocol && RTA_PAYLOAD(protocol) == sizeof(value)) {
		memcpy(&value, RTA_DATA(protocol), sizeof(value));
		if (value != htons(ETH_P_8021Q))
			return -ENOENT;
	}
	if (!id || RTA_PAYLOAD(id) != sizeof(value))
		return -EPROTO;
	memcpy(&value, RTA_DATA(id), sizeof(value));
	*vlan = value;
	return 0;
}

int rtnl_vlan(unsigned int ifindex, unsigned int *lower, int32_t *vlan)
{
	struct rtnl_request request = {
		.header.nlmsg_type = RTM_GETLINK,
		.header.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
		.fixed.link.ifi_index = (int)ifindex,
	};
	uint8_t buffer[RTNL_LINK_LEN] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct rtattr *attrs, *link;
	struct nlmsghdr *answer;
	size_t len;
	int rc;

	rc = rtnl_ask(&request, buffer, sizeof(buffer), &answer);
	if (rc != 0)
		return rc == -ENODEV ? -ENOENT : rc;
	if (answer->nlmsg_type != RTM_NEWLINK ||
	    answer->nlmsg_len < NLMSG_LENGTH(sizeof(struct ifinfomsg)))
		return -EPROTO;
	attrs = IFLA_RTA(NLMSG_DATA(answer));
	len = IFLA_PAYLOAD(answer);
	link = rtnl_find(attrs, len, IFLA_LINK);
	/* If the lower interface is in another namespace, its number is meaningless here. */
	if (!link || RTA_PAYLOAD(link) != sizeof(*lower) ||
	    rtnl_find(attrs, len, IFLA_LINK_NETNSID))
		return -ENOENT;
	memcpy(lower, RTA_DATA(link), sizeof(*lower));
	return rtnl_parse_vlan(rtnl_find(attrs, len, IFLA_LINKINFO), vlan);
}
