/* SPDX-License-Identifier: BSD-3-Clause */
/* Compare two successive sets of reports, and show rates on a terminal or as plain text. */
#include "ctl_show.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rte_common.h>

#include "base/psn.h"
#include "qp/attr.h"

#define LINES_PLAIN 1000000

static volatile sig_atomic_t top_stop;

static void on_signal(int number)
{
	(void)number;
	top_stop = 1;
}

static double seconds_between(const struct report_view *old, const struct report_view *view)
{
	const uint64_t ns = view->written_ns - old->written_ns;

	return old->written_ns < view->written_ns ? (double)ns / 1e9 : 0;
}

/* Return the growth of a counter per second. */
static double rate(const struct report_view *old, const struct report_view *view, const char *name)
{
	const double seconds = old ? seconds_between(old, view) : 0;

	if (seconds <= 0 || report_stat(view, name) < report_stat(old, name))
		return 0;
	return (double)(report_stat(view, name) - report_stat(old, name)) / seconds;
}

/* Format a number in four or five characters. */
static const char *brief(double value, char text[16])
{
	static const char units[] = " kMGTPE";
	size_t unit = 0;

	while (value >= 9999.5 && unit < sizeof(units) - 2) {
		value /= 1000;
		unit++;
	}
	snprintf(text, 16, "%.*f%c", value < 10 && unit > 0 ? 1 : 0, value, units[unit]);
	return text;
}

/* The columns of programs. What is right of the last one that fits matters least, but device and
 * number of queue pairs leave before rates do. */
static const struct table_column process_columns[] = {
	{"PID", 8, 20},	     {"COMM", -16, 19},	  {"NET", -14, 8},     {"QPS", 5, 9},
	{"TX pkt/s", 8, 10}, {"TX bit/s", 8, 18}, {"RX pkt/s", 8, 11}, {"RX bit/s", 8, 17},
	{"RETX/s", 7, 16},   {"RETX", 8, 7},	  {"TIMEOUTS", 8, 6},  {"RNR", 8, 5},
	{"ANSWER", -6, 4},
};

static void print_process(struct table *table, const struct report_view *old,
			  const struct report_view *view, const char *net)
{
	const double sent = rate(old, view, "tx_packets");
	/* Add loopback packets: a process counts packets from itself and from other processes of
	 * its port there. */
	const double taken = rate(old, view, "rx_packets") + rate(old, view, "rx_loopback_packets");
	char text[16];

	table_cell(table, 0, "%d", view->pid);
	table_cell(table, 1, "%s", view->comm);
	table_cell(table, 2, "%s", net);
	table_cell(table, 3, "%u", view->totals[REPORT_QP]);
	table_cell(table, 4, "%s", brief(sent, text));
	table_cell(table, 5, "%s", brief(rate(old, view, "tx_payload_bytes_read") * 8, text));
	table_cell(table, 6, "%s", brief(taken, text));
	table_cell(table, 7, "%s", brief(rate(old, view, "rx_payload_bytes_written") * 8, text));
	table_cell(table, 8, "%s", brief(rate(old, view, "retransmitted_packets"), text));
	table_cell(table, 9, "%" PRIu64, report_stat(view, "retransmitted_packets"));
	table_cell(table, 10, "%" PRIu64, report_stat(view, "local_ack_timeout_err"));
	table_cell(table, 11, "%" PRIu64, report_stat(view, "rnr_nak_retry_err"));
	table_cell(table, 12, "%s", view->fresh ? "" : "old");
	table_row(table, view->fresh ? TINT_PLAIN : TINT_WARN);
}

static const struct table_column qp_columns[] = {
	{"PID", 8, 18},	     {"NET", -14, 10},	  {"LQPN", 8, 20},  {"RQPN", 8, 19},
	{"TYPE", -7, 11},    {"STATE", -5, 17},	  {"SENDS", 6, 12}, {"RECVS", 6, 9},
	{"TX pkt/s", 8, 16}, {"RX pkt/s", 8, 15},
};

static enum tint qp_tint(const char *state)
{
	return strcmp(state, "ERR") == 0 || strcmp(state, "SQE") == 0 ? TINT_BAD : TINT_PLAIN;
}

