/* SPDX-License-Identifier: BSD-3-Clause */
/* The result of a test, and its output as text and as JSON. Messages and cycles are summed over the
 * runs of its threads; the counters of the device count once, because all threads use the same
 * device. */
#include "result.h"

#include <inttypes.h>

#include <json-c/json.h>
#include <rte_common.h>

#include "histogram.h"
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

static double result_cycles_packet(const struct result *result)
{
	return result->packets > 0 ? (double)result->tsc / (double)result->packets : 0;
}

static double result_cycles_byte(const struct result *result)
{
	const double bytes = (double)result->messages * (double)result->plan.size_bytes;

	return bytes > 0 ? (double)result->tsc / bytes : 0;
}

/* The values of a result, in the order of the output. */
struct column {
	const char *name;
	double value;
	int digits; /* decimals */
	bool known;
};

#define COLUMNS 19

static void columns_of(const struct result *result, struct column columns[COLUMNS])
{
	const bool latency = result->has_latency;
	const struct column all[COLUMNS] = {
		{"size", (double)result->plan.size_bytes, 0, true},
		{"qps", (double)result->plan.qps, 0, true},
		{"threads", (double)result->plan.threads, 0, true},
		{"depth", (double)result->plan.depth, 0, true},
		{"path_mtu", (double)result->plan.path_mtu_bytes, 0, true},
		{"seconds", result->seconds, 6, true},
		{"messages", (double)result->messages, 0, true},
		{"gbps", result_gbps(result), 4, true},
		{"mmsg_s", result_mps(result), 6, true},
		{"cycles_packet", result_cycles_packet(result), 1, result->packets > 0},
		{"cycles_byte", result_cycles_byte(result), 4, result->messages > 0},
		{"loss_ppm", (double)result->plan.loss_ppm, 0, true},
		{"retransmitted", (double)result->retransmitted, 0, true},
		{"wrong", (double)result->wrong, 0, result->plan.verify != 0},
		{"p50_us", result->p_us[0], 3, latency},
		{"p90_us", result->p_us[1], 3, latency},
		{"p99_us", result->p_us[2], 3, latency},
		{"p99.9_us", result->p_us[3], 3, latency},
		{"max_us", result->max_us, 3, latency},
	};

	for (int i = 0; i < COLUMNS; i++)
		columns[i] = all[i];
}

static void names_of(const struct result *result, char mode[16], char op[16])
{
	plan_get(&result->plan, "mode", mode, 16);
	plan_get(&result->plan, "op", op, 16);
}

static double share_of(const struct stages *stages, enum stage stage)
{
	return (double)stages->samples[stage] / (double)stages->count;
}

void result_stages(FILE *file, const struct result *result)
{
	const struct stages *stages = &result->stages;

	if (stages->count == 0) {
		fprintf(file, "stages are not looked at; --stages, or \"set stages on\"\n");
		return;
	}
	fprintf(file, "  %-11s %6s %14s %14s   of %" PRIu64 " samples\n", "stage", "share",
		"cycles/packet", "cycles/byte", stages->count);
	for (enum stage stage = 0; stage < STAGE_COUNT; stage++) {
		const double share = share_of(stages, stage);

		fprintf(file, "  %-11s %5.1f%% %14.1f %14.4f   %s\n", stages_name(stage),
			share * 100, share * result_cycles_packet(result),
			share * result_cycles_byte(result), stages_meaning(stage));
	}
	fflush(file);
}

/* Add a field. Return false, without the field, if memory is short. */
static bool json_add(struct json_object *to, const char *name, struct json_object *value)
{
	if (value && json_object_object_add(to, name, value) == 0)
		return true;
	json_object_put(value);
	return false;
}

/* Create a number with `digits` decimals. */
static struct json_object *json_number(double value, int digits)
{
	char text[64];

	snprintf(text, sizeof(text), "%.*f", digits, value);
	return json_object_new_double_s(value, text);
}

static bool json_add_stages(struct json_object *to, const struct stages *stages)
{
	struct json_object *shares = json_object_new_object();
	bool added = shares != NULL;

	for (enum stage stage = 0; added && stage < STAGE_COUNT; stage++)
		added = json_add(shares, stages_name(stage),
				 json_number(share_of(stages, stage), 4));
	if (added)
		return json_add(to, "stages", shares);
	json_object_put(shares);
	return false;
}

