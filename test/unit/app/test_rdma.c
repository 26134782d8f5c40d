/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroce-ctl/rdma.c. */
#include <stddef.h>
#include <string.h>

#include "rdma.h"
#include "test.h"
#include "words.h"

static struct rdma_request request;
static char error[256];

/* The words of a line, after the program's name. */
static bool parse(const char *line)
{
	static char text[256];
	char *argv[WORDS_MAX + 2] = {"rdma"};

	error[0] = '\0';
	strcpy(text, line);
	return rdma_parse(words_split(text, argv), argv, &request, error, sizeof(error));
}

static void expect_refused(const char *line, const char *reason)
{
	assert_false(parse(line));
	assert_string_equal(error, reason);
}

TEST(rdma_parse__what_to_show)
{
	static const struct {
		const char *line;
		enum rdma_show show;
		const char *device;
	} cases[] = {
		{"", RDMA_HELP, ""},
		{"help", RDMA_HELP, ""},
		{"link help", RDMA_HELP, ""},
		{"-V", RDMA_VERSION, ""},
		{"dev", RDMA_DEV, ""},
		{"dev show", RDMA_DEV, ""},
		{"d s uroce0", RDMA_DEV, "uroce0"},
		{"link", RDMA_LINK, ""},
		{"link list uroce0/1", RDMA_LINK, "uroce0"},
		{"resource", RDMA_SUMMARY, ""},
		{"res show uroce1", RDMA_SUMMARY, "uroce1"},
		{"statistic show", RDMA_STATISTIC, ""},
		{"stat show link uroce0", RDMA_STATISTIC, "uroce0"},
		{"stat show link uroce0/1", RDMA_STATISTIC, "uroce0"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(parse(cases[i].line));
		assert_int_equal(request.show, cases[i].show);
		assert_string_equal(request.device, cases[i].device);
		assert_false(request.json || request.pretty || request.details);
	}
}

TEST(rdma_parse__options_stand_anywhere)
{
	assert_true(parse("link show -j"));
	assert_int_equal(request.show, RDMA_LINK);
	assert_true(request.json && !request.pretty);
	assert_true(parse("-jp -d dev"));
	assert_true(request.json && request.pretty && request.details);
	expect_refused("-r dev", "Unknown option.");
}

TEST(rdma_parse__objects_and_filters)
{
	assert_true(parse("resource show qp"));
	assert_int_equal(request.show, RDMA_OBJECTS);
	assert_int_equal(request.kind, REPORT_QP);
	assert_string_equal(request.device, "");
	assert_int_equal(request.port, RDMA_PORT_ALL);
	assert_true(parse("res show qp link uroce0/1 lqpn 1-5 state rts"));
	assert_string_equal(request.device, "uroce0");
	assert_int_equal(request.port, RDMA_PORT_ONE);
	assert_int_equal(request.filter_count, 2);
	assert_string_equal(request.filters[1].name, "state");
	assert_string_equal(request.filters[1].value, "rts");
	assert_true(parse("res show cm_id link uroce0/-"));
	assert_int_equal(request.kind, REPORT_CM_ID);
	assert_int_equal(request.port, RDMA_PORT_NONE);
	assert_true(parse("res show mr dev uroce0 pid 7"));
	assert_int_equal(request.kind, REPORT_MR);
	assert_string_equal(request.device, "uroce0");
	assert_int_equal(request.filter_count, 1);
	expect_refused("res show qp pid", "No filter data was supplied to filter option pid");
	expect_refused("res show qp pid 7 state", "There is filter option without data");
	expect_refused("res show qp cqn 7", "Unsupported filter option: cqn");
	expect_refused("res show cq link uroce0", "Unsupported filter option: link");
}

TEST(rdma_parse__ports)
{
	expect_refused("link show uroce0", "Wrong device name");
	expect_refused("link show uroce0/2", "Wrong device name");
	expect_refused("link show uroce0/-", "Wrong device name");
	expect_refused("stat show link uroce0/0", "Wrong device name");
	/* Here a slash is a character of the name. */
	assert_true(parse("dev show uroce0/1"));
	assert_string_equal(request.device, "uroce0/1");
	expect_refused("link show uroce0/1 more", "Unknown parameter 'more'.");
}

TEST(rdma_parse__what_has_no_meaning)
{
	expect_refused("system show netns",
		       "rdma: system: not for the devices of uroce; see 'rdma help'");
	expect_refused("dev set uroce0 name other",
		       "rdma: dev set: not for the devices of uroce; see 'rdma help'");
	expect_refused("link add rxe0 type rxe netdev eth0",
		       "rdma: link add: not for the devices of uroce; see 'rdma help'");
	expect_refused("statistic qp show",
		       "rdma: statistic qp: not for the devices of uroce; see 'rdma help'");
	expect_refused("statistic show mr",
		       "rdma: statistic show mr: not for the devices of uroce");
	expect_refused("nothing", "Unknown object 'nothing'.");
}

TEST(rdma_matches__lists_and_ranges)
{
	assert_true(rdma_matches("7", "7"));
	assert_false(rdma_matches("7", "77"));
	assert_false(rdma_matches("77", "7"));
	assert_true(rdma_matches("1-5,9", "5"));
	assert_true(rdma_matches("1-5,9", "9"));
	assert_false(rdma_matches("1-5,9", "6"));
	assert_true(rdma_matches("init,rts", "RTS"));
	assert_false(rdma_matches("rt", "RTS"));
	assert_true(rdma_matches("26", "0x1a"));
	assert_false(rdma_matches("", "7"));
	assert_false(rdma_matches("1-", "0"));
}
