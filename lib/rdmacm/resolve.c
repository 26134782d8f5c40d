/* SPDX-License-Identifier: BSD-3-Clause */
/* The binding of an id to an address and a device, and the resolution of a peer: our address and
 * device for it, its link address, and the route. */
#include <string.h>

#include "id.h"
#include "wire/headers.h"

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

#define PACKET_LIFE_TIME 18 /* Linux's value */

/* Return true if the program leaves the choice of our address to us. */
static bool is_bound_to_any(const struct cm_id *id)
{
	return id->claim_count > 0 && (id->sgid_index < 0 || id->source_chosen);
}

/* Choose our address for a peer on this host. */
static int choose_own(struct cm_id *id, uint8_t dgid[GID_LEN])
{
	const uint8_t version = id->public.route.addr.dst_addr.sa_family == AF_INET ? 4 : 6;
	const int rc = id->sgid_index < 0 ? bind_own(id, version) : 0;

	if (rc != 0)
		return rc;
	memcpy(dgid, id->sgid.gid.raw, GID_LEN);
	return 0;
}

/* Choose the first device that has a route to the peer. */
static int choose_source(struct cm_id *id, const uint8_t dgid[GID_LEN], uint32_t scope)
{
	struct cm_device *const *devices;
	const int count = devices_get(&devices);
	int rc = count < 0 ? count : -ENETUNREACH;

	for (int i = 0; i < count; i++) {
		struct device_gid found;
		const int index =
			cm_calls()->agent_choose_source(devices[i]->agent, dgid, scope, &found);

		rc = index < 0 ? index : bind_gid(id, devices[i], index, &found);
		if (rc == 0)
			return 0;
	}
	return rc;
}

/* Show both addresses to the program. A peer without an address is this host. */
static void show_addresses(struct cm_id *id, bool own)
{
	struct rdma_addr *addr = &id->public.route.addr;
	const bool chooses = address_is_any(&addr->src_addr);
	uint8_t gid[GID_LEN];

	if (own && address_is_any(&addr->dst_addr))
		address_set_loopback(&addr->dst_addr);
	if (!chooses)
		return;
	memcpy(gid, id->sgid.gid.raw, GID_LEN);
	if (own)
		address_gid(&addr->dst_addr, gid);
	address_set_gid(&addr->src_addr, gid);
	if (!own && addr->src_addr.sa_family == AF_INET6)
		addr->src_sin6.sin6_scope_id = address_scope(&addr->dst_addr);
}

