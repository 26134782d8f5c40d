/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/rdma_device.c: devices, and what ids learn of theirs. */
#include "device/device.h"
#include "rdmacm_rig.h"

static struct device_gid gids[DEVICE_GIDS_MAX]; /* of the first device */

static int set_up(void **state)
{
	const int rc = rig_set_up(state);

	memcpy(gids, rig.devices[0]->gids, sizeof(gids));
	return rc;
}

static void call_device(void (*call)(struct device *device))
{
	struct device *device = rig.devices[0];

	device_lock(device);
	call(device);
	device_unlock(device);
}

/* Give the first device its addresses of these versions. */
static void set_addresses(struct device *device, bool ipv4, bool ipv6)
{
	struct device_gid kept[DEVICE_GIDS_MAX];
	size_t count = 0;

	for (int i = 0; i < DEVICE_GIDS_MAX; i++) {
		if (!gid_is_zero(gids[i].gid.raw) && (gid_is_ipv4(gids[i].gid.raw) ? ipv4 : ipv6))
			kept[count++] = gids[i];
	}
	device_sync_gids(device, kept, count);
}

static void take_ipv4(struct device *device)
{
	set_addresses(device, false, true);
}

static void take_all(struct device *device)
{
	set_addresses(device, false, false);
}

static void give_all(struct device *device)
{
	set_addresses(device, true, true);
}

static void raise_fatal(struct device *device)
{
	device_raise(device, IBV_EVENT_DEVICE_FATAL);
}

/* The first device is lost: no packet leaves it any more. */
static void lose(void)
{
	rig.loses = true;
	call_device(raise_fatal);
}

/* A lost device never comes back, except for the next test. */
static int tear_down(void **state)
{
	struct cm_device *const *devices;

	assert_int_equal(devices_get(&devices), RIG_DEVICES);
	devices[0]->lost = false;
	call_device(give_all);
	return rig_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

static struct rdma_cm_id *create_at(struct sockaddr *address)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	assert_int_equal(rdma_bind_addr(id, address), 0);
	return id;
}

static void expect_removal(struct rdma_cm_id **ids, size_t count)
{
	bool told[16] = {false};

	for (size_t i = 0; i < count; i++) {
		struct rdma_cm_event *event =
			rig_event_of(rig_channel, RDMA_CM_EVENT_DEVICE_REMOVAL);
		size_t at = 0;

		while (at < count && ids[at] != event->id)
			at++;
		assert_in_range(at, 0, count - 1);
		assert_false(told[at]);
		told[at] = true;
		assert_int_equal(event->status, 0);
		rdma_ack_cm_event(event);
	}
	rig_no_event(rig_channel);
}

TEST(device_event_lost__each_bound_id_is_told_once)
{
	struct rdma_cm_id *idle = rig_create(RDMA_PS_TCP), *ids[5];
	struct rdma_cm_id *wildcard = create_at(rig_address("0.0.0.0", RIG_PORT + 2));
	struct rdma_conn_param param = {.qp_num = 5};

	ids[0] = create_at(rig_ipv4(0, 0));
	ids[1] = create_at(rig_ipv4(0, RIG_PORT + 1));
	assert_int_equal(rdma_listen(ids[1], 1), 0);
	assert_int_equal(rdma_listen(wildcard, 1), 0);
	ids[2] = rig_resolve(RDMA_PS_TCP);
	ids[3] = rig_resolve(RDMA_PS_TCP);
	rig.loses = true;
	assert_int_equal(rdma_connect(ids[3], &param), 0);
	rig.silent = true;
	ids[4] = create_at(rig_ipv4(0, 0));
	assert_int_equal(rdma_resolve_addr(ids[4], NULL, rig_ipv4(1, 1), 1000), 0);
	lose();
	expect_removal(ids, RTE_DIM(ids));
	/* Timers of what was going on tell no more. */
	rig_pass(100 * RIG_SECOND);
	rig_no_event(rig_channel);
	rig_fails(rdma_listen(ids[0], 1), EINVAL);
	rig_fails(rdma_connect(ids[2], &param), EINVAL);
	rig_fails(rdma_disconnect(ids[3]), EINVAL);
	rig_fails(rdma_resolve_addr(ids[4], NULL, rig_ipv4(1, 1), 1000), EINVAL);
	rdma_destroy_id(idle);
	rdma_destroy_id(wildcard);
	for (size_t i = 0; i < RTE_DIM(ids); i++)
		rdma_destroy_id(ids[i]);
}

