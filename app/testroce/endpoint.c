/* SPDX-License-Identifier: BSD-3-Clause */
/* One side of a test: its region and its queues. */
#include "endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_common.h>

#include "device/limits.h"
#include "nic.h"

#define REMOTE_ACCESS                                                                \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define RD_ATOMIC \
	16 /* READs and atomics in flight per queue pair, a usual limit of RDMA adapters */

static int endpoint_make_region(struct endpoint *endpoint)
{
	const size_t bytes = endpoint->config.region_bytes;
	void *memory;

	if (endpoint->config.null_region) {
		endpoint->mr = ibv_alloc_null_mr(endpoint->nic->pd);
		return endpoint->mr ? 0 : -errno;
	}
	if (bytes == 0)
		return 0;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	endpoint->memory = memory;
	endpoint->mr = ibv_reg_mr(endpoint->nic->pd, memory, bytes, REMOTE_ACCESS);
	return endpoint->mr ? 0 : -errno;
}

static int endpoint_make_queues(struct endpoint *endpoint)
{
	const struct endpoint_config *config = &endpoint->config;
	const uint64_t cqe = (uint64_t)config->qps * config->send_wr +
			     (uint64_t)config->recv_wr * (config->shared_receive ? 1 : config->qps);
	struct ibv_srq_init_attr init = {
		.attr = {.max_wr = config->recv_wr, .max_sge = RTE_MAX(config->sges, 1u)}};

	endpoint->cq =
		ibv_create_cq(endpoint->nic->context,
			      (int)RTE_MIN(cqe + 1, (uint64_t)DEVICE_MAX_CQE), NULL, NULL, 0);
	if (!endpoint->cq)
		return -errno;
	if (config->shared_receive) {
		endpoint->srq = ibv_create_srq(endpoint->nic->pd, &init);
		if (!endpoint->srq)
			return -errno;
	}
	endpoint->qps = calloc(config->qps, sizeof(endpoint->qps[0]));
	return endpoint->qps ? 0 : -ENOMEM;
}

static int endpoint_check_mtu(const struct nic *nic, const struct endpoint_config *config,
			      char *error, size_t error_size)
{
	struct ibv_port_attr port;
	uint32_t bytes;

	if (ibv_query_port(nic->context, 1, &port) != 0) {
		snprintf(error, error_size, "the port's MTU is unknown");
		return -EIO;
	}
	bytes = 256u << (port.active_mtu - IBV_MTU_256);
	if (config->path_mtu_bytes <= bytes)
		return 0;
	snprintf(error, error_size, "path MTU %u is larger than that of a port, %u",
		 config->path_mtu_bytes, bytes);
	return -EMSGSIZE;
}

int endpoint_create(struct endpoint *endpoint, struct nic *nic,
		    const struct endpoint_config *config, char *error, size_t error_size)
{
	const char *what = "the region";
	int rc;

	memset(endpoint, 0, sizeof(*endpoint));
	endpoint->nic = nic;
	endpoint->config = *config;
	rc = endpoint_check_mtu(nic, config, error, error_size);
	if (rc != 0)
		return rc;
	rc = endpoint_make_region(endpoint);
	if (rc == 0) {
		what = "the queues";
		rc = endpoint_make_queues(endpoint);
	}
	if (rc != 0)
		snprintf(error, error_size, "%s cannot be created: %s", what, strerror(-rc));
	return rc;
}

int endpoint_add_qp(struct endpoint *endpoint)
{
	const struct endpoint_config *config = &endpoint->config;
	struct ibv_qp_init_attr init = {
		.send_cq = endpoint->cq,
		.recv_cq = endpoint->cq,
		.srq = endpoint->srq,
		.cap = {.max_send_wr = config->send_wr,
			.max_recv_wr = config->shared_receive ? 0 : config->recv_wr,
			.max_send_sge = RTE_MAX(config->sges, 1u),
			.max_recv_sge = RTE_MAX(config->sges, 1u),
			.max_inline_data = config->inline_bytes},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp;

	if (endpoint->qp_count == config->qps)
		return -ENOSPC;
	qp = ibv_create_qp(endpoint->nic->pd, &init);
	if (!qp)
		return -errno;
	endpoint->qps[endpoint->qp_count++] = qp;
	return 0;
}

static enum ibv_mtu mtu_of(uint32_t bytes)
{
	return (enum ibv_mtu)(IBV_MTU_256 + (31 - __builtin_clz(bytes)) - 8);
}

int endpoint_connect(struct endpoint *endpoint, uint32_t qp, const union ibv_gid *gid,
		     uint32_t peer_qpn)
{
	static const struct {
		enum ibv_qp_state state;
		int mask;
	} steps[] = {
		{IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
		{IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER},
		{IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC},
	};
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = REMOTE_ACCESS,
		.path_mtu = mtu_of(endpoint->config.path_mtu_bytes),
		.dest_qp_num = peer_qpn,
		.max_dest_rd_atomic = RD_ATOMIC,
		.max_rd_atomic = RD_ATOMIC,
		.min_rnr_timer = 1,
		.timeout = endpoint->config.timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = *gid,
				    .sgid_index = endpoint->nic->gid_index,
				    .hop_limit = 64}},
	};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < RTE_DIM(steps); i++) {
		attr.qp_state = steps[i].state;
		rc = ibv_modify_qp(endpoint->qps[qp], &attr, IBV_QP_STATE | steps[i].mask);
	}
	return -rc;
}

void endpoint_tell(const struct endpoint *endpoint, struct endpoint_facts *facts)
{
	*facts = (struct endpoint_facts){.gid = endpoint->nic->gid};
	if (!endpoint->memory)
		return;
	facts->addr = (uintptr_t)endpoint->memory;
	facts->bytes = endpoint->config.region_bytes;
	facts->rkey = endpoint->mr->rkey;
}

void endpoint_destroy(struct endpoint *endpoint)
{
	while (endpoint->qp_count > 0)
		ibv_destroy_qp(endpoint->qps[--endpoint->qp_count]);
	free(endpoint->qps);
	if (endpoint->srq)
		ibv_destroy_srq(endpoint->srq);
	if (endpoint->cq)
		ibv_destroy_cq(endpoint->cq);
	if (endpoint->mr)
		ibv_dereg_mr(endpoint->mr);
	if (endpoint->memory)
		munmap(endpoint->memory, endpoint->config.region_bytes);
	memset(endpoint, 0, sizeof(*endpoint));
}