/* Add the damage that was done on purpose, by the names of its counters. */
static bool json_add_damage(struct json_object *to, const struct result *result)
{
	for (int i = 0; i < RESULT_DAMAGES; i++) {
		const char *name = counter_name((enum counter)(COUNTER_impair_lost + i));

		if (result->damage[i] > 0 &&
		    !json_add(to, name, json_object_new_int64((int64_t)result->damage[i])))
			return false;
	}
	return true;
}

static bool json_add_result(struct json_object *to, const struct result *result)
{
	struct column columns[COLUMNS];
	char mode[16], op[16];

	columns_of(result, columns);
	names_of(result, mode, op);
	if (!json_add(to, "mode", json_object_new_string(mode)) ||
	    !json_add(to, "op", json_object_new_string(op)))
		return false;
	for (int i = 0; i < COLUMNS; i++) {
		if (columns[i].known && !json_add(to, columns[i].name,
						  json_number(columns[i].value, columns[i].digits)))
			return false;
	}
	return json_add_damage(to, result) &&
	       (result->stages.count == 0 || json_add_stages(to, &result->stages));
}

bool result_json(FILE *file, const struct result *result)
{
	struct json_object *object = json_object_new_object();
	const char *text = NULL;

	if (object && json_add_result(object, result))
		text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_SPACED);
	if (text)
		fprintf(file, "%s\n", text);
	json_object_put(object);
	fflush(file);
	return text != NULL;
}

/* Print the damage that was done on purpose: its counters that are not 0. */
static void print_damage(FILE *file, const struct result *result)
{
	bool any = false;

	for (int i = 0; i < RESULT_DAMAGES; i++) {
		if (result->damage[i] == 0)
			continue;
		fprintf(file, "%s %s %" PRIu64, any ? "," : " ",
			counter_name((enum counter)(COUNTER_impair_lost + i)), result->damage[i]);
		any = true;
	}
	if (any)
		fprintf(file, "\n");
}

void result_text(FILE *file, const struct result *result)
{
	const struct plan *plan = &result->plan;
	char mode[16], op[16];

	names_of(result, mode, op);
	fprintf(file, "%s%s%s, %" PRIu64 " B, %" PRIu64 " QP, depth %" PRIu64 ", path MTU %" PRIu64,
		mode, plan->mode == MODE_LATENCY ? " of " : "",
		plan->mode == MODE_LATENCY ? op : "", plan->size_bytes, plan->qps, plan->depth,
		plan->path_mtu_bytes);
	if (plan->threads > 1)
		fprintf(file, ", %" PRIu64 " threads", plan->threads);
	fprintf(file, "\n");
	fprintf(file, "  %" PRIu64 " messages in %.3f s: %.2f Gb/s, %.3f Mmsg/s\n",
		result->messages, result->seconds, result_gbps(result), result_mps(result));
	if (result->has_latency)
		fprintf(file,
			"  latency: p50 %.2f us, p90 %.2f, p99 %.2f, p99.9 %.2f, max %.2f, min "
			"%.2f\n",
			result->p_us[0], result->p_us[1], result->p_us[2], result->p_us[3],
			result->max_us, result->min_us);
	if (result->packets > 0)
		fprintf(file,
			"  %.0f cycles a packet, %.3f a byte; %" PRIu64 " packets sent again\n",
			result_cycles_packet(result), result_cycles_byte(result),
			result->retransmitted);
	print_damage(file, result);
	if (result->reads > 0)
		fprintf(file, "  %" PRIu64 " reads\n", result->reads);
	if (result->qp_most > 0)
		fprintf(file, "  messages of a queue pair: %" PRIu64 " to %" PRIu64 "\n",
			result->qp_least, result->qp_most);
	if (plan->verify)
		fprintf(file, "  verified: %s\n", result->wrong ? "WRONG" : "all right");
	if (result->wrong)
		fprintf(file, "  %" PRIu64 " messages are not what was sent\n", result->wrong);
	if (result->stages.count > 0)
		result_stages(file, result);
	fflush(file);
}
