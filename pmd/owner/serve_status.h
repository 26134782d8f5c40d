/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of an owner. */
#ifndef OWNER_SERVE_STATUS_H
#define OWNER_SERVE_STATUS_H

struct report;
struct report_set;
struct server;
struct settings;

struct status {
	struct report_set *reports; /* has the reports of processes and our own */
	struct report *report;	    /* our own, in the set; or NULL */
	int report_fd;
};

/** Make the owner's report. 0 or -errno. */
int status_open_report(struct server *server, const struct settings *settings);

/** Update the report if a reader has asked for it. */
void status_answer_report(struct server *server);

#endif
