/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/option.c. */
#include <infiniband/sa.h>

#include "rdmacm_rig.h"

TEST_FIXTURE(rig_set_up, rig_tear_down);

static int set(struct rdma_cm_id *id, int name, const void *value, size_t len)
{
	return rdma_set_option(id, RDMA_OPTION_ID, name, (void *)(uintptr_t)value, len);
}

TEST(rdma_set_option__type_of_service_is_the_paths)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);
	uint8_t tos = 0x68;

	rig_fails(set(id, RDMA_OPTION_ID_TOS, &tos, 4), EINVAL);
	assert_int_equal(set(id, RDMA_OPTION_ID_TOS, &tos, 1), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, 1), 1000), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	rig_expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(id->route.path_rec->traffic_class, 0x68);
	rdma_destroy_id(id);
}

TEST(rdma_set_option__ack_timeout)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP), *udp = rig_create(RDMA_PS_UDP);
	uint8_t timeout = 32;

	rig_fails(set(id, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1), EINVAL);
	timeout = 31;
	rig_fails(set(id, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 2), EINVAL);
	rig_fails(set(udp, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1), EINVAL);
	assert_int_equal(set(id, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1), 0);
	rdma_destroy_id(id);
	rdma_destroy_id(udp);
}

static int set_int(struct rdma_cm_id *id, int name, int value)
{
	return set(id, name, &value, sizeof(value));
}

TEST(rdma_set_option__binding_options_have_the_size_of_an_int)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);
	int yes = 1;

	rig_fails(set(id, RDMA_OPTION_ID_REUSEADDR, &yes, 1), EINVAL);
	rig_fails(set(id, RDMA_OPTION_ID_AFONLY, &yes, 1), EINVAL);
	rdma_destroy_id(id);
}

/* Linux allows it in all states except LISTEN, and only to allow sharing. */
TEST(rdma_set_option__reuseaddr_after_the_binding)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP), *other = rig_create(RDMA_PS_TCP);
	struct rdma_cm_id *active = rig_resolve(RDMA_PS_TCP);

	assert_int_equal(set_int(other, RDMA_OPTION_ID_REUSEADDR, 1), 0);
	assert_int_equal(set_int(id, RDMA_OPTION_ID_REUSEADDR, 1), 0);
	assert_int_equal(set_int(id, RDMA_OPTION_ID_REUSEADDR, 0), 0);
	assert_int_equal(rdma_bind_addr(id, rig_ipv4(0, RIG_PORT)), 0);
	rig_fails(rdma_bind_addr(other, rig_ipv4(0, RIG_PORT)), EADDRINUSE);
	rig_fails(set_int(id, RDMA_OPTION_ID_REUSEADDR, 0), EINVAL);
	assert_int_equal(set_int(id, RDMA_OPTION_ID_REUSEADDR, 1), 0);
	rig_fails(set_int(id, RDMA_OPTION_ID_REUSEADDR, 0), EINVAL);
	assert_int_equal(rdma_bind_addr(other, rig_ipv4(0, RIG_PORT)), 0);
	rig_fails(rdma_listen(id, 1), EADDRINUSE);
	rdma_destroy_id(other);
	assert_int_equal(rdma_listen(id, 1), 0);
	rig_fails(set_int(id, RDMA_OPTION_ID_REUSEADDR, 1), EINVAL);
	assert_int_equal(set_int(active, RDMA_OPTION_ID_REUSEADDR, 1), 0);
	rdma_destroy_id(active);
	rdma_destroy_id(id);
}

TEST(rdma_set_option__af_only_after_the_binding)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP), *ipv4 = rig_create(RDMA_PS_TCP);
	struct rdma_cm_id *other;

	assert_int_equal(rdma_bind_addr(id, rig_address("::", RIG_PORT)), 0);
	rig_fails(rdma_bind_addr(ipv4, rig_address("0.0.0.0", RIG_PORT)), EADDRINUSE);
	assert_int_equal(set_int(id, RDMA_OPTION_ID_AFONLY, 1), 0);
	assert_int_equal(rdma_bind_addr(ipv4, rig_address("0.0.0.0", RIG_PORT)), 0);
	rig_fails(set_int(id, RDMA_OPTION_ID_AFONLY, 0), EADDRINUSE);
	assert_int_equal(rdma_listen(id, 1), 0);
	assert_int_equal(rdma_listen(ipv4, 1), 0);
	rig_fails(set_int(id, RDMA_OPTION_ID_AFONLY, 1), EINVAL);
	rdma_destroy_id(ipv4);
	rdma_destroy_id(id);
	/* The address stays the same in both versions. */
	other = rig_resolve(RDMA_PS_TCP);
	rig_fails(set_int(other, RDMA_OPTION_ID_AFONLY, 1), EINVAL);
	rdma_destroy_id(other);
	other = rig_create(RDMA_PS_TCP);
	assert_int_equal(rdma_bind_addr(other, rig_ipv4(0, RIG_PORT)), 0);
	assert_int_equal(set_int(other, RDMA_OPTION_ID_AFONLY, 1), 0);
	rdma_destroy_id(other);
}

