/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts that each metric is made of. */
#ifndef METRICS_PUT_H
#define METRICS_PUT_H

#include <stdint.h>
#include <stdio.h>

#include "report/devices.h"

/* The output of one scrape, and the views that it shows. */
struct metrics {
	FILE *file;
	const struct report_devices *devices;
	const uint32_t *views; /* indices of the views that are shown */
	uint32_t count;
};

static inline const struct report_view *metrics_view(const struct metrics *metrics, uint32_t i)
{
	return &metrics->devices->views.list[metrics->views[i]];
}

/** Write NAME="value" with the format's escapes, and a comma if `more` labels follow. */
void metrics_put_label(FILE *file, const char *name, const char *value, bool more);

/** Write the labels that all series of a view have. */
void metrics_put_labels(const struct metrics *metrics, uint32_t i);

/** Write the lines HELP and TYPE. */
void metrics_put_head(FILE *file, const char *metric, const char *type, const char *help);

/** Write all queue pairs. */
void metrics_put_qps(const struct metrics *metrics);

#endif
