/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroce-ctl/command.c. */
#include <stddef.h>
#include <string.h>

#include "base/log.h"
#include "command.h"
#include "test.h"
#include "words.h"
#include "transport/cc.h"

static struct command command;
static char error[256];

/* The words of a line, after the program's name. */
static bool parse(const char *line)
{
	static char text[256];
	char *argv[WORDS_MAX + 2] = {"uroce-ctl"};

	error[0] = '\0';
	strcpy(text, line);
	return command_parse(words_split(text, argv), argv, &command, error, sizeof(error));
}

TEST(command_parse__congestion)
{
	assert_true(parse("-j congestion show dev uroce0"));
	assert_int_equal(command.object, COMMAND_CONGESTION);
	assert_int_equal(command.change_count, 0);
	assert_true(parse("congestion set algorithm swift qp 17 pid 5"));
	assert_int_equal(command.change_count, 1);
	assert_int_equal(command.changes[0].kind, REPORT_COMMAND_ALGORITHM);
	assert_int_equal(command.changes[0].index, CC_SWIFT);
	assert_int_equal(command.changes[0].value, 17);
	assert_int_equal(command.qpn, 17);
	assert_int_equal(command.filter.pid, 5);
	assert_true(parse("congestion set rpg_ai_rate 5 rpg_hai_rate 50 dev uroce0"));
	assert_int_equal(command.change_count, 2);
	assert_int_equal(command.changes[1].kind, REPORT_COMMAND_PARAM);
	assert_int_equal(command.changes[1].index, cc_param_find("rpg_hai_rate"));
	assert_int_equal(command.changes[1].value, 50);
	assert_true(parse("congestion set algorithm none dev uroce0"));
	assert_int_equal(command.changes[0].value, 0);
}

TEST(command_parse__why)
{
	assert_true(parse("why pid 5"));
	assert_int_equal(command.object, COMMAND_WHY);
	assert_int_equal(command.filter.pid, 5);
	assert_false(parse("-j why"));
	assert_false(parse("why show"));
}

TEST(command_parse__log_level)
{
	assert_true(parse("log level debug"));
	assert_int_equal(command.object, COMMAND_LOG);
	assert_int_equal(command.change_count, 1);
	assert_int_equal(command.changes[0].kind, REPORT_COMMAND_LOG_LEVEL);
	assert_int_equal(command.changes[0].index, LOG_LEVEL_DEBUG);
	assert_true(parse("log level warn pid 5"));
	assert_int_equal(command.filter.pid, 5);
	assert_false(parse("log"));
	assert_false(parse("log level"));
	assert_false(parse("log level loud"));
	assert_non_null(strstr(error, "loud"));
	assert_false(parse("log level warn qp 5"));
	assert_false(parse("-j log level warn"));
}

TEST(command_parse__wrong_congestion)
{
	static const char *const wrong[] = {
		"congestion set",
		"congestion set dev uroce0",
		"congestion set algorithm dev uroce0",
		"congestion set algorithm reno dev uroce0",
		"congestion set algorithm swift",
		"congestion set algorithm swift qp 17",
		"congestion set rpg_ai_rate 5 qp 17 pid 3",
		"congestion set rpg_ai_rate 0 dev uroce0",
		"congestion set rpg_ai_rate 100001 dev uroce0",
		"congestion set rpg_ai_rate x dev uroce0",
		"congestion set rpg_ai_rat 5 dev uroce0",
		"-j congestion set rpg_ai_rate 5 dev uroce0",
		"congestion show qp 17",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_false(parse(wrong[i]));
		assert_true(error[0] != '\0');
	}
}

TEST(command_parse__as_rdma_does)
{
	assert_true(parse("dev"));
	assert_int_equal(command.object, COMMAND_DEV);
	assert_null(command.filter.device);
	assert_true(parse("-j link show uroce0/1"));
	assert_int_equal(command.object, COMMAND_LINK);
	assert_true(command.json);
	assert_string_equal(command.filter.device, "uroce0");
	assert_true(parse("resource"));
	assert_int_equal(command.kind, -1);
	assert_true(parse("resource show uroce0"));
	assert_int_equal(command.kind, -1);
	assert_string_equal(command.filter.device, "uroce0");
	assert_true(parse("res show qp link uroce1/1 pid 77"));
	assert_int_equal(command.object, COMMAND_RESOURCE);
	assert_int_equal(command.kind, REPORT_QP);
	assert_string_equal(command.filter.device, "uroce1");
	assert_int_equal(command.filter.pid, 77);
	assert_true(parse("resource show uroce1 net eth1"));
	assert_int_equal(command.kind, -1);
	assert_string_equal(command.filter.device, "uroce1");
	assert_string_equal(command.filter.net, "eth1");
	assert_true(parse("dev show net eth1@5"));
	assert_null(command.filter.device);
	assert_string_equal(command.filter.net, "eth1@5");
	assert_true(parse("resource show mr"));
	assert_int_equal(command.kind, REPORT_MR);
	assert_true(parse("stat"));
	assert_int_equal(command.object, COMMAND_STATISTIC);
	assert_true(parse("-d 0.5 -n 3 top dev uroce0"));
	assert_int_equal(command.object, COMMAND_TOP);
	assert_int_equal(command.ms, 500);
	assert_int_equal(command.count, 3);
	assert_true(parse("-d 0.5 -n 3 monitor dev uroce0"));
	assert_int_equal(command.object, COMMAND_MONITOR);
	assert_int_equal(command.count, 3);
	assert_true(parse("metrics"));
	assert_int_equal(command.object, COMMAND_METRICS);
	assert_int_equal(command.kind, -1);
	assert_true(parse("metrics show qp pid 5"));
	assert_int_equal(command.kind, REPORT_QP);
	assert_int_equal(command.filter.pid, 5);
	assert_true(parse("-w x.pcapng -n 10 capture qp 77 dev uroce0"));
	assert_int_equal(command.object, COMMAND_CAPTURE);
	assert_int_equal(command.qpn, 77);
	assert_int_equal(command.count, 10);
	assert_string_equal(command.file, "x.pcapng");
	assert_string_equal(command.filter.device, "uroce0");
	assert_true(parse("capture"));
	assert_int_equal(command.qpn, 0);
	assert_true(parse("-j doctor"));
	assert_int_equal(command.object, COMMAND_DOCTOR);
	assert_true(parse("cdi"));
	assert_int_equal(command.object, COMMAND_CDI);
	assert_string_equal(command.socket, "/run/uroce/isolated.sock");
	assert_true(parse("cdi socket /x"));
	assert_string_equal(command.socket, "/x");
	assert_true(parse("--color always dev"));
	assert_int_equal(command.colour, COLOUR_ALWAYS);
	assert_true(parse("--version"));
	assert_int_equal(command.object, COMMAND_VERSION);
}

TEST(command_parse__refuses)
{
	static const char *const lines[] = {
		"",
		"cake",
		"dev show a b c",
		"statistic uroce0",
		"link show x/2",
		"resource show qp pid",
		"resource show qp pid 0",
		"statistic pid x",
		"-d 0 top",
		"-d x top",
		"-n 0 top",
		"-x dev",
		"top size 3",
		"capture qp 0",
		"capture qp 16777216",
		"resource show qp qp 7",
		"doctor dev",
		"cdi /x",
		"cdi socket",
		"-j cdi",
		"-j metrics",
		"-j top",
		"-j monitor",
		"-n 3 dev",
		"-w x dev",
		"-w uroce.pcapng top",
		"-d 1 dev",
		"-d 1 capture",
		"--color red dev",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_false(parse(lines[i]));
		assert_string_not_equal(error, "");
	}
}
