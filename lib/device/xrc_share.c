/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains of several processes: the links of our targets, and our stand-ins for targets of
 * others. */
#include "device/xrc_share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cancel.h"
#include "base/log.h"
#include "base/verbs_later.h"
#include "device/device.h"
#include "device/limits.h"
#include "device/xrcd.h"
#include "qp/qp.h"
#include "transport/pass.h"
#include "wire/qpn_block.h"
#include "xrcd_internal.h"

/* Rights of a stand-in: its target has checked what is enabled there, which may change. */
#define ALL_RIGHTS                                                                     \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
	 LATER_ACCESS_FLUSH_GLOBAL | LATER_ACCESS_FLUSH_PERSISTENT)

/* A link of a target to the stand-in in another process. */
struct xrc_link {
	LIST_ENTRY(xrc_link) list;
	struct pass_link pass;
	uint32_t epoch; /* of the target: the link is of no use when it begins anew */
	enum xrc_link_state {
		XRC_LINK_ASKED,
		XRC_LINK_READY,
		XRC_LINK_REFUSED, /* there is no such queue, or the process cannot */
	} state;
	int sgid_index;
};

struct xrc_stand_in {
	LIST_ENTRY(xrc_stand_in) list;
	struct xrcd_member member;
	uint32_t alias;
	bool failed; /* it was in ERR when it was last looked at: its NAK has left since */
};

static void tell(const struct device *device, enum xrc_note_type type, uint32_t alias)
{
	const struct xrc_note note = {.type = type, .alias = alias};

	device->xrc_share->tell(device->xrc_share_user, &note);
}

static void run_soon(struct device *device, struct qp *qp)
{
	qp_look_again(qp);
	device_engine_kick(device_first(device), qp);
}

/* Build the path from an address of the port to itself. */
static int make_path(const struct device *device, int sgid_index, uint32_t from, uint32_t to,
		     struct path *path)
{
	const struct ibv_ah_attr ah = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = device->gids[sgid_index].gid,
			.sgid_index = (uint8_t)sgid_index,
			.hop_limit = 64},
	};

	return device_make_path(device, &ah, device->config.mac,
				(uint16_t)(0xc000 | ((from ^ to) & 0x3fff)), path);
}

static void free_link(struct device *device, struct xrc_link *link)
{
	LIST_REMOVE(link, list);
	device_set_further_qpn(device, link->pass.alias, NULL);
	device_free_qpn(device, link->pass.alias);
	free(link);
}

static struct xrc_link *find_of_block(const struct xrcd_member *member, uint32_t block)
{
	struct xrc_link *link;

	LIST_FOREACH (link, &member->links, list) {
		if (link->pass.block == block)
			return link;
	}
	return NULL;
}

/* Ask for a stand-in, with what the target's attributes are now. */
static int ask_for_link(struct xrcd_member *member, uint32_t srqn)
{
	struct device *device = member->xrcd->device;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct xrc_note note;
	struct xrc_link *link;
	uint32_t psn;
	int cancel_state, alias;
	ssize_t got;

	qp_query(member->qp, &attr, &init);
	cancel_state = cancel_disable();
	got = getrandom(&psn, sizeof(psn), GRND_NONBLOCK);
	cancel_restore(cancel_state);
	if (got != (ssize_t)sizeof(psn))
		return -EAGAIN;
	link = calloc(1, sizeof(*link));
	if (!link)
		return -ENOMEM;
	alias = device_alloc_qpn(device_first(device));
	if (alias < 0) {
		free(link);
		return alias;
	}
	link->pass.block = srqn >> WIRE_QPN_BLOCK_SHIFT;
	link->epoch = qp_epoch(member->qp);
	link->sgid_index = attr.ah_attr.grh.sgid_index;
	link->pass.alias = (uint32_t)alias;
	link->pass.psn = psn_make(psn & PSN_MASK);
	LIST_INSERT_HEAD(&member->links, link, list);
	device_set_further_qpn(device, link->pass.alias, member->qp);
	note = (struct xrc_note){
		.type = XRC_LINK,
		.target = qp_number(member->qp),
		.alias = link->pass.alias,
		.srqn = srqn,
		.psn = link->pass.psn.v,
		.mtu = (uint8_t)attr.path_mtu,
		.min_rnr_timer = attr.min_rnr_timer,
		.vlan_id = device->gids[link->sgid_index].vlan_id,
	};
	memcpy(note.gid, device->gids[link->sgid_index].gid.raw, sizeof(note.gid));
	device->xrc_share->tell(device->xrc_share_user, &note);
	return -EAGAIN;
}

