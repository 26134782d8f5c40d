/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of testroce. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mode.h"
#include "test.h"
#include "testroce_options.h"

#define ARGS_MAX 16

static struct options options;
static char error[1024];

static enum options_result parse(const char *first, ...)
{
	static char copies[ARGS_MAX][128];
	char *argv[ARGS_MAX + 1] = {0};
	const char *arg = first;
	va_list list;
	int argc = 1;

	strcpy(copies[0], "testroce");
	argv[0] = copies[0];
	va_start(list, first);
	for (; arg && argc < ARGS_MAX; arg = va_arg(list, const char *)) {
		strncpy(copies[argc], arg, sizeof(copies[0]) - 1);
		argv[argc] = copies[argc];
		argc++;
	}
	va_end(list);
	error[0] = '\0';
	return options_parse(argc, argv, "/run/some.sock", &options, error, sizeof(error));
}

TEST(options_parse__without_a_port_it_attaches)
{
	assert_int_equal(parse(NULL), OPTIONS_RUN);
	assert_string_equal(options.settings.socket, "/run/some.sock");
	assert_null(options.listen);
	assert_null(options.connect);
}

TEST(options_parse__a_port_and_a_test)
{
	assert_int_equal(parse("--port", "net_null0", "--ip", "10.0.0.1/24", "--mode", "send",
			       "--size", "4K", "--path-mtu", "2048", "--mtu", "4200", "--verify",
			       NULL),
			 OPTIONS_RUN);
	assert_string_equal(options.settings.port, "net_null0");
	assert_int_equal(options.settings.mtu, 4200);
	assert_int_equal(options.plan.mode, MODE_SEND);
	assert_int_equal(options.plan.size_bytes, 4096);
	assert_int_equal(options.plan.path_mtu_bytes, 2048);
	assert_int_equal(options.plan.verify, 1);
	assert_string_equal(options.settings.socket, "");
}

TEST(options_parse__size_follows_the_mode)
{
	assert_int_equal(parse("--mode", "latency", NULL), OPTIONS_RUN);
	assert_int_equal(options.plan.size_bytes, 8);
	assert_int_equal(parse("--mode", "latency", "--size", "64", NULL), OPTIONS_RUN);
	assert_int_equal(options.plan.size_bytes, 64);
	assert_int_equal(parse("--mode", "write", NULL), OPTIONS_RUN);
	assert_int_equal(options.plan.size_bytes, 65536);
}

TEST(options_parse__at_the_prompt_tests_have_no_end)
{
	assert_int_equal(parse("-i", NULL), OPTIONS_RUN);
	assert_true(options.interactive);
	assert_int_equal(options.plan.duration_ns, 0);
	assert_int_equal(parse("--interactive", "--seconds", "3", NULL), OPTIONS_RUN);
	assert_int_equal(options.plan.duration_ns, UINT64_C(3000000000));
}

TEST(options_parse__series_measure_each_figure_several_times)
{
	assert_int_equal(parse("--sweep", "x", NULL), OPTIONS_RUN);
	assert_string_equal(options.sweep, "x");
	assert_int_equal(options.repeat, 3);
	assert_int_equal(options.plan.duration_ns, 200000000);
	assert_int_equal(parse("--sweep", "x", "--repeat", "25", "--seconds", "2", NULL),
			 OPTIONS_RUN);
	assert_int_equal(options.repeat, 25);
	assert_int_equal(options.plan.duration_ns, UINT64_C(2000000000));
	assert_int_equal(parse("--ablation", "--repeat", "1", NULL), OPTIONS_RUN);
	assert_int_equal(options.repeat, 1);
	assert_int_equal(options.plan.duration_ns, 500000000);
}

TEST(options_parse__repeat_is_for_series)
{
	assert_int_equal(parse("--repeat", "3", NULL), OPTIONS_BAD);
	assert_non_null(strstr(error, "--ablation and --sweep"));
	assert_int_equal(parse("--sweep", "x", "--repeat", "0", NULL), OPTIONS_BAD);
	assert_int_equal(parse("--sweep", "x", "--repeat", "26", NULL), OPTIONS_BAD);
	assert_int_equal(parse("--sweep", "x", "--repeat", "often", NULL), OPTIONS_BAD);
	assert_non_null(strstr(error, "often"));
}

