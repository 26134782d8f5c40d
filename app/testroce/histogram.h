/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A log-linear histogram: each power of two is divided into equal parts. A fixed table holds values
 * from nanoseconds to minutes with an error of at most 1/64 of the value.
 */
#ifndef TESTROCE_HISTOGRAM_H
#define TESTROCE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_PART_BITS 6 /* 64 parts a power of two */
#define HISTOGRAM_PARTS	    (1u << HISTOGRAM_PART_BITS)
#define HISTOGRAM_POWERS    40
#define HISTOGRAM_BUCKETS   ((HISTOGRAM_POWERS - HISTOGRAM_PART_BITS + 1) * HISTOGRAM_PARTS)

struct histogram {
	uint64_t count;
	uint64_t min, max; /* exact */
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_clear(struct histogram *histogram);

/** Count a value; one beyond the table's end counts in the last bucket. One thread may add while
 * others merge this histogram into theirs. */
void histogram_add(struct histogram *histogram, uint64_t value);

/** Add the values of another histogram, to which its thread may add meanwhile. Not MT-safe for the
 * first one. */
void histogram_merge(struct histogram *histogram, const struct histogram *other);

/**
 * Return the value that `per_million` of a million values do not exceed; 500000 gives the median.
 * The result is rounded up to the end of its bucket, but never exceeds the largest value added.
 * Returns 0 if the histogram is empty. MT-safe with other readers.
 */
uint64_t histogram_quantile(const struct histogram *histogram, uint32_t per_million);

/** Return the smallest and the largest value that a bucket counts. MT-safe. */
uint64_t histogram_low(unsigned int bucket);
uint64_t histogram_high(unsigned int bucket);

/** Set a count. Only its owner may call this. */
static inline void count_set(uint64_t *count, uint64_t value)
{
	__atomic_store_n(count, value, __ATOMIC_RELAXED);
}

/** Add to a count. Only its owner may call this. */
static inline void count_add(uint64_t *count, uint64_t n)
{
	count_set(count, *count + n);
}

/** Read a count. MT-safe. */
static inline uint64_t count_get(const uint64_t *count)
{
	return __atomic_load_n(count, __ATOMIC_RELAXED);
}

#endif