TEST(device_event_lost__connected_ids)
{
	struct rig_pair pair = rig_connect();
	struct rdma_conn_param param = {.qp_num = 5};

	lose();
	expect_removal(&pair.active, 1);
	rig_fails(rdma_disconnect(pair.active), EINVAL);
	rig_fails(rdma_accept(pair.active, &param), EINVAL);
	/* The other device is as it was. */
	assert_int_equal(rdma_disconnect(pair.passive), 0);
	rig_pass(200 * RIG_SECOND);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_DISCONNECTED), pair.passive);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_TIMEWAIT_EXIT), pair.passive);
	rig_end(&pair);
}

/* A request that the program has not read is followed by the loss of its id's device. */
TEST(device_event_lost__unread_request)
{
	struct rdma_cm_id *listener = create_at(rig_ipv4(0, RIG_PORT)), *passive, *active;
	struct rdma_conn_param param = {.qp_num = 5};
	struct rdma_cm_event *event;

	assert_int_equal(rdma_listen(listener, 1), 0);
	active = create_at(rig_ipv4(1, 0));
	assert_int_equal(rdma_resolve_addr(active, NULL, rig_ipv4(0, RIG_PORT), 1000), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(active, 1000), 0);
	rig_expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(rdma_connect(active, &param), 0);
	rig_pass(0);
	lose();
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	passive = event->id;
	rdma_ack_cm_event(event);
	expect_removal((struct rdma_cm_id *[]){listener, passive}, 2);
	rig_fails(rdma_accept(passive, &param), EINVAL);
	rdma_destroy_id(passive);
	rdma_destroy_id(listener);
	rdma_destroy_id(active);
}

TEST(device_event_lost__later_binds)
{
	struct rdma_cm_id *id, *other = rig_create(RDMA_PS_TCP), *any = rig_create(RDMA_PS_TCP);
	struct rdma_cm_event *event;

	lose();
	rig.loses = false;
	rig_fails(rdma_bind_addr(other, rig_ipv4(0, 0)), ENODEV);
	assert_int_equal(rdma_bind_addr(other, rig_ipv4(1, 0)), 0);
	assert_int_equal(rdma_bind_addr(any, rig_address("::", RIG_PORT)), 0);
	assert_int_equal(rdma_listen(any, 1), 0);
	/* The second device has a route as well. */
	id = rig_resolve(RDMA_PS_TCP);
	assert_ptr_equal(id->verbs, other->verbs);
	rdma_destroy_id(id);
	id = rig_create(RDMA_PS_TCP);
	rig.unreachable = true;
	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, 1), 1000), 0);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_ADDR_ERROR);
	assert_int_equal(event->status, -ENETUNREACH);
	rdma_ack_cm_event(event);
	rdma_destroy_id(id);
	rdma_destroy_id(other);
	rdma_destroy_id(any);
}

/* The device is lost after its address was chosen, and before its list has the id. */
TEST(device_event_lost__while_a_source_is_chosen)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP), *other = create_at(rig_ipv4(1, 0));

	rig.routing = lose;
	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, 1), 1000), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED), id);
	assert_ptr_equal(id->verbs, other->verbs);
	rig_no_event(rig_channel);
	rdma_destroy_id(id);
	rdma_destroy_id(other);
}

/* No connection is begun after DEVICE_REMOVAL: its events would follow. */
TEST(device_event_lost__while_a_request_is_sent)
{
	struct rdma_cm_id *id = rig_resolve(RDMA_PS_TCP);
	struct rdma_conn_param param = {.qp_num = 5};

	rig.locking = lose;
	rig_fails(rdma_connect(id, &param), EINVAL);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL), id);
	rig_pass(200 * RIG_SECOND);
	rig_no_event(rig_channel);
	rdma_destroy_id(id);
}

TEST(device_event_lost__later_queues)
{
	struct rdma_cm_id *id = rig_resolve(RDMA_PS_TCP);
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_init_attr qp = rig_qp_attr();

	lose();
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL), id);
	rig_fails(rdma_create_qp(id, NULL, &qp), ENODEV);
	assert_null(id->qp);
	rig_fails(rdma_create_srq(id, NULL, &srq), ENODEV);
	assert_null(id->srq);
	rdma_destroy_id(id);
}

static void lose_while_waiting(void)
{
	rig.waiting = NULL;
	lose();
}

TEST(device_event_lost__synchronous_calls)
{
	struct rdma_cm_id *id, *listener;

	assert_int_equal(rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(listener, rig_ipv4(0, RIG_PORT)), 0);
	assert_int_equal(rdma_listen(listener, 1), 0);
	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	rig.silent = true;
	rig.waiting = lose_while_waiting;
	rig_fails(rdma_resolve_addr(id, NULL, rig_ipv4(1, 1), 1000), ENODEV);
	rdma_destroy_id(id);
	/* The event comes once, but no later call waits for a request. */
	for (int i = 0; i < 2; i++)
		rig_fails(rdma_get_request(listener, &id), ENODEV);
	rdma_destroy_id(listener);
}

