/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rooms need some things of the process that they run in. Programs of uroce have these
 * functions with signal handlers, threads, files and messages; libroce has those here, which need
 * nothing. The linker takes them because they stand before the archives of the rooms
 * (test/abi/alone.py checks what it took).
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/cachelines.h"
#include "base/guard.h"
#include "base/host.h"
#include "base/log.h"
#include "base/origin.h"
#include "base/reason.h"
#include "base/tuning.h"
#include "huge.h"
#include "like/like.h"
#include "maps.h"
#include "prefetch.h"
#include "qp_internal.h"
#include "queue/channel.h"

/* All optimisations are on (base/tuning.h). Nothing changes that, so it is a constant here. */
#define TUNING_ON(field, name, meaning) .field = true,
extern const struct tuning all_tunings __asm__("tuning");
const struct tuning all_tunings = {TUNINGS(TUNING_ON)};

/* The memory of a region stays mapped (roce_register), so no copy faults. */
int guard_install(void)
{
	return 0;
}

int guard_run(void (*copy)(void *arg), void *arg)
{
	copy(arg);
	return 0;
}

int guard_copy_word(void *to, const void *from)
{
	memcpy(to, from, sizeof(uint64_t));
	return 0;
}

/* The caller gets an error, and knows best how to report it. */
void log_print(enum log_level level, const char *format, ...)
{
	(void)level;
	(void)format;
}

/* The device resembles no other one (like/like.h). */
uint64_t like_most(enum like_figure figure, uint64_t ours)
{
	(void)figure;
	return ours;
}

void like_limit(struct ibv_device_attr_ex *attr)
{
	(void)attr;
}

/* Nobody asks for reasons (base/reason.h). */
extern const bool no_reasons __asm__("reason_wanted");
const bool no_reasons = false;

void reason_say(int of, const char *format, ...)
{
	(void)of;
	(void)format;
}

const char *reason_take(int of)
{
	(void)of;
	return NULL;
}

const char *origin_write(const void *object, const char *what, char text[ORIGIN_TEXT_MAX])
{
	(void)object;
	(void)what;
	text[0] = '\0';
	return text;
}

void qp_explain(const struct qp *qp, enum fault fault)
{
	(void)qp;
	(void)fault;
}

/* The address, which is hashed too, distinguishes hosts. */
uint64_t hash_host(uint64_t hash)
{
	return hash;
}

void *cachelines_alloc(size_t bytes)
{
	void *at;

	return posix_memalign(&at, RTE_CACHE_LINE_SIZE, bytes) == 0 ? at : NULL;
}

void cachelines_free(void *at, size_t bytes)
{
	(void)bytes;
	free(at);
}

/* Nobody asks for pages of memory that is not there (roce_register): those are left to the kernel.
 */
int maps_check_mapped(uintptr_t addr, size_t length, bool write)
{
	(void)addr;
	(void)length;
	(void)write;
	return 0;
}

/* roce_register takes no IBV_ACCESS_HUGETLB, and nothing here asks for huge pages. */
int huge_check(uintptr_t addr, size_t length)
{
	(void)addr;
	(void)length;
	return -EINVAL;
}

void huge_prepare(void)
{
}

/* No region is on demand, so none is advised. */
int prefetch_post(const struct advise_range *range, bool write)
{
	(void)range;
	(void)write;
	return -EOPNOTSUPP;
}

bool prefetch_cancel(struct mr *mr)
{
	(void)mr;
	return true;
}

void prefetch_wait(const struct mr *mr)
{
	(void)mr;
}

/* The completion queue has no channel: the caller polls it. */
void channel_raise(struct channel *channel, struct channel_source *source)
{
	(void)channel;
	(void)source;
}

uint32_t channel_forget(struct channel *channel, struct channel_source *source)
{
	(void)channel;
	(void)source;
	return 0;
}