int xrc_share_find(void *user, uint32_t srqn, struct pass_link **found)
{
	struct xrcd_member *member = user;
	struct device *device = member->xrcd->device;
	struct xrc_link *link;

	/* A number of our own block is ours, or nobody's. */
	if (!member->xrcd->is_shared || device_has_qpn(device, srqn))
		return -ENOENT;
	link = find_of_block(member, srqn >> WIRE_QPN_BLOCK_SHIFT);
	if (link && link->epoch != qp_epoch(member->qp)) {
		tell(device, XRC_UNLINK, link->pass.alias);
		free_link(device, link);
		link = NULL;
	}
	if (!link)
		return ask_for_link(member, srqn);
	*found = &link->pass;
	switch (link->state) {
	case XRC_LINK_READY:
		return 0;
	case XRC_LINK_ASKED:
		return -EAGAIN;
	default:
		/* The next request asks again. */
		free_link(device, link);
		return -ENOENT;
	}
}

void xrc_share_end_links(struct xrcd_member *member)
{
	struct device *device = member->xrcd->device;
	struct xrc_note note;

	if (!member->xrcd->is_shared)
		return;
	note = (struct xrc_note){.type = XRC_TARGET_END, .target = qp_number(member->qp)};
	while (!LIST_EMPTY(&member->links)) {
		qp_forget_link(member->qp, &LIST_FIRST(&member->links)->pass);
		free_link(device, LIST_FIRST(&member->links));
	}
	device->xrc_share->tell(device->xrc_share_user, &note);
}

/* Find one of our links by its alias. */
static struct xrc_link *find_link(const struct device *device, uint32_t alias,
				  struct xrcd_member **owner)
{
	struct xrcd_member *member;
	const struct xrcd *xrcd;
	struct xrc_link *link;

	LIST_FOREACH (xrcd, &device->xrcds, link) {
		LIST_FOREACH (member, &xrcd->members, link) {
			LIST_FOREACH (link, &member->links, list) {
				if (link->pass.alias != alias)
					continue;
				*owner = member;
				return link;
			}
		}
	}
	return NULL;
}

/* Hear whether our link can be used. */
static void hear_linked(struct device *device, const struct xrc_note *note)
{
	struct xrcd_member *member;
	struct xrc_link *link = find_link(device, note->alias, &member);

	if (!link || link->state != XRC_LINK_ASKED)
		return;
	link->pass.qpn = note->stand_in;
	link->state = XRC_LINK_REFUSED;
	if (note->result == 0) {
		if (make_path(device, link->sgid_index, link->pass.alias, note->stand_in,
			      &link->pass.path) == 0)
			link->state = XRC_LINK_READY;
		else
			tell(device, XRC_UNLINK, link->pass.alias);
	}
	run_soon(device, member->qp);
}

static void hear_lost(struct device *device, const struct xrc_note *note)
{
	struct xrcd_member *member;
	struct xrc_link *link = find_link(device, note->alias, &member);

	if (!link)
		return;
	qp_forget_link(member->qp, &link->pass);
	free_link(device, link);
	run_soon(device, member->qp);
}

static struct xrcd *find_domain(const struct device *device, const struct xrc_note *note)
{
	struct xrcd *xrcd;