TEST(rdma_set_option__unknown)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);
	int yes = 1;

	rig_fails(rdma_set_option(NULL, RDMA_OPTION_ID, 0, &yes, 1), EINVAL);
	rig_fails(rdma_set_option(id, RDMA_OPTION_ID, 0, NULL, 1), EINVAL);
	rig_fails(set(id, 99, &yes, sizeof(yes)), ENOSYS);
	rig_fails(rdma_set_option(id, 99, RDMA_OPTION_ID_TOS, &yes, 1), ENOSYS);
	rdma_destroy_id(id);
}

/* A given path raises the event of a resolved one, as on Linux. */
TEST(rdma_set_option__path_resolves_the_route)
{
	struct ibv_path_data data[2] = {{.flags = IBV_PATH_FLAG_ALTERNATE}};
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	data[1].flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
	rig_fails(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, data, sizeof(data)),
		  EINVAL);
	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, 1), 1000), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	rig_fails(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, data, 0), EINVAL);
	rig_fails(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, data, 7), EINVAL);
	rig_fails(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, data, sizeof(data[0])),
		  EINVAL);
	assert_int_equal(
		rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, data, sizeof(data)), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ROUTE_RESOLVED), id);
	assert_int_equal(id->route.num_paths, 1);
	rdma_destroy_id(id);
}

static void assert_remote(struct rdma_cm_id *id, uint32_t vendor_id, uint32_t options)
{
	struct ibv_ece ece = {.comp_mask = 1};

	assert_int_equal(rdma_get_remote_ece(id, &ece), 0);
	assert_int_equal(ece.vendor_id, vendor_id);
	assert_int_equal(ece.options, options);
	assert_int_equal(ece.comp_mask, 0);
}

/* Programs with queue pairs of their own: each side learns what the other one has. */
TEST(rdma_set_local_ece__reaches_the_peer)
{
	struct ibv_ece asked = {.vendor_id = 0xa1b2c3, .options = 0x11223344};
	struct ibv_ece answered = {.vendor_id = 0x15b3, .options = 0x80000001};
	struct rdma_conn_param param = {.qp_num = 5};
	struct rig_pair pair = {.listener = rig_listen(RDMA_PS_TCP),
				.active = rig_resolve(RDMA_PS_TCP)};

	assert_int_equal(rdma_set_local_ece(pair.active, &asked), 0);
	assert_int_equal(rdma_connect(pair.active, &param), 0);
	pair.passive = rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_remote(pair.passive, 0xa1b2c3, 0x11223344);
	assert_remote(pair.active, 0, 0);
	assert_int_equal(rdma_set_local_ece(pair.passive, &answered), 0);
	assert_int_equal(rdma_accept(pair.passive, &param), 0);
	rig_expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_remote(pair.active, 0x15b3, 0x80000001);
	rig_end(&pair);
}

TEST(rdma_set_local_ece__wrong_calls)
{
	struct ibv_ece ece = {.vendor_id = 0};
	struct rdma_cm_id *id = rig_resolve(RDMA_PS_TCP);

	rig_fails(rdma_set_local_ece(id, &ece), EINVAL);
	ece.vendor_id = 1;
	ece.comp_mask = 1;
	rig_fails(rdma_set_local_ece(id, &ece), EINVAL);
	ece.comp_mask = 0;
	rig_fails(rdma_set_local_ece(NULL, &ece), EINVAL);
	rig_fails(rdma_set_local_ece(id, NULL), EINVAL);
	rig_fails(rdma_get_remote_ece(NULL, &ece), EINVAL);
	rig_fails(rdma_get_remote_ece(id, NULL), EINVAL);
	rig_create_qp(id);
	rig_fails(rdma_set_local_ece(id, &ece), EINVAL);
	rig_fails(rdma_get_remote_ece(id, &ece), EINVAL);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
}
