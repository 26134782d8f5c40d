/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroce-ctl/monitor.c. */
#include <stdlib.h>
#include <string.h>

#include "ctl_show.h"
#include "stdout_text.h"
#include "test.h"

#define OWNER	100
#define PROGRAM 101
#define OTHER	102

static const struct terminal file;
static struct report_devices before, now;

static int tear_down(TEST_STATE)
{
	devices_release(&before);
	devices_release(&now);
	return 0;
}

TEST_FIXTURE(NULL, tear_down);

static void fill(struct report_view *view, pid_t pid, enum report_role role)
{
	view->pid = pid;
	view->facts.role = role;
	view->facts.owner_pid = role == REPORT_ATTACHED ? OWNER : 0;
	view->fresh = true;
	strcpy(view->comm, role == REPORT_OWNER ? "uroced" : "ib_write_bw");
	strcpy(view->facts.device, "uroce0");
	strcpy(view->facts.port, "eth1");
}

/* An owner with `programs` programs; the first has queue pairs from 17 + `first` on, the newest
 * first. */
static void make(struct report_devices *devices, uint32_t programs, uint32_t first, uint32_t qps)
{
	struct report_views views = {.count = programs + 1,
				     .list = calloc(programs + 1, sizeof(views.list[0]))};
	struct report_view *owner = &views.list[0];

	fill(owner, OWNER, REPORT_OWNER);
	for (uint32_t i = 0; i < programs; i++) {
		fill(&views.list[i + 1], PROGRAM + (pid_t)i, REPORT_ATTACHED);
		owner->attached[owner->attached_count++] = PROGRAM + (pid_t)i;
	}
	if (programs > 0) {
		struct report_record *records = calloc(qps + 1, sizeof(*records));

		for (uint32_t i = 0; i < qps; i++)
			records[i] = (struct report_record){.kind = REPORT_PD,
							    .number = 17 + first + qps - 1 - i};
		views.list[1].records = records;
		views.list[1].record_count = qps;
	}
	assert_int_equal(devices_sort(devices, &views), 0);
}

static const char *compared(uint32_t left, bool more)
{
	const struct report_filter all = {.pid = 0};
	struct output output;

	stdout_begin();
	output_begin(&output, false, &file);
	assert_int_equal(monitor_compare(&before, &now, &all, &output, &left), more);
	return stdout_end();
}

TEST(monitor_compare__objects)
{
	make(&before, 1, 0, 3);
	make(&now, 1, 2, 3);
	assert_string_equal(
		compared(0, true),
		"[DESTROY] 0: uroce0: net eth1@100 pdn 17 users 0 pid 101 comm ib_write_bw\n"
		"[DESTROY] 0: uroce0: net eth1@100 pdn 18 users 0 pid 101 comm ib_write_bw\n"
		"[CREATE] 0: uroce0: net eth1@100 pdn 20 users 0 pid 101 comm ib_write_bw\n"
		"[CREATE] 0: uroce0: net eth1@100 pdn 21 users 0 pid 101 comm ib_write_bw\n");
	assert_string_equal(
		compared(1, false),
		"[DESTROY] 0: uroce0: net eth1@100 pdn 17 users 0 pid 101 comm ib_write_bw\n");
}

TEST(monitor_compare__programs)
{
	make(&before, 1, 0, 1);
	make(&now, 2, 0, 1);
	assert_string_equal(compared(0, true),
			    "[ATTACH] link uroce0/1 net eth1@100 pid 102 comm ib_write_bw\n");
	tear_down(NULL);
	make(&before, 1, 0, 1);
	make(&now, 0, 0, 0);
	assert_string_equal(
		compared(0, true),
		"[DESTROY] 0: uroce0: net eth1@100 pdn 17 users 0 pid 101 comm ib_write_bw\n"
		"[DETACH] link uroce0/1 net eth1@100 pid 101 comm ib_write_bw\n");
}

TEST(monitor_compare__devices)
{
	const char *text;

	make(&before, 0, 0, 0);
	make(&now, 0, 0, 0);
	assert_string_equal(compared(0, true), "");
	now.views.list[0].facts.port[0] = 'E';
	text = compared(0, true);
	assert_non_null(strstr(text, "[UNREGISTER] 0: uroce0: net eth1@100 node_type ca"));
	assert_non_null(strstr(text, "[REGISTER] 0: uroce0: net eth1@100 node_type ca"));
	assert_null(strstr(text, "TACH"));
}