	LIST_FOREACH (xrcd, &device->xrcds, link) {
		if (xrcd->is_shared && xrcd->dev == (dev_t)note->dev &&
		    xrcd->ino == (ino_t)note->ino)
			return xrcd;
	}
	return NULL;
}

static int create_qp(struct device *device, struct xrcd *xrcd, const struct xrc_note *note,
		     struct qp **qp)
{
	struct device_engine *home = device_first(device);
	const int qpn = device_alloc_qpn(home);
	struct ibv_qp_cap cap;
	int rc;
	const struct qp_init init = {
		.pd = xrcd->pd,
		.find_srq = xrcd_find_srq,
		.domain = xrcd,
		.target_qpn = note->target,
		.type = IBV_QPT_XRC_RECV,
		.qpn = (uint32_t)qpn,
		.home = home,
		.counters = &home->counters,
		.ooo = home->ooo,
		.waiting = &home->waiting,
		.max_rd_atomic = DEVICE_MAX_RD_ATOMIC,
		.max_dest_rd_atomic = DEVICE_MAX_RD_ATOMIC,
		.max_rate_kbps = DEVICE_MAX_RATE_KBPS,
		.port_mtu = device->mtu,
	};

	if (qpn < 0)
		return qpn;
	rc = qp_create(&init, &cap, qp);
	if (rc != 0)
		device_free_qpn(device, init.qpn);
	return rc;
}

/* Move a new stand-in to RTR. Its attributes come from another process; qp_modify checks them. */
static int connect_qp(const struct device *device, struct qp *qp, const struct xrc_note *note)
{
	const int sgid_index = device_find_gid(device, note->gid, note->vlan_id);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ALL_RIGHTS,
		.path_mtu = (enum ibv_mtu)note->mtu,
		.dest_qp_num = note->alias,
		.rq_psn = note->psn & PSN_MASK,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = note->min_rnr_timer,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};
	struct path path;
	int rc;

	if (sgid_index < 0)
		return sgid_index;
	attr.ah_attr.grh.sgid_index = (uint8_t)sgid_index;
	memcpy(attr.ah_attr.grh.dgid.raw, note->gid, sizeof(note->gid));
	rc = make_path(device, sgid_index, qp_number(qp), note->alias, &path);
	if (rc == 0)
		rc = qp_modify(qp, &attr,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
			       NULL);
	attr.qp_state = IBV_QPS_RTR;
	if (rc == 0)
		rc = qp_modify(qp, &attr,
			       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER,
			       &path);
	return rc;
}

static void destroy_qp(struct device *device, struct qp *qp)
{
	const uint32_t qpn = qp_number(qp);

	qp_retire(qp);
	qp_destroy(qp);
	device_free_qpn(device, qpn);
}

static int make_stand_in(struct device *device, const struct xrc_note *note, uint32_t *qpn)
{
	struct xrcd *xrcd = find_domain(device, note);
	struct device_engine *home = device_first(device);
	struct xrc_stand_in *stand_in;
	struct qp *qp;
	int rc;

	if (!xrcd)
		return -ENOENT;
	stand_in = calloc(1, sizeof(*stand_in));
	if (!stand_in)
		return -ENOMEM;
	rc = create_qp(device, xrcd, note, &qp);
	if (rc != 0) {
		free(stand_in);
		return rc;
	}
	rc = connect_qp(device, qp, note);
	if (rc != 0) {
		destroy_qp(device, qp);
		free(stand_in);
		return rc;
	}
	*qpn = qp_number(qp);
	stand_in->alias = note->alias;
	stand_in->member.qp = qp;
	LIST_INSERT_HEAD(&xrcd->stand_ins, stand_in, list);
	xrcd_add_qp(xrcd, &stand_in->member);
	device_set_qp(device, *qpn, qp);
	home->ops->attach(home->driver, qp);
	return 0;
}

