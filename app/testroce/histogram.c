/* SPDX-License-Identifier: BSD-3-Clause */
/* A log-linear histogram. */
#include "histogram.h"

#include <string.h>

#include <rte_common.h>

#define MILLION 1000000u

/* Return the bucket of a value. The first HISTOGRAM_PARTS buckets are one value wide. After them,
 * each power of two 2^p has HISTOGRAM_PARTS buckets of width 2^(p - HISTOGRAM_PART_BITS). */
static unsigned int bucket_of(uint64_t value)
{
	unsigned int power, bucket;

	if (value < HISTOGRAM_PARTS)
		return (unsigned int)value;
	power = 63u - (unsigned int)__builtin_clzll(value);
	bucket = (power - HISTOGRAM_PART_BITS + 1) * HISTOGRAM_PARTS +
		 (unsigned int)((value >> (power - HISTOGRAM_PART_BITS)) - HISTOGRAM_PARTS);
	return RTE_MIN(bucket, HISTOGRAM_BUCKETS - 1u);
}

uint64_t histogram_low(unsigned int bucket)
{
	const unsigned int row = bucket / HISTOGRAM_PARTS;

	if (row == 0)
		return bucket;
	return (uint64_t)(HISTOGRAM_PARTS + bucket % HISTOGRAM_PARTS) << (row - 1);
}

uint64_t histogram_high(unsigned int bucket)
{
	return bucket == HISTOGRAM_BUCKETS - 1 ? UINT64_MAX : histogram_low(bucket + 1) - 1;
}

void histogram_clear(struct histogram *histogram)
{
	memset(histogram, 0, sizeof(*histogram));
	histogram->min = UINT64_MAX;
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
	count_add(&histogram->buckets[bucket_of(value)], 1);
	count_add(&histogram->count, 1);
	count_set(&histogram->min, RTE_MIN(histogram->min, value));
	count_set(&histogram->max, RTE_MAX(histogram->max, value));
}

void histogram_merge(struct histogram *histogram, const struct histogram *other)
{
	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		const uint64_t count = count_get(&other->buckets[i]);

		histogram->buckets[i] += count;
		histogram->count += count;
	}
	histogram->min = RTE_MIN(histogram->min, count_get(&other->min));
	histogram->max = RTE_MAX(histogram->max, count_get(&other->max));
}

uint64_t histogram_quantile(const struct histogram *histogram, uint32_t per_million)
{
	/* Round up, so that a quantile between two values is the higher one. */
	const uint64_t wanted =
		(uint64_t)(((unsigned __int128)histogram->count * per_million + MILLION - 1) /
			   MILLION);
	uint64_t seen = 0;

	if (histogram->count == 0)
		return 0;
	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += histogram->buckets[i];
		if (seen >= RTE_MAX(wanted, (uint64_t)1))
			return RTE_MIN(histogram_high(i), histogram->max);
	}
	return histogram->max;
}
