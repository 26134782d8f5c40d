/* SPDX-License-Identifier: BSD-3-Clause */
/* Exported calls that need no device: those that no header declares, those of later releases that
 * are not supported, files of sysfs, and conversions to and from the kernel's structs. */
#include "private.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <rte_common.h>

#include "later.h"
#include "verbs_internal.h"

/*
 * Symbols of rdma-core's library that its drivers use (private_names.def). No driver is ever asked
 * to open a device here, so each of these functions only returns an error.
 *
 * They are declared without parameters, because no header declares them; a caller's arguments are
 * ignored.
 */
bool verbs_allow_disassociate_destroy;

/* Results of a failed call that also set errno. */
#define NULL_AND(error)	     (errno = (error), NULL)
#define ERRNO_AND(error)     (errno = (error))
#define MINUS_ONE_AND(error) (errno = (error), -1)

#define PRIVATE_ERRNO(name)        \
	int name(void);            \
	int name(void)             \
	{                          \
		return EOPNOTSUPP; \
	}
#define PRIVATE_NULL(name)                   \
	void *name(void);                    \
	void *name(void)                     \
	{                                    \
		return NULL_AND(EOPNOTSUPP); \
	}
#define PRIVATE_NOTHING(name) \
	void name(void);      \
	void name(void)       \
	{                     \
	}

#include "private_names.def"

/* Drivers' constructors call this one when they are loaded. */
PRIVATE_NOTHING(verbs_register_driver_34)

int ibv_cmd_poll_cq(void);
unsigned int __ioctl_final_num_attrs(void);

/* Return a negative value: others are a number of completions. */
int ibv_cmd_poll_cq(void)
{
	return -EOPNOTSUPP;
}

/* Return the number of attributes of an ioctl command, which execute_ioctl would use. */
unsigned int __ioctl_final_num_attrs(void)
{
	return 0;
}

/*
 * Calls of releases of rdma-core later than 44, by their symbols, because later releases of verbs.h
 * declare them with types that this one lacks: handles for steering of DMA, which this device does
 * not do; dma-bufs of device memory, which is memory of the process.
 */
#define LATER_ERRNO(symbol)                          \
	int later_##symbol(void) LATER_CALL(symbol); \
	int later_##symbol(void)                     \
	{                                            \
		return ERRNO_AND(EOPNOTSUPP);        \
	}
#define LATER_MINUS_ONE(symbol)                      \
	int later_##symbol(void) LATER_CALL(symbol); \
	int later_##symbol(void)                     \
	{                                            \
		return MINUS_ONE_AND(EOPNOTSUPP);    \
	}
#define LATER_NULL(symbol)                             \
	void *later_##symbol(void) LATER_CALL(symbol); \
	void *later_##symbol(void)                     \
	{                                              \
		return NULL_AND(EOPNOTSUPP);           \
	}

LATER_NULL(ibv_alloc_dmah)
LATER_ERRNO(ibv_dealloc_dmah)
LATER_MINUS_ONE(ibv_dm_export_dmabuf_fd)

static char sysfs_path[IBV_SYSFS_PATH_MAX];
static pthread_once_t sysfs_path_once = PTHREAD_ONCE_INIT;

/* Use the path of an environment variable, where tests put a tree of their own; but not in a
 * program that runs with more rights than its caller. */
static void find_sysfs_path(void)
{
	const char *path = secure_getenv("SYSFS_PATH");
	size_t len;

	if (!path || strlen(path) >= sizeof(sysfs_path))
		path = "/sys";
	len = strlen(path);
	memcpy(sysfs_path, path, len + 1);
	while (len > 0 && sysfs_path[len - 1] == '/')
		sysfs_path[--len] = '\0';
}

const char *ibv_get_sysfs_path(void)
{
	pthread_once(&sysfs_path_once, find_sysfs_path);
	return sysfs_path;
}

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	ssize_t len;
	char *path;
	int fd;

	if (asprintf(&path, "%s/%s", dir, file) < 0)
		return MINUS_ONE_AND(ENOMEM);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	if (fd < 0)
		return -1;
	len = read(fd, buf, size);
	close(fd);
	if (len < 0)
		return -1;
	if (len > 0 && buf[len - 1] == '\n')
		len--;
	if ((size_t)len < size)
		buf[len] = '\0';
	else if (size > 0)
		return MINUS_ONE_AND(ENOSPC); /* there is no room for the string's end */
	return (int)len;
}

