/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Metrics: all series of one metric stand together, as the format asks. Other processes write the
 * reports, so their counters may have any names. Only known names are used, and none twice.
 */
#include "report/metrics.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "qp/attr.h"
#include "telemetry/counters.h"

#define QPNS (1u << 24)

/* The output of one scrape, and the views that it shows. */
struct metrics {
	FILE *file;
	const struct report_devices *devices;
	const uint32_t *views; /* indices of the views that are shown */
	uint32_t count;
};

static const struct report_view *metrics_view(const struct metrics *metrics, uint32_t i)
{
	return &metrics->devices->views.list[metrics->views[i]];
}

/* ---- what each metric is made of ---- */

/* Write NAME="value" with the format's escapes, and a comma if `more` labels follow. */
static void put_label(FILE *file, const char *name, const char *value, bool more)
{
	fprintf(file, "%s=\"", name);
	for (const char *c = value; *c; c++) {
		if (*c == '\n')
			fputs("\\n", file);
		else if (*c == '\\' || *c == '"')
			fprintf(file, "\\%c", *c);
		else
			fputc(*c, file);
	}
	fputs(more ? "\"," : "\"", file);
}

/* Write the labels that all series of a view have. */
static void put_labels(const struct metrics *metrics, uint32_t i)
{
	const struct report_view *view = metrics_view(metrics, i);
	FILE *file = metrics->file;

	put_label(file, "device", devices_of(metrics->devices, metrics->views[i])->name, true);
	put_label(file, "comm", view->comm, true);
	fprintf(file, "pid=\"%d\"", view->pid);
}

/* Write the lines HELP and TYPE. */
static void put_head(FILE *file, const char *metric, const char *type, const char *help)
{
	/* Our own texts have neither a backslash nor a newline. */
	fprintf(file, "# HELP %s %c%s.\n# TYPE %s %s\n", metric,
		help[0] >= 'a' && help[0] <= 'z' ? help[0] - 'a' + 'A' : help[0], help + 1, metric,
		type);
}

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
	put_head(file, metric, gauge ? "gauge" : "counter",
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
		put_labels(metrics, i);
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
		put_head(metrics->file, gauges[g].metric, "gauge", gauges[g].help);
		for (uint32_t i = 0; i < metrics->count; i++) {
			fprintf(metrics->file, "%s{", gauges[g].metric);
			put_labels(metrics, i);
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

	put_head(metrics->file, "uroce_device_info", "gauge",
		 "a process that has the device, and the port behind it");
	for (uint32_t i = 0; i < metrics->count; i++) {
		const struct report_facts *facts = &metrics_view(metrics, i)->facts;

		fputs("uroce_device_info{", metrics->file);
		put_labels(metrics, i);
		fputc(',', metrics->file);
		put_label(metrics->file, "role",
			  facts->role < RTE_DIM(roles) ? roles[facts->role] : "unknown", true);
		put_label(metrics->file, "port", facts->port, true);
		put_label(metrics->file, "version", UROCE_VERSION, false);
		fputs("} 1\n", metrics->file);
	}
}

/* ---- queue pairs: a report may say anything, so each number is used once ---- */

enum qp_metric {
	QP_INFO,
	QP_SENDS,
	QP_RECEIVES,
	QP_SQ_PSN,
	QP_RQ_PSN,
	QP_METRICS,
};

static uint64_t qp_value(const struct report_qp *qp, enum qp_metric metric)
{
	const uint64_t values[QP_METRICS] = {1, qp->sends, qp->receives, qp->sq_psn, qp->rq_psn};

	return values[metric];
}

static void put_qp(const struct metrics *metrics, uint32_t i, const struct report_record *record,
		   enum qp_metric metric)
{
	char dgid[INET6_ADDRSTRLEN] = "";

	put_labels(metrics, i);
	fprintf(metrics->file, ",lqpn=\"%" PRIu32 "\"", record->number);
	if (metric == QP_INFO) {
		if (record->qp.dest_qpn != 0)
			inet_ntop(AF_INET6, record->qp.dgid, dgid, sizeof(dgid));
		fputc(',', metrics->file);
		put_label(metrics->file, "type", report_qp_type(record->qp.type), true);
		put_label(metrics->file, "state", attr_state_name(record->qp.state), true);
		fprintf(metrics->file, "rqpn=\"%" PRIu32 "\",", record->qp.dest_qpn);
		put_label(metrics->file, "dgid", dgid, false);
	}
	fprintf(metrics->file, "} %" PRIu64 "\n", qp_value(&record->qp, metric));
}

/* Write one metric of a view's queue pairs, each number once. `seen` has a bit for each number, all
 * 0 before and after. */
static void put_view(const struct metrics *metrics, uint32_t i, enum qp_metric metric,
		     const char *name, uint8_t *seen)
{
	const struct report_view *view = metrics_view(metrics, i);

	for (uint32_t k = 0; k < view->record_count; k++) {
		const struct report_record *record = &view->records[k];
		const uint8_t bit = (uint8_t)(1 << record->number % 8);

		if (record->kind != REPORT_QP || record->number >= QPNS ||
		    (seen[record->number / 8] & bit))
			continue;
		seen[record->number / 8] |= bit;
		fprintf(metrics->file, "%s{", name);
		put_qp(metrics, i, record, metric);
	}
	for (uint32_t k = 0; k < view->record_count; k++) {
		if (view->records[k].kind == REPORT_QP && view->records[k].number < QPNS)
			seen[view->records[k].number / 8] = 0;
	}
}

static void put_qps(const struct metrics *metrics)
{
	static const struct {
		const char *metric, *help;
	} all[QP_METRICS] = {
		[QP_INFO] = {"uroce_qp_info", "a queue pair, its peer and its state"},
		[QP_SENDS] = {"uroce_qp_send_requests",
			      "send work requests that are posted and not complete"},
		[QP_RECEIVES] = {"uroce_qp_receive_requests",
				 "receive work requests that are posted and not complete"},
		[QP_SQ_PSN] = {"uroce_qp_sq_psn",
			       "the packet sequence number of the next request, modulo 2^24"},
		[QP_RQ_PSN] = {"uroce_qp_rq_psn",
			       "the packet sequence number that is expected next, modulo 2^24"},
	};

	uint8_t *seen = calloc(QPNS / 8, 1);

	for (int metric = 0; seen && metric < QP_METRICS; metric++) {
		put_head(metrics->file, all[metric].metric, "gauge", all[metric].help);
		for (uint32_t i = 0; i < metrics->count; i++)
			put_view(metrics, i, (enum qp_metric)metric, all[metric].metric, seen);
	}
	free(seen);
}

/* ---- all ---- */

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
			put_qps(&metrics);
	}
	free(views);
}
