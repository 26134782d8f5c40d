/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains, and the numbers of their shared receive queues. */
#include "device/xrcd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "device/device.h"
#include "device/limits.h"
#include "device/xrc_share.h"
#include "mem/pd.h"
#include "qp/qp.h"
#include "queue/cq.h"
#include "queue/srq.h"
#include "wire/qpn_block.h"
#include "xrcd_internal.h"

/*
 * A number leads to a slot of the device's table. Processes that share a port must not have the
 * same numbers: a message that names a queue of another process must find none here. There a number
 * is one of the device's block of queue pair numbers, and the slots of destroyed queues are used
 * again in turn. A device with all numbers to itself puts a count of the slot's uses above the
 * slot, so a late packet to a destroyed queue does not find the slot's next queue. The first slot
 * and the count begin at random, so two such devices on one network hardly have the same numbers.
 */
#define SLOT_BITS	 16
#define SLOT_BITS_SHARED WIRE_QPN_BLOCK_SHIFT
static_assert(DEVICE_MAX_SRQ < 1u << SLOT_BITS, "every shared receive queue finds a slot");

struct srq_slot {
	struct srq *srq;
	uint8_t generation;
};

/* Table of a device; allocated with its first domain. */
struct srq_table {
	uint32_t first; /* all numbers have these bits, besides those of slot and generation */
	uint32_t mask;	/* slots, a power of two, less one */
	bool has_generations;
	uint32_t next; /* slot at which the search for a free one begins */
	struct srq_slot slots[];
};

static struct xrcd *find_locked(const struct device *device, const struct stat *file)
{
	struct xrcd *xrcd;

	LIST_FOREACH (xrcd, &device->xrcds, link) {
		if (xrcd->has_file && xrcd->dev == file->st_dev && xrcd->ino == file->st_ino)
			return xrcd;
	}
	return NULL;
}

static int make_table_locked(struct device *device)
{
	const bool shared = device->config.qpn_count > 0;
	const uint32_t slots = 1u << (shared ? SLOT_BITS_SHARED : SLOT_BITS);
	struct srq_table *table;
	uint32_t random;

	if (device->srq_table)
		return 0;
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	table = calloc(1, sizeof(*table) + slots * sizeof(table->slots[0]));
	if (!table)
		return -ENOMEM;
	table->mask = slots - 1;
	table->next = random & table->mask;
	table->has_generations = !shared;
	if (shared)
		table->first = device->config.qpn_first & ~table->mask;
	for (uint32_t i = 0; i < slots && !shared; i++)
		table->slots[i].generation = (uint8_t)(random >> SLOT_BITS);
	device->srq_table = table;
	return 0;
}

static int make_locked(struct device *device, const struct stat *file, struct xrcd **xrcd)
{
	struct xrcd *x;
	int rc = make_table_locked(device);

	if (rc != 0)
		return rc;
	x = calloc(1, sizeof(*x));
	if (!x)
		return -ENOMEM;
	rc = pd_create(device->keys, &x->pd);
	if (rc != 0) {
		free(x);
		return rc;
	}
	x->device = device;
	if (file) {
		x->has_file = true;
		x->dev = file->st_dev;
		x->ino = file->st_ino;
	}
	LIST_INSERT_HEAD(&device->xrcds, x, link);
	*xrcd = x;
	return 0;
}

static int open_locked(struct device *device, const struct stat *file, int oflags, bool is_shared,
		       struct xrcd **xrcd)
{
	struct xrcd *found = file ? find_locked(device, file) : NULL;
	int rc = 0;

	if (!is_shared && found && (oflags & O_CREAT) && (oflags & O_EXCL))
		return -EINVAL;
	if (!is_shared && !found && !(oflags & O_CREAT))
		return -EAGAIN;
	if (!found)
		rc = make_locked(device, file, &found);
	if (rc != 0)
		return rc;
	/* Engines read it: once set, it stays. */
	if (is_shared && !found->is_shared)
		found->is_shared = true;
	found->opens++;
	*xrcd = found;
	return 0;
}

/* Ask the owner of the port something about a domain. 0 or -errno. */
static int ask(const struct device *device, struct xrc_note *note)
{
	const int rc = device->xrc_share->ask(device->xrc_share_user, note);

	return rc == 0 ? note->result : rc;
}

/* Open the domain of a file for all processes that share the port. -EOPNOTSUPP: this process shares
 * none. */
static int open_shared(const struct device *device, const struct stat *file, int oflags)
{
	struct xrc_note note = {
		.type = XRC_OPEN,
		.dev = (uint64_t)file->st_dev,
		.ino = (uint64_t)file->st_ino,
		.flags = (oflags & O_CREAT ? XRC_FLAG_CREATE : 0) |
			 (oflags & O_EXCL ? XRC_FLAG_EXCLUSIVE : 0),
	};

	return device->xrc_share ? ask(device, &note) : -EOPNOTSUPP;
}

static void close_shared(const struct device *device, dev_t dev, ino_t ino)
{
	const struct xrc_note note = {
		.type = XRC_CLOSE, .dev = (uint64_t)dev, .ino = (uint64_t)ino};

	device->xrc_share->tell(device->xrc_share_user, &note);
}

