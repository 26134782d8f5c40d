/* SPDX-License-Identifier: BSD-3-Clause */
/* Posted requests and copies of what is in their buffers. */
#include "check/work.h"

#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/guard.h"

#define BUCKETS 1024

struct region {
	LIST_ENTRY(region) link;
	struct work_region of;
};

static LIST_HEAD(, region) regions[BUCKETS];

static struct region *find_region(const void *device, uint32_t key)
{
	struct region *region;

	LIST_FOREACH (region, &regions[key % BUCKETS], link) {
		if (region->of.key == key && region->of.device == device)
			return region;
	}
	return NULL;
}

/* A window that is bound to the region may have rights that the region lacks. */
static bool peers_write(const struct work_region *region)
{
	return region->access &
	       (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
}

/* Without memory the buffers in the region are not compared. */
void work_add_region(const struct work_region *of)
{
	struct region *region = calloc(1, sizeof(*region));

	if (peers_write(of))
		places_open(of->addr, of->length);
	if (!region)
		return;
	region->of = *of;
	LIST_INSERT_HEAD(&regions[of->key % BUCKETS], region, link);
}

void work_remove_region(const void *device, uint32_t key)
{
	struct region *region = find_region(device, key);

	if (!region)
		return;
	if (peers_write(&region->of))
		places_close(region->of.addr, region->of.length);
	LIST_REMOVE(region, link);
	free(region);
}

void work_init(struct work_queue *queue)
{
	*queue = (struct work_queue){.signaled = 0};
	STAILQ_INIT(&queue->posted);
}

/* Let the address of an entry be this process's. Return its region, or NULL: then it is no address
 * of this process. */
static const struct region *translate(const void *device, struct ibv_sge *sge)
{
	const struct region *region = find_region(device, sge->lkey);
	uint64_t offset;

	if (!region)
		return NULL;
	offset = sge->addr - region->of.iova;
	if (offset > region->of.length || sge->length > region->of.length - offset)
		return NULL;
	sge->addr = region->of.addr + offset;
	return region;
}

/* Return false if the memory cannot be read. */
static bool translate_all(const void *device, struct work *work)
{
	bool is_readable = true;

	work->is_translated = true;
	for (uint32_t i = 0; i < work->num_sge; i++) {
		const struct region *region = translate(device, &work->sge[i]);

		work->is_translated = region && work->is_translated;
		is_readable = region && region->of.is_readable && is_readable;
	}
	return is_readable;
}

static uint8_t *copy_of(const struct work *work)
{
	return (uint8_t *)&work->sge[work->num_sge];
}

static void copy(void *arg)
{
	const struct work *work = arg;
	uint32_t at = 0;

	for (uint32_t i = 0; at < work->kept; i++) {
		const uint32_t length = RTE_MIN(work->sge[i].length, work->kept - at);

		memcpy(copy_of(work) + at, (const void *)(uintptr_t)work->sge[i].addr, length);
		at += length;
	}
}

/* Look who may write the bytes that are compared. */
static struct places_seen look(const struct work *work)
{
	struct places_seen seen = {.open = false};
	uint32_t at = 0;

	for (uint32_t i = 0; at < work->kept; i++) {
		const uint32_t length = RTE_MIN(work->sge[i].length, work->kept - at);

		places_look(work->sge[i].addr, length, &seen);
		at += length;
	}
	return seen;
}

static void keep(struct work *work, uint64_t bytes)
{
	work->kept = (uint32_t)RTE_MIN(bytes, WORK_KEPT_MAX);
	if (look(work).open || guard_run(copy, work) != 0)
		work->kept = 0;
}

static void open_places(const struct work *work)
{
	for (uint32_t i = 0; i < work->num_sge && work->use == WORK_WRITES; i++)
		places_open(work->sge[i].addr, work->sge[i].length);
}

static void close_places(const struct work *work)
{
	for (uint32_t i = 0; i < work->num_sge && work->use == WORK_WRITES; i++)
		places_close(work->sge[i].addr, work->sge[i].length);
}

void work_add(struct work_queue *queue, const void *device, const struct work *from,
	      const struct ibv_sge *sge)
{
	const uint32_t num_sge = from->use == WORK_IGNORES ? 0 : from->num_sge;
	uint64_t bytes = 0;
	struct work *work;

	if (queue->is_lost) {
		for (uint32_t i = 0; i < num_sge && from->use == WORK_WRITES; i++)
			work_write(device, &sge[i]);
		return;
	}
	for (uint32_t i = 0; i < num_sge; i++)
		bytes += sge[i].length;
	work = malloc(sizeof(*work) + num_sge * sizeof(*sge) + RTE_MIN(bytes, WORK_KEPT_MAX));
	if (!work) {
		work_lose(queue);
		return;
	}
	*work = *from;
	work->num_sge = num_sge;
	for (uint32_t i = 0; i < num_sge; i++)
		work->sge[i] = sge[i];
	if (translate_all(device, work))
		keep(work, bytes);
	open_places(work);
	/* Its own openings are no later ones. */
	work->openings = look(work).openings;
	STAILQ_INSERT_TAIL(&queue->posted, work, link);
	queue->signaled += work->signaled;
	queue->unsignaled = work->signaled ? 0 : queue->unsignaled + 1;
}

/* Where the buffers differ from their copy. */
struct difference {
	const struct work *work;
	uint64_t from;
	int64_t at;
};

static void compare(void *arg)
{
	struct difference *difference = arg;
	const struct work *work = difference->work;
	uint32_t at = 0;

	for (uint32_t i = 0; at < work->kept; i++) {
		const uint8_t *now = (const uint8_t *)(uintptr_t)work->sge[i].addr;
		const uint8_t *then = copy_of(work) + at;
		const uint64_t length = RTE_MIN(work->sge[i].length, work->kept - at);
		uint64_t k = RTE_MAX(difference->from, at) - at;

		if (k < length && memcmp(now + k, then + k, length - k) != 0) {
			while (now[k] == then[k] && k < length - 1)
				k++;
			difference->at = (int64_t)(at + k);
			return;
		}
		at += (uint32_t)length;
	}
}

int64_t work_changed(const struct work *work, uint64_t written)
{
	struct difference difference = {.work = work, .from = written, .at = -1};
	struct places_seen seen;

	if (guard_run(compare, &difference) != 0 || difference.at < 0)
		return -1;
	close_places(work);
	seen = look(work);
	open_places(work);
	return seen.open || seen.openings != work->openings ? -1 : difference.at;
}

void work_write(const void *device, const struct ibv_sge *sge)
{
	struct ibv_sge translated = *sge;

	(void)translate(device, &translated);
	places_open(translated.addr, translated.length);
}

bool work_uses(const struct work *work, uint32_t key)
{
	for (uint32_t i = 0; i < work->num_sge; i++) {
		if (work->sge[i].lkey == key && work->sge[i].length > 0)
			return true;
	}
	return false;
}

void work_drop(struct work_queue *queue)
{
	struct work *work = STAILQ_FIRST(&queue->posted);

	close_places(work);
	STAILQ_REMOVE_HEAD(&queue->posted, link);
	queue->signaled -= work->signaled;
	free(work);
}

void work_lose(struct work_queue *queue)
{
	while (!STAILQ_EMPTY(&queue->posted))
		work_drop(queue);
	queue->unsignaled = 0;
	queue->is_lost = true;
}

void work_keep_open(const struct work_queue *queue)
{
	const struct work *work;

	STAILQ_FOREACH (work, &queue->posted, link)
		open_places(work);
}

void work_forget(void)
{
	for (unsigned int i = 0; i < BUCKETS; i++)
		LIST_INIT(&regions[i]);
	places_forget();
}
