/* SPDX-License-Identifier: BSD-3-Clause */
/* Binding an id to an address: its device, and its port. */
#include <string.h>

#include "id.h"

#define CHOICES 16 /* attempts to find a port that is free on all devices */

int bind_gid(struct cm_id *id, struct cm_device *device, int sgid_index,
	     const struct device_gid *sgid)
{
	int rc;

	pthread_mutex_lock(&id->lock);
	id->sgid_index = sgid_index;
	id->sgid = *sgid;
	id->has_address = true;
	pthread_mutex_unlock(&id->lock);
	rc = id_set_device(id, device);
	if (rc != 0) {
		id->sgid_index = -1;
		return rc;
	}
	memcpy(id->public.route.addr.addr.ibaddr.sgid.raw, sgid->gid.raw, GID_LEN);
	id->public.route.addr.addr.ibaddr.pkey = RTE_BE16(0xffff);
	return 0;
}

static uint8_t version_of(const struct sockaddr *address)
{
	uint8_t gid[GID_LEN];

	return address_gid(address, gid) && gid_is_ipv4(gid) ? 4 : 6;
}

int bind_own(struct cm_id *id, uint8_t version)
{
	struct cm_device *const *devices;
	const int count = devices_get(&devices);
	struct device_gid found;
	int rc = count < 0 ? count : -EADDRNOTAVAIL;

	for (int i = 0; i < count && rc != 0; i++) {
		struct agent *agent = devices[i]->agent;
		int index = cm_calls()->agent_find_gid(agent, NULL, version, 0, &found);

		if (index < 0)
			index = cm_calls()->agent_find_gid(agent, NULL, 0, 0, &found);
		if (index >= 0)
			rc = bind_gid(id, devices[i], index, &found);
	}
	return rc;
}

static int bind_loopback(struct cm_id *id, const struct sockaddr *address)
{
	const int rc = bind_own(id, version_of(address));

	id->is_loopback = rc == 0;
	return rc;
}

static int bind_device(struct cm_id *id, const struct sockaddr *address)
{
	struct cm_device *const *devices;
	const int count = devices_get(&devices);
	struct device_gid found;
	uint8_t gid[GID_LEN];
	int rc = count;

	if (count >= 0)
		rc = ID_REASON(
			-EADDRNOTAVAIL,
			"no device has the address: rdma_bind_addr takes 0.0.0.0 or :: for all "
			"devices, or an address of one (ibv_devinfo -v, or --ip)");
	address_gid(address, gid);
	for (int i = 0; i < count && rc != 0; i++) {
		const int index = cm_calls()->agent_find_gid(devices[i]->agent, gid, 0,
							     address_scope(address), &found);

		if (index >= 0)
			rc = bind_gid(id, devices[i], index, &found);
	}
	return rc;
}

/* Return the IP version of a claim of any address. Without AFONLY, `::` is both versions: 0. */
static uint8_t any_version(uint8_t version, bool af_only)
{
	if (version == 4)
		return 4;
	return af_only ? 6 : 0;
}

static struct cm_port_claim claim_of(const struct cm_id *id, const struct sockaddr *address)
{
	struct cm_port_claim claim = {
		.space = address_space(id->public.ps, address),
		.port = rte_be_to_cpu_16(address_port(address)),
		.ip_version = address->sa_family == AF_INET ? 4 : 6,
		.any_address = address_is_any(address),
		.vlan_id = id->is_loopback ? -1 : id->sgid.vlan_id,
		.reuse = id->reuse,
	};

	address_gid(address, claim.address);
	if (claim.any_address) {
		memset(claim.address, 0, sizeof(claim.address));
		claim.ip_version = any_version(claim.ip_version, id->af_only);
	} else if (gid_is_ipv4(claim.address)) {
		claim.ip_version = 4;
	}
	return claim;
}

/* Return true if the id has a claim there: devices of one process, or of one arbiter, share their
 * ports. */
static bool has_claim(const struct cm_id *id, const struct cm_ports_ops *ops, const void *user)
{
	for (size_t i = 0; i < id->claim_count; i++) {
		if (id->claims[i].ops == ops && id->claims[i].user == user)
			return true;
	}
	return false;
}