TEST(options_parse__a_pair_has_no_port_yet)
{
	assert_int_equal(parse("--pair", "--ablation", NULL), OPTIONS_RUN);
	assert_true(options.pair);
	assert_string_equal(options.settings.socket, "");
	assert_int_equal(parse("--pair", "--port", "net_null0", "--ip", "10.0.0.1/24", NULL),
			 OPTIONS_BAD);
	assert_non_null(strstr(error, "--pair"));
	assert_int_equal(parse("--pair", "--socket", "/x", NULL), OPTIONS_BAD);
	assert_int_equal(parse("--pair", "--listen", "1", NULL), OPTIONS_BAD);
	assert_int_equal(parse("--pair", "--connect", "a", NULL), OPTIONS_BAD);
	assert_int_equal(parse("--pair", "--mode", "atomic", "--size", "9", NULL), OPTIONS_BAD);
}

TEST(options_parse__threads_of_a_test)
{
	assert_int_equal(parse("--threads", "3", "--qps", "3", NULL), OPTIONS_RUN);
	assert_int_equal(options.plan.threads, 3);
	assert_int_equal(parse("--threads", "3", "--qps", "2", NULL), OPTIONS_BAD);
	assert_non_null(strstr(error, "3 threads"));
	assert_int_equal(parse("--pair", "--threads", "2", NULL), OPTIONS_BAD);
	assert_int_equal(parse("--threads", "2", "--qps", "2", "--messages", "1", NULL),
			 OPTIONS_BAD);
	assert_int_equal(parse("--threads", "33", "--qps", "33", NULL), OPTIONS_BAD);
}

/* The clients of a server say how many queue pairs there are. */
TEST(options_parse__threads_of_a_server)
{
	assert_int_equal(parse("--listen", "1", "--threads", "2", NULL), OPTIONS_RUN);
	assert_int_equal(options.plan.threads, 2);
}

TEST(options_parse__stages_are_those_of_one_thread)
{
	assert_int_equal(parse("--stages", NULL), OPTIONS_RUN);
	assert_int_equal(parse("--stages", "--threads", "2", "--qps", "2", NULL), OPTIONS_BAD);
	assert_non_null(strstr(error, "stages"));
}

TEST(options_parse__refuses)
{
	assert_int_equal(parse("--nothing", NULL), OPTIONS_BAD);
	assert_non_null(strstr(error, "--nothing"));
	assert_int_equal(parse("file", NULL), OPTIONS_BAD);
	assert_int_equal(parse("--port", NULL), OPTIONS_BAD);
	assert_int_equal(parse("--port", "net_null0", NULL), OPTIONS_BAD);
	assert_int_equal(parse("--listen", "1", "--connect", "a", NULL), OPTIONS_BAD);
	assert_int_equal(parse("--listen", "1", "-i", NULL), OPTIONS_BAD);
	assert_int_equal(parse("--sweep", "x", "--ablation", NULL), OPTIONS_BAD);
	assert_int_equal(parse("-x", NULL), OPTIONS_BAD);
	assert_int_equal(parse("--size", "0", NULL), OPTIONS_BAD);
	assert_int_equal(parse("--mode", "atomic", "--size", "9", NULL), OPTIONS_BAD);
	assert_int_equal(parse("--stats-period", "0", NULL), OPTIONS_BAD);
	assert_string_not_equal(error, "");
}

TEST(options_parse__help_and_version)
{
	assert_int_equal(parse("--help", NULL), OPTIONS_HELP);
	assert_int_equal(parse("--version", NULL), OPTIONS_VERSION);
}

TEST(options_eal_end__finds_the_dashes)
{
	char *with[] = {(char[]){"t"}, (char[]){"-l"}, (char[]){"0"}, (char[]){"--"},
			(char[]){"--mode"}};
	char *without[] = {(char[]){"t"}, (char[]){"--mode"}, (char[]){"read"}};

	assert_int_equal(options_eal_end(5, with), 3);
	assert_int_equal(options_eal_end(3, without), 0);
}
