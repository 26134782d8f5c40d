/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroce-ctl/ctl_capture.c. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "ctl_capture.h"
#include "test.h"

#define OWNER	   100
#define PROGRAM	   101
#define OTHER	   102
#define STANDALONE 200

static struct report_view views[8];
static struct report_record records[8][4];
static uint32_t count;
static struct report_devices devices;
static struct capture_target target;
static struct capture_plan plan;
static struct dpdk_ports ports;
static struct capture_tools tools;
static char error[256], filter[CAPTURE_FILTER_MAX];

static int set_up(TEST_STATE)
{
	memset(views, 0, sizeof(views));
	memset(records, 0, sizeof(records));
	memset(&ports, 0, sizeof(ports));
	memset(&devices, 0, sizeof(devices));
	tools = (struct capture_tools){true, true, true};
	count = 0;
	error[0] = '\0';
	return 0;
}

static int tear_down(TEST_STATE)
{
	for (uint32_t i = 0; i < devices.views.count; i++)
		devices.views.list[i].records = NULL;
	devices_release(&devices);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static struct report_view *add(pid_t pid, enum report_role role, const char *device,
			       const char *port)
{
	struct report_view *view = &views[count];

	view->pid = pid;
	view->facts.role = role;
	view->facts.netdev = strncmp(port, "veth", 4) == 0;
	view->records = records[count++];
	strcpy(view->facts.device, device);
	strcpy(view->facts.port, port);
	return view;
}

static void add_qp(struct report_view *view, uint32_t qpn, uint32_t dest_qpn, const char *address)
{
	struct report_record *record = &view->records[view->record_count++];

	*record = (struct report_record){
		.kind = REPORT_QP, .number = qpn, .qp = {.dest_qpn = dest_qpn}};
	assert_int_equal(inet_pton(AF_INET6, address, record->qp.dgid), 1);
}

static bool find(const char *device, pid_t pid, uint32_t qpn)
{
	const struct capture_want want = {.filter = {.device = device, .pid = pid}, .qpn = qpn};
	struct report_views all = {.count = count, .list = calloc(count + 1, sizeof(views[0]))};

	tear_down(NULL);
	memcpy(all.list, views, count * sizeof(views[0]));
	assert_int_equal(devices_sort(&devices, &all), 0);
	return capture_find(&devices, &want, &target, error, sizeof(error));
}

static bool choose(uint32_t packets)
{
	const struct capture_want want = {.file = "x.pcapng", .packets = packets};

	return capture_choose(&target, &want, &ports, &tools, &plan, error, sizeof(error));
}

static void expect_argv(const char *const *wanted)
{
	size_t i;

	for (i = 0; wanted[i] && plan.argv[i]; i++)
		assert_string_equal(plan.argv[i], wanted[i]);
	assert_null(wanted[i]);
	assert_null(plan.argv[i]);
}

static void add_port(uint32_t id, const char *name)
{
	strcpy(ports.prefix, "uroced");
	ports.list[ports.count].id = id;
	strcpy(ports.list[ports.count++].name, name);
}

/* An owner on veth0 with two programs that are connected to each other, and to a host. */
static void add_owner(void)
{
	struct report_view *owner = add(OWNER, REPORT_OWNER, "uroce0", "veth0"), *view;

	for (pid_t pid = PROGRAM; pid <= OTHER; pid++) {
		view = add(pid, REPORT_ATTACHED, "uroce0", "veth0");
		view->facts.owner_pid = OWNER;
		owner->attached[owner->attached_count++] = pid;
		add_qp(view, 10 + (uint32_t)pid, 1, "::ffff:10.0.0.2");
		add_qp(view, 20 + (uint32_t)pid, 20 + PROGRAM + OTHER - (uint32_t)pid,
		       "::ffff:10.0.0.1");
	}
}

TEST(capture_find__the_queue_pair)
{
	struct report_view *view;

	add_owner();
	assert_true(find(NULL, 0, 10 + PROGRAM));
	assert_int_equal(target.view->pid, PROGRAM);
	assert_false(target.local);
	assert_true(find(NULL, 0, 20 + PROGRAM));
	assert_true(target.local);
	assert_false(target.inside);
	assert_false(find(NULL, 0, 5));
	assert_non_null(strstr(error, "no process"));
	view = add(STANDALONE, REPORT_STANDALONE, "uroce0", "veth1");
	add_qp(view, 10 + PROGRAM, 7, "fd00::1");
	add_qp(view, 30, 31, "fd00::1");
	add_qp(view, 31, 30, "fd00::1");
	assert_false(find(NULL, 0, 10 + PROGRAM));
	assert_non_null(strstr(error, "several"));
	assert_true(find(NULL, STANDALONE, 10 + PROGRAM));
	assert_int_equal(target.view->pid, STANDALONE);
	assert_true(find(NULL, 0, 30));
	assert_true(target.inside);
	assert_false(choose(0));
	assert_non_null(strstr(error, "same process"));
}

TEST(capture_find__the_device)
{
	assert_false(find(NULL, 0, 0));
	add_owner();
	assert_true(find(NULL, 0, 0));
	assert_int_equal(capture_owner(&target), OWNER);
	add(STANDALONE, REPORT_STANDALONE, "alone0", "veth1");
	assert_false(find(NULL, 0, 0));
	assert_non_null(strstr(error, "several"));
	assert_non_null(strstr(error, "uroce0 of net veth0@100 (), alone0 of net veth1@200 ()"));
	assert_true(find("alone0", 0, 0));
	assert_int_equal(capture_owner(&target), STANDALONE);
	assert_false(find("other", 0, 0));
}

TEST(capture_filter__of_a_queue_pair)
{
	add_owner();
	assert_true(find(NULL, 0, 10 + PROGRAM));
	assert_true(capture_filter(&target, filter) < CAPTURE_FILTER_MAX);
	assert_non_null(strstr(filter, "ip[32:4] & 0xffffff = 111"));
	assert_non_null(strstr(filter, "(dst host 10.0.0.2 and ip[32:4] & 0xffffff = 1)"));
	assert_non_null(strstr(filter, "ip[28] & 0xe0 = 0x60 and ip[44:4] & 0xffffff = 111"));
	assert_non_null(strstr(filter, "ip6[52:4] & 0xffffff = 111"));
	assert_null(strstr(filter, "dst host ::"));
	assert_non_null(strstr(filter, ") or (vlan and ("));
}

TEST(capture_filter__of_a_device)
{
	add_owner();
	assert_true(find(NULL, 0, 0));
	capture_filter(&target, filter);
	assert_string_equal(filter, "(udp dst port 4791) or (vlan and (udp dst port 4791))");
}

TEST(capture_filter__longest)
{
	struct report_view *view = add(STANDALONE, REPORT_STANDALONE, "uroce0", "veth1");

	add_qp(view, 0xffffff, 0xfffffe, "fd00:1111:2222:3333:4444:5555:6666:7777");
	assert_true(find(NULL, 0, 0xffffff));
	assert_true(capture_filter(&target, filter) < CAPTURE_FILTER_MAX);
	assert_non_null(strstr(filter, "(dst host fd00:1111:2222:3333:4444:5555:6666:7777 and "
				       "ip6[52:4] & 0xffffff = 16777214)"));
	assert_string_equal(filter + strlen(filter) - 5, ")))))");
}

TEST(capture_choose__an_owner_that_lets_us_join)
{
	add_owner();
	add_port(0, "net_null_veth0");
	add_port(1, "net_null_handed_over0");
	assert_true(find(NULL, 0, 10 + PROGRAM));
	assert_true(choose(0));
	expect_argv((const char *[]){"dpdk-dumpcap", "--file-prefix=uroced", "-p", "-i", "0", "-f",
				     plan.filter, "-w", "x.pcapng", NULL});
	assert_int_equal(plan.netns_of, 0);
	assert_true(find(NULL, 0, 20 + PROGRAM));
	assert_true(choose(5));
	expect_argv((const char *[]){"dpdk-dumpcap", "--file-prefix=uroced", "-p", "-i", "1", "-f",
				     plan.filter, "-c", "5", "-w", "x.pcapng", NULL});
	assert_true(find(NULL, 0, 0));
	assert_true(choose(0));
	assert_non_null(plan.note);
	ports.count = 1;
	assert_true(find(NULL, 0, 20 + PROGRAM));
	assert_false(choose(0));
	assert_non_null(strstr(error, "--capture all"));
}

TEST(capture_choose__the_interface_of_each_port)
{
	add_port(0, "0000:00:04.0");
	add_port(2, "net_null_handed_over0");
	add_port(3, "net_null_net_memif0");
	add_port(4, "net_null_handed_over1");
	assert_int_equal(dpdk_ports_find(&ports, "0000:00:04.0")->id, 0);
	assert_int_equal(dpdk_ports_find(&ports, "net_memif0,role=server,socket=/x")->id, 3);
	assert_null(dpdk_ports_find(&ports, "net_memif"));
	assert_null(dpdk_ports_find(&ports, "handed_over"));
	assert_int_equal(dpdk_ports_find_handed_over(&ports, &ports.list[0])->id, 2);
	assert_int_equal(dpdk_ports_find_handed_over(&ports, &ports.list[2])->id, 4);
}

TEST(capture_choose__an_interface_of_the_kernel)
{
	add_owner();
	assert_true(find(NULL, 0, 10 + PROGRAM));
	assert_true(choose(0));
	expect_argv((const char *[]){"dumpcap", "-q", "-p", "-i", "veth0", "-f", plan.filter, "-w",
				     "x.pcapng", NULL});
	assert_int_equal(plan.netns_of, OWNER);
	tools.dumpcap = false;
	assert_true(choose(3));
	expect_argv((const char *[]){"tcpdump", "-U", "-p", "-n", "-i", "veth0", "-c", "3", "-w",
				     "x.pcapng", plan.filter, NULL});
	assert_non_null(strstr(plan.note, "pcap"));
	tools.tcpdump = false;
	assert_false(choose(0));
	assert_non_null(strstr(error, "install"));
	assert_true(find(NULL, 0, 20 + PROGRAM));
	assert_false(choose(0));
	assert_non_null(strstr(error, "--capture all"));
}

TEST(capture_choose__a_udp_socket)
{
	add_owner();
	views[0].facts.udp = 1;
	assert_true(find(NULL, 0, 0));
	assert_true(choose(0));
	expect_argv((const char *[]){"dumpcap", "-q", "-p", "-i", "any", "-f", plan.filter, "-w",
				     "x.pcapng", NULL});
	assert_null(strstr(plan.filter, "vlan"));
	assert_null(strstr(plan.note, "only received"));
	tools.dumpcap = false;
	assert_true(choose(0));
	assert_null(strstr(plan.note, "only received"));
}

TEST(capture_choose__no_tool_sees_the_port)
{
	add(STANDALONE, REPORT_STANDALONE, "uroce0", "net_memif0,role=server");
	assert_true(find(NULL, 0, 0));
	assert_false(choose(0));
	assert_non_null(strstr(error, "--capture port"));
}

TEST(capture_choose__a_port_without_a_network)
{
	add(OWNER, REPORT_OWNER, "uroce0", "local0");
	add_port(0, "net_null_local0");
	assert_true(find(NULL, 0, 0));
	assert_false(choose(0));
	assert_non_null(strstr(error, "--capture all"));
	add_port(1, "net_null_handed_over0");
	assert_true(choose(0));
	assert_string_equal(plan.argv[4], "1");
	assert_null(plan.note);
}
