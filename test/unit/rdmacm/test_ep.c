/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/ep.c. */
#include <stdlib.h>

#include <infiniband/sa.h>

#include "rdmacm_rig.h"

TEST_FIXTURE(rig_set_up, rig_tear_down);

static struct rdma_addrinfo passive(void)
{
	return (struct rdma_addrinfo){.ai_flags = RAI_PASSIVE,
				      .ai_port_space = RDMA_PS_TCP,
				      .ai_qp_type = IBV_QPT_RC,
				      .ai_src_addr = rig_ipv4(1, RIG_PORT)};
}

static struct rdma_addrinfo active(void)
{
	return (struct rdma_addrinfo){.ai_port_space = RDMA_PS_TCP,
				      .ai_qp_type = IBV_QPT_RC,
				      .ai_dst_addr = rig_ipv4(1, RIG_PORT)};
}

static struct rdma_cm_id *server, *accepted;

/* The other side of a call that sleeps. */
static void serve(void)
{
	if (accepted)
		return;
	rig.waiting = NULL;
	assert_int_equal(rdma_get_request(server, &accepted), 0);
	assert_int_equal(rdma_migrate_id(accepted, rig_channel), 0);
	assert_int_equal(rdma_accept(accepted, NULL), 0);
}

static void open_server(struct rdma_addrinfo info, struct ibv_qp_init_attr *attr)
{
	accepted = NULL;
	assert_int_equal(rdma_create_ep(&server, &info, NULL, attr), 0);
	assert_int_equal(rdma_listen(server, 1), 0);
}

TEST(rdma_create_ep__both_sides)
{
	struct ibv_qp_init_attr server_attr = rig_qp_attr(), attr = rig_qp_attr();
	struct rdma_addrinfo info = active();
	struct rdma_cm_id *id;

	open_server(passive(), &server_attr);
	assert_int_equal(rdma_create_ep(&id, &info, NULL, &attr), 0);
	assert_non_null(id->qp);
	rig.waiting = serve;
	assert_int_equal(rdma_connect(id, NULL), 0);
	assert_non_null(accepted->qp);
	assert_int_equal(id->qp->state, IBV_QPS_RTS);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ESTABLISHED), accepted);
	rdma_destroy_ep(id);
	rdma_destroy_ep(accepted);
	rdma_destroy_ep(server);
}

/* The data from rdma_getaddrinfo(3), ai_connect, stands before the program's own. */
TEST(rdma_create_ep__connection_data_comes_first)
{
	struct rdma_conn_param param = {.private_data = "mine", .private_data_len = 5};
	struct ibv_qp_init_attr attr = rig_qp_attr();
	struct rdma_cm_id *id, *listener = rig_listen(RDMA_PS_TCP);
	struct rdma_addrinfo info = active();
	struct rdma_cm_event *event;

	info.ai_connect = "route";
	info.ai_connect_len = 5;
	assert_int_equal(rdma_create_ep(&id, &info, NULL, &attr), 0);
	assert_int_equal(rdma_migrate_id(id, rig_channel), 0);
	assert_int_equal(rdma_connect(id, &param), 0);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_memory_equal(event->param.conn.private_data, "routemine", 10);
	rdma_destroy_id(event->id);
	rdma_ack_cm_event(event);
	rdma_destroy_ep(id);
	rdma_destroy_id(listener);
}

TEST(rdma_create_ep__refused_connection)
{
	struct ibv_qp_init_attr attr = rig_qp_attr();
	struct rdma_addrinfo info = active();
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_ep(&id, &info, NULL, &attr), 0);
	rig_fails(rdma_connect(id, NULL), ECONNREFUSED);
	rdma_destroy_ep(id);
}

TEST(rdma_create_ep__path_of_the_program)
{
	struct ibv_path_data path = {.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
					      IBV_PATH_FLAG_BIDIRECTIONAL};
	struct rdma_addrinfo info = active();
	struct rdma_cm_id *id;

	info.ai_route = &path;
	info.ai_route_len = sizeof(path);
	assert_int_equal(rdma_create_ep(&id, &info, NULL, NULL), 0);
	assert_int_equal(id->route.num_paths, 1);
	rdma_destroy_ep(id);
	path.flags = 0;
	rig_fails(rdma_create_ep(&id, &info, NULL, NULL), EINVAL);
}

