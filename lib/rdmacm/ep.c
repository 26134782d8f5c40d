/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: one call makes an id with all that it needs. */
#include <stdlib.h>
#include <string.h>

#include "id.h"

#define TIMEOUT_MS 2000

/* Keep in a listener the attributes for the ids of its requests. */
static int keep_attr(struct cm_id *id, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	id->ep_pd = pd;
	id->public.pd = pd;
	if (!attr)
		return 0;
	id->ep_attr = malloc(sizeof(*attr));
	if (!id->ep_attr)
		return -ENOMEM;
	*id->ep_attr = *attr;
	return 0;
}

static int keep_data(struct cm_id *id, const struct rdma_addrinfo *res)
{
	if (res->ai_connect_len == 0 || !res->ai_connect)
		return 0;
	if (res->ai_connect_len > UINT8_MAX)
		return explain_argument("ai_connect_len is more than 255");
	id->ep_data = malloc(res->ai_connect_len);
	if (!id->ep_data)
		return -ENOMEM;
	memcpy(id->ep_data, res->ai_connect, res->ai_connect_len);
	id->ep_data_len = (uint8_t)res->ai_connect_len;
	return 0;
}

static int prepare_passive(struct cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
			   const struct ibv_qp_init_attr *attr)
{
	const int rc =
		res->ai_src_addr
			? bind_address(id, res->ai_src_addr)
			: explain_argument("ai_src_addr is NULL, and ai_flags have RAI_PASSIVE");

	return rc == 0 ? keep_attr(id, pd, attr) : rc;
}

/* Take the path that rdma_getaddrinfo or the program has found, or resolve one. */
static int find_route(struct cm_id *id, const struct rdma_addrinfo *res)
{
	struct rdma_cm_id *public = &id->public;

	if (res->ai_route_len == 0)
		return rdma_resolve_route(public, TIMEOUT_MS) == 0 ? 0 : -errno;
	if (rdma_set_option(public, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, res->ai_route,
			    (size_t)res->ai_route_len) != 0)
		return -errno;
	return event_complete(id);
}

static int prepare_active(struct cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
			  struct ibv_qp_init_attr *attr)
{
	struct rdma_cm_id *public = &id->public;
	int rc;

	if (!res->ai_dst_addr)
		return explain_argument("ai_dst_addr is NULL, and ai_flags lack RAI_PASSIVE");
	if (rdma_resolve_addr(public, res->ai_src_addr, res->ai_dst_addr, TIMEOUT_MS) != 0)
		return -errno;
	rc = find_route(id, res);
	if (rc != 0)
		return rc;
	if (attr) {
		attr->qp_type = public->qp_type;
		if (rdma_create_qp(public, pd, attr) != 0)
			return -errno;
	}
	return keep_data(id, res);
}

/* Return true if the port space allows the queue pair's type. Only RDMA_PS_IB allows all. */
static bool is_usable(const struct rdma_addrinfo *res)
{
	switch (res->ai_port_space) {
	case RDMA_PS_TCP:
		return res->ai_qp_type != IBV_QPT_UD;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return res->ai_qp_type == IBV_QPT_UD;
	default:
		return res->ai_port_space == RDMA_PS_IB;
	}
}

int rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *res, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *qp_init_attr)
{
	ID_CALL();
	struct cm_id *id;
	int rc;

	if (!out || !res || !is_usable(res))
		return id_result(explain_argument(
			"id or res is NULL, or ai_qp_type is not one of ai_port_space: IBV_QPT_UD "
			"is of RDMA_PS_UDP and RDMA_PS_IPOIB, the others are of RDMA_PS_TCP"));
	id = id_create(NULL, NULL, (enum rdma_port_space)res->ai_port_space,
		       (enum ibv_qp_type)res->ai_qp_type);
	if (!id)
		return id_result(-errno);
	if (res->ai_flags & RAI_PASSIVE)
		rc = prepare_passive(id, res, pd, qp_init_attr);
	else
		rc = prepare_active(id, res, pd, qp_init_attr);
	if (rc != 0) {
		rdma_destroy_ep(&id->public);
		return id_result(rc);
	}
	*out = &id->public;
	return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id_check(id) != 0)
		return;
	rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}
