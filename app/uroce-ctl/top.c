/* SPDX-License-Identifier: BSD-3-Clause */
/* Compare two successive sets of reports, and show rates on a terminal or as plain text. */
#include "top.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "base/psn.h"

#define LINES_PLAIN 1000000

static volatile sig_atomic_t top_stop;

static void on_signal(int number)
{
	(void)number;
	top_stop = 1;
}

/* Return the previous report of a process, or NULL if there was none. */
static const struct report_view *find_before(const struct ctl_devices *before,
					     const struct report_view *view)
{
	for (uint32_t i = 0; i < before->views.count; i++) {
		const struct report_view *old = &before->views.list[i];

		if (old->pid == view->pid && strcmp(old->facts.port, view->facts.port) == 0)
			return old;
	}
	return NULL;
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

static void print_process(const struct report_view *old, const struct report_view *view,
			  const char *device)
{
	const double sent = rate(old, view, "tx_packets");
	/* Add loopback packets: a process counts packets from itself and from other processes of
	 * its port there. */
	const double taken = rate(old, view, "rx_packets") + rate(old, view, "rx_loopback_packets");
	char text[16];

	printf("%8d %-16.16s %-10.10s %5u", view->pid, view->comm, device, view->totals[REPORT_QP]);
	printf(" %8s", brief(sent, text));
	printf(" %8s", brief(rate(old, view, "tx_payload_bytes_read") * 8, text));
	printf(" %8s", brief(taken, text));
	printf(" %8s", brief(rate(old, view, "rx_payload_bytes_written") * 8, text));
	printf(" %7s", brief(rate(old, view, "retransmitted_packets"), text));
	printf(" %8" PRIu64 " %8" PRIu64 " %8" PRIu64 "%s\n",
	       report_stat(view, "retransmitted_packets"),
	       report_stat(view, "local_ack_timeout_err"), report_stat(view, "rnr_nak_retry_err"),
	       view->fresh ? "" : " (stopped?)");
}

static const struct report_record *find_qp(const struct report_view *view, uint32_t qpn)
{
	for (uint32_t i = 0; view && i < view->record_count; i++) {
		if (view->records[i].kind == REPORT_QP && view->records[i].number == qpn)
			return &view->records[i];
	}
	return NULL;
}

/* Fields of one queue pair, selected by name. */
struct qp_words {
	char type[12], state[12];
};

static void catch_text(void *arg, const char *name, const char *value)
{
	struct qp_words *words = arg;

	if (strcmp(name, "type") == 0)
		snprintf(words->type, sizeof(words->type), "%s", value);
	else if (strcmp(name, "state") == 0)
		snprintf(words->state, sizeof(words->state), "%s", value);
}

static void catch_number(void *arg, const char *name, uint64_t value)
{
	(void)arg, (void)name, (void)value;
}

static void print_qp(const struct report_view *old, const struct report_view *view,
		     const struct report_record *record, const char *device)
{
	const struct report_record *was = find_qp(old, record->number);
	const double seconds = was ? seconds_between(old, view) : 0;
	const struct report_qp *qp = &record->qp;
	struct qp_words words = {"", ""};
	const struct report_fields fields = {catch_text, catch_number, &words};
	double sent = 0, taken = 0;
	char text[16];

	report_tell_record(record, &fields);
	if (seconds > 0) {
		sent = ((qp->sq_psn - was->qp.sq_psn) & PSN_MASK) / seconds;
		taken = ((qp->rq_psn - was->qp.rq_psn) & PSN_MASK) / seconds;
	}
	printf("%8d %-10.10s %8u %8u %-7s %-5s %6u %6u", view->pid, device, record->number,
	       qp->dest_qpn, words.type, words.state, qp->sends, qp->receives);
	printf(" %8s", brief(sent, text));
	printf(" %8s\n", brief(taken, text));
}

static int lines_of_terminal(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
	    size.ws_row == 0)
		return LINES_PLAIN;
	return size.ws_row - 1;
}