static int claim_at(struct cm_id *id, struct cm_device *device, struct cm_port_claim *claim)
{
	struct id_claim *mine = &id->claims[id->claim_count];
	int rc;

	mine->ops = cm_calls()->agent_ports(device->agent, &mine->user);
	if (has_claim(id, mine->ops, mine->user))
		return 0;
	rc = mine->ops->claim(mine->user, claim, &mine->id);
	id->claim_count += rc == 0;
	if (rc != -EADDRINUSE)
		return rc;
	return ID_REASON(
		rc,
		"another id of this host's programs has port %u: choose another one, or set "
		"RDMA_OPTION_ID_REUSEADDR on all that share it",
		claim->port);
}

void bind_release(struct cm_id *id)
{
	for (size_t i = 0; i < id->claim_count; i++)
		id->claims[i].ops->release(id->claims[i].user, id->claims[i].id);
	id->claim_count = 0;
}

int bind_change(struct cm_id *id, bool reuse, bool af_only)
{
	uint8_t version = id->claim.ip_version;
	int rc = 0;

	if (id->claim.any_address)
		version = any_version(version, af_only);
	for (size_t i = 0; i < id->claim_count && rc == 0; i++)
		rc = id->claims[i].ops->change(id->claims[i].user, id->claims[i].id, version,
					       reuse);
	if (rc == 0) {
		id->claim.ip_version = version;
		id->claim.reuse = reuse;
	}
	return rc;
}

static int claim_at_all(struct cm_id *id, struct cm_port_claim *claim)
{
	struct cm_device *const *devices;
	const int count = devices_get(&devices);
	int rc = count < 0 ? count : 0;

	for (int i = 0; i < count && rc == 0; i++) {
		if (!device_is_lost(devices[i]))
			rc = claim_at(id, devices[i], claim);
	}
	if (rc == 0 && id->claim_count == 0)
		rc = ID_REASON(-ENODEV, "every device is lost");
	if (rc != 0)
		bind_release(id);
	return rc;
}

/* Claim the same port on every device that is not lost. */
static int claim_port(struct cm_id *id, struct cm_port_claim *claim)
{
	const bool chooses = claim->port == 0;
	int rc = -EADDRINUSE;

	if (id->device)
		return claim_at(id, id->device, claim);
	for (int i = 0; i < (chooses ? CHOICES : 1) && rc == -EADDRINUSE; i++) {
		if (chooses)
			claim->port = 0;
		rc = claim_at_all(id, claim);
	}
	return rc;
}

static void unbind(struct cm_id *id)
{
	(void)id_set_device(id, NULL);
	id->sgid_index = -1;
	id->is_loopback = false;
	memset(&id->public.route.addr.src_storage, 0, sizeof(id->public.route.addr.src_storage));
}

int bind_address(struct cm_id *id, const struct sockaddr *address)
{
	int rc = 0;

	if (address_len(address) == 0)
		return explain_argument(WRONG_FAMILY);
	if (!id_move(id, ID_IDLE, ID_BOUND))
		return explain_state(id, "IDLE: an id is bound once");
	memcpy(&id->public.route.addr.src_storage, address, address_len(address));
	if (address_is_loopback(address))
		rc = bind_loopback(id, address);
	else if (!address_is_any(address))
		rc = bind_device(id, address);
	if (rc == 0) {
		id->claim = claim_of(id, address);
		rc = id->claim.space == ADDRESS_NO_SPACE
			     ? ID_REASON(-EPROTONOSUPPORT, "the service id of the AF_IB address is "
							   "not of the id's port space")
			     : claim_port(id, &id->claim);
	}
	if (rc == 0) {
		address_set_service(&id->public.route.addr.src_addr, id->claim.space,
				    id->claim.port);
		return 0;
	}
	unbind(id);
	id_move(id, ID_BOUND, ID_IDLE);
	return rc;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	ID_CALL();
	const int rc = id_check(id);

	if (rc != 0 || !addr)
		return id_result(rc != 0 ? rc : explain_argument("addr is NULL"));
	return id_result(bind_address(cm_id_of(id), addr));
}
