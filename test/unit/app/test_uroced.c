/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroced/uroced_options.c. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"
#include "uroced_options.h"

#define NO_FILE "/nonexistent/uroce.conf"

static struct settings settings[SETTINGS_PORTS_MAX];
static size_t count;
static struct options_tenants tenants;
static char error[1024];

/* The words of a command line behind "uroced". */
#define PARSE(default_file, ...) parse(default_file, (char *[]){"uroced", __VA_ARGS__, NULL})

static enum options_result parse(const char *default_file, char **argv)
{
	int argc = 0;

	while (argv[argc] != NULL)
		argc++;
	error[0] = '\0';
	count = 0;
	return options_parse(argc, argv, default_file, settings, &count, &tenants, error,
			     sizeof(error));
}

/* Parse the options as uroced does, with a file of this text. */
static enum options_result parse_file(const char *text, char *option)
{
	char path[] = "/tmp/uroce-test-XXXXXX";
	const int fd = mkstemp(path);
	enum options_result result;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	result = PARSE(NO_FILE, "--config", path, option);
	unlink(path);
	return result;
}

static void assert_refused(const char *text, const char *why)
{
	assert_int_equal(parse_file(text, NULL), OPTIONS_BAD);
	if (strstr(error, why) == NULL || strchr(error, '\n') != NULL)
		fail_msg("the message is '%s'", error);
}

TEST(options_parse__a_port)
{
	assert_int_equal(PARSE(NO_FILE, "--port", "net_null0", "--ip", "10.0.0.1/24"), OPTIONS_RUN);
	assert_int_equal(count, 1);
	assert_string_equal(settings[0].port, "net_null0");
	assert_string_equal(settings[0].socket, SETTINGS_DEFAULT_SOCKET);
	assert_int_equal(PARSE(NO_FILE, NULL), OPTIONS_BAD);
	assert_non_null(strstr(error, "no port"));
}

TEST(options_parse__ports_of_a_file)
{
	assert_int_equal(parse_file("[uroce]\nnetdev = a\n[port b]\nnetdev = c\n", NULL),
			 OPTIONS_RUN);
	assert_int_equal(count, 2);
	assert_string_equal(settings[0].name, SETTINGS_DEFAULT_NAME);
	assert_string_equal(settings[1].name, "b");
	assert_refused("[uroce]\nudp = a\n[port b]\nudp = c\n", "no other one can be by udp");
	assert_refused("[uroce]\nudp = a\n[port b]\nnetdev = c\n", "no other one can be by udp");
	assert_int_equal(parse_file("[uroce]\nudp = a\n[port b]\nport = net_null0\n"
				    "ip = 10.0.0.1/24\n",
				    NULL),
			 OPTIONS_RUN);
	assert_refused("[uroce]\nnetdev = a\n[port uroce0]\nnetdev = c\n",
		       "two devices are called uroce0");
}

TEST(options_parse__tenants_of_a_file)
{
	assert_int_equal(parse_file("[uroce]\nnetdev = a\n[tenants]\nrate = 1G\n", NULL),
			 OPTIONS_RUN);
	assert_int_equal(tenants.count, 1);
	assert_non_null(tenants.file);
	assert_int_equal(tenants.list[0].rate, 1 << 30);
	assert_refused("[uroce]\nnetdev = a\n[tenants]\nrate = 1\n", "section [tenants]: rate");
	assert_int_equal(PARSE(NO_FILE, "--netdev", "a"), OPTIONS_RUN);
	assert_int_equal(tenants.count, 0);
	assert_null(tenants.file);
}

TEST(options_parse__another_application_s_port_is_not_shared)
{
	static const char shared[] = "[uroce]\nport = net_memif0\nip = 10.0.0.1/24\n"
				     "secondary = 1\n";

	assert_refused(shared, "secondary is set, but only uroce-run can use it");
	assert_refused("[uroce]\nsecondary = 1\n[port a]\nnetdev = b\n",
		       "secondary is set, but only uroce-run can use it");
	/* --status only needs the socket, and opens nothing else. */
	assert_int_equal(parse_file(shared, "--status"), OPTIONS_STATUS);
}

TEST(options_name_idle__names_settings_of_uroce_run)
{
	char names[64], few[8];

	assert_int_equal(parse_file("[uroce]\nnetdev = a\nname = b\nmtu = 2000\nmax-qp = 4\n"
				    "progress = hybrid\ntelemetry = no\n",
				    NULL),
			 OPTIONS_RUN);
	options_name_idle(settings, names, sizeof(names));
	assert_string_equal(names, "");
	assert_int_equal(parse_file("[uroce]\nnetdev = a\nprogress = inline\n", NULL), OPTIONS_RUN);
	options_name_idle(settings, names, sizeof(names));
	assert_string_equal(names, "progress");
	assert_int_equal(parse_file("[uroce]\nnetdev = a\nview = no\n", NULL), OPTIONS_RUN);
	options_name_idle(settings, names, sizeof(names));
	assert_string_equal(names, "view");
	assert_int_equal(parse_file("[uroce]\nnetdev = a\nwithout = batch-ack\ntelemetry = yes\n"
				    "progress = dedicated\n",
				    NULL),
			 OPTIONS_RUN);
	options_name_idle(settings, names, sizeof(names));
	assert_string_equal(names, "progress, telemetry, without");
	options_name_idle(settings, few, sizeof(few));
	assert_string_equal(few, "progres");
}

TEST(options_name_fixed__what_a_running_uroced_cannot_change)
{
	static struct settings now[2];
	char names[256];

	assert_int_equal(parse_file("[port a]\nport = net_null0\nip = 10.0.0.1/24\n", NULL),
			 OPTIONS_RUN);
	now[0] = settings[0];
	assert_int_equal(parse_file("[uroce]\nmax-qp = 5\nlog-level = debug\n"
				    "[port a]\nport = net_null0\nip = 10.0.0.2/24\n",
				    NULL),
			 OPTIONS_RUN);
	options_name_fixed(now, 1, settings, 1, names, sizeof(names));
	assert_string_equal(names, "");
	assert_ptr_equal(options_find_port(settings, 1, "a"), &settings[0]);
	assert_null(options_find_port(settings, 1, "b"));
	assert_int_equal(parse_file("[uroce]\nsocket = /x\n"
				    "[port a]\nport = net_null0\nmtu = 1500\nip = 10.0.0.1/24\n"
				    "[port b]\nport = net_null1\nip = 10.0.0.1/24\n",
				    NULL),
			 OPTIONS_RUN);
	options_name_fixed(now, 1, settings, 2, names, sizeof(names));
	assert_string_equal(names, "mtu, socket, a new section [port]");
	/* A port that has got another name is a new one. */
	options_name_fixed(now, 1, &settings[1], 1, names, sizeof(names));
	assert_string_equal(names, "a new section [port]");
	now[1] = settings[1] = settings[0];
	strcpy(now[1].name, "b");
	strcpy(settings[1].name, "b");
	strcpy(now[0].socket, settings[0].socket);
	strcpy(settings[0].socket_owner, "root");
	strcpy(settings[1].socket, "/y");
	options_name_fixed(now, 2, settings, 2, names, sizeof(names));
	assert_string_equal(names, "mtu, socket-owner, socket");
}