/* End a resolution, unless the device was lost meanwhile. */
static void finish(struct cm_id *id, int status)
{
	if (status == 0) {
		id->peer = id->query.address;
		memcpy(id->public.route.addr.addr.ibaddr.dgid.raw, id->peer.remote, GID_LEN);
		if (id_move(id, ID_RESOLVING, ID_ADDR_RESOLVED))
			event_tell(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	} else {
		if (id_move(id, ID_RESOLVING, ID_BOUND))
			event_tell(id, RDMA_CM_EVENT_ADDR_ERROR, status);
	}
}

void resolve_finish(struct agent_query *query, int status)
{
	finish(container_of(query, struct cm_id, query), status);
}

/* Forget the address that was chosen for the last peer: the next peer may need another one. */
static void forget_source(struct cm_id *id)
{
	static const uint8_t any[GID_LEN];

	address_set_gid(&id->public.route.addr.src_addr, any);
	id->sgid_index = -1;
	id->source_chosen = false;
}

static void start(struct cm_id *id, int timeout_ms)
{
	const struct sockaddr *dst = &id->public.route.addr.dst_addr;
	const bool own = address_is_any(dst) || address_is_loopback(dst);
	const bool chooses = is_bound_to_any(id);
	uint8_t dgid[GID_LEN];
	int rc = 0;

	if (chooses)
		forget_source(id);
	address_gid(dst, dgid);
	if (own)
		rc = choose_own(id, dgid);
	else if (chooses)
		rc = choose_source(id, dgid, address_scope(dst));
	if (rc == 0) {
		id->source_chosen = chooses;
		/* Before the event, which another thread may take at once. */
		show_addresses(id, own);
		rc = cm_calls()->agent_resolve(id->device->agent, &id->query,
					       (uint8_t)id->sgid_index, dgid,
					       timeout_ms > 0 ? (uint64_t)timeout_ms * 1000000 : 0);
	}
	if (rc != -EINPROGRESS)
		finish(id, rc);
}

/* Give an unbound id a port of its own. */
static int bind_first(struct cm_id *id, const struct sockaddr *src, const struct sockaddr *dst)
{
	struct sockaddr_storage any = {.ss_family = dst->sa_family};

	if (src && src->sa_family != dst->sa_family)
		return explain_argument("src_addr and dst_addr are of different families");
	if (src)
		return bind_address(id, src);
	return bind_address(id, (const struct sockaddr *)&any);
}

static int resolve_address(struct cm_id *id, const struct sockaddr *src, const struct sockaddr *dst,
			   int timeout_ms)
{
	int rc = 0;

	if (address_len(dst) == 0 || (src && address_len(src) == 0))
		return explain_argument(WRONG_FAMILY);
	if (id_state(id) == ID_IDLE)
		rc = bind_first(id, src, dst);
	if (rc != 0)
		return rc;
	if (id->public.route.addr.src_addr.sa_family != dst->sa_family)
		return explain_argument(
			"dst_addr is of another family than the address that the id "
			"is bound to");
	if (!id_move(id, ID_BOUND, ID_RESOLVING))
		return explain_state(id, "IDLE or BOUND");
	id->resolve_ms = timeout_ms;
	memset(&id->public.route.addr.dst_storage, 0, sizeof(id->public.route.addr.dst_storage));
	memcpy(&id->public.route.addr.dst_storage, dst, address_len(dst));
	start(id, timeout_ms);
	return event_complete(id);
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr,
		      int timeout_ms)
{
	ID_CALL();
	const int rc = id_check(id);

	if (rc != 0 || !dst_addr)
		return id_result(rc != 0 ? rc : explain_argument("dst_addr is NULL"));
	return id_result(resolve_address(cm_id_of(id), src_addr, dst_addr, timeout_ms));
}

/* Return the packet life time, from which an ACK timeout follows: the program's, or the default. */
static uint8_t packet_life_time(const struct cm_id *id)
{
	return id->ack_timeout > 0 ? id->ack_timeout - 1 : PACKET_LIFE_TIME;
}

void resolve_fill_route(struct cm_id *id)
{
	struct rdma_route *route = &id->public.route;

	id->path = (struct ibv_sa_path_rec){
		.sgid = route->addr.addr.ibaddr.sgid,
		.dgid = route->addr.addr.ibaddr.dgid,
		.hop_limit = WIRE_HOP_LIMIT,
		.traffic_class = id->tos,
		.reversible = 1,
		.numb_path = 1,
		.pkey = RTE_BE16(WIRE_PKEY_DEFAULT),
		.mtu_selector = 2, /* 2: exactly; also in the next two */
		.mtu = (uint8_t)id->device->port.active_mtu,
		.rate_selector = 2,
		.rate = IBV_RATE_MAX,
		.packet_life_time_selector = 2,
		.packet_life_time = packet_life_time(id),
	};
	route->path_rec = &id->path;
	route->num_paths = 1;
}

/* Return true if the device still has the address that rdma_resolve_addr has found. */
static bool has_address(struct cm_id *id)
{
	bool has;

	pthread_mutex_lock(&id->lock);
	has = id->has_address;
	pthread_mutex_unlock(&id->lock);
	return has;
}

/* Complete at once: RoCE has no route to ask for. The only possible failure is that our address has
 * gone since it was resolved. */
int resolve_route(struct cm_id *id)
{
	int rc;

	if (!id_move(id, ID_ADDR_RESOLVED, ID_ROUTE_RESOLVED))
		return explain_state(id, "ADDR_RESOLVED (rdma_resolve_addr, and its event)");
	if (!has_address(id)) {
		id_move(id, ID_ROUTE_RESOLVED, ID_ADDR_RESOLVED);
		return event_tell(id, RDMA_CM_EVENT_ROUTE_ERROR, -EADDRNOTAVAIL);
	}
	resolve_fill_route(id);
	rc = event_tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	if (rc != 0)
		id_move(id, ID_ROUTE_RESOLVED, ID_ADDR_RESOLVED);
	return rc;
}

/* Resolve the route. The call needs no time, because RoCE has no route to ask for. */
int rdma_resolve_route(struct rdma_cm_id *public, int timeout_ms)
{
	ID_CALL();
	struct cm_id *id = cm_id_of(public);
	int rc = id_check(public);

	(void)timeout_ms;
	if (rc == 0)
		rc = resolve_route(id);
	return id_result(rc == 0 ? event_complete(id) : rc);
}