static void print_qp(struct table *table, const struct report_view *old,
		     const struct report_view *view, const struct report_record *record,
		     const char *net)
{
	const struct report_record *was = old ? report_find_qp(old, record->number) : NULL;
	const double seconds = was ? seconds_between(old, view) : 0;
	const struct report_qp *qp = &record->qp;
	const char *state = attr_state_name(qp->state);
	double sent = 0, taken = 0;
	char text[16];

	if (seconds > 0) {
		sent = ((qp->sq_psn - was->qp.sq_psn) & PSN_MASK) / seconds;
		taken = ((qp->rq_psn - was->qp.rq_psn) & PSN_MASK) / seconds;
	}
	table_cell(table, 0, "%d", view->pid);
	table_cell(table, 1, "%s", net);
	table_cell(table, 2, "%u", record->number);
	table_cell(table, 3, "%u", qp->dest_qpn);
	table_cell(table, 4, "%s", report_qp_type(qp->type));
	table_cell(table, 5, "%s", state);
	table_cell(table, 6, "%u", qp->sends);
	table_cell(table, 7, "%u", qp->receives);
	table_cell(table, 8, "%s", brief(sent, text));
	table_cell(table, 9, "%s", brief(taken, text));
	table_row(table, qp_tint(state));
}

/* The figures that one round shows. */
struct top {
	const struct report_filter *filter;
	const struct terminal *terminal;
	const struct report_devices *before, *now;
	int left; /* lines of the terminal */
};

static void print_processes(struct top *top)
{
	const struct report_view *view;
	struct table table;
	uint32_t next = 0;

	table_begin(&table, top->terminal, process_columns, RTE_DIM(process_columns));
	table_head(&table);
	top->left--;
	while (top->left > 0 && (view = devices_next_view(top->now, top->filter, &next))) {
		print_process(&table, devices_find_view(top->before, view), view,
			      devices_of(top->now, next - 1)->net);
		top->left--;
	}
}

static void print_qps(struct top *top)
{
	const struct report_view *view;
	struct table table;
	uint32_t next = 0;

	table_begin(&table, top->terminal, qp_columns, RTE_DIM(qp_columns));
	table_head(&table);
	while ((view = devices_next_view(top->now, top->filter, &next))) {
		for (uint32_t i = 0; i < view->record_count && top->left > 0; i++) {
			if (view->records[i].kind != REPORT_QP)
				continue;
			print_qp(&table, devices_find_view(top->before, view), view,
				 &view->records[i], devices_of(top->now, next - 1)->net);
			top->left--;
		}
	}
}

static void print_all(struct top *top)
{
	const struct report_devices *now = top->now;
	uint32_t processes = 0, qps = 0;
	char text[128];

	for (uint32_t i = 0; i < now->count; i++) {
		processes += now->list[i].processes;
		qps += now->list[i].totals[REPORT_QP];
	}
	snprintf(text, sizeof(text), "uroce: %u devices, %u programs, %u queue pairs", now->count,
		 processes, qps);
	if (now->left_out > 0)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), ", %u reports left out",
			 now->left_out);
	printf("%.*s\n\n", top->terminal->columns > 0 ? (int)top->terminal->columns : -1, text);
	top->left = top->terminal->rows > 0 ? (int)top->terminal->rows - 4 : LINES_PLAIN;
	print_processes(top);
	top->left -= 2;
	if (top->left <= 0)
		return;
	putchar('\n');
	print_qps(top);
}

/* Wait, and return true if the user has asked to quit. */
static bool wait_for_key(unsigned int ms, bool keys)
{
	struct pollfd fd = {.fd = keys ? STDIN_FILENO : -1, .events = POLLIN};
	char key;

	return poll(&fd, 1, (int)ms) > 0 && (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q');
}

static int top_rounds(const struct report_filter *filter, struct terminal *terminal,
		      unsigned int ms, uint32_t rounds, bool keys)
{
	struct report_devices before = {0}, now;
	struct top top = {.filter = filter, .terminal = terminal, .before = &before, .now = &now};
	int rc;

	for (uint32_t round = 0; !top_stop && (rounds == 0 || round < rounds); round++) {
		rc = devices_look(&now);
		if (rc != 0)
			return rc;
		/* The first round shows no rates: `before` is empty. */
		fputs(terminal->is_terminal ? "\033[H\033[2J" : round > 0 ? "\n" : "", stdout);
		terminal_resize(terminal);
		print_all(&top);
		fflush(stdout);
		devices_release(&before);
		before = now;
		if (round + 1 != rounds && wait_for_key(ms, keys))
			break;
	}
	devices_release(&before);
	return 0;
}

int top_run(const struct report_filter *filter, const struct terminal *terminal, unsigned int ms,
	    uint32_t rounds)
{
	const struct sigaction action = {.sa_handler = on_signal};
	const bool keys = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	struct terminal screen = *terminal;
	struct termios normal, raw;
	int rc;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (keys && tcgetattr(STDIN_FILENO, &normal) == 0) {
		raw = normal;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	rc = top_rounds(filter, &screen, ms, rounds, keys);
	if (keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &normal);
	return rc;
}
