/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups by GID, and the queue pairs that are attached to them. */
#include "device/mcast.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "device/device.h"
#include "device/limits.h"
#include "like/like.h"
#include "qp/qp.h"
#include "wire/gid.h"
#include "wire/packet.h"

struct member {
	struct qp *qp;
	bool blocks_own;
};

struct mcast_group {
	LIST_ENTRY(mcast_group) link;
	union ibv_gid gid;
	uint32_t count;
	struct member members[DEVICE_MAX_MCAST_QP_ATTACH];
};

/* Hash the last bytes of a GID, where groups differ most. */
static unsigned int bucket_of(const uint8_t gid[16])
{
	return (gid[13] ^ gid[14] * 7u ^ gid[15]) % DEVICE_MCAST_BUCKETS;
}

static struct mcast_group *find(const struct device *device, const uint8_t gid[16])
{
	struct mcast_group *group;

	LIST_FOREACH (group, &device->groups[bucket_of(gid)], link) {
		if (memcmp(group->gid.raw, gid, sizeof(group->gid.raw)) == 0)
			return group;
	}
	return NULL;
}

static struct member *member_of(struct mcast_group *group, const struct qp *qp)
{
	for (uint32_t i = 0; i < group->count; i++) {
		if (group->members[i].qp == qp)
			return &group->members[i];
	}
	return NULL;
}

/* Find the group for one more member, or make one that the device does not know yet. 0 or -errno;
 * 1: the queue pair is a member already. Device's lock. */
static int group_for(struct device *device, const union ibv_gid *gid, const struct qp *qp,
		     struct mcast_group **out)
{
	struct mcast_group *group = find(device, gid->raw);

	if (group && member_of(group, qp))
		return 1;
	if (group ? group->count >= like_most(LIKE_max_mcast_qp_attach, DEVICE_MAX_MCAST_QP_ATTACH)
		  : device->group_count >= like_most(LIKE_max_mcast_grp, DEVICE_MAX_MCAST_GRP))
		return -ENOMEM;
	if (!group)
		group = calloc(1, sizeof(*group));
	if (!group)
		return -ENOMEM;
	group->gid = *gid;
	*out = group;
	return 0;
}

static int attach(struct device *device, const union ibv_gid *gid, struct qp *qp, bool blocks_own)
{
	struct mcast_group *group;
	int rc;

	device_lock(device);
	rc = group_for(device, gid, qp, &group);
	device_unlock(device);
	if (rc != 0)
		return RTE_MIN(rc, 0);
	/* Only calls change groups, and they take turns. */
	rc = group->count == 0 ? device->net->join(device->net_user, gid) : 0;
	if (rc != 0) {
		free(group);
		return rc;
	}
	device_lock(device);
	if (group->count == 0) {
		LIST_INSERT_HEAD(&device->groups[bucket_of(gid->raw)], group, link);
		device->group_count++;
	}
	group->members[group->count++] = (struct member){.qp = qp, .blocks_own = blocks_own};
	device_unlock(device);
	return 1;
}

int mcast_attach(struct device *device, const union ibv_gid *gid, struct qp *qp, bool blocks_own)
{
	int rc;

	if (!gid_is_multicast(gid->raw))
		return -EINVAL;
	pthread_mutex_lock(&device->groups_lock);
	rc = attach(device, gid, qp, blocks_own);
	pthread_mutex_unlock(&device->groups_lock);
	return rc;
}

/* Remove a member, and return its group if it was the last one: the caller leaves it. Device's
 * lock. */
static struct mcast_group *remove_member(struct device *device, struct mcast_group *group,
					 struct member *member)
{
	*member = group->members[--group->count];
	if (group->count > 0)
		return NULL;
	LIST_REMOVE(group, link);
	device->group_count--;
	return group;
}

static void leave(const struct device *device, struct mcast_group *group)
{
	if (!group)
		return;
	device->net->leave(device->net_user, &group->gid);
	free(group);
}

int mcast_detach(struct device *device, const union ibv_gid *gid, struct qp *qp)
{
	struct mcast_group *group, *left = NULL;
	struct member *member;

	pthread_mutex_lock(&device->groups_lock);
	device_lock(device);
	group = find(device, gid->raw);
	member = group ? member_of(group, qp) : NULL;
	if (member)
		left = remove_member(device, group, member);
	device_unlock(device);
	leave(device, left);
	pthread_mutex_unlock(&device->groups_lock);
	return member ? 0 : -EINVAL;
}

void mcast_detach_all(struct device *device, struct qp *qp)
{
	LIST_HEAD(, mcast_group) all = LIST_HEAD_INITIALIZER(all);

	pthread_mutex_lock(&device->groups_lock);
	device_lock(device);
	for (unsigned int i = 0; i < DEVICE_MCAST_BUCKETS; i++) {
		struct mcast_group *group = LIST_FIRST(&device->groups[i]);

		while (group) {
			struct mcast_group *next = LIST_NEXT(group, link);
			struct member *member = member_of(group, qp);

			if (member && remove_member(device, group, member))
				LIST_INSERT_HEAD(&all, group, link);
			group = next;
		}
	}
	device_unlock(device);
	while (!LIST_EMPTY(&all)) {
		struct mcast_group *group = LIST_FIRST(&all);

		LIST_REMOVE(group, link);
		leave(device, group);
	}
	pthread_mutex_unlock(&device->groups_lock);
}

bool mcast_deliver(const struct device_engine *engine, const struct packet *packet, uint64_t now_ns)
{
	const struct device *device = engine->device;
	const struct mcast_group *group = find(device, packet->dgid);

	if (!group)
		return false;
	for (uint32_t i = 0; i < group->count; i++) {
		const struct member *member = &group->members[i];

		if (qp_home(member->qp) != engine)
			continue;
		if (member->blocks_own && packet->src_qpn == qp_number(member->qp) &&
		    device_find_gid(device, packet->sgid, DEVICE_ANY_VLAN) >= 0)
			continue;
		qp_receive(member->qp, packet, now_ns);
		/* The queue pair has failed, because it could not access the buffer of the
		 * datagram, or its completion queue was full: kick it, so that it flushes its
		 * requests. */
		if (unlikely(qp_state(member->qp) == IBV_QPS_ERR))
			device_engine_kick(qp_home(member->qp), member->qp);
	}
	return true;
}