static void end_stand_in(struct device *device, struct xrc_stand_in *stand_in)
{
	struct device_engine *home = device_first(device);
	struct qp *qp = stand_in->member.qp;

	home->ops->detach(home->driver, qp);
	device_set_qp(device, qp_number(qp), NULL);
	LIST_REMOVE(stand_in, list);
	LIST_REMOVE(&stand_in->member, link);
	destroy_qp(device, qp);
	free(stand_in);
}

void xrc_share_end_stand_ins(struct xrcd *xrcd)
{
	struct xrc_stand_in *stand_in;

	/* The owner ends the links of a process that has no handle of the domain any more. But
	 * another thread may just have opened it again. */
	while ((stand_in = LIST_FIRST(&xrcd->stand_ins)) != NULL) {
		tell(xrcd->device, XRC_LOST, stand_in->alias);
		end_stand_in(xrcd->device, stand_in);
	}
}

static void hear_link(struct device *device, const struct xrc_note *note)
{
	struct xrc_note answer = {.type = XRC_LINKED, .alias = note->alias};

	answer.result = make_stand_in(device, note, &answer.stand_in);
	device->xrc_share->tell(device->xrc_share_user, &answer);
}

/* Return true for a stand-in that failed before the last look. Its NAK has left by now, which says
 * more than this; other faults have none. */
static bool has_failed(struct xrc_stand_in *stand_in)
{
	const bool failed = stand_in->failed;

	stand_in->failed = qp_state(stand_in->member.qp) == IBV_QPS_ERR;
	return failed;
}

/* Return true if `unlink` ends the link of a stand-in; without it, if the stand-in has failed. */
static bool is_over(struct xrc_stand_in *stand_in, const struct xrc_note *unlink)
{
	return unlink ? stand_in->alias == unlink->alias : has_failed(stand_in);
}

/* End the stand-ins that are over. The targets of those that have failed must be told. */
static void end_over(struct device *device, const struct xrc_note *unlink)
{
	struct xrc_stand_in *stand_in, *next;
	struct xrcd *xrcd;

	LIST_FOREACH (xrcd, &device->xrcds, link) {
		for (stand_in = LIST_FIRST(&xrcd->stand_ins); stand_in; stand_in = next) {
			next = LIST_NEXT(stand_in, list);
			if (!is_over(stand_in, unlink))
				continue;
			if (!unlink)
				tell(device, XRC_LOST, stand_in->alias);
			end_stand_in(device, stand_in);
		}
	}
}

/* Return true if a stand-in of any domain has failed. */
static bool has_any_failed(const struct device *device)
{
	const struct xrc_stand_in *stand_in;
	const struct xrcd *xrcd;

	LIST_FOREACH (xrcd, &device->xrcds, link) {
		LIST_FOREACH (stand_in, &xrcd->stand_ins, list) {
			if (qp_state(stand_in->member.qp) == IBV_QPS_ERR)
				return true;
		}
	}
	return false;
}

bool xrc_share_is_due(struct device *device)
{
	bool due;

	if (!device->xrc_share)
		return false;
	if (device->xrc_share->has_next(device->xrc_share_user))
		return true;
	/* Another thread opens or closes a domain: look again later. */
	if (pthread_mutex_trylock(&device->xrcd_lock) != 0)
		return false;
	due = has_any_failed(device);
	pthread_mutex_unlock(&device->xrcd_lock);
	return due;
}

void xrc_share_follow(struct device *device)
{
	struct xrc_note note;

	/* Another thread opens a domain: look again later. It may need this CPU. */
	if (pthread_mutex_trylock(&device->xrcd_lock) != 0)
		return;
	while (device->xrc_share->next(device->xrc_share_user, &note)) {
		switch (note.type) {
		case XRC_LINK:
			hear_link(device, &note);
			break;
		case XRC_LINKED:
			hear_linked(device, &note);
			break;
		case XRC_UNLINK:
			end_over(device, &note);
			break;
		case XRC_LOST:
			hear_lost(device, &note);
			break;
		default:
			break;
		}
	}
	end_over(device, NULL);
	pthread_mutex_unlock(&device->xrcd_lock);
}
