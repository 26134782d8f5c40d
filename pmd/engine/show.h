/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes this process's report for readers. */
#ifndef ENGINE_SHOW_H
#define ENGINE_SHOW_H

struct device;
struct link;
struct report;
struct share_facts;

/** Write the constant facts and a first report. Before the engine runs. */
void show_begin(struct report *report, const struct share_facts *facts, const struct link *link,
		struct device *device);

#endif
