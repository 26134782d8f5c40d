/* SPDX-License-Identifier: BSD-3-Clause */
/* Metrics of queue pairs. A report may say anything, so each number is used once. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>

#include "metrics_put.h"
#include "qp/attr.h"

#define QPNS (1u << 24)

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

	metrics_put_labels(metrics, i);
	fprintf(metrics->file, ",lqpn=\"%" PRIu32 "\"", record->number);
	if (metric == QP_INFO) {
		if (record->qp.dest_qpn != 0)
			inet_ntop(AF_INET6, record->qp.dgid, dgid, sizeof(dgid));
		fputc(',', metrics->file);
		metrics_put_label(metrics->file, "type", report_qp_type(record->qp.type), true);
		metrics_put_label(metrics->file, "state", attr_state_name(record->qp.state), true);
		fprintf(metrics->file, "rqpn=\"%" PRIu32 "\",", record->qp.dest_qpn);
		metrics_put_label(metrics->file, "dgid", dgid, false);
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

void metrics_put_qps(const struct metrics *metrics)
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
		metrics_put_head(metrics->file, all[metric].metric, "gauge", all[metric].help);
		for (uint32_t i = 0; i < metrics->count; i++)
			put_view(metrics, i, (enum qp_metric)metric, all[metric].metric, seen);
	}
	free(seen);
}
