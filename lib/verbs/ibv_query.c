/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of a device, its port, GIDs and partition keys. */
#include <string.h>
#include <time.h>

#include <rte_byteorder.h>

#include "wire/gid.h"
#include "wire/headers.h"

#include "private.h"
#include "later.h"
#include "verbs_internal.h"

#define MBPS_PER_SPEED 100 /* the unit of ibv_query_port_speed(3) */

/* The header defines a macro of this name, which chooses a version for the caller. */
#undef ibv_query_port

/* Copy as much as the caller's struct has room for: it may be older or newer than ours. */
static void copy_sized(void *dst, size_t dst_size, const void *src, size_t src_size)
{
	memset(dst, 0, dst_size);
	memcpy(dst, src, RTE_MIN(dst_size, src_size));
}

/* Query a device. This works in a child process too. */
int query_device_ex_op(struct ibv_context *ibv, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ibv_device_attr_ex answer = {0};

	if (input && input->comp_mask != 0)
		return face_errno(-EINVAL);
	if (attr_size < sizeof(attr->orig_attr))
		return face_errno(-EINVAL);
	device_query(face_context(ibv)->device, &answer);
	copy_sized(attr, attr_size, &answer, sizeof(answer));
	return 0;
}

int ibv_query_device(struct ibv_context *ibv, struct ibv_device_attr *attr)
{
	struct ibv_device_attr_ex answer = {0};

	device_query(face_context(ibv)->device, &answer);
	*attr = answer.orig_attr;
	return 0;
}

int query_port_op(struct ibv_context *ibv, uint8_t port_num, struct ibv_port_attr *attr,
		  size_t attr_size)
{
	struct ibv_port_attr answer = {0};

	if (context_is_orphan(ibv))
		return face_errno(-ENODEV);
	if (port_num != FACE_PORT)
		return face_errno(-EINVAL);
	device_query_port(face_context(ibv)->device, &answer);
	copy_sized(attr, attr_size, &answer, sizeof(answer));
	return 0;
}

int later_query_port_speed(struct ibv_context *ibv, uint32_t port_num, uint64_t *speed)
{
	if (context_is_orphan(ibv))
		return face_errno(-ENODEV);
	if (port_num != FACE_PORT)
		return face_errno(-EINVAL);
	*speed = face_context(ibv)->device->config.link_mbps / MBPS_PER_SPEED;
	return 0;
}

/* Return the clock as adapters do: all of its bits are in tv_nsec, in units of hca_core_clock. */
int query_rt_values_ex_op(struct ibv_context *ibv, struct ibv_values_ex *values)
{
	struct device *device = face_context(ibv)->device;

	if (context_is_orphan(ibv))
		return face_errno(-ENODEV);
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return face_errno(-EINVAL);
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK)
		values->raw_clock = (struct timespec){
			.tv_nsec = (long)device_engine_now(device_first(device)),
		};
	return 0;
}

/* Query a port with this old call, whose struct ends before port_cap_flags2. */
int query_port_legacy(struct ibv_context *ibv, uint8_t port_num, struct _compat_ibv_port_attr *attr)
{
	return query_port_op(ibv, port_num, (struct ibv_port_attr *)attr,
			     offsetof(struct ibv_port_attr, port_cap_flags2));
}

int ibv_query_port(struct ibv_context *ibv, uint8_t port_num, struct _compat_ibv_port_attr *attr)
{
	return query_port_legacy(ibv, port_num, attr);
}

static int gid_table_len(const struct device *device)
{
	struct ibv_port_attr attr = {0};

	device_query_port(device, &attr);
	return RTE_MIN(attr.gid_tbl_len, DEVICE_GIDS_MAX);
}

static int read_gid(struct ibv_context *ibv, uint32_t port_num, int64_t index,
		    struct device_gid *gid)
{
	struct face_context *context = face_context(ibv);
	int rc;

	if (port_num != FACE_PORT || index < 0 || index >= gid_table_len(context->device))
		return -EINVAL;
	rc = context_lock(context);
	if (rc != 0)
		return rc;
	*gid = context->device->gids[index];
	context_unlock(context);
	return 0;
}

static struct ibv_gid_entry gid_entry(const struct device_gid *gid, uint32_t index)
{
	return (struct ibv_gid_entry){
		.gid = gid->gid,
		.gid_index = index,
		.port_num = FACE_PORT,
		.gid_type = IBV_GID_TYPE_ROCE_V2,
		.ndev_ifindex = gid->ndev_ifindex,
	};
}

int ibv_query_gid(struct ibv_context *ibv, uint8_t port_num, int index, union ibv_gid *gid)
{
	struct device_gid found;
	int rc = read_gid(ibv, port_num, index, &found);

	if (rc != 0)
		return face_minus_one(rc);
	*gid = found.gid;
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *ibv, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry answer;
	struct device_gid found;
	int rc;

	if (flags != 0)
		return face_errno(-EOPNOTSUPP);
	rc = read_gid(ibv, port_num, gid_index, &found);
	if (rc != 0)
		return face_errno(rc);
	if (gid_is_zero(found.gid.raw))
		return face_errno(-ENODATA);
	answer = gid_entry(&found, gid_index);
	copy_sized(entry, entry_size, &answer, sizeof(answer));
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *ibv, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	struct face_context *context = face_context(ibv);
	const int len = gid_table_len(context->device);
	size_t count = 0;
	int rc;

	if (flags != 0)
		return -EOPNOTSUPP;
	rc = context_lock(context);
	if (rc != 0)
		return rc;
	for (int i = 0; i < len; i++) {
		struct ibv_gid_entry answer = gid_entry(&context->device->gids[i], (uint32_t)i);

		if (gid_is_zero(answer.gid.raw))
			continue;
		if (count == max_entries) {
			rc = -EINVAL;
			break;
		}
		copy_sized((char *)entries + count++ * entry_size, entry_size, &answer,
			   sizeof(answer));
	}
	context_unlock(context);
	return rc == 0 ? (ssize_t)count : rc;
}

int ibv_query_gid_type(struct ibv_context *ibv, uint8_t port_num, unsigned int index,
		       enum private_gid_type *type)
{
	struct device_gid found;
	int rc = read_gid(ibv, port_num, index, &found);

	if (rc != 0)
		return face_minus_one(rc);
	*type = PRIVATE_GID_TYPE_ROCE_V2;
	return 0;
}

/* Return a partition key. RoCE has the default partition only (IBTA A17.7.1), at index 0. */
int ibv_query_pkey(struct ibv_context *ibv, uint8_t port_num, int index, __be16 *pkey)
{
	if (context_is_orphan(ibv))
		return face_minus_one(-ENODEV);
	if (port_num != FACE_PORT || index != 0)
		return face_minus_one(-EINVAL);
	*pkey = rte_cpu_to_be_16(WIRE_PKEY_DEFAULT);
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *ibv, uint8_t port_num, __be16 pkey)
{
	if (context_is_orphan(ibv))
		return face_minus_one(-ENODEV);
	if (port_num != FACE_PORT || pkey != rte_cpu_to_be_16(WIRE_PKEY_DEFAULT))
		return face_minus_one(-EINVAL);
	return 0;
}
