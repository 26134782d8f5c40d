/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/report/metrics*.c: the text, and that each report gives a valid one. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "report/metrics.h"
#include "telemetry/counters.h"
#include "test.h"

#define VIEWS_MAX   4
#define RECORDS_MAX 4
#define LINES_MAX   4096

static struct report_view views[VIEWS_MAX];
static struct report_record records[VIEWS_MAX][RECORDS_MAX];
static uint32_t count;
static char *text;

static int set_up(TEST_STATE)
{
	memset(views, 0, sizeof(views));
	memset(records, 0, sizeof(records));
	count = 0;
	text = NULL;
	return 0;
}

static int tear_down(TEST_STATE)
{
	free(text);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static struct report_view *add(pid_t pid, enum report_role role, const char *device)
{
	struct report_view *view = &views[count];

	view->pid = pid;
	view->fresh = true;
	view->facts.role = role;
	view->records = records[count++];
	strcpy(view->comm, "prog");
	strcpy(view->facts.device, device);
	snprintf(view->facts.port, sizeof(view->facts.port), "port-of-%s", device);
	return view;
}

static void add_stat(struct report_view *view, const char *name, uint64_t value)
{
	struct report_stat *stat = &view->stats[view->stat_count++];

	snprintf(stat->name, sizeof(stat->name), "%s", name);
	stat->value = value;
}

static void add_qp(struct report_view *view, uint32_t qpn)
{
	view->records[view->record_count++] = (struct report_record){
		.kind = REPORT_QP,
		.number = qpn,
		.qp = {.dest_qpn = 9, .type = IBV_QPT_RC, .state = IBV_QPS_RTS, .sends = 3}};
}

static void write_metrics(const char *device, bool qps)
{
	struct report_devices devices;
	const struct report_filter filter = {.device = device};
	struct report_views all = {.count = count, .list = calloc(count + 1, sizeof(views[0]))};
	size_t size;
	FILE *file;

	assert_non_null(all.list);
	memcpy(all.list, views, count * sizeof(views[0]));
	assert_int_equal(devices_sort(&devices, &all), 0);
	free(text);
	file = open_memstream(&text, &size);
	assert_non_null(file);
	metrics_write(file, &devices, &filter, qps);
	assert_int_equal(fclose(file), 0);
	for (uint32_t i = 0; i < count; i++)
		all.list[i].records = NULL;
	devices_release(&devices);
}

static bool has_line(const char *line)
{
	const size_t len = strlen(line);

	for (const char *at = text; (at = strstr(at, line)); at++) {
		if ((at == text || at[-1] == '\n') && at[len] == '\n')
			return true;
	}
	return false;
}

static size_t count_of(const char *word)
{
	size_t n = 0;

	for (const char *at = text; (at = strstr(at, word)); at++)
		n++;
	return n;
}

/* Expect that no line is there twice, that each metric has one HELP and one TYPE, and that its
 * series follow them. */
static void expect_valid(void)
{
	static char *lines[LINES_MAX];
	char metric[128] = "", *copy = strdup(text), *rest = copy, *line;
	size_t n = 0;

	while ((line = strsep(&rest, "\n")) != NULL && *line) {
		assert_true(n < LINES_MAX);
		for (size_t i = 0; i < n; i++) {
			const size_t series = strcspn(line, "}");

			if (strncmp(line, lines[i], series + 1) == 0)
				fail_msg("twice: %s", line);
		}
		lines[n++] = line;
		if (strncmp(line, "# HELP ", 7) == 0) {
			snprintf(metric, sizeof(metric), "%.*s", (int)strcspn(line + 7, " "),
				 line + 7);
			for (size_t i = 0; i + 1 < n; i++)
				assert_false(strncmp(lines[i] + 7, metric, strlen(metric)) == 0 &&
					     lines[i][7 + strlen(metric)] == ' ' &&
					     lines[i][0] == '#');
		} else if (strncmp(line, "# TYPE ", 7) == 0) {
			assert_int_equal(strncmp(line + 7, metric, strlen(metric)), 0);
			assert_int_equal(strncmp(lines[n - 2], "# HELP ", 7), 0);
		} else {
			assert_int_equal(strncmp(line, metric, strlen(metric)), 0);
			assert_int_equal(line[strlen(metric)], '{');
		}
	}
	free(copy);
}

TEST(metrics_write__counters_of_programs)
{
	struct report_view *view = add(7, REPORT_STANDALONE, "uroce0");

	add_stat(view, "rx_packets", UINT64_MAX);
	add_stat(view, "rx_bytes", 5);
	view = add(8, REPORT_STANDALONE, "uroce1");
	add_stat(view, "rx_packets", 6);
	write_metrics(NULL, false);
	expect_valid();
	assert_true(has_line("# HELP uroce_rx_packets_total RoCE packets received from the port."));
	assert_true(has_line("# TYPE uroce_rx_packets_total counter"));
	assert_true(has_line("uroce_rx_packets_total{device=\"uroce0\",comm=\"prog\",pid=\"7\"} "
			     "18446744073709551615"));
	assert_true(
		has_line("uroce_rx_packets_total{device=\"uroce1\",comm=\"prog\",pid=\"8\"} 6"));
	assert_true(has_line("# HELP uroce_rx_bytes_total Bytes of RoCE frames received from the "
			     "port."));
	write_metrics("uroce1", false);
	expect_valid();
	assert_int_equal(count_of("uroce0"), 0);
	assert_int_equal(count_of("uroce_rx_bytes_total"), 0);
	write_metrics("uroce2", false);
	assert_string_equal(text, "");
}

TEST(metrics_write__counters_of_an_owner_have_names_of_their_own)
{
	struct report_view *owner = add(7, REPORT_OWNER, "uroce0");
	struct report_view *view = add(8, REPORT_ATTACHED, "uroce0");

	add_stat(owner, "rx_packets", 3);
	add_stat(owner, "buffers_held", 4);
	add_stat(owner, "attached", 5);
	add_stat(owner, "impair_lost", 6);
	view->facts.owner_pid = 7;
	owner->attached[owner->attached_count++] = 8;
	add_stat(view, "rx_packets", 2);
	write_metrics(NULL, false);
	expect_valid();
	assert_true(
		has_line("uroce_owner_rx_packets_total{device=\"uroce0\",comm=\"prog\",pid=\"7\"} "
			 "3"));
	assert_true(has_line("# TYPE uroce_owner_buffers_held gauge"));
	assert_true(has_line("# TYPE uroce_owner_processes_attached_total counter"));
	assert_true(has_line("# TYPE uroce_owner_impair_lost_total counter"));
	assert_true(
		has_line("uroce_rx_packets_total{device=\"uroce0\",comm=\"prog\",pid=\"8\"} 2"));
	assert_true(has_line("uroce_device_info{device=\"uroce0\",comm=\"prog\",pid=\"8\",role="
			     "\"attached\",port=\"port-of-uroce0\",version=\"" UROCE_VERSION
			     "\"} 1"));
}

TEST(metrics_write__labels_are_escaped)
{
	struct report_view *view = add(7, REPORT_STANDALONE, "a\"b\\c");

	strcpy(view->comm, "x\ny");
	add_stat(view, "rx_packets", 1);
	write_metrics(NULL, false);
	assert_true(
		has_line("uroce_rx_packets_total{device=\"a\\\"b\\\\c\",comm=\"x\\ny\",pid=\"7\"} "
			 "1"));
}

/* Reports are written by other processes. */
TEST(metrics_write__a_report_says_anything)
{
	struct report_view *view = add(7, REPORT_STANDALONE, "uroce0");
	struct report_view *again = add(7, REPORT_STANDALONE, "uroce0");

	add_stat(view, "owner_rx_packets", 1);
	add_stat(view, "rx_packets", 2);
	add_stat(view, "rx_packets", 3);
	add_stat(view, "x y{z=\"1\"} 7\n", 4);
	add_stat(view, "", 5);
	add_qp(view, 17);
	add_qp(view, 17);
	add_qp(view, UINT32_MAX);
	add_stat(again, "rx_packets", 6);
	strcpy(again->facts.port, "another");
	view = add(9, REPORT_OWNER, "uroce0");
	view->facts.role = 77;
	add_stat(view, "processes_attached", 1);
	view = add(10, REPORT_OWNER, "x");
	add_stat(view, "attached", 2);
	add_stat(view, "processes_attached", 1);
	add_stat(view, "attached", 3);
	write_metrics(NULL, true);
	expect_valid();
	assert_int_equal(count_of("lqpn=\"17\""), 5); /* once in each metric */
	assert_int_equal(count_of("lqpn=\"4294967295\""), 0);
	assert_true(
		has_line("uroce_rx_packets_total{device=\"uroce0\",comm=\"prog\",pid=\"7\"} 2"));
	assert_int_equal(count_of("role=\"unknown\""), 1);
}

TEST(metrics_write__queue_pairs_only_on_demand)
{
	struct report_view *view = add(7, REPORT_STANDALONE, "uroce0");

	add_qp(view, 17);
	add_qp(view, 18);
	view->totals[REPORT_QP] = 2;
	write_metrics(NULL, false);
	assert_null(strstr(text, "uroce_qp_"));
	assert_true(has_line("uroce_queue_pairs{device=\"uroce0\",comm=\"prog\",pid=\"7\"} 2"));
	write_metrics(NULL, true);
	expect_valid();
	assert_true(
		has_line("uroce_qp_send_requests{device=\"uroce0\",comm=\"prog\",pid=\"7\",lqpn="
			 "\"17\"} 3"));
	assert_true(has_line("uroce_qp_info{device=\"uroce0\",comm=\"prog\",pid=\"7\",lqpn=\"18\","
			     "type=\"RC\",state=\"RTS\",rqpn=\"9\",dgid=\"::\"} 1"));
}

TEST(metrics_write__each_counter_has_a_meaning)
{
	struct report_view *view = add(7, REPORT_STANDALONE, "uroce0");

	for (int i = 0; i < COUNTER_COUNT; i++)
		add_stat(view, counter_name((enum counter)i), (uint64_t)i);
	write_metrics(NULL, false);
	expect_valid();
	assert_int_equal(count_of("_total counter\n"), COUNTER_COUNT);
	assert_null(counter_meaning("no_such_counter"));
}