int ibv_read_ibdev_sysfs_file(char *buf __rte_unused, size_t size __rte_unused,
			      struct verbs_sysfs_dev *sysfs_dev __rte_unused,
			      const char *format __rte_unused, ...)
{
	return MINUS_ONE_AND(EOPNOTSUPP);
}

void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src)
{
	memcpy(dst->grh.dgid.raw, src->grh.dgid, sizeof(dst->grh.dgid));
	dst->grh.flow_label = src->grh.flow_label;
	dst->grh.sgid_index = src->grh.sgid_index;
	dst->grh.hop_limit = src->grh.hop_limit;
	dst->grh.traffic_class = src->grh.traffic_class;
	dst->dlid = src->dlid;
	dst->sl = src->sl;
	dst->src_path_bits = src->src_path_bits;
	dst->static_rate = src->static_rate;
	dst->is_global = src->is_global;
	dst->port_num = src->port_num;
}

void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src)
{
	dst->qp_state = (enum ibv_qp_state)src->qp_state;
	dst->cur_qp_state = (enum ibv_qp_state)src->cur_qp_state;
	dst->path_mtu = (enum ibv_mtu)src->path_mtu;
	dst->path_mig_state = (enum ibv_mig_state)src->path_mig_state;
	dst->qkey = src->qkey;
	dst->rq_psn = src->rq_psn;
	dst->sq_psn = src->sq_psn;
	dst->dest_qp_num = src->dest_qp_num;
	dst->qp_access_flags = src->qp_access_flags;
	dst->cap.max_send_wr = src->max_send_wr;
	dst->cap.max_recv_wr = src->max_recv_wr;
	dst->cap.max_send_sge = src->max_send_sge;
	dst->cap.max_recv_sge = src->max_recv_sge;
	dst->cap.max_inline_data = src->max_inline_data;
	ibv_copy_ah_attr_from_kern(&dst->ah_attr, &src->ah_attr);
	ibv_copy_ah_attr_from_kern(&dst->alt_ah_attr, &src->alt_ah_attr);
	dst->pkey_index = src->pkey_index;
	dst->alt_pkey_index = src->alt_pkey_index;
	dst->en_sqd_async_notify = src->en_sqd_async_notify;
	dst->sq_draining = src->sq_draining;
	dst->max_rd_atomic = src->max_rd_atomic;
	dst->max_dest_rd_atomic = src->max_dest_rd_atomic;
	dst->min_rnr_timer = src->min_rnr_timer;
	dst->port_num = src->port_num;
	dst->timeout = src->timeout;
	dst->retry_cnt = src->retry_cnt;
	dst->rnr_retry = src->rnr_retry;
	dst->alt_port_num = src->alt_port_num;
	dst->alt_timeout = src->alt_timeout;
}

void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src)
{
	memcpy(dst->dgid.raw, src->dgid, sizeof(dst->dgid));
	memcpy(dst->sgid.raw, src->sgid, sizeof(dst->sgid));
	dst->dlid = src->dlid;
	dst->slid = src->slid;
	dst->raw_traffic = (int)src->raw_traffic;
	dst->flow_label = src->flow_label;
	dst->hop_limit = src->hop_limit;
	dst->traffic_class = src->traffic_class;
	dst->reversible = (int)src->reversible;
	dst->numb_path = src->numb_path;
	dst->pkey = src->pkey;
	dst->sl = src->sl;
	dst->mtu_selector = src->mtu_selector;
	dst->mtu = (uint8_t)src->mtu;
	dst->rate_selector = src->rate_selector;
	dst->rate = src->rate;
	dst->packet_life_time_selector = src->packet_life_time_selector;
	dst->packet_life_time = src->packet_life_time;
	dst->preference = src->preference;
}

void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src)
{
	memcpy(dst->dgid, src->dgid.raw, sizeof(dst->dgid));
	memcpy(dst->sgid, src->sgid.raw, sizeof(dst->sgid));
	dst->dlid = src->dlid;
	dst->slid = src->slid;
	dst->raw_traffic = (uint32_t)src->raw_traffic;
	dst->flow_label = src->flow_label;
	dst->reversible = (uint32_t)src->reversible;
	dst->mtu = src->mtu;
	dst->pkey = src->pkey;
	dst->hop_limit = src->hop_limit;
	dst->traffic_class = src->traffic_class;
	dst->numb_path = src->numb_path;
	dst->sl = src->sl;
	dst->mtu_selector = src->mtu_selector;
	dst->rate_selector = src->rate_selector;
	dst->rate = src->rate;
	dst->packet_life_time_selector = src->packet_life_time_selector;
	dst->packet_life_time = src->packet_life_time;
	dst->preference = src->preference;
}
