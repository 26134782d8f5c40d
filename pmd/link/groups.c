/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups: who joins them for us, and when a report on one is due. */
#include "link/groups.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define SCOPE_HOST    1 /* RFC 4291, 2.7: and narrower ones */
#define NEVER	      UINT64_MAX
#define UNASKED	      2			     /* reports: RFC 3376, 8.1, robustness variable */
#define UNASKED_NS    UINT64_C(1000000000)   /* between them: 8.11, unsolicited report interval */
#define OLD_ROUTER_NS UINT64_C(260000000000) /* 8.12, from the defaults of what it is made of */

void groups_init(struct groups *groups)
{
	*groups = (struct groups){.due_ns = NEVER};
	LIST_INIT(&groups->list);
	/* So that hosts which start together do not all report at the same time. */
	if (getrandom(&groups->random, sizeof(groups->random), GRND_NONBLOCK) < 0 ||
	    groups->random == 0)
		groups->random = 1;
}

/* Some time in (0, limit]. */
static uint64_t random_delay(struct groups *groups, uint64_t limit_ns)
{
	/* xorshift */
	groups->random ^= groups->random << 13;
	groups->random ^= groups->random >> 17;
	groups->random ^= groups->random << 5;
	return limit_ns == 0 ? 0 : 1 + groups->random % limit_ns;
}

static int join_ipv4(int fd, unsigned int ifindex, const uint8_t gid[GID_LEN])
{
	struct ip_mreqn request = {.imr_ifindex = (int)ifindex};

	memcpy(&request.imr_multiaddr, gid + GID_LEN - 4, sizeof(request.imr_multiaddr));
	return setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof(request));
}

static int join_ipv6(int fd, unsigned int ifindex, const uint8_t gid[GID_LEN])
{
	struct ipv6_mreq request = {.ipv6mr_interface = ifindex};

	memcpy(&request.ipv6mr_multiaddr, gid, sizeof(request.ipv6mr_multiaddr));
	return setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &request, sizeof(request));
}

