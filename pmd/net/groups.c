/* SPDX-License-Identifier: BSD-3-Clause */
/* Joins multicast groups, by the kernel or by reports of our own, and finds when a report is due.
 */
#include "net/groups.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/log.h"

int due_reserve(struct due_heap *heap, size_t count)
{
	const size_t room = heap->room == 0 ? 16 : 2 * heap->room;
	struct due **entries;

	if (count <= heap->room)
		return 0;
	entries = reallocarray(heap->entries, room, sizeof(entries[0]));
	if (!entries)
		return -ENOMEM;
	heap->entries = entries;
	heap->room = room;
	return due_reserve(heap, count);
}

void due_fini(struct due_heap *heap)
{
	free(heap->entries);
	*heap = (struct due_heap){.count = 0};
}

static void put(struct due_heap *heap, size_t place, struct due *due)
{
	heap->entries[place] = due;
	due->place = place;
}

static void move_up(struct due_heap *heap, struct due *due)
{
	size_t place = due->place;

	while (place > 0 && heap->entries[(place - 1) / 2]->at_ns > due->at_ns) {
		put(heap, place, heap->entries[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	put(heap, place, due);
}

static void move_down(struct due_heap *heap, struct due *due)
{
	size_t place = due->place;

	for (;;) {
		size_t child = 2 * place + 1;

		if (child + 1 < heap->count &&
		    heap->entries[child + 1]->at_ns < heap->entries[child]->at_ns)
			child++;
		if (child >= heap->count || heap->entries[child]->at_ns >= due->at_ns)
			break;
		put(heap, place, heap->entries[child]);
		place = child;
	}
	put(heap, place, due);
}

static void take_out(struct due_heap *heap, const struct due *due)
{
	struct due *last = heap->entries[--heap->count];

	if (last == due)
		return;
	put(heap, due->place, last);
	move_up(heap, last);
	move_down(heap, last);
}

void due_set(struct due_heap *heap, struct due *due, uint64_t at_ns)
{
	if (due->at_ns != DUE_NEVER && at_ns == DUE_NEVER)
		take_out(heap, due);
	else if (due->at_ns == DUE_NEVER && at_ns != DUE_NEVER)
		put(heap, heap->count++, due);
	due->at_ns = at_ns;
	if (at_ns == DUE_NEVER)
		return;
	move_up(heap, due);
	move_down(heap, due);
}

static int change_ipv4(int fd, bool join, unsigned int ifindex, const uint8_t gid[GID_LEN])
{
	struct ip_mreqn request = {.imr_ifindex = (int)ifindex};

	memcpy(&request.imr_multiaddr, gid + GID_IPV4_OFFSET, sizeof(request.imr_multiaddr));
	return setsockopt(fd, IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &request,
			  sizeof(request));
}

static int change_ipv6(int fd, bool join, unsigned int ifindex, const uint8_t gid[GID_LEN])
{
	struct ipv6_mreq request = {.ipv6mr_interface = ifindex};

	memcpy(&request.ipv6mr_multiaddr, gid, sizeof(request.ipv6mr_multiaddr));
	return setsockopt(fd, IPPROTO_IPV6, join ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &request,
			  sizeof(request));
}

static int change(const struct member_socket *by, bool join, unsigned int ifindex,
		  const uint8_t gid[GID_LEN])
{
	const int rc = by->ipv4 ? change_ipv4(by->fd, join, ifindex, gid)
				: change_ipv6(by->fd, join, ifindex, gid);

	return rc == 0 ? 0 : -errno;
}

static int open_socket(bool ipv4, struct member_socket **opened)
{
	struct member_socket *by = calloc(1, sizeof(*by));

	if (!by)
		return -ENOMEM;
	by->ipv4 = ipv4;
	by->fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (by->fd < 0) {
		free(by);
		return -errno;
	}
	*opened = by;
	return 0;
}

static void close_socket(struct member_socket *by)
{
	close(by->fd);
	free(by);
}

/* Return true if the error means that a socket can join no more groups (igmp_max_memberships,
 * optmem_max). */
static bool means_full(int rc)
{
	return rc == -ENOBUFS || rc == -ENOMEM;
}

/* Join a group on a kernel interface. Not MT-safe. 0 or -errno of the kernel. */
static int members_join(struct members *members, unsigned int ifindex, const uint8_t gid[GID_LEN],
			struct member_socket **by)
{
	const bool ipv4 = gid_is_ipv4(gid);
	struct member_socket *socket;
	int rc;

	LIST_FOREACH (socket, &members->sockets, link) {
		if (socket->ipv4 != ipv4 || socket->full)
			continue;
		rc = change(socket, true, ifindex, gid);
		socket->full = means_full(rc);
		if (socket->full)
			continue;
		if (rc != 0)
			return rc;
		socket->joins++;
		*by = socket;
		return 0;
	}
	rc = open_socket(ipv4, &socket);
	if (rc != 0)
		return rc;
	rc = change(socket, true, ifindex, gid);
	if (rc != 0) {
		close_socket(socket);
		return rc;
	}
	socket->joins = 1;
	LIST_INSERT_HEAD(&members->sockets, socket, link);
	*by = socket;
	return 0;
}

/* Leave a group that the socket `by` has joined. Not MT-safe. */
static void members_leave(struct member_socket *by, unsigned int ifindex,
			  const uint8_t gid[GID_LEN])
{
	/* If the interface has gone, the kernel has ended the membership, but the socket still
	 * counts it. */
	change(by, false, ifindex, gid);
	by->full = false;
	if (--by->joins > 0)
		return;
	LIST_REMOVE(by, link);
	close_socket(by);
}

#define SCOPE_HOST 1			/* RFC 4291, 2.7: this scope and narrower ones */
#define UNASKED	   2			/* reports: RFC 3376, 8.1, robustness variable */
#define UNASKED_NS UINT64_C(1000000000) /* between them: 8.11, unsolicited report interval */
/* Older version querier present interval, from the default values (8.12). */
#define OLD_ROUTER_NS UINT64_C(260000000000)

void groups_init(struct groups *groups)
{
	*groups = (struct groups){.random = 0};
	LIST_INIT(&groups->list);
	/* A random seed keeps hosts that start together from reporting at the same time. */
	if (getrandom(&groups->random, sizeof(groups->random), GRND_NONBLOCK) < 0 ||
	    groups->random == 0)
		groups->random = 1;
}

/* Return a random time in (0, limit]. */
static uint64_t random_delay(struct groups *groups, uint64_t limit_ns)
{
	/* xorshift */
	groups->random ^= groups->random << 13;
	groups->random ^= groups->random >> 17;
	groups->random ^= groups->random << 5;
	return limit_ns == 0 ? 0 : 1 + groups->random % limit_ns;
}

/* Return true if the group is never reported: the group of all hosts, and groups of scope 0 or 1,
 * which do not leave the host (RFC 2236, 6 and RFC 3810, 6). */
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

static struct group *find_group(const struct groups *groups, const uint8_t gid[GID_LEN])
{
	struct group *group;

	LIST_FOREACH (group, &groups->list, link) {
		if (memcmp(group->gid, gid, GID_LEN) == 0)
			return group;
	}
	return NULL;
}

static struct membership *find_membership(const struct group *group, int32_t vlan)
{
	struct membership *membership;

	LIST_FOREACH (membership, &group->memberships, link) {
		if (membership->vlan == vlan)
			return membership;
	}
	return NULL;
}

static void free_heap_if_unused(struct groups *groups)
{
	if (groups->memberships == 0)
		due_fini(&groups->due);
}

static int join(struct groups *groups, struct group *group, int32_t vlan, unsigned int ifindex,
		uint64_t now_ns)
{
	struct membership *membership = calloc(1, sizeof(*membership));
	int rc;

	if (!membership)
		return -ENOMEM;
	rc = due_reserve(&groups->due, groups->memberships + 1);
	if (rc == 0 && ifindex != 0)
		rc = members_join(&groups->members, ifindex, group->gid, &membership->by);
	if (rc != 0) {
		free_heap_if_unused(groups);
		free(membership);
		return rc;
	}
	membership->group = group;
	membership->vlan = vlan;
	membership->ifindex = ifindex;
	membership->due.at_ns = DUE_NEVER;
	if (ifindex == 0 && !is_unreported(group->gid)) {
		membership->unasked = UNASKED;
		due_set(&groups->due, &membership->due, now_ns);
	}
	LIST_INSERT_HEAD(&group->memberships, membership, link);
	groups->memberships++;
	return 0;
}

static void leave(struct groups *groups, struct membership *membership)
{
	due_set(&groups->due, &membership->due, DUE_NEVER);
	if (membership->by)
		members_leave(membership->by, membership->ifindex, membership->group->gid);
	LIST_REMOVE(membership, link);
	free(membership);
	groups->memberships--;
	free_heap_if_unused(groups);
}

static void drop_if_empty(struct group *group)
{
	if (!LIST_EMPTY(&group->memberships))
		return;
	LIST_REMOVE(group, link);
	free(group);
}

int groups_join(struct groups *groups, int32_t vlan, unsigned int ifindex,
		const uint8_t gid[GID_LEN], uint64_t now_ns)
{
	struct group *group = find_group(groups, gid);
	int rc;

	if (!group) {
		group = calloc(1, sizeof(*group));
		if (!group)
			return -ENOMEM;
		memcpy(group->gid, gid, GID_LEN);
		LIST_INSERT_HEAD(&groups->list, group, link);
	}
	rc = join(groups, group, vlan, ifindex, now_ns);
	drop_if_empty(group);
	return rc;
}

/* Join the group in a network that is new or has another interface than before. The membership in a
 * network that has gone stays, because the network may come back. */
static void follow(struct groups *groups, struct group *group, const struct address *address,
		   uint64_t now_ns)
{
	struct membership *old = find_membership(group, address->vlan);
	int rc;

	if (old && old->ifindex == address->ifindex)
		return;
	rc = join(groups, group, address->vlan, address->ifindex, now_ns);
	if (rc != 0)
		log_warn("cannot join a multicast group on a new network: %s", strerror(-rc));
	else if (old)
		leave(groups, old);
}

void groups_follow(struct groups *groups, const struct addresses *own, uint64_t now_ns)
{
	struct group *group;

	for (size_t i = 0; i < own->count; i++) {
		if (!addresses_first_of_vlan(own, i))
			continue;
		LIST_FOREACH (group, &groups->list, link)
			follow(groups, group, &own->list[i], now_ns);
	}
}

static bool is_old(const struct groups *groups, const uint8_t gid[GID_LEN], uint64_t now_ns)
{
	return now_ns < groups->old_until_ns[!gid_is_ipv4(gid)];
}

/* Return the source address of a report; for IPv6 it is the link-local one (RFC 3810, 5.2.13). */
static const uint8_t *own_address(const struct addresses *own, int32_t vlan, bool ipv4)
{
	static const uint8_t none[GID_LEN];

	for (size_t i = 0; i < own->count; i++) {
		const struct address *address = &own->list[i];

		if (address->vlan == vlan &&
		    (ipv4 ? gid_is_ipv4(address->gid) : gid_is_link_local(address->gid)))
			return address->gid;
	}
	return none;
}

static size_t build(const struct groups *groups, const struct membership *membership,
		    enum membership_change change, uint64_t now_ns, const uint8_t mac[6],
		    const struct addresses *own, uint8_t *frame)
{
	const uint8_t *gid = membership->group->gid;
	const uint8_t *from = own_address(own, membership->vlan, gid_is_ipv4(gid));
	const size_t len =
		membership_build(frame, mac, from, gid, change, is_old(groups, gid, now_ns));

	return tag_insert(frame, len, membership->vlan);
}

bool groups_leave(struct groups *groups, const uint8_t gid[GID_LEN], uint64_t now_ns,
		  const uint8_t mac[6], const struct addresses *own, uint8_t *frame, size_t *len)
{
	struct group *group = find_group(groups, gid);
	struct membership *membership;

	*len = 0;
	if (!group)
		return false;
	membership = LIST_FIRST(&group->memberships);
	if (!membership->by && !is_unreported(gid))
		*len = build(groups, membership, MEMBERSHIP_LEFT, now_ns, mac, own, frame);
	leave(groups, membership);
	drop_if_empty(group);
	return true;
}

static bool is_asked(const struct group *group, const struct membership_query *query)
{
	static const uint8_t every[GID_LEN];

	return !is_unreported(group->gid) && gid_is_ipv4(group->gid) == query->ipv4 &&
	       (memcmp(query->group, every, sizeof(every)) == 0 ||
		memcmp(query->group, group->gid, GID_LEN) == 0);
}

void groups_asked(struct groups *groups, int32_t vlan, const struct membership_query *query,
		  uint64_t now_ns)
{
	struct group *group;

	if (query->old)
		groups->old_until_ns[!query->ipv4] = now_ns + OLD_ROUTER_NS;
	LIST_FOREACH (group, &groups->list, link) {
		struct membership *membership = find_membership(group, vlan);
		uint64_t due_ns;

		if (!membership || membership->by || !is_asked(group, query))
			continue;
		due_ns = now_ns + random_delay(groups, query->max_delay_ns);
		if (due_ns < membership->due.at_ns)
			due_set(&groups->due, &membership->due, due_ns);
	}
}

size_t groups_report(struct groups *groups, uint64_t now_ns, const uint8_t mac[6],
		     const struct addresses *own, uint8_t *frame)
{
	struct due *first = due_first(&groups->due);
	enum membership_change change = MEMBERSHIP_IS;
	struct membership *membership;
	uint64_t next_ns = DUE_NEVER;

	if (!first || first->at_ns > now_ns)
		return 0;
	membership = container_of(first, struct membership, due);
	if (membership->unasked > 0) {
		change = MEMBERSHIP_JOINED;
		if (--membership->unasked > 0)
			next_ns = now_ns + random_delay(groups, UNASKED_NS);
	}
	due_set(&groups->due, first, next_ns);
	return build(groups, membership, change, now_ns, mac, own, frame);
}
