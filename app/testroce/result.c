/* SPDX-License-Identifier: BSD-3-Clause */
/* The result of a test. Messages and cycles are summed over the runs of its threads; the counters
 * of the device count once, because all threads use the same device. */
#include "result.h"

#include <rte_common.h>

#include "count.h"
#include "mode.h"
#include "nic.h"

void result_begin(struct result_sum *sum, struct result *result, const struct plan *plan)
{
	*result = (struct result){.plan = *plan, .qp_least = UINT64_MAX};
	sum->result = result;
	sum->first.tsc = UINT64_MAX;
	sum->last.tsc = 0;
	histogram_clear(&sum->latency);
}

void result_add(struct result_sum *sum, const struct run *run, const struct mark *last)
{
	struct result *result = sum->result;

	if (run->first.tsc < sum->first.tsc)
		sum->first = run->first;
	if (last->tsc > sum->last.tsc)
		sum->last = *last;
	result->tsc += last->tsc - run->first.tsc;
	result->messages += last->completed - run->first.completed;
	result->wrong += count_get(&run->wrong) + run->wrong_at_peer;
	histogram_merge(&sum->latency, &run->latency);
	if (run->mode->stats)
		run->mode->stats(run, result);
}

static void result_count_packets(const struct result_sum *sum)
{
	static const enum counter packets[] = {COUNTER_rx_packets, COUNTER_tx_packets,
					       COUNTER_rx_loopback_packets};
	const uint64_t *before = sum->first.counters.value, *after = sum->last.counters.value;
	struct result *result = sum->result;

	for (size_t i = 0; i < RTE_DIM(packets); i++)
		result->packets += after[packets[i]] - before[packets[i]];
	for (int i = 0; i < RESULT_DAMAGES; i++)
		result->damage[i] =
			after[COUNTER_impair_lost + i] - before[COUNTER_impair_lost + i];
	result->retransmitted =
		after[COUNTER_retransmitted_packets] - before[COUNTER_retransmitted_packets];
}

static void result_take_latency(struct result *result, const struct histogram *latency)
{
	static const uint32_t quantiles[RESULT_QUANTILES] = {500000, 900000, 990000, 999000};

	result->has_latency = latency->count > 0;
	if (!result->has_latency)
		return;
	for (int i = 0; i < RESULT_QUANTILES; i++)
		result->p_us[i] = (double)histogram_quantile(latency, quantiles[i]) / 1e3;
	result->min_us = (double)latency->min / 1e3;
	result->max_us = (double)latency->max / 1e3;
}

void result_end(struct result_sum *sum, const struct nic *nic)
{
	struct result *result = sum->result;

	result->seconds = (double)nic_ns(nic, sum->last.tsc - sum->first.tsc) / 1e9;
	if (result->qp_least == UINT64_MAX)
		result->qp_least = 0;
	result_count_packets(sum);
	result_take_latency(result, &sum->latency);
}

double result_gbps(const struct result *result)
{
	return result->seconds > 0 ? (double)result->messages * (double)result->plan.size_bytes *
					     8 / 1e9 / result->seconds
				   : 0;
}

double result_mps(const struct result *result)
{
	return result->seconds > 0 ? (double)result->messages / 1e6 / result->seconds : 0;
}

double result_cycles_packet(const struct result *result)
{
	return result->packets > 0 ? (double)result->tsc / (double)result->packets : 0;
}

double result_cycles_byte(const struct result *result)
{
	const double bytes = (double)result->messages * (double)result->plan.size_bytes;

	return bytes > 0 ? (double)result->tsc / bytes : 0;
}
