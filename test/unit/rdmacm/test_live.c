/* SPDX-License-Identifier: BSD-3-Clause */
/* Both sides of a connection in one process, on a real device that does not have the address. */
#include <errno.h>
#include <string.h>

#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include "live.h"
#include "test.h"

#define PORT 7175

TEST_FIXTURE(live_set_up, live_tear_down);

static struct sockaddr_in loopback(void)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(PORT),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Take the next event, which must be of this type. */
static struct rdma_cm_id *expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	assert_string_equal(rdma_event_str(event->event), rdma_event_str(type));
	id = event->id;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	return id;
}

static struct rdma_cm_id *resolve(struct rdma_event_channel *channel)
{
	struct sockaddr_in to = loopback();
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), 0);
	assert_ptr_equal(expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED), id);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	assert_ptr_equal(expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED), id);
	return id;
}

TEST(live__nobody_listens_is_rejected)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = {.qp_num = 0x1234};
	struct rdma_cm_id *id = resolve(channel);

	assert_int_equal(rdma_connect(id, &param), 0);
	assert_ptr_equal(expect(channel, RDMA_CM_EVENT_REJECTED), id);
	assert_int_equal(rdma_connect(id, &param), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

/* Queue pairs that are the program's own: CONNECT_RESPONSE, rdma_establish. */
TEST(live__loopback_reaches_the_hosts_own_listener)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = {
		.qp_num = 0x1234, .private_data = "hello", .private_data_len = 5};
	struct sockaddr_in at = loopback();
	struct rdma_cm_id *listener, *second, *active, *passive;

	assert_int_equal(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(listener, (struct sockaddr *)&at), 0);
	assert_int_equal(rdma_listen(listener, 4), 0);
	assert_int_equal(rdma_create_id(channel, &second, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(second, (struct sockaddr *)&at), -1);
	assert_int_equal(errno, EADDRINUSE);
	active = resolve(channel);
	assert_int_equal(rdma_connect(active, &param), 0);
	passive = expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	param.qp_num = 0x5678;
	assert_int_equal(rdma_accept(passive, &param), 0);
	assert_ptr_equal(expect(channel, RDMA_CM_EVENT_CONNECT_RESPONSE), active);
	assert_int_equal(rdma_establish(active), 0);
	assert_ptr_equal(expect(channel, RDMA_CM_EVENT_ESTABLISHED), passive);
	assert_int_equal(rdma_disconnect(active), 0);
	assert_ptr_equal(expect(channel, RDMA_CM_EVENT_DISCONNECTED), passive);
	assert_int_equal(rdma_disconnect(passive), 0);
	assert_ptr_equal(expect(channel, RDMA_CM_EVENT_DISCONNECTED), active);
	assert_int_equal(rdma_destroy_id(active), 0);
	assert_int_equal(rdma_destroy_id(passive), 0);
	assert_int_equal(rdma_destroy_id(second), 0);
	assert_int_equal(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(channel);
}
