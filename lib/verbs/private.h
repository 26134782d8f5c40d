/* SPDX-License-Identifier: BSD-3-Clause */
/* Exported calls that no installed header declares: those of rdma-core itself, and of its older
 * users. */
#ifndef VERBS_PRIVATE_H
#define VERBS_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/sa.h>
#include <infiniband/verbs.h>

struct ib_uverbs_ah_attr;
struct ib_uverbs_qp_attr;
struct ib_user_path_rec;
struct verbs_sysfs_dev;

/* The type of a GID as drivers read it; the numbers differ from enum ibv_gid_type. */
enum private_gid_type {
	PRIVATE_GID_TYPE_ROCE_V1,
	PRIVATE_GID_TYPE_ROCE_V2,
};

extern bool verbs_allow_disassociate_destroy;

int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

int ibv_query_gid_type(struct ibv_context *ibv, uint8_t port_num, unsigned int index,
		       enum private_gid_type *type);

/** Return where sysfs is mounted. MT-safe. */
const char *ibv_get_sysfs_path(void);

/** Read a file below `dir` without its last newline. MT-safe. Length, or -1 with errno. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

/** Read a file of a kernel's device, which does not exist: -1 with errno. */
int ibv_read_ibdev_sysfs_file(char *buf, size_t size, struct verbs_sysfs_dev *sysfs_dev,
			      const char *format, ...);

void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src);

#endif
