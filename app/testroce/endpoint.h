/* SPDX-License-Identifier: BSD-3-Clause */
/* One side of a test: a region, a completion queue and queue pairs. Queue pair n connects to the
 * peer's queue pair n. */
#ifndef TESTROCE_ENDPOINT_H
#define TESTROCE_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct nic;

struct endpoint_config {
	uint32_t qps;
	uint32_t send_wr; /* of each queue pair */
	uint32_t recv_wr; /* of each queue pair, or of the shared queue */
	uint32_t sges;	  /* of each work request; 0: 1 */
	uint32_t inline_bytes;
	uint32_t path_mtu_bytes;
	uint8_t timeout;       /* ibv_qp_attr's */
	uint64_t region_bytes; /* of ordinary memory; 0: none */
	bool null_region;      /* use the null region instead of memory */
	bool shared_receive;
};

/* Values that the peer needs to connect. */
struct endpoint_facts {
	union ibv_gid gid;
	uint64_t addr; /* 0: a region without a remote key */
	uint64_t bytes;
	uint64_t rkey;
};

struct endpoint {
	struct nic *nic;
	struct endpoint_config config;
	uint8_t *memory; /* NULL with a null region */
	struct ibv_mr *mr;
	struct ibv_cq *cq; /* for send and receive completions */
	struct ibv_srq *srq;
	struct ibv_qp **qps;
	uint32_t qp_count; /* queue pairs created so far */
};

/** Make the region and the queues. Returns 0, or -errno with `error`. The caller must call
 * endpoint_destroy in both cases. */
int endpoint_create(struct endpoint *endpoint, struct nic *nic,
		    const struct endpoint_config *config, char *error, size_t error_size);

/** Make the next queue pair. 0 or -errno. */
int endpoint_add_qp(struct endpoint *endpoint);

/** Connect a queue pair to the peer's. Waits until the peer's address is resolved. Returns 0 or
 * -errno. */
int endpoint_connect(struct endpoint *endpoint, uint32_t qp, const union ibv_gid *gid,
		     uint32_t peer_qpn);

void endpoint_tell(const struct endpoint *endpoint, struct endpoint_facts *facts);
void endpoint_destroy(struct endpoint *endpoint);

#endif
