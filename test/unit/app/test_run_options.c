/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroce-run/run_options.c. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "run_options.h"
#include "test.h"

#define NO_FILE "/nonexistent/uroce.conf"

static char file[] = "/tmp/uroce-test-XXXXXX";
static struct settings settings;
static struct run_request request;
static uint32_t local;
static char **program, error[1024];
static const char *default_socket = NO_FILE;

/* The words of a command line behind "uroce-run". */
#define PARSE(default_file, ...) parse(default_file, (char *[]){"uroce-run", __VA_ARGS__, NULL})

static enum options_result parse(const char *default_file, char **argv)
{
	enum options_result result;
	int argc = 0;

	while (argv[argc] != NULL)
		argc++;
	error[0] = '\0';
	request = (struct run_request){.program = NULL};
	result = options_parse(argc, argv, default_file, default_socket, &settings, &request, error,
			       sizeof(error));
	local = request.local;
	program = request.program;
	return result;
}

static int make_file(TEST_STATE)
{
	static const char text[] = "[uroce]\n"
				   "port = net_null0\n"
				   "ip = 10.0.0.1/24, 10.0.0.2/24\n"
				   "name = from-file\n"
				   "mtu = 1500\n";
	int fd = mkstemp(file);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	return close(fd);
}

static int remove_file(TEST_STATE)
{
	return unlink(file);
}

TEST_GROUP(make_file, remove_file);

TEST(options_parse__settings_and_program)
{
	assert_int_equal(PARSE(NO_FILE, "--port", "net_null0", "--ip=10.0.0.1/24", "--ip",
			       "fd00::1/64", "--name", "x", "--mtu", "1500", "--progress", "inline",
			       "--log-level", "info", "--without", "prefetch", "--", "prog",
			       "--mtu", "9"),
			 OPTIONS_RUN);
	assert_string_equal(settings.port, "net_null0");
	assert_int_equal(settings.ip_count, 2);
	assert_string_equal(settings.name, "x");
	assert_int_equal(settings.mtu, 1500);
	assert_int_equal(settings.progress, SETTINGS_PROGRESS_INLINE);
	assert_int_equal(settings.log_level, 2);
	assert_string_equal(settings.without, "prefetch");
	assert_string_equal(program[0], "prog");
	assert_string_equal(program[1], "--mtu");
	assert_string_equal(program[2], "9");
	assert_null(program[3]);
}

TEST(options_parse__options_of_the_program_are_its_own)
{
	assert_int_equal(PARSE(NO_FILE, "--netdev", "veth0", "prog", "--help", "--mtu", "9"),
			 OPTIONS_RUN);
	assert_int_equal(settings.mtu, 0);
	assert_string_equal(program[0], "prog");
	assert_string_equal(program[1], "--help");
}

/* The file says what uroced's port is; as long as that runs, nobody else may open it. */
TEST(options_parse__attaches_where_no_port_is_named)
{
	assert_int_equal(PARSE(file, "--socket", "/run/x.sock", "prog"), OPTIONS_RUN);
	assert_string_equal(settings.socket, "/run/x.sock");
	assert_string_equal(settings.port, "");
	assert_int_equal(PARSE(NO_FILE, "--config", file, "--socket", "/run/x.sock", "prog"),
			 OPTIONS_RUN);
	assert_string_equal(settings.port, "");
	assert_string_equal(settings.name, "from-file");
	default_socket = file;
	assert_int_equal(PARSE(file, "prog"), OPTIONS_RUN);
	assert_string_equal(settings.socket, file);
	assert_string_equal(settings.port, "");
	assert_int_equal(PARSE(file, "--netdev", "veth0", "prog"), OPTIONS_RUN);
	assert_string_equal(settings.socket, "");
	default_socket = NO_FILE;
	assert_int_equal(PARSE(file, "prog"), OPTIONS_RUN);
	assert_string_equal(settings.socket, "");
	assert_string_equal(settings.port, "net_null0");
}

static void assert_bad(enum options_result result, const char *why)
{
	assert_int_equal(result, OPTIONS_BAD);
	if (strstr(error, why) == NULL || strchr(error, '\n') != NULL)
		fail_msg("the message is '%s'", error);
}

