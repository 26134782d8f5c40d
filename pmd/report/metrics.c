/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Metrics: all series of one metric stand together, as the format asks. Other processes write the
 * reports, so their counters may have any names. Only known names are used, and none twice.
 */
#include "report/metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "metrics_put.h"
#include "telemetry/counters.h"

/* ---- counters, by their names in the reports ---- */

static const struct owner_stat {
	const char *name, *metric, *help;
	enum { COUNTER, GAUGE } kind;
} owner_stats[] = {
#define OWNER_STAT(name, metric, kind, meaning) {#name, #metric, meaning, kind},
#include "report/owner_stats.def"
#undef OWNER_STAT
};

static const struct owner_stat *find_owner_stat(const char *name)
{
	for (size_t i = 0; i < RTE_DIM(owner_stats); i++) {
		if (strcmp(owner_stats[i].name, name) == 0)
			return &owner_stats[i];
	}
	return NULL;
}

/* Any other name could become the name of a metric that exists already. */
static bool is_known(const char *name, bool owner)
{
	return counter_meaning(name) || (owner && find_owner_stat(name));
}

static bool is_owner(const struct report_view *view)
{
	return view->facts.role == REPORT_OWNER;
}

/* Find a view's counter; NULL if it has none. The first one counts. `hint` is its likely place. */
static const struct report_stat *find_stat(const struct report_view *view, const char *name,
					   uint32_t hint)
{
	if (hint < view->stat_count && strcmp(view->stats[hint].name, name) == 0) {
		uint32_t i = 0;

		while (i < hint && strcmp(view->stats[i].name, name) != 0)
			i++;
		return &view->stats[i];
	}
	for (uint32_t i = 0; i < view->stat_count; i++) {
		if (strcmp(view->stats[i].name, name) == 0)
			return &view->stats[i];
	}
	return NULL;
}

static void put_stat_head(FILE *file, const char *name, bool owner, char metric[96])
{
	const struct owner_stat *stat = owner ? find_owner_stat(name) : NULL;
	const bool gauge = stat && stat->kind == GAUGE;

	snprintf(metric, 96, "uroce_%s%s%s", owner ? "owner_" : "", stat ? stat->metric : name,
		 gauge ? "" : "_total");
	metrics_put_head(file, metric, gauge ? "gauge" : "counter",
			 stat ? stat->help : counter_meaning(name));
}

/* Return true if an earlier view, or an earlier counter of this one, has the same counter. */
static bool is_told(const struct metrics *metrics, uint32_t at, uint32_t stat)
{
	const struct report_view *view = metrics_view(metrics, at);
	const char *name = view->stats[stat].name;

	if (find_stat(view, name, stat) != &view->stats[stat])
		return true;
	for (uint32_t i = 0; i < at; i++) {
		if (is_owner(metrics_view(metrics, i)) == is_owner(view) &&
		    find_stat(metrics_view(metrics, i), name, stat))
			return true;
	}
	return false;
}

static void put_stat(const struct metrics *metrics, uint32_t at, uint32_t place)
{
	const bool owner = is_owner(metrics_view(metrics, at));
	const char *name = metrics_view(metrics, at)->stats[place].name;
	char metric[96];

	put_stat_head(metrics->file, name, owner, metric);
	for (uint32_t i = at; i < metrics->count; i++) {
		const struct report_stat *stat = find_stat(metrics_view(metrics, i), name, place);

		if (!stat || is_owner(metrics_view(metrics, i)) != owner)
			continue;
		fprintf(metrics->file, "%s{", metric);
		metrics_put_labels(metrics, i);
		fprintf(metrics->file, "} %" PRIu64 "\n", stat->value);
	}
}

static void put_stats(const struct metrics *metrics)
{
	for (uint32_t at = 0; at < metrics->count; at++) {
		const struct report_view *view = metrics_view(metrics, at);

		for (uint32_t i = 0; i < view->stat_count; i++) {
			const char *name = view->stats[i].name;

			if (is_known(name, is_owner(view)) && !is_told(metrics, at, i))
				put_stat(metrics, at, i);
		}
	}
}

