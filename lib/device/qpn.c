/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pair numbers: two look-ups lead to a queue pair. A freed number is not reused soon. */
#include "qpn.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include <rte_bitops.h>
#include <rte_common.h>

#include "device/device.h"
#include "device/limits.h"
#include "like/like.h"

#define PAGE_SHIFT 12
#define PAGE_QPNS  (1u << PAGE_SHIFT)
#define PAGES	   (1u << (24 - PAGE_SHIFT))
#define QPN_FIRST  2u	     /* 0 and 1 are the management queue pairs */
#define QPN_LAST   0xfffffeu /* 0xffffff addresses a multicast group */

/*
 * Numbers are given in order from a window of this many numbers, which starts at a random page. An
 * engine gives those that name it (device_engine_of_qpn).
 * Allocated pages stay, and the window limits their number. A freed number is still not reused for
 * at least DEVICE_MAX_QP * 3 creations.
 */
#define WINDOW_QPNS (DEVICE_MAX_QP * 4u)

/* The queue pairs of some numbers. */
struct qpn_page {
	struct qp *qps[PAGE_QPNS];
	/* The numbers that a queue pair has beside its own, as bits. Not in the entries, which each
	 * packet reads. Atomic. */
	uint64_t further[PAGE_QPNS / 64];
};

/* The table entry of an allocated number that has no queue pair yet, or none any more. */
static const char given_mark;
#define GIVEN ((struct qp *)(uintptr_t)&given_mark)

/* Return the size of the window, in which each engine has as many numbers as one alone would. */
static uint32_t window_qpns(const struct device *device)
{
	return WINDOW_QPNS * rte_align32pow2(device->engine_count);
}

int qpn_init(struct device *device)
{
	uint32_t first;

	if (getrandom(&first, sizeof(first), 0) != (ssize_t)sizeof(first))
		return -EIO;
	if (device->config.qpn_count > 0) {
		/* With half the numbers in use at most, one engine does not reuse a freed number
		 * for as many creations as there may be queue pairs. Of several engines, each one
		 * reuses it after its own free numbers, of which it has half of its share or
		 * more. */
		device->qp_max = RTE_MIN(device->config.qpn_count / 2, (uint32_t)DEVICE_MAX_QP);
		first = device->config.qpn_first + first % device->config.qpn_count;
	} else {
		/* A window begins at a multiple of its size, so the upper bits of qpn_next always
		 * select the same window. */
		device->qp_max = DEVICE_MAX_QP;
		first &= (1u << 24) - 1;
	}
	device->qp_max = (uint32_t)like_most(LIKE_max_qp, device->qp_max);
	if (device->config.qp_limit > 0)
		device->qp_max = RTE_MIN(device->qp_max, device->config.qp_limit);
	device->qpn_next = first;
	device->qpn_pages = calloc(PAGES, sizeof(device->qpn_pages[0]));
	if (!device->qpn_pages)
		return -ENOMEM;
	pthread_mutex_init(&device->qpn_lock, NULL);
	return 0;
}

void qpn_fini(struct device *device)
{
	for (uint32_t i = 0; i < PAGES; i++)
		free(device->qpn_pages[i]);
	free(device->qpn_pages);
	pthread_mutex_destroy(&device->qpn_lock);
}

/* Return the table entry of a number, or NULL if its page does not exist. */
static struct qp **entry_of(const struct device *device, uint32_t qpn)
{
	struct qpn_page *page;

	if (qpn > QPN_LAST)
		return NULL;
	page = __atomic_load_n(&device->qpn_pages[qpn >> PAGE_SHIFT], __ATOMIC_ACQUIRE);
	return page ? &page->qps[qpn & (PAGE_QPNS - 1)] : NULL;
}

static struct qp **make_entry_locked(struct device *device, uint32_t qpn)
{
	struct qp **entry = entry_of(device, qpn);
	struct qpn_page *page;

	if (entry)
		return entry;
	page = calloc(1, sizeof(*page));
	if (!page)
		return NULL;
	__atomic_store_n(&device->qpn_pages[qpn >> PAGE_SHIFT], page, __ATOMIC_RELEASE);
	return &page->qps[qpn & (PAGE_QPNS - 1)];
}

/* Return the number to try after another one, in the window or in our range. */
static uint32_t next_qpn(const struct device *device, uint32_t qpn)
{
	const struct device_config *config = &device->config;

	if (config->qpn_count > 0)
		return config->qpn_first + (qpn + 1 - config->qpn_first) % config->qpn_count;
	return (qpn & ~(window_qpns(device) - 1)) | ((qpn + 1) & (window_qpns(device) - 1));
}

/* Return true if an engine may give a number; NULL: any engine. */
static bool may_give(const struct device *device, const struct device_engine *engine, uint32_t qpn)
{
	if (qpn < QPN_FIRST || qpn > QPN_LAST)
		return false;
	return !engine || device_engine_of_qpn(device, qpn) == engine->number;
}