/* A socket a group: the kernel lets one be in few. It leaves when it is closed. */
static int open_member(unsigned int ifindex, const uint8_t gid[GID_LEN])
{
	const bool ipv4 = gid_is_ipv4(gid);
	const int fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return -errno;
	rc = ipv4 ? join_ipv4(fd, ifindex, gid) : join_ipv6(fd, ifindex, gid);
	if (rc != 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

/* RFC 2236, 6 and RFC 3810, 6: nobody reports the groups that all are in, nor those that end in the
 * host: of scope 0 or 1. */
static bool is_unreported(const uint8_t gid[GID_LEN])
{
	static const uint8_t hosts4[4] = {224, 0, 0, 1};
	static const uint8_t nodes6[GID_LEN] = {0xff, 0x02, [15] = 1};
	uint8_t all[GID_LEN];

	gid_from_ipv4(hosts4, all);
	if (gid_is_ipv4(gid))
		return memcmp(gid, all, GID_LEN) == 0;
	return memcmp(gid, nodes6, GID_LEN) == 0 || (gid[1] & 0x0f) <= SCOPE_HOST;
}

static void set_due(struct groups *groups, struct group *group, uint64_t due_ns)
{
	group->due_ns = due_ns;
	if (due_ns < groups->due_ns)
		groups->due_ns = due_ns;
}

int groups_join(struct groups *groups, int32_t vlan, unsigned int ifindex,
		const uint8_t gid[GID_LEN], uint64_t now_ns)
{
	struct group *group = calloc(1, sizeof(*group));

	if (!group)
		return -ENOMEM;
	memcpy(group->gid, gid, GID_LEN);
	group->due_ns = NEVER;
	group->vlan = vlan;
	group->fd = -1;
	if (ifindex != 0) {
		group->fd = open_member(ifindex, gid);
		if (group->fd < 0) {
			const int rc = group->fd;

			free(group);
			return rc;
		}
	} else if (!is_unreported(gid)) {
		group->unasked = UNASKED;
		set_due(groups, group, now_ns);
	}
	LIST_INSERT_HEAD(&groups->list, group, link);
	return 0;
}

static bool is_old(const struct groups *groups, const uint8_t gid[GID_LEN], uint64_t now_ns)
{
	return now_ns < groups->old_until_ns[!gid_is_ipv4(gid)];
}

/* Whom a report is from, of IPv6 the link-local address (RFC 3810, 5.2.13). */
static const uint8_t *own_address(const struct addresses *own, int32_t vlan, bool ipv4)
{
	static const uint8_t none[GID_LEN];

	for (size_t i = 0; i < own->count; i++) {
		const struct address *address = &own->list[i];

		if (address->vlan == vlan &&
		    (ipv4 ? gid_is_ipv4(address->gid) : address_is_link_local(address->gid)))
			return address->gid;
	}
	return none;
}

static size_t build(const struct groups *groups, const struct group *group,
		    enum membership_change change, uint64_t now_ns, const uint8_t mac[6],
		    const struct addresses *own, uint8_t *frame)
{
	const uint8_t *from = own_address(own, group->vlan, gid_is_ipv4(group->gid));
	const size_t len = membership_build(frame, mac, from, group->gid, change,
					    is_old(groups, group->gid, now_ns));

	return tag_insert(frame, len, group->vlan);
}

bool groups_leave(struct groups *groups, const uint8_t gid[GID_LEN], uint64_t now_ns,
		  const uint8_t mac[6], const struct addresses *own, uint8_t *frame, size_t *len)
{
	struct group *group;

	*len = 0;
	LIST_FOREACH (group, &groups->list, link) {
		if (memcmp(group->gid, gid, GID_LEN) == 0)
			break;
	}
	if (!group)
		return false;
	LIST_REMOVE(group, link);
	if (group->fd >= 0)
		close(group->fd);
	else if (!is_unreported(gid))
		*len = build(groups, group, MEMBERSHIP_LEFT, now_ns, mac, own, frame);
	free(group);
	return true;
}

void groups_asked(struct groups *groups, int32_t vlan, const struct membership_query *query,
		  uint64_t now_ns)
{
	static const uint8_t every[GID_LEN];
	const bool all = memcmp(query->group, every, sizeof(every)) == 0;
	struct group *group;

	if (query->old)
		groups->old_until_ns[!query->ipv4] = now_ns + OLD_ROUTER_NS;
	LIST_FOREACH (group, &groups->list, link) {
		const uint64_t due_ns = now_ns + random_delay(groups, query->max_delay_ns);

		if (group->fd >= 0 || group->vlan != vlan || is_unreported(group->gid) ||
		    gid_is_ipv4(group->gid) != query->ipv4)
			continue;
		if ((all || memcmp(group->gid, query->group, GID_LEN) == 0) &&
		    due_ns < group->due_ns)
			set_due(groups, group, due_ns);
	}
}

size_t groups_report(struct groups *groups, uint64_t now_ns, const uint8_t mac[6],
		     const struct addresses *own, uint8_t *frame)
{
	enum membership_change change = MEMBERSHIP_IS;
	uint64_t earliest_ns = NEVER;
	struct group *group;

	if (now_ns < groups->due_ns)
		return 0;
	LIST_FOREACH (group, &groups->list, link) {
		if (group->due_ns <= now_ns)
			break;
		if (group->due_ns < earliest_ns)
			earliest_ns = group->due_ns;
	}
	if (!group) {
		groups->due_ns = earliest_ns;
		return 0;
	}
	group->due_ns = NEVER;
	if (group->unasked > 0) {
		change = MEMBERSHIP_JOINED;
		if (--group->unasked > 0)
			group->due_ns = now_ns + random_delay(groups, UNASKED_NS);
	}
	return build(groups, group, change, now_ns, mac, own, frame);
}
