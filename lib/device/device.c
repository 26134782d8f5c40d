/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation and destruction of a device: its path MTU, its GUID, its tables. */
#include "device/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "base/host.h"
#include "base/log.h"
#include "device/gsi.h"
#include "device/limits.h"
#include "like/like.h"
#include "mem/key_table.h"
#include "device_cc.h"
#include "qpn.h"
#include "wire/headers.h"

/* Return an enum ibv_mtu, whose n-th value means 128 << n bytes; 0 if not even the smallest
 * fits. */
enum ibv_mtu device_path_mtu(uint32_t port_mtu_bytes)
{
	int mtu = 0;

	for (int m = IBV_MTU_256; m <= IBV_MTU_4096; m++) {
		if (port_mtu_bytes >= WIRE_OVERHEAD_MAX + (128u << m))
			mtu = m;
	}
	return (enum ibv_mtu)mtu;
}

/*
 * Make an EUI-64: the first three octets of the MAC address, then a hash of 40 bits. The hash
 * covers everything that distinguishes this port of this host from others, because MAC addresses of
 * virtual ports are not unique, or are random at each start. So the bit for "locally administered"
 * is always set, and the bit for a group is never set.
 */
uint64_t device_guid(const struct device_config *config)
{
	uint64_t hash = hash_host(HASH_START);
	uint8_t octets[8] = {0};
	uint64_t guid_be;

	if (!config->mac_is_random) {
		hash = hash_bytes(hash, config->mac, sizeof(config->mac));
		memcpy(octets, config->mac, 3);
	}
	if (config->unique)
		hash = hash_bytes(hash, config->unique, strlen(config->unique));
	/* FNV-1a carries a byte upwards only, and only 40 bits are used: fold the upper half down.
	 */
	hash ^= hash >> 32;
	octets[0] = (uint8_t)((octets[0] | 0x02) & ~0x01);
	memcpy(octets + 3, &hash, 5);
	memcpy(&guid_be, octets, sizeof(guid_be));
	return guid_be;
}

static void destroy_engines(struct device *device)
{
	for (uint32_t i = 0; i < device->engine_count; i++)
		device_engine_destroy(device->engines[i]);
}

static int create_engines(struct device *device)
{
	const uint32_t count = RTE_MAX(device->config.engines, 1u);
	int rc;

	for (uint32_t i = 0; i < count; i++) {
		rc = device_engine_create(device, i, &device->engines[i]);
		if (rc != 0) {
			destroy_engines(device);
			return rc;
		}
		device->engine_count++;
	}
	return 0;
}

static int init_tables(struct device *device)
{
	int rc;

	rc = key_table_create(DEVICE_MAX_MR + DEVICE_MAX_MW, &device->keys);
	if (rc != 0)
		return rc;
	rc = create_engines(device);
	if (rc != 0)
		goto no_engines;
	rc = qpn_init(device);
	if (rc != 0)
		goto no_qpn;
	device->cc_params = cc_params_normal;
	rc = device_prepare_cc(device, device->config.cc);
	if (rc == 0)
		return 0;
	qpn_fini(device);
no_qpn:
	destroy_engines(device);
no_engines:
	key_table_destroy(device->keys);
	return rc;
}

int device_create(const struct device_config *config, struct device **device)
{
	const int mtu = device_path_mtu(config->port_mtu_bytes);
	struct device *d;
	int rc;

	if (config->name[0] == '\0' || !memchr(config->name, '\0', sizeof(config->name))) {
		log_error("a device needs a name of at most %zu characters",
			  sizeof(config->name) - 1);
		return -EINVAL;
	}
	if (config->engines > DEVICE_ENGINES_MAX) {
		log_error("%s: %u engines are more than %u", config->name, config->engines,
			  DEVICE_ENGINES_MAX);
		return -EINVAL;
	}
	if (mtu == 0) {
		log_error("%s: an MTU of %u bytes is too small for RoCE: set at least %u",
			  config->name, config->port_mtu_bytes, WIRE_OVERHEAD_MAX + 256u);
		return -EINVAL;
	}
	d = aligned_alloc(_Alignof(struct device), sizeof(*d));
	if (!d)
		return -ENOMEM;
	memset(d, 0, sizeof(*d));
	d->config = *config;
	d->config.unique = NULL; /* the string is the caller's, and is needed for the GUID only */
	d->node_guid_be = device_guid(config);
	d->mtu = (enum ibv_mtu)mtu;
	d->dm_pool.total_bytes = like_most(LIKE_max_dm_size, DEVICE_MAX_DM_BYTES);
	pthread_mutex_init(&d->groups_lock, NULL);
	pthread_mutex_init(&d->xrcd_lock, NULL);
	objects_init(&d->objects);
	for (int i = 0; i < DEVICE_GIDS_MAX; i++)
		d->gids[i].vlan_id = -1;
	rc = init_tables(d);
	if (rc != 0) {
		free(d);
		return rc;
	}
	*device = d;
	return 0;
}

void device_destroy(struct device *device)
{
	if (!device)
		return;
	qpn_fini(device);
	destroy_engines(device);
	key_table_destroy(device->keys);
	objects_fini(&device->objects);
	pthread_mutex_destroy(&device->xrcd_lock);
	pthread_mutex_destroy(&device->groups_lock);
	free(device->srq_table);
	free(device);
}

void device_raise(struct device *device, enum ibv_event_type type)
{
	if (device->event)
		device->event(device->event_user, type);
	if (device->gsi && device->gsi->device_event)
		device->gsi->device_event(device->gsi_user, type);
}
