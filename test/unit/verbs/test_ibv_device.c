/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of devices. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "fake_provider.h"
#include "test.h"

static const char *caller; /* file of the code that calls; NULL: as it is */

int __real_dladdr(const void *addr, Dl_info *info);
int __wrap_dladdr(const void *addr, Dl_info *info);

int __wrap_dladdr(const void *addr, Dl_info *info)
{
	const int rc = __real_dladdr(addr, info);

	if (caller)
		info->dli_fname = caller;
	return rc;
}

static void *list_when_cancelled(void *arg)
{
	/* A pending cancellation takes effect at the next cancellation point. */
	pthread_cancel(pthread_self());
	ibv_free_device_list(ibv_get_device_list(NULL));
	return arg;
}

/* The first call of all: it starts the devices. */
TEST(get_device_list__a_cancelled_thread_keeps_no_lock)
{
	struct ibv_device **list;
	pthread_t thread;
	int num = 0;

	assert_int_equal(pthread_create(&thread, NULL, list_when_cancelled, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	alarm(30);
	list = ibv_get_device_list(&num);
	alarm(0);
	assert_int_equal(num, 1);
	ibv_free_device_list(list);
}

static int count_for(const char *file)
{
	struct ibv_device **list;
	int num = -1;

	caller = file;
	list = ibv_get_device_list(&num);
	caller = NULL;
	assert_non_null(list);
	assert_null(list[num]);
	ibv_free_device_list(list);
	return num;
}

/* DPDK's drivers of ConnectX look for the kernel's device. */
TEST(get_device_list__is_empty_for_drivers_of_dpdk)
{
	assert_int_equal(count_for("/usr/lib/dpdk/librte_common_mlx5.so.23"), 0);
	assert_int_equal(count_for("librte_net_mana.so"), 0);
	assert_int_equal(count_for("/usr/lib/librte_x/program"), 1);
	assert_int_equal(count_for("program"), 1);
}

TEST(get_device_list__is_null_terminated)
{
	int num = -1;
	struct ibv_device **list = ibv_get_device_list(&num);

	assert_non_null(list);
	assert_int_equal(num, 1);
	assert_non_null(list[0]);
	assert_null(list[1]);
	ibv_free_device_list(list);
}

TEST(get_device_list__gives_the_same_device_again)
{
	struct ibv_device **first = ibv_get_device_list(NULL);
	struct ibv_device **second = ibv_get_device_list(NULL);

	assert_ptr_equal(first[0], second[0]);
	ibv_free_device_list(first);
	ibv_free_device_list(second);
}

TEST(get_device_list__describes_a_channel_adapter)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_device *device = list[0];

	assert_int_equal(device->node_type, IBV_NODE_CA);
	assert_int_equal(device->transport_type, IBV_TRANSPORT_IB);
	assert_string_equal(ibv_get_device_name(device), "fake0");
	assert_string_equal(device->ibdev_path, "/sys/class/infiniband/fake0");
	assert_true(ibv_get_device_guid(device) == fake.device->node_guid_be);
	assert_true(ibv_get_device_guid(device) != 0);
	assert_int_equal(ibv_get_device_index(device), -1);
	ibv_free_device_list(list);
}

/* libmlx5 and libefa compare the pointer behind struct ibv_device with a table of theirs. */
TEST(get_device_list__has_an_address_of_ours_behind_the_device)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	const void *const *behind = (const void *const *)(list[0] + 1);
	const char *target = *behind;
	char first;

	assert_non_null(target);
	memcpy(&first, target, 1);
	assert_int_equal(first, 0);
	ibv_free_device_list(list);
}
