/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions about device, port, GIDs, partition keys. */
#include <string.h>

#include "fake_provider.h"
#include "private.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

TEST(query_device__tells_the_rooms_answer)
{
	struct ibv_device_attr_ex expected;
	struct ibv_device_attr attr;

	device_query(fake.device, &expected);
	assert_int_equal(ibv_query_device(*state, &attr), 0);
	assert_memory_equal(&attr, &expected.orig_attr, sizeof(attr));
	assert_true(attr.node_guid == ibv_get_device_guid(((struct ibv_context *)*state)->device));
}

TEST(query_device_ex__answers_the_inline)
{
	struct ibv_query_device_ex_input input = {.comp_mask = 1};
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(*state, NULL, &attr), 0);
	assert_int_equal(attr.phys_port_cnt_ex, 1);
	assert_true(attr.odp_caps.general_caps & IBV_ODP_SUPPORT);
	assert_int_equal(ibv_query_device_ex(*state, &input, &attr), EINVAL);
}

/* A program built against older headers has a shorter struct. */
TEST(query_device_ex__writes_no_more_than_the_caller_has)
{
	struct verbs_context *verbs = verbs_get_ctx(*state);
	const size_t old_size = offsetof(struct ibv_device_attr_ex, tso_caps);
	union {
		struct ibv_device_attr_ex attr;
		uint8_t bytes[sizeof(struct ibv_device_attr_ex)];
	} room;

	memset(&room, 0x5a, sizeof(room));
	assert_int_equal(verbs->query_device_ex(*state, NULL, &room.attr, old_size), 0);
	assert_int_equal(room.attr.orig_attr.phys_port_cnt, 1);
	for (size_t i = old_size; i < sizeof(room); i++)
		assert_int_equal(room.bytes[i], 0x5a);
	assert_int_equal(verbs->query_device_ex(*state, NULL, &room.attr, 8), EINVAL);
}

TEST(query_port__answers_the_inline)
{
	struct ibv_port_attr attr;

	assert_int_equal(ibv_query_port(*state, 1, &attr), 0);
	assert_int_equal(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(attr.active_mtu, IBV_MTU_4096);
}

TEST(query_port__knows_port_1_only)
{
	struct ibv_port_attr attr;

	assert_int_equal(ibv_query_port(*state, 0, &attr), EINVAL);
	assert_int_equal(ibv_query_port(*state, 2, &attr), EINVAL);
}

/* Programs that were built before port_cap_flags2 have a struct that ends there. */
TEST(query_port__of_old_programs_stays_in_its_struct)
{
	const size_t old_size = offsetof(struct ibv_port_attr, port_cap_flags2);
	union {
		struct ibv_port_attr attr;
		uint8_t bytes[sizeof(struct ibv_port_attr)];
	} room;

	memset(&room, 0x5a, sizeof(room));
	assert_int_equal((ibv_query_port)(*state, 1, (struct _compat_ibv_port_attr *)&room.attr),
			 0);
	assert_int_equal(room.attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	for (size_t i = old_size; i < sizeof(room); i++)
		assert_int_equal(room.bytes[i], 0x5a);
}

TEST(query_gid__gives_entries_and_zeros)
{
	union ibv_gid gid;

	assert_int_equal(ibv_query_gid(*state, 1, FAKE_GID_V6, &gid), 0);
	assert_memory_equal(&gid, &fake.device->gids[FAKE_GID_V6].gid, sizeof(gid));
	assert_int_equal(ibv_query_gid(*state, 1, 2, &gid), 0);
	assert_int_equal(gid.global.interface_id, 0);
}

TEST(query_gid__refuses_what_is_not_in_the_table)
{
	union ibv_gid gid;

	errno = 0;
	assert_int_equal(ibv_query_gid(*state, 2, 0, &gid), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_query_gid(*state, 1, -1, &gid), -1);
	assert_int_equal(ibv_query_gid(*state, 1, DEVICE_GIDS_MAX, &gid), -1);
}

TEST(query_gid_ex__describes_the_entry)
{
	struct ibv_gid_entry entry;

	assert_int_equal(ibv_query_gid_ex(*state, 1, FAKE_GID_V4, &entry, 0), 0);
	assert_memory_equal(&entry.gid, &fake.device->gids[FAKE_GID_V4].gid, sizeof(entry.gid));
	assert_int_equal(entry.gid_index, FAKE_GID_V4);
	assert_int_equal(entry.port_num, 1);
	assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(entry.ndev_ifindex, 7);
}

TEST(query_gid_ex__tells_free_from_wrong)
{
	struct ibv_gid_entry entry;

	assert_int_equal(ibv_query_gid_ex(*state, 1, 2, &entry, 0), ENODATA);
	assert_int_equal(ibv_query_gid_ex(*state, 1, DEVICE_GIDS_MAX, &entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(*state, 2, 0, &entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(*state, 1, UINT32_MAX, &entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(*state, 1, 0, &entry, 1), EOPNOTSUPP);
}

TEST(query_gid_table__gives_used_entries_only)
{
	struct ibv_gid_entry entries[4];

	assert_int_equal(ibv_query_gid_table(*state, entries, 4, 0), 2);
	assert_int_equal(entries[0].gid_index, FAKE_GID_V4);
	assert_int_equal(entries[1].gid_index, FAKE_GID_V6);
	assert_memory_equal(&entries[1].gid, &fake.device->gids[FAKE_GID_V6].gid, 16);
}

TEST(query_gid_table__refuses_a_short_array)
{
	struct ibv_gid_entry entry;

	assert_int_equal(ibv_query_gid_table(*state, &entry, 1, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(*state, &entry, 1, 1), -EOPNOTSUPP);
}

TEST(query_gid_type__is_roce_v2)
{
	enum private_gid_type type = PRIVATE_GID_TYPE_ROCE_V1;

	assert_int_equal(ibv_query_gid_type(*state, 1, 0, &type), 0);
	assert_int_equal(type, PRIVATE_GID_TYPE_ROCE_V2);
	assert_int_equal(ibv_query_gid_type(*state, 2, 0, &type), -1);
}

TEST(query_pkey__has_the_default_partition)
{
	__be16 pkey = 0;

	assert_int_equal(ibv_query_pkey(*state, 1, 0, &pkey), 0);
	assert_int_equal(pkey, 0xffff);
	assert_int_equal(ibv_query_pkey(*state, 1, 1, &pkey), -1);
	assert_int_equal(ibv_query_pkey(*state, 2, 0, &pkey), -1);
}

TEST(get_pkey_index__finds_it)
{
	assert_int_equal(ibv_get_pkey_index(*state, 1, 0xffff), 0);
	assert_int_equal(ibv_get_pkey_index(*state, 1, 0x1234), -1);
	assert_int_equal(ibv_get_pkey_index(*state, 2, 0xffff), -1);
}