TEST(device_event_addresses__ids_of_an_address_that_goes)
{
	struct rdma_cm_id *ipv4 = create_at(rig_ipv4(0, 0)), *ipv6 = create_at(rig_ipv6(0, 0));
	struct rdma_cm_id *other = create_at(rig_ipv4(1, 0));
	struct rdma_cm_id *any = create_at(rig_address("0.0.0.0", 0));

	call_device(take_ipv4);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ADDR_CHANGE), ipv4);
	rig_no_event(rig_channel);
	call_device(take_all);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ADDR_CHANGE), ipv6);
	rig_no_event(rig_channel);
	/* An address that comes back is no news; if it goes again, it is. */
	call_device(give_all);
	rig_no_event(rig_channel);
	call_device(take_ipv4);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ADDR_CHANGE), ipv4);
	rig_no_event(rig_channel);
	rdma_destroy_id(ipv4);
	rdma_destroy_id(ipv6);
	rdma_destroy_id(other);
	rdma_destroy_id(any);
}

TEST(device_event_addresses__connection_goes_on)
{
	struct rig_pair pair = rig_connect();

	call_device(take_ipv4);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ADDR_CHANGE), pair.active);
	call_device(give_all);
	assert_int_equal(rdma_disconnect(pair.active), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_DISCONNECTED), pair.passive);
	assert_int_equal(rdma_disconnect(pair.passive), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_DISCONNECTED), pair.active);
	rig_end(&pair);
}

TEST(rdma_resolve_route__address_has_gone)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);
	struct rdma_cm_event *event;

	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, RIG_PORT), 1000), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	call_device(take_ipv4);
	rig_expect(RDMA_CM_EVENT_ADDR_CHANGE);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_ROUTE_ERROR);
	assert_ptr_equal(event->id, id);
	assert_int_equal(event->status, -EADDRNOTAVAIL);
	rdma_ack_cm_event(event);
	/* The route may be resolved again. */
	call_device(give_all);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ROUTE_RESOLVED), id);
	rdma_destroy_id(id);
}

static void move_while_waiting(void)
{
	rig.waiting = NULL;
	call_device(take_ipv4);
	call_device(give_all);
	rig.silent = false;
	rig_pass(RIG_SECOND / 10);
}

/* A change of the address is not what a synchronous call waits for. */
TEST(event_complete__address_changes_meanwhile)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	rig.silent = true;
	rig.waiting = move_while_waiting;
	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, 1), 1000), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	call_device(take_ipv4);
	rdma_destroy_id(id);
}

TEST(rdma_get_devices__are_those_of_bound_ids)
{
	int count = -1;
	struct ibv_context **list = rdma_get_devices(&count), **again;
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	assert_int_equal(count, RIG_DEVICES);
	assert_null(list[RIG_DEVICES]);
	assert_int_equal(rdma_bind_addr(id, rig_ipv4(1, 0)), 0);
	assert_ptr_equal(id->verbs, list[1]);
	again = rdma_get_devices(NULL);
	assert_ptr_equal(again[0], list[0]);
	rdma_free_devices(again);
	rdma_free_devices(list);
	rdma_free_devices(NULL);
	rdma_destroy_id(id);
}

/* Ids without a domain of the program's share one. It stays, since programs register memory in it.
 */
TEST(rdma_bind_addr__ids_share_a_domain)
{
	struct rdma_cm_id *one = rig_create(RDMA_PS_TCP), *two = rig_create(RDMA_PS_TCP);
	char buffer[64];
	struct ibv_mr *mr;
	struct ibv_pd *pd;

	assert_int_equal(rdma_bind_addr(one, rig_ipv4(0, 0)), 0);
	assert_int_equal(rdma_bind_addr(two, rig_ipv4(0, 0)), 0);
	pd = one->pd;
	assert_non_null(pd);
	assert_ptr_equal(two->pd, pd);
	mr = rdma_reg_msgs(one, buffer, sizeof(buffer));
	assert_non_null(mr);
	rig_create_qp(one);
	assert_ptr_equal(one->qp->pd, pd);
	rdma_destroy_qp(one);
	rdma_destroy_id(one);
	rdma_destroy_id(two);
	assert_int_equal(rdma_dereg_mr(mr), 0);
	one = rig_create(RDMA_PS_TCP);
	assert_int_equal(rdma_bind_addr(one, rig_ipv4(0, 0)), 0);
	assert_ptr_equal(one->pd, pd);
	rdma_destroy_id(one);
}
