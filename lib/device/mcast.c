/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups by GID, and the queue pairs that are attached to them. */
#include "device/mcast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>

#include "device/device.h"
#include "device/limits.h"
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

static int create(struct device *device, const union ibv_gid *gid, struct mcast_group **created)
{
	struct mcast_group *group;
	int rc;

	if (device->group_count == DEVICE_MAX_MCAST_GRP)
		return -ENOMEM;
	group = calloc(1, sizeof(*group));
	if (!group)
		return -ENOMEM;
	group->gid = *gid;
	rc = device->net->join(device->net_user, gid);
	if (rc != 0) {
		free(group);
		return rc;
	}
	LIST_INSERT_HEAD(&device->groups[bucket_of(gid->raw)], group, link);
	device->group_count++;
	*created = group;
	return 0;
}

static struct member *member_of(struct mcast_group *group, const struct qp *qp)
{
	for (uint32_t i = 0; i < group->count; i++) {
		if (group->members[i].qp == qp)
			return &group->members[i];
	}
	return NULL;
}

int mcast_attach(struct device *device, const union ibv_gid *gid, struct qp *qp, bool blocks_own)
{
	struct mcast_group *group;
	int rc;

	if (!gid_is_multicast(gid->raw))
		return -EINVAL;
	group = find(device, gid->raw);
	if (group && member_of(group, qp))
		return 0;
	if (group && group->count == DEVICE_MAX_MCAST_QP_ATTACH)
		return -ENOMEM;
	if (!group) {
		rc = create(device, gid, &group);
		if (rc != 0)
			return rc;
	}
	group->members[group->count++] = (struct member){.qp = qp, .blocks_own = blocks_own};
	return 1;
}

static void leave(struct device *device, struct mcast_group *group, struct member *member)
{
	*member = group->members[--group->count];
	if (group->count > 0)
		return;
	LIST_REMOVE(group, link);
	device->group_count--;
	device->net->leave(device->net_user, &group->gid);
	free(group);
}

int mcast_detach(struct device *device, const union ibv_gid *gid, struct qp *qp)
{
	struct mcast_group *group = find(device, gid->raw);
	struct member *member = group ? member_of(group, qp) : NULL;

	if (!member)
		return -EINVAL;
	leave(device, group, member);
	return 0;
}

void mcast_detach_all(struct device *device, struct qp *qp)
{
	for (unsigned int i = 0; i < DEVICE_MCAST_BUCKETS; i++) {
		struct mcast_group *group = LIST_FIRST(&device->groups[i]);

		while (group) {
			struct mcast_group *next = LIST_NEXT(group, link);
			struct member *member = member_of(group, qp);

			if (member)
				leave(device, group, member);
			group = next;
		}
	}
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