/* ---- what is now ---- */

static const struct {
	const char *metric, *help;
} gauges[] = {
	{"uroce_port_up", "1 if the port's link is up"},
	{"uroce_port_mtu_bytes", "the largest IP packet of the port"},
	{"uroce_port_speed_bits_per_second", "the speed of the port's link"},
	{"uroce_report_fresh",
	 "1 if the process answered; 0 if its figures are old, because it is stopped or does not "
	 "poll"},
	{"uroce_queue_pairs", "queue pairs of the process"},
	{"uroce_completion_queues", "completion queues of the process"},
	{"uroce_memory_regions", "memory regions and windows of the process"},
	{"uroce_protection_domains", "protection domains of the process"},
};

static uint64_t gauge_value(const struct report_view *view, size_t gauge)
{
	const uint64_t values[RTE_DIM(gauges)] = {
		view->facts.link_up != 0,	 view->facts.mtu_bytes,
		view->facts.link_mbps * 1000000, view->fresh,
		view->totals[REPORT_QP],	 view->totals[REPORT_CQ],
		view->totals[REPORT_MR],	 view->totals[REPORT_PD],
	};

	return values[gauge];
}

static void put_gauges(const struct metrics *metrics)
{
	for (size_t g = 0; g < RTE_DIM(gauges); g++) {
		metrics_put_head(metrics->file, gauges[g].metric, "gauge", gauges[g].help);
		for (uint32_t i = 0; i < metrics->count; i++) {
			fprintf(metrics->file, "%s{", gauges[g].metric);
			metrics_put_labels(metrics, i);
			fprintf(metrics->file, "} %" PRIu64 "\n",
				gauge_value(metrics_view(metrics, i), g));
		}
	}
}

static void put_info(const struct metrics *metrics)
{
	static const char *const roles[] = {
		[REPORT_STANDALONE] = "standalone",
		[REPORT_ATTACHED] = "attached",
		[REPORT_OWNER] = "owner",
	};

	metrics_put_head(metrics->file, "uroce_device_info", "gauge",
			 "a process that has the device, and the port behind it");
	for (uint32_t i = 0; i < metrics->count; i++) {
		const struct report_facts *facts = &metrics_view(metrics, i)->facts;

		fputs("uroce_device_info{", metrics->file);
		metrics_put_labels(metrics, i);
		fputc(',', metrics->file);
		metrics_put_label(metrics->file, "role",
				  facts->role < RTE_DIM(roles) ? roles[facts->role] : "unknown",
				  true);
		metrics_put_label(metrics->file, "port", facts->port, true);
		metrics_put_label(metrics->file, "version", UROCE_VERSION, false);
		fputs("} 1\n", metrics->file);
	}
}

/* Return true if an earlier view has the same labels, as a process can make it. */
static bool is_second(const struct metrics *metrics, uint32_t v)
{
	const struct report_devices *devices = metrics->devices;

	for (uint32_t i = 0; i < metrics->count; i++) {
		if (metrics_view(metrics, i)->pid == devices->views.list[v].pid &&
		    strcmp(devices_of(devices, metrics->views[i])->name,
			   devices_of(devices, v)->name) == 0)
			return true;
	}
	return false;
}

void metrics_write(FILE *file, const struct report_devices *devices,
		   const struct report_filter *filter, bool qps_too)
{
	uint32_t *views = calloc(devices->views.count + 1, sizeof(*views)), next = 0;
	struct metrics metrics = {.file = file, .devices = devices, .views = views};

	if (!views)
		return;
	while (devices_next_view(devices, filter, &next)) {
		if (!is_second(&metrics, next - 1))
			views[metrics.count++] = next - 1;
	}
	if (metrics.count > 0) {
		put_info(&metrics);
		put_gauges(&metrics);
		put_stats(&metrics);
		if (qps_too)
			metrics_put_qps(&metrics);
	}
	free(views);
}