TEST(options_parse__attaches_isolated)
{
	default_socket = file;
	assert_int_equal(PARSE(file, "--isolated", "prog"), OPTIONS_RUN);
	default_socket = NO_FILE;
	assert_string_equal(settings.isolated, SETTINGS_DEFAULT_ISOLATED);
	assert_string_equal(settings.port, "");
	assert_string_equal(settings.socket, "");
	assert_string_equal(program[0], "prog");
	assert_int_equal(PARSE(file, "--isolated=/run/i.sock", "--", "prog"), OPTIONS_RUN);
	assert_string_equal(settings.isolated, "/run/i.sock");
	assert_bad(PARSE(NO_FILE, "--isolated=x", "prog"), "absolute");
	assert_bad(PARSE(NO_FILE, "--isolated", "--socket", "/x.sock", "prog"), "two ways");
	assert_bad(PARSE(NO_FILE, "--isolated", "--mtu", "1500", "prog"), "mtu");
}

TEST(options_parse__local_has_a_network_of_its_own)
{
	default_socket = file;
	assert_int_equal(PARSE(file, "--local", "prog", "3"), OPTIONS_RUN);
	default_socket = NO_FILE;
	assert_int_equal(local, 1);
	assert_string_equal(settings.port, "");
	assert_string_equal(settings.name, SETTINGS_DEFAULT_NAME);
	assert_string_equal(program[0], "prog");
	assert_int_equal(PARSE(file, "--local=3", "--", "prog"), OPTIONS_RUN);
	assert_int_equal(local, 3);
	assert_int_equal(PARSE(NO_FILE, "--config", file, "--local=1", "prog"), OPTIONS_RUN);
	assert_string_equal(settings.port, "");
	assert_string_equal(settings.name, "from-file");
	assert_int_equal(settings.ip_count, 0);
	assert_int_equal(PARSE(file, "--socket", "/x.sock", "prog"), OPTIONS_RUN);
	assert_int_equal(local, 0);
}

TEST(options_parse__local_alone)
{
	assert_bad(PARSE(NO_FILE, "--local=0", "prog"), "'0'");
	assert_bad(PARSE(NO_FILE, "--local=17", "prog"), "'17'");
	assert_bad(PARSE(NO_FILE, "--local=-1", "prog"), "'-1'");
	assert_bad(PARSE(NO_FILE, "--local=", "prog"), "''");
	assert_bad(PARSE(NO_FILE, "--local=2x", "prog"), "'2x'");
	assert_bad(PARSE(NO_FILE, "--local", "--socket", "/x.sock", "prog"), "leave out");
	assert_bad(PARSE(NO_FILE, "--local", "--isolated", "prog"), "leave out");
	assert_bad(PARSE(NO_FILE, "--netdev", "veth0", "--local", "prog"), "leave out");
	/* Each program damages what it sends to and receives from the private uroced. */
	assert_int_equal(PARSE(NO_FILE, "--local", "--impair", "loss=0.1", "prog"), OPTIONS_RUN);
	assert_string_equal(settings.impair, "loss=0.1");
	assert_bad(PARSE(NO_FILE, "--local", "--mtu", "1500", "prog"), "mtu");
	assert_bad(PARSE(NO_FILE, "--local=2", "--name", "x", "prog"), "uroce1");
	assert_bad(PARSE(NO_FILE, "--local"), "no program");
}

TEST(options_parse__help_and_version)
{
	assert_int_equal(PARSE(NO_FILE, "--help"), OPTIONS_HELP);
	assert_int_equal(PARSE(NO_FILE, "--version"), OPTIONS_VERSION);
}

