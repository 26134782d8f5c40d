/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/device/device.c. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "device/device.h"
#include "device/gsi.h"
#include "test.h"

static const struct device_config good = {
	.name = "uroce0",
	.mac = {0x52, 0x54, 0x00, 0x12, 0x34, 0x56},
	.port_mtu_bytes = 1500,
	.link_mbps = 10000,
	.unique = "net_null0",
};

/* The GUID's eight octets as they stand in memory. */
struct guid {
	uint8_t octets[8];
};

static struct guid guid_of(const struct device_config *config)
{
	struct device *device;
	struct guid guid;

	assert_int_equal(device_create(config, &device), 0);
	memcpy(&guid, &device->node_guid_be, sizeof(guid));
	device_destroy(device);
	return guid;
}

TEST(device_create__starts_with_nothing_in_it)
{
	struct device *device;

	assert_int_equal(device_create(&good, &device), 0);
	assert_string_equal(device->config.name, "uroce0");
	assert_memory_equal(device->config.mac, good.mac, 6);
	assert_false(device->link_up);
	assert_null(device_first(device)->ops);
	assert_non_null(device->keys);
	assert_int_equal(device->qps, 0);
	for (size_t i = 0; i < DEVICE_GIDS_MAX; i++)
		assert_int_equal(device->gids[i].vlan_id, -1);
	for (int i = 0; i < COUNTER_COUNT; i++)
		assert_int_equal(device_counter(device, (enum counter)i), 0);
	device_destroy(device);
	device_destroy(NULL);
}

TEST(device_create__path_mtu_leaves_room_for_the_headers)
{
	static const struct {
		uint32_t port_mtu_bytes;
		int mtu; /* 0: refused */
	} cases[] = {
		{0, 0},
		{351, 0},
		{352, IBV_MTU_256},
		{607, IBV_MTU_256},
		{608, IBV_MTU_512},
		{1280, IBV_MTU_1024},
		{1500, IBV_MTU_1024},
		{2143, IBV_MTU_1024},
		{2144, IBV_MTU_2048},
		{4191, IBV_MTU_2048},
		{4192, IBV_MTU_4096},
		{4200, IBV_MTU_4096},
		{9000, IBV_MTU_4096},
		{UINT32_MAX, IBV_MTU_4096},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct device_config config = good;
		struct device *device;

		config.port_mtu_bytes = cases[i].port_mtu_bytes;
		assert_int_equal(device_create(&config, &device), cases[i].mtu ? 0 : -EINVAL);
		if (cases[i].mtu) {
			assert_int_equal(device->mtu, cases[i].mtu);
			device_destroy(device);
		}
	}
}

TEST(device_create__a_name_is_needed)
{
	struct device_config config = good;
	struct device *device;

	config.name[0] = '\0';
	assert_int_equal(device_create(&config, &device), -EINVAL);
	memset(config.name, 'x', sizeof(config.name));
	assert_int_equal(device_create(&config, &device), -EINVAL);
}

TEST(device_create__the_guid_stays_for_the_same_port)
{
	const struct guid a = guid_of(&good), b = guid_of(&good);

	assert_memory_equal(&a, &b, sizeof(a));
}

TEST(device_create__the_guid_has_nothing_of_a_random_mac)
{
	struct device_config config = good;
	struct guid a, b;

	config.mac_is_random = true;
	a = guid_of(&config);
	memset(config.mac, 0xc2, sizeof(config.mac));
	b = guid_of(&config);
	assert_memory_equal(&a, &b, sizeof(a));
	config.unique = "net_null1";
	b = guid_of(&config);
	assert_memory_not_equal(&a, &b, sizeof(a));
	assert_int_equal(a.octets[0], 0x02);
}

TEST(device_create__the_guid_differs_for_another_port)
{
	struct device_config config = good;
	const struct guid a = guid_of(&good);
	struct guid b;

	config.unique = "net_null1";
	b = guid_of(&config);
	assert_memory_not_equal(&a, &b, sizeof(a));
	config.unique = NULL;
	b = guid_of(&config);
	assert_memory_not_equal(&a, &b, sizeof(a));
	config = good;
	config.mac[5]++;
	b = guid_of(&config);
	assert_memory_not_equal(&a, &b, sizeof(a));
}

TEST(device_create__the_guid_is_a_locally_administered_eui64)
{
	struct device_config config = good;
	struct guid guid;

	config.mac[0] = 0x01; /* a group address by mistake */
	guid = guid_of(&config);
	assert_int_equal(guid.octets[0], 0x02);
	assert_memory_equal(&guid.octets[1], &config.mac[1], 2);
}

static void keep_event(void *user, enum ibv_event_type type)
{
	*(enum ibv_event_type *)user = type;
}

static const struct gsi_ops gsi_without_events, gsi_with_events = {.device_event = keep_event};

TEST(device_raise__tells_the_receiver_of_mads)
{
	enum ibv_event_type type = IBV_EVENT_DEVICE_FATAL;
	struct device *device;

	assert_int_equal(device_create(&good, &device), 0);
	device->gsi = &gsi_without_events;
	device_raise(device, IBV_EVENT_PORT_ACTIVE);
	device->gsi = &gsi_with_events;
	device->gsi_user = &type;
	device_raise(device, IBV_EVENT_GID_CHANGE);
	assert_int_equal(type, IBV_EVENT_GID_CHANGE);
	device_destroy(device);
}

TEST(device_raise__tells_who_asked)
{
	enum ibv_event_type type = IBV_EVENT_DEVICE_FATAL;
	struct device *device;

	assert_int_equal(device_create(&good, &device), 0);
	device_raise(device, IBV_EVENT_PORT_ACTIVE); /* to nobody */
	device->event = keep_event;
	device->event_user = &type;
	device_raise(device, IBV_EVENT_PORT_ERR);
	assert_int_equal(type, IBV_EVENT_PORT_ERR);
	device_destroy(device);
}