static int alloc_locked(struct device *device, const struct device_engine *engine)
{
	const uint32_t tries =
		device->config.qpn_count > 0 ? device->config.qpn_count : window_qpns(device);

	if (device->qps >= device->qp_max)
		return -ENOSPC;
	for (uint32_t i = 0; i < tries; i++) {
		const uint32_t qpn = device->qpn_next;
		struct qp **entry;

		device->qpn_next = next_qpn(device, qpn);
		if (!may_give(device, engine, qpn))
			continue;
		entry = make_entry_locked(device, qpn);
		if (!entry)
			return -ENOMEM;
		if (__atomic_load_n(entry, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(entry, GIVEN, __ATOMIC_RELAXED);
		__atomic_store_n(&device->qps, device->qps + 1, __ATOMIC_RELAXED);
		device->engines[device_engine_of_qpn(device, qpn)]->qps++;
		return (int)qpn;
	}
	return -ENOSPC;
}

/* Return how many numbers of the device's range name an engine. */
static uint32_t numbers_of(const struct device_engine *engine)
{
	const struct device_config *config = &engine->device->config;
	const uint32_t engines = engine->device->engine_count;
	const uint32_t before = (engine->number + engines - config->qpn_first % engines) % engines;

	return (config->qpn_count + engines - 1 - before) / engines;
}

/* Return true if at least half of an engine's numbers stay free when it gives one more. In a window
 * they always do. */
static bool has_room_locked(const struct device_engine *engine)
{
	return engine->device->config.qpn_count == 0 || 2 * (engine->qps + 1) <= numbers_of(engine);
}

int device_alloc_qpn(struct device_engine *engine)
{
	struct device *device = engine->device;
	int qpn;

	pthread_mutex_lock(&device->qpn_lock);
	qpn = alloc_locked(device, engine);
	pthread_mutex_unlock(&device->qpn_lock);
	return qpn;
}

int device_alloc_qpn_near(struct device_engine *engine)
{
	struct device *device = engine->device;
	int qpn;

	pthread_mutex_lock(&device->qpn_lock);
	qpn = alloc_locked(device, has_room_locked(engine) ? engine : NULL);
	pthread_mutex_unlock(&device->qpn_lock);
	return qpn;
}

void device_set_qp(struct device *device, uint32_t qpn, struct qp *qp)
{
	struct qp **entry = entry_of(device, qpn);

	if (entry)
		__atomic_store_n(entry, qp ? qp : GIVEN, __ATOMIC_RELEASE);
}

void device_set_further_qpn(struct device *device, uint32_t qpn, struct qp *qp)
{
	const uint64_t bit = UINT64_C(1) << (qpn & 63);
	struct qpn_page *page = device->qpn_pages[qpn >> PAGE_SHIFT];
	uint64_t *further = &page->further[(qpn & (PAGE_QPNS - 1)) / 64];

	/* device_each_qp must not take it for the queue pair's own number. */
	if (qp)
		__atomic_fetch_or(further, bit, __ATOMIC_RELEASE);
	device_set_qp(device, qpn, qp);
	if (!qp)
		__atomic_fetch_and(further, ~bit, __ATOMIC_RELEASE);
}

void device_free_qpn(struct device *device, uint32_t qpn)
{
	struct qp **entry = entry_of(device, qpn);

	pthread_mutex_lock(&device->qpn_lock);
	if (entry && __atomic_exchange_n(entry, NULL, __ATOMIC_RELEASE)) {
		__atomic_store_n(&device->qps, device->qps - 1, __ATOMIC_RELAXED);
		device->engines[device_engine_of_qpn(device, qpn)]->qps--;
	}
	pthread_mutex_unlock(&device->qpn_lock);
}

struct qp *device_find_qp(const struct device *device, uint32_t qpn)
{
	struct qp **entry = entry_of(device, qpn);
	struct qp *qp = entry ? __atomic_load_n(entry, __ATOMIC_ACQUIRE) : NULL;

	return qp == GIVEN ? NULL : qp;
}

static bool is_further(const struct qpn_page *page, uint32_t index)
{
	return __atomic_load_n(&page->further[index / 64], __ATOMIC_RELAXED) >> (index % 64) & 1;
}

void device_each_qp(const struct device *device, void (*each)(struct qp *qp, void *arg), void *arg)
{
	for (uint32_t i = 0; i < PAGES; i++) {
		const struct qpn_page *page =
			__atomic_load_n(&device->qpn_pages[i], __ATOMIC_ACQUIRE);

		for (uint32_t j = 0; page && j < PAGE_QPNS; j++) {
			struct qp *qp = __atomic_load_n(&page->qps[j], __ATOMIC_ACQUIRE);

			if (qp && qp != GIVEN && !is_further(page, j))
				each(qp, arg);
		}
	}
}