TEST(options_parse__bad_command_lines)
{
	assert_bad(PARSE(NO_FILE, "prog"), "no port");
	assert_bad(PARSE(NO_FILE, "--socket", "x.sock", "prog"), "absolute");
	assert_bad(PARSE(NO_FILE, "--socket", "/x.sock", "--mtu", "1500", "prog"), "mtu");
	assert_bad(PARSE(NO_FILE, "--socket", "/x.sock", "--ip", "10.0.0.1/24", "prog"), "ip");
	assert_bad(PARSE(NO_FILE, "--netdev", "veth0"), "no program");
	assert_bad(PARSE(NO_FILE, "--netdev", "veth0", "--"), "no program");
	assert_bad(PARSE(NO_FILE, "--netdev"), "--netdev needs a value");
	assert_bad(PARSE(NO_FILE, "--speed", "9", "prog"), "'--speed'");
	assert_bad(PARSE(NO_FILE, "--n", "x", "prog"), "ambiguous option '--n'");
	assert_bad(PARSE(NO_FILE, "-xy", "prog"), "'-x'");
	assert_bad(PARSE(NO_FILE, "--mtu", "9", "prog"), "mtu: '9'");
	assert_bad(PARSE(NO_FILE, "--ip", "10.0.0.1", "prog"), "prefix length");
	assert_bad(PARSE(NO_FILE, "--port", "net_null0", "prog"), "needs an address");
	assert_bad(PARSE(NO_FILE, "--netdev", "veth0", "--port", "net_null0", "prog"), "both");
	assert_bad(PARSE(NO_FILE, "--netdev", "veth0", "--ip", "10.0.0.1/24", "prog"),
		   "the kernel's");
	assert_bad(PARSE(NO_FILE, "--config", NO_FILE, "--netdev", "veth0", "prog"),
		   NO_FILE ": No such file");
}

TEST(options_parse__file_first_then_options)
{
	assert_int_equal(PARSE(NO_FILE, "--mtu", "4200", "--config", file, "prog"), OPTIONS_RUN);
	assert_string_equal(settings.port, "net_null0");
	assert_int_equal(settings.ip_count, 2);
	assert_string_equal(settings.name, "from-file");
	assert_int_equal(settings.mtu, 4200);
}

TEST(options_parse__addresses_replace_those_of_the_file)
{
	assert_int_equal(PARSE(NO_FILE, "--config", file, "--ip", "10.0.0.1/8", "prog"),
			 OPTIONS_RUN);
	assert_int_equal(settings.ip_count, 1);
	assert_int_equal(settings.ips[0].prefix_len, 8);
}

TEST(options_parse__netdev_replaces_port_and_addresses)
{
	assert_int_equal(PARSE(NO_FILE, "--config", file, "--netdev", "veth0", "prog"),
			 OPTIONS_RUN);
	assert_string_equal(settings.netdev, "veth0");
	assert_string_equal(settings.port, "");
	assert_int_equal(settings.ip_count, 0);
	assert_string_equal(settings.name, "from-file");
}

TEST(options_parse__udp_names_its_interface)
{
	assert_int_equal(PARSE(NO_FILE, "--config", file, "--udp=veth0", "prog"), OPTIONS_RUN);
	assert_true(settings.udp);
	assert_string_equal(settings.netdev, "veth0");
	assert_string_equal(settings.port, "");
	assert_bad(PARSE(NO_FILE, "--udp=veth0", "--local", "prog"), "leave out");
}

TEST(options_parse__default_file)
{
	assert_int_equal(PARSE(file, "prog"), OPTIONS_RUN);
	assert_string_equal(settings.name, "from-file");
}

TEST(options_parse__default_file_gives_way_to_a_port)
{
	assert_int_equal(PARSE(file, "--netdev", "veth0", "prog"), OPTIONS_RUN);
	assert_string_equal(settings.name, "uroce0");
	assert_int_equal(PARSE(file, "--port", "net_null1", "--ip", "10.0.0.3/24", "prog"),
			 OPTIONS_RUN);
	assert_string_equal(settings.name, "uroce0");
	assert_int_equal(settings.ip_count, 1);
}

TEST(options_help__tells_every_option)
{
	static const char *const names[] = {"--netdev",	 "--port",
					    "--ip",	 "--name",
					    "--mtu",	 "--progress",
					    "--config",	 "--help",
					    "--version", "--log-level",
					    "--without", "--local",
					    "--view",	 SETTINGS_DEFAULT_FILE};

	for (size_t i = 0; i < RTE_DIM(names); i++)
		assert_non_null(strstr(options_help, names[i]));
}
