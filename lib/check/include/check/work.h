/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program has posted, and has not polled the completion of, in the order of a queue; and
 * what was in its buffers then. The caller has a lock for everything in this file.
 */
#ifndef CHECK_WORK_H
#define CHECK_WORK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "check/places.h"

#define WORK_KEPT_MAX 4096u /* bytes of a request's buffers that are compared */

/* How a request uses its buffers. */
enum work_use {
	WORK_READS,  /* the device reads them: sends, WRITEs */
	WORK_WRITES, /* the device writes them: receive requests, READs, atomics */
	WORK_IGNORES /* inline data, or none */
};

struct work {
	STAILQ_ENTRY(work) link;
	uint64_t wr_id;
	uint32_t index; /* in the queue */
	enum work_use use;
	bool signaled;
	/* memory that a later message has overwritten before this one's completion was polled */
	uint64_t lost_begin, lost_end, lost_wr_id;
	uint64_t openings;  /* of the kept bytes' places, with its own ones */
	uint32_t kept;	    /* bytes behind the list; 0: they cannot be compared */
	bool is_translated; /* each addr is of this process; so it is if `kept` is not 0 */
	uint32_t num_sge;
	struct ibv_sge sge[];
};

struct work_queue {
	STAILQ_HEAD(, work) posted;
	uint32_t signaled;   /* of the posted ones */
	uint32_t unsignaled; /* posted behind the last signaled one */
	bool is_lost;	     /* what is posted is not known any more (work_lose) */
};

/** Begin with an empty queue, which is not lost. */
void work_init(struct work_queue *queue);

/* A region of this process's memory. */
struct work_region {
	const void *device;
	uint32_t key;
	unsigned int access; /* enum ibv_access_flags */
	bool is_readable;    /* without waiting for a page */
	uint64_t addr, iova, length;
};

/** Add a region of a device, by whose key buffers are found, or forget it. */
void work_add_region(const struct work_region *region);
void work_remove_region(const void *device, uint32_t key);

/** Add the newest request of a queue. `work` has the fields up to `signaled`, and num_sge. A lost
 * queue keeps nothing: the device may write the request's buffers for ever. */
void work_add(struct work_queue *queue, const void *device, const struct work *work,
	      const struct ibv_sge *sge);

/** Return the first byte of its buffers that the program has changed since, behind `written` bytes
 * that the device has written; or -1. */
int64_t work_changed(const struct work *work, uint64_t written);

/** Let the device write a buffer from now on and for ever. */
void work_write(const void *device, const struct ibv_sge *sge);

/** Return true if it uses a byte of the region by the key. */
bool work_uses(const struct work *work, uint32_t key);

/** Remove the oldest request. */
void work_drop(struct work_queue *queue);

/** Let the device write the buffers of all requests for ever. */
void work_keep_open(const struct work_queue *queue);

/** Remove all requests, and keep none until work_init. */
void work_lose(struct work_queue *queue);

/** Forget all regions, and what may write memory, without giving anything back. In a child of
 * fork(). */
void work_forget(void);

#endif