static bool is_wanted(const struct show_filter *filter, const struct ctl_devices *now, uint32_t v)
{
	const struct ctl_device *device = &now->list[now->of[v]];

	return (!filter->device || strcmp(filter->device, device->name) == 0) &&
	       (filter->pid == 0 || filter->pid == now->views.list[v].pid);
}

static int print_processes(const struct show_filter *filter, const struct ctl_devices *before,
			   const struct ctl_devices *now, int left)
{
	printf("%8s %-16s %-10s %5s %8s %8s %8s %8s %7s %8s %8s %8s\n", "PID", "COMM", "DEVICE",
	       "QPS", "TX pkt/s", "TX bit/s", "RX pkt/s", "RX bit/s", "RETX/s", "RETX", "TIMEOUTS",
	       "RNR");
	left--;
	for (uint32_t v = 0; v < now->views.count && left > 0; v++) {
		const struct report_view *view = &now->views.list[v];

		if (!is_wanted(filter, now, v))
			continue;
		print_process(find_before(before, view), view, now->list[now->of[v]].name);
		left--;
	}
	return left;
}

static int print_qps_of(const struct ctl_devices *before, const struct ctl_devices *now, uint32_t v,
			int left)
{
	const struct report_view *view = &now->views.list[v];

	for (uint32_t i = 0; i < view->record_count && left > 0; i++) {
		if (view->records[i].kind != REPORT_QP)
			continue;
		print_qp(find_before(before, view), view, &view->records[i],
			 now->list[now->of[v]].name);
		left--;
	}
	return left;
}

static void print_all(const struct show_filter *filter, const struct ctl_devices *before,
		      const struct ctl_devices *now)
{
	uint32_t processes = 0, qps = 0;
	int left = lines_of_terminal() - 3;

	for (uint32_t i = 0; i < now->count; i++) {
		processes += now->list[i].processes;
		qps += now->list[i].totals[REPORT_QP];
	}
	printf("uroce: %u devices, %u programs, %u queue pairs", now->count, processes, qps);
	if (now->left_out > 0)
		printf(", %u reports left out", now->left_out);
	fputs("\n\n", stdout);
	left = print_processes(filter, before, now, left) - 2;
	if (left <= 0)
		return;
	printf("\n%8s %-10s %8s %8s %-7s %-5s %6s %6s %8s %8s\n", "PID", "DEVICE", "LQPN", "RQPN",
	       "TYPE", "STATE", "SENDS", "RECVS", "TX pkt/s", "RX pkt/s");
	for (uint32_t v = 0; v < now->views.count && left > 0; v++) {
		if (is_wanted(filter, now, v))
			left = print_qps_of(before, now, v, left);
	}
}

/* Wait, and return true if the user has asked to quit. */
static bool wait_for_key(unsigned int ms, bool keys)
{
	struct pollfd fd = {.fd = keys ? STDIN_FILENO : -1, .events = POLLIN};
	char key;

	return poll(&fd, 1, (int)ms) > 0 && (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q');
}

static int top_rounds(const struct show_filter *filter, unsigned int ms, uint32_t rounds, bool keys)
{
	const bool terminal = isatty(STDOUT_FILENO);
	struct ctl_devices before = {0}, now;
	int rc;

	for (uint32_t round = 0; !top_stop && (rounds == 0 || round < rounds); round++) {
		rc = devices_look(&now);
		if (rc != 0)
			return rc;
		/* The first round shows no rates: `before` is empty. */
		fputs(terminal ? "\033[H\033[2J" : round > 0 ? "\n" : "", stdout);
		print_all(filter, &before, &now);
		fflush(stdout);
		devices_release(&before);
		before = now;
		if (round + 1 != rounds && wait_for_key(ms, keys))
			break;
	}
	devices_release(&before);
	return 0;
}

int top_run(const struct show_filter *filter, unsigned int ms, uint32_t rounds)
{
	const struct sigaction action = {.sa_handler = on_signal};
	const bool keys = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	struct termios normal, raw;
	int rc;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (keys && tcgetattr(STDIN_FILENO, &normal) == 0) {
		raw = normal;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	rc = top_rounds(filter, ms, rounds, keys);
	if (keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &normal);
	return rc;
}