TEST(rdma_create_ep__wrong_calls)
{
	struct ibv_qp_init_attr attr = rig_qp_attr();
	struct rdma_addrinfo info = active();
	struct rdma_cm_id *id;

	rig_fails(rdma_create_ep(NULL, &info, NULL, NULL), EINVAL);
	rig_fails(rdma_create_ep(&id, NULL, NULL, NULL), EINVAL);
	info.ai_port_space = RDMA_PS_UDP;
	rig_fails(rdma_create_ep(&id, &info, NULL, NULL), EINVAL);
	info.ai_port_space = 1;
	rig_fails(rdma_create_ep(&id, &info, NULL, NULL), EINVAL);
	info = active();
	info.ai_qp_type = IBV_QPT_UD;
	rig_fails(rdma_create_ep(&id, &info, NULL, NULL), EINVAL);
	info = active();
	info.ai_dst_addr = NULL;
	rig_fails(rdma_create_ep(&id, &info, NULL, NULL), EINVAL);
	info = passive();
	info.ai_src_addr = NULL;
	rig_fails(rdma_create_ep(&id, &info, NULL, NULL), EINVAL);
	info = active();
	attr.cap.max_send_sge = 1000;
	rig_fails(rdma_create_ep(&id, &info, NULL, &attr), EINVAL);
	rig.unreachable = true;
	rig_fails(rdma_create_ep(&id, &info, NULL, &attr), ENETUNREACH);
	rdma_destroy_ep(NULL);
}

/* XRC in port space IB, with addresses of AF_IB: no IP header is in front of the private data. */
TEST(rdma_create_ep__xrc_by_gid)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST | RAI_FAMILY | RAI_PASSIVE,
				      .ai_family = AF_IB,
				      .ai_port_space = RDMA_PS_IB,
				      .ai_qp_type = IBV_QPT_XRC_RECV};
	struct ibv_qp_init_attr attr = rig_qp_attr();
	struct rdma_addrinfo *at, *to;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	assert_int_equal(rdma_getaddrinfo("fd00::2", "7174", &hints, &at), 0);
	open_server(*at, NULL);
	hints.ai_flags &= ~RAI_PASSIVE;
	hints.ai_qp_type = IBV_QPT_XRC_SEND;
	assert_int_equal(rdma_getaddrinfo("fd00::2", "7174", &hints, &to), 0);
	assert_int_equal(rdma_create_ep(&id, to, NULL, &attr), 0);
	assert_int_equal(rdma_migrate_id(server, rig_channel), 0);
	assert_int_equal(rdma_migrate_id(id, rig_channel), 0);
	assert_int_equal(rdma_connect(id, NULL), 0);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	accepted = event->id;
	assert_int_equal(event->param.conn.private_data_len, CM_REQ_PRIVATE);
	assert_int_equal(accepted->route.addr.src_addr.sa_family, AF_IB);
	assert_int_equal(rdma_get_src_port(accepted), RTE_BE16(RIG_PORT));
	rdma_ack_cm_event(event);
	assert_int_equal(accepted->qp_type, IBV_QPT_XRC_RECV);
	attr = (struct ibv_qp_init_attr){.qp_type = IBV_QPT_XRC_RECV};
	assert_int_equal(rdma_create_qp(accepted, NULL, &attr), 0);
	assert_int_equal(rdma_accept(accepted, NULL), 0);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_ESTABLISHED);
	assert_ptr_equal(event->id, id);
	assert_int_equal(event->param.conn.qp_num, accepted->qp->qp_num);
	assert_int_equal(event->param.conn.srq, 1);
	rdma_ack_cm_event(event);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ESTABLISHED), accepted);
	rdma_destroy_ep(id);
	rdma_destroy_ep(accepted);
	rdma_destroy_ep(server);
	rdma_freeaddrinfo(at);
	rdma_freeaddrinfo(to);
}
