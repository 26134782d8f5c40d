/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/eal/eal_args.c. */
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "eal_args.h"
#include "test.h"

static struct eal_args args;

/* Count an argument; set `*next` to what follows its last occurrence, or to NULL. */
static int count(const char *arg, const char **next)
{
	int n = 0;

	*next = NULL;
	for (int i = 0; i < args.argc; i++) {
		if (strcmp(args.argv[i], arg) != 0)
			continue;
		n++;
		*next = i + 1 < args.argc ? args.argv[i + 1] : NULL;
	}
	return n;
}

static const char *prefix; /* with telemetry, or NULL */
static bool shared;
static const char *options;
static size_t memory_bytes = (size_t)10 << 20;

static void make(const char *port, enum eal_pages pages)
{
	struct devargs devargs;
	struct runtime_config config = {.devices = &devargs,
					.memory_bytes = memory_bytes,
					.telemetry = prefix != NULL,
					.shared = shared,
					.eal = options,
					.file_prefix = prefix};

	assert_int_equal(devargs_parse(port, &devargs), 0);
	/* The provider does the same: it makes virtual devices later. */
	config.device_count = devargs.bus == DEVARGS_VDEV ? 0 : 1;
	eal_args_make(&args, &config, pages);
}

TEST(eal_args_make__only_the_named_device_is_probed)
{
	const char *next;

	make("0000:00:04.0,key=value", EAL_PAGES_2_MIB);
	assert_int_equal(count("-a", &next), 1);
	assert_string_equal(next, "0000:00:04.0,key=value");
	assert_int_equal(count("--no-pci", &next), 0);
	/* EAL chooses the IOVA mode if the device is hardware. */
	assert_int_equal(count("--iova-mode=va", &next), 0);
}

TEST(eal_args_make__for_a_virtual_port_no_device_is_probed)
{
	const char *next;

	make("net_null0", EAL_PAGES_2_MIB);
	assert_int_equal(count("-a", &next), 0);
	assert_int_equal(count("--no-pci", &next), 1);
}

TEST(eal_args_make__leaves_no_files)
{
	const char *next;

	for (int huge = 0; huge < 2; huge++) {
		make("net_null0", huge ? EAL_PAGES_HUGE : EAL_PAGES_PLAIN);
		assert_int_equal(count("--no-telemetry", &next), 1);
		assert_int_equal(count("--in-memory", &next), huge);
		assert_int_equal(count("--no-huge", &next), !huge);
		assert_int_equal(count("--no-shconf", &next), !huge);
	}
}

TEST(eal_args_make__telemetry_where_it_is_asked_for)
{
	const char *next;

	prefix = "uroced";
	make("net_null0", EAL_PAGES_2_MIB);
	prefix = NULL;
	assert_int_equal(count("--no-telemetry", &next), 0);
	assert_int_equal(count("--file-prefix", &next), 1);
	assert_string_equal(next, "uroced");
}

TEST(eal_args_make__files_where_others_shall_attach)
{
	const char *next;

	shared = true;
	make("net_null0", EAL_PAGES_2_MIB);
	shared = false;
	assert_int_equal(count("--in-memory", &next), 0);
	assert_int_equal(count("--no-huge", &next), 0);
	assert_int_equal(count("--no-shconf", &next), 0);
}

TEST(eal_args_make__a_larger_page_is_left_to_the_program)
{
	const char *next;
	char *end;
	int nodes = 0;

	make("net_null0", EAL_PAGES_2_MIB);
	assert_int_equal(count("--socket-limit", &next), 1);
	/* Each node's is less than such a page. */
	while (nodes++, strtoul(next, &end, 10) < 1024 && *end == ',')
		next = end + 1;
	assert_int_equal(*end, '\0');
	assert_int_equal(nodes, RTE_MAX_NUMA_NODES);
}

TEST(eal_args_make__larger_pages_where_smaller_are_too_few)
{
	const char *next;

	make("net_null0", EAL_PAGES_HUGE);
	assert_int_equal(count("--socket-limit", &next), 0);
	make("net_null0", EAL_PAGES_PLAIN);
	assert_int_equal(count("--socket-limit", &next), 0);
	memory_bytes = (size_t)1 << 30;
	make("net_null0", EAL_PAGES_2_MIB);
	memory_bytes = (size_t)10 << 20;
	assert_int_equal(count("--socket-limit", &next), 0);
}

TEST(eal_args_make__ordinary_memory_has_room_for_what_is_wanted)
{
	const char *next;

	make("net_null0", EAL_PAGES_PLAIN);
	assert_int_equal(count("-m", &next), 1);
	assert_true(atoi(next) > 10);
}

TEST(eal_args_make__the_users_options_come_last)
{
	const char *next;

	options = " --vdev net_null1  -m 64 ";
	make("net_null0", EAL_PAGES_PLAIN);
	assert_int_equal(count("-m", &next), 2);
	assert_string_equal(next, "64");
	assert_string_equal(args.argv[args.argc - 4], "--vdev");
	assert_string_equal(args.argv[args.argc - 3], "net_null1");
	assert_int_equal(count("--no-pci", &next), 1);
	/* A bond's members may be hardware. */
	options = "--vdev net_null1 --allow=0000:00:04.0";
	make("net_bonding0", EAL_PAGES_PLAIN);
	options = NULL;
	assert_int_equal(count("--no-pci", &next), 0);
	assert_int_equal(count("--iova-mode=va", &next), 0);
	assert_int_equal(count("--allow=0000:00:04.0", &next), 1);
}

TEST(eal_args_add_lcore__may_run_where_the_caller_may)
{
	cpu_set_t before, one;
	const char *next;
	int cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	make("net_null0", EAL_PAGES_2_MIB);
	eal_args_add_lcore(&args);
	assert_int_equal(count("--lcores", &next), 1);
	assert_memory_equal(next, "0@(", 3);
	assert_int_equal(atoi(next + 3), cpu);
	assert_null(strpbrk(next, ",-"));
	sched_setaffinity(0, sizeof(before), &before);
}