int xrcd_open(struct device *device, int fd, int oflags, struct xrcd **xrcd)
{
	struct stat file;
	int rc = -EOPNOTSUPP;
	bool is_shared;

	if (fd != -1 && fstat(fd, &file) != 0)
		return -errno;
	if (fd != -1)
		rc = open_shared(device, &file, oflags);
	if (rc != 0 && rc != -EOPNOTSUPP)
		return rc;
	is_shared = rc == 0;
	pthread_mutex_lock(&device->xrcd_lock);
	rc = open_locked(device, fd == -1 ? NULL : &file, oflags, is_shared, xrcd);
	pthread_mutex_unlock(&device->xrcd_lock);
	if (rc != 0 && is_shared)
		close_shared(device, file.st_dev, file.st_ino);
	return rc;
}

void xrcd_close(struct xrcd *xrcd)
{
	struct device *device = xrcd->device;
	const bool is_shared = xrcd->is_shared;
	/* Another thread that has it open may free it, once this one has let it go. */
	const dev_t dev = xrcd->dev;
	const ino_t ino = xrcd->ino;
	bool last;

	/* In the order of the engine's thread, which makes stand-ins: the engine, then the list. */
	if (is_shared)
		device_lock(device);
	pthread_mutex_lock(&device->xrcd_lock);
	last = --xrcd->opens == 0;
	if (last) {
		LIST_REMOVE(xrcd, link);
		xrc_share_end_stand_ins(xrcd);
	}
	pthread_mutex_unlock(&device->xrcd_lock);
	if (is_shared) {
		device_unlock(device);
		close_shared(device, dev, ino);
	}
	if (!last)
		return;
	pd_destroy(xrcd->pd);
	free(xrcd);
}

struct pd *xrcd_pd(const struct xrcd *xrcd)
{
	return xrcd->pd;
}

static uint32_t number_of(const struct srq_table *table, uint32_t index)
{
	const uint32_t generation =
		table->has_generations ? (uint32_t)table->slots[index].generation << SLOT_BITS : 0;

	return table->first | generation | index;
}

int xrcd_add_srq(struct xrcd *xrcd, struct srq *srq)
{
	struct srq_table *table = xrcd->device->srq_table;

	for (uint32_t i = 0; i <= table->mask; i++) {
		const uint32_t index = (table->next + i) & table->mask;
		struct srq_slot *slot = &table->slots[index];

		/* Do not use number 0, which programs may take for "none". */
		if (slot->srq || index == 0)
			continue;
		slot->srq = srq;
		srq->domain = xrcd;
		srq->number = number_of(table, index);
		table->next = index + 1;
		return 0;
	}
	return -ENOSPC;
}

/* Return true if the domain has a shared receive queue in a protection domain. */
static bool has_pd(const struct xrcd *xrcd, const struct pd *pd)
{
	const struct srq_table *table = xrcd->device->srq_table;

	for (uint32_t i = 0; i <= table->mask; i++) {
		const struct srq *srq = table->slots[i].srq;

		if (srq && srq->domain == xrcd && srq->pd == pd)
			return true;
	}
	return false;
}

void xrcd_remove_srq(struct xrcd *xrcd, struct srq *srq)
{
	struct srq_table *table = xrcd->device->srq_table;
	struct srq_slot *slot = &table->slots[srq->number & table->mask];
	struct xrcd_member *member;
	bool pd_too;

	slot->srq = NULL;
	slot->generation++;
	if (LIST_EMPTY(&xrcd->members))
		return;
	pd_too = !has_pd(xrcd, srq->pd);
	LIST_FOREACH (member, &xrcd->members, link)
		qp_forget_srq(member->qp, srq, pd_too);
}

void xrcd_add_qp(struct xrcd *xrcd, struct xrcd_member *member)
{
	member->xrcd = xrcd;
	LIST_INIT(&member->links);
	LIST_INSERT_HEAD(&xrcd->members, member, link);
}

void xrcd_remove_qp(struct xrcd_member *member)
{
	xrc_share_end_links(member);
	LIST_REMOVE(member, link);
}

/* Ask the owner of the port something about a target of a shared domain. 0 or -errno. */
static int ask_of_target(const struct xrcd *xrcd, enum xrc_note_type type, uint32_t qpn)
{
	struct xrc_note note = {.type = type,
				.dev = (uint64_t)xrcd->dev,
				.ino = (uint64_t)xrcd->ino,
				.target = qpn};

	return ask(xrcd->device, &note);
}

int xrcd_announce(struct xrcd *xrcd, uint32_t qpn)
{
	return xrcd->is_shared ? ask_of_target(xrcd, XRC_TARGET, qpn) : 0;
}

int xrcd_find_target(struct xrcd *xrcd, uint32_t qpn)
{
	return xrcd->is_shared ? ask_of_target(xrcd, XRC_FIND, qpn) : -EINVAL;
}

static void forget_in(const struct device_object *object, void *qpn)
{
	cq_forget_qp((struct cq *)(uintptr_t)object->what, *(const uint32_t *)qpn);
}

void xrcd_forget_qp(const struct xrcd *xrcd, uint32_t qpn)
{
	objects_each(xrcd->device, DEVICE_OBJECT_CQ, forget_in, &qpn);
}

struct srq *xrcd_find_srq(void *domain, uint32_t number)
{
	const struct xrcd *xrcd = domain;
	const struct srq_table *table = xrcd->device->srq_table;
	struct srq *srq = table->slots[number & table->mask].srq;

	return srq && srq->domain == xrcd && srq->number == number ? srq : NULL;
}
