/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/report/devices.c: which process is of which device, whatever it says. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "report/devices.h"
#include "test.h"

#define OWNER	 100
#define PROGRAM	 101
#define LIAR	 90 /* before the others in the list */
#define NOT_SEEN 55

static struct report_view views[8];
static uint32_t count;
static struct report_devices devices;

static int set_up(TEST_STATE)
{
	memset(views, 0, sizeof(views));
	count = 0;
	return 0;
}

static int tear_down(TEST_STATE)
{
	devices_release(&devices);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static struct report_view *add(pid_t pid, enum report_role role, pid_t owner, const char *device)
{
	struct report_view *view = &views[count++];

	view->pid = pid;
	view->facts.role = role;
	view->facts.owner_pid = owner;
	strcpy(view->facts.device, device);
	strcpy(view->facts.port, "eth1");
	view->totals[REPORT_QP] = 1;
	return view;
}

static struct report_view *add_owner(void)
{
	struct report_view *owner = add(OWNER, REPORT_OWNER, 0, "uroce0");

	owner->attached[0] = PROGRAM;
	owner->attached_count = 1;
	return owner;
}

static void sort(void)
{
	struct report_views all = {.count = count, .list = calloc(count, sizeof(views[0]))};

	assert_non_null(all.list);
	memcpy(all.list, views, count * sizeof(views[0]));
	assert_int_equal(devices_sort(&devices, &all), 0);
}

/* The device of the process that was added n-th. */
static const struct report_device *device_of(uint32_t n)
{
	return &devices.list[devices.of[n]];
}

TEST(devices_sort__joins_what_the_owner_names)
{
	add_owner();
	add(PROGRAM, REPORT_ATTACHED, OWNER, "mine");
	sort();
	assert_int_equal(devices.count, 1);
	assert_int_equal(devices.list[0].processes, 1);
	assert_int_equal(devices.list[0].totals[REPORT_QP], 1);
	/* A program that is not trusted does not name it for all. */
	assert_string_equal(devices.list[0].name, "uroce0");
}

/* All devices have the same name: their networks tell them apart. */
TEST(devices_next__of_a_network)
{
	const struct report_filter first = {.device = "uroce0", .net = "eth1@100"},
				   both = {.net = "eth1"}, none = {.net = "eth"};
	uint32_t next = 0;

	add_owner();
	add(PROGRAM, REPORT_ATTACHED, OWNER, "uroce0");
	strcpy(add(PROGRAM + 1, REPORT_STANDALONE, 0, "uroce0")->facts.port, "net_memif0,id=0");
	add(PROGRAM + 2, REPORT_STANDALONE, 0, "uroce0");
	sort();
	assert_int_equal(devices.count, 3);
	assert_string_equal(device_of(1)->net, "eth1@100");
	assert_string_equal(device_of(2)->net, "net_memif0@102");
	assert_ptr_equal(devices_next(&devices, &first, &next), device_of(0));
	assert_null(devices_next(&devices, &first, &next));
	next = 0;
	assert_non_null(devices_next(&devices, &both, &next));
	assert_ptr_equal(devices_next(&devices, &both, &next), device_of(3));
	next = 0;
	assert_null(devices_next(&devices, &none, &next));
}

TEST(devices_sort__believes_no_process_of_itself)
{
	add(LIAR, REPORT_ATTACHED, OWNER, "forged");
	add_owner();
	add(PROGRAM, REPORT_ATTACHED, OWNER, "uroce0");
	sort();
	assert_int_equal(devices.count, 2);
	assert_ptr_not_equal(device_of(0), device_of(1));
	assert_ptr_equal(device_of(1), device_of(2));
	assert_int_equal(device_of(1)->totals[REPORT_QP], 1);
	assert_int_equal(device_of(1)->head->pid, OWNER);
	assert_int_equal(device_of(0)->head->facts.role, REPORT_STANDALONE);
}

TEST(devices_sort__believes_no_forged_owner)
{
	struct report_view *forged;

	forged = add(LIAR, REPORT_OWNER, 0, "forged");
	forged->attached[0] = PROGRAM;
	forged->attached_count = 1;
	add_owner();
	add(PROGRAM, REPORT_ATTACHED, OWNER, "uroce0");
	sort();
	assert_ptr_equal(device_of(2), device_of(1));
	assert_int_equal(device_of(0)->processes, 0);
}

/* A program with a port of its own has nobody attached to it. */
TEST(devices_sort__lets_nobody_join_a_program)
{
	add(LIAR, REPORT_ATTACHED, PROGRAM, "forged");
	add(PROGRAM, REPORT_STANDALONE, 0, "alone");
	sort();
	assert_int_equal(devices.count, 2);
	assert_int_equal(device_of(1)->processes, 1);
	assert_string_equal(device_of(1)->name, "alone");
}

TEST(devices_sort__joins_programs_of_an_owner_that_is_not_seen)
{
	add(PROGRAM, REPORT_ATTACHED, NOT_SEEN, "uroce0");
	add(PROGRAM + 1, REPORT_ATTACHED, NOT_SEEN, "uroce0");
	sort();
	assert_int_equal(devices.count, 1);
	assert_int_equal(devices.list[0].processes, 2);
}
