/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of libibverbs.so.1 that need no device: helper functions return what the system's library
 * returns, and old versions return errors. */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <infiniband/verbs.h>

#include "test.h"

#define TEST_SKIPPED 77

static void *ours;
static void *systems;

typedef void (*function)(void);

/* Return a function by its name. POSIX allows the cast of dlsym's object pointer. */
static function find(void *library, const char *name)
{
	void *symbol = dlsym(library, name);

	assert_non_null(symbol);
	return (function)(uintptr_t)symbol;
}

static function find_version(const char *name, const char *version)
{
	void *symbol = dlvsym(ours, name, version);

	assert_non_null(symbol);
	return (function)(uintptr_t)symbol;
}

TEST(libraries__are_two)
{
	assert_true(find(ours, "ibv_wc_status_str") != find(systems, "ibv_wc_status_str"));
}

TEST(texts__are_those_of_the_system)
{
	static const char *const names[] = {"ibv_node_type_str", "ibv_port_state_str",
					    "ibv_event_type_str", "ibv_wc_status_str"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *(*our)(int) = (const char *(*)(int))find(ours, names[i]);
		const char *(*system)(int) = (const char *(*)(int))find(systems, names[i]);

		for (int value = -2; value < 64; value++)
			assert_string_equal(our(value), system(value));
	}
}

TEST(rates__are_those_of_the_system)
{
	static const char *const names[] = {"ibv_rate_to_mult", "mult_to_ibv_rate",
					    "ibv_rate_to_mbps", "mbps_to_ibv_rate"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int (*our)(int) = (int (*)(int))find(ours, names[i]);
		int (*system)(int) = (int (*)(int))find(systems, names[i]);

		for (int value = -2; value < 1500000; value++) {
			if (our(value) != system(value))
				fail_msg("%s(%d) is %d, not %d", names[i], value, our(value),
					 system(value));
		}
	}
}

TEST(versions__newest_is_the_default)
{
	static const char *const names[] = {"ibv_open_device", "ibv_create_qp", "ibv_reg_mr",
					    "ibv_query_port"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_true(find(ours, names[i]) == find_version(names[i], "IBVERBS_1.1"));
		assert_true(find(ours, names[i]) != find_version(names[i], "IBVERBS_1.0"));
	}
}

TEST(old_versions__of_calls_that_return_objects)
{
	static const char *const names[] = {
		"ibv_get_device_list", "ibv_open_device", "ibv_alloc_pd",  "ibv_reg_mr",
		"ibv_create_cq",       "ibv_create_srq",  "ibv_create_qp", "ibv_create_ah",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *(*old)(void *) = (void *(*)(void *))find_version(names[i], "IBVERBS_1.0");

		errno = 0;
		assert_null(old(NULL));
		assert_int_equal(errno, EOPNOTSUPP);
	}
}

TEST(old_versions__of_calls_that_return_errors)
{
	static const char *const errno_names[] = {
		"ibv_query_device", "ibv_query_port", "ibv_dealloc_pd", "ibv_dereg_mr",
		"ibv_modify_qp",    "ibv_destroy_qp", "ibv_resize_cq",	"ibv_destroy_ah",
	};
	static const char *const minus_one_names[] = {
		"ibv_close_device", "ibv_get_async_event", "ibv_get_cq_event",
		"ibv_query_gid",    "ibv_query_pkey",
	};

	for (size_t i = 0; i < sizeof(errno_names) / sizeof(errno_names[0]); i++) {
		int (*old)(void *) = (int (*)(void *))find_version(errno_names[i], "IBVERBS_1.0");

		assert_int_equal(old(NULL), EOPNOTSUPP);
	}
	for (size_t i = 0; i < sizeof(minus_one_names) / sizeof(minus_one_names[0]); i++) {
		int (*old)(void *) =
			(int (*)(void *))find_version(minus_one_names[i], "IBVERBS_1.0");

		errno = 0;
		assert_int_equal(old(NULL), -1);
		assert_int_equal(errno, EOPNOTSUPP);
	}
}

TEST(old_versions__of_calls_that_return_nothing)
{
	((void (*)(void *))find_version("ibv_free_device_list", "IBVERBS_1.0"))(NULL);
	((void (*)(void *))find_version("ibv_ack_async_event", "IBVERBS_1.0"))(NULL);
	((void (*)(void *))find_version("ibv_register_driver", "IBVERBS_1.1"))(NULL);
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: %s OURS SYSTEMS\n", argv[0]);
		return 2;
	}
	systems = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
	if (!systems) {
		fprintf(stderr, "the system has no libibverbs.so.1: install libibverbs1\n");
		return TEST_SKIPPED;
	}
	ours = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!ours) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	return test_run_all(NULL);
}
