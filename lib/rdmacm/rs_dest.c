/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Destinations of datagrams: the local address, the peer's queue pair number, and the address
 * handle. The peer's link address is resolved in the background. Each source address of a datagram
 * gets an entry, even a forged address. So the number of entries is limited, and the least recently
 * used entry is dropped.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rs_datagram.h"
#include "wire/headers.h"

#define RESOLVE_MS 3000

static size_t bucket_of(const struct sockaddr_storage *addr)
{
	const struct sockaddr *sa = (const struct sockaddr *)addr;
	uint32_t hash = address_port(sa);
	uint8_t gid[GID_LEN] = {0};

	/* Hash only what rs_datagram_is_same compares: an address also has padding and a flow
	 * label. */
	address_gid(sa, gid);
	for (size_t i = 0; i < GID_LEN; i++)
		hash = hash * 31 + gid[i];
	return hash % RS_DEST_BUCKETS;
}

static void stop_looking(struct rs_dest *dest)
{
	if (dest->looks)
		rdma_destroy_id(dest->looks);
	dest->looks = NULL;
}

static void end_dest(struct rs_datagrams *datagrams, struct rs_dest *dest)
{
	stop_looking(dest);
	if (dest->ah)
		ibv_destroy_ah(dest->ah);
	LIST_REMOVE(dest, in_bucket);
	TAILQ_REMOVE(&datagrams->dests, dest, by_use);
	datagrams->dest_count--;
	free(dest);
}

void rs_dest_end_all(struct rsocket *s)
{
	struct rs_dest *dest;

	while ((dest = TAILQ_FIRST(&s->datagrams->dests)) != NULL)
		end_dest(s->datagrams, dest);
}

static struct rs_dest *find(struct rs_datagrams *datagrams, const struct sockaddr_storage *addr)
{
	struct rs_dest *dest;

	LIST_FOREACH (dest, &datagrams->buckets[bucket_of(addr)], in_bucket) {
		if (!rs_datagram_is_same(&dest->addr, addr))
			continue;
		TAILQ_REMOVE(&datagrams->dests, dest, by_use);
		TAILQ_INSERT_TAIL(&datagrams->dests, dest, by_use);
		return dest;
	}
	return NULL;
}

/* Ask the kernel for the source address of packets to an address. */
static int ask_route(const struct sockaddr_storage *to, struct sockaddr_storage *local)
{
	const int udp = socket(to->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*local);
	int rc = 0;

	if (udp < 0)
		return -errno;
	if (connect(udp, (const struct sockaddr *)to, address_len((const struct sockaddr *)to)) !=
		    0 ||
	    getsockname(udp, (struct sockaddr *)local, &len) != 0)
		rc = -errno;
	close(udp);
	return rc;
}

static int choose_local(const struct rs_datagrams *datagrams, const struct sockaddr_storage *to,
			struct sockaddr_storage *local)
{
	socklen_t len = sizeof(*local);
	__be16 port;
	int rc;

	memset(local, 0, sizeof(*local));
	if (getsockname(datagrams->udp, (struct sockaddr *)local, &len) != 0)
		return -errno;
	if (!address_is_any((const struct sockaddr *)local))
		return 0;
	port = address_port((const struct sockaddr *)local);
	rc = ask_route(to, local);
	address_set_port((struct sockaddr *)local, port);
	return rc;
}

int rs_dest_get(struct rsocket *s, const struct sockaddr_storage *addr, bool make,
		struct rs_dest **found)
{
	struct rs_datagrams *datagrams = s->datagrams;
	struct sockaddr_storage local;
	struct rs_pair *pair;
	struct rs_dest *dest;
	int rc;

	*found = find(datagrams, addr);
	if (*found || !make)
		return *found ? 0 : -ENOENT;
	rc = choose_local(datagrams, addr, &local);
	if (rc == 0)
		rc = rs_pair_get(s, &local, &pair);
	if (rc != 0)
		return rc;
	dest = calloc(1, sizeof(*dest));
	if (!dest)
		return -ENOMEM;
	if (datagrams->dest_count == RS_DEST_MAX)
		end_dest(datagrams, TAILQ_FIRST(&datagrams->dests));
	dest->addr = *addr;
	dest->pair = pair;
	LIST_INSERT_HEAD(&datagrams->buckets[bucket_of(addr)], dest, in_bucket);
	TAILQ_INSERT_TAIL(&datagrams->dests, dest, by_use);
	datagrams->dest_count++;
	*found = dest;
	return 0;
}

/* Resolve the peer's link address. If that fails, datagrams still go by UDP. */
static void look_for_way(struct rsocket *s, struct rs_dest *dest)
{
	struct sockaddr_storage src = dest->pair->local, dst = dest->addr;

	if (dest->looks ||
	    rdma_create_id(s->datagrams->channel, &dest->looks, dest, RDMA_PS_UDP) != 0)
		return;
	address_set_port((struct sockaddr *)&src, 0);
	if (rdma_resolve_addr(dest->looks, (struct sockaddr *)&src, (struct sockaddr *)&dst,
			      RESOLVE_MS) != 0)
		stop_looking(dest);
}

/*
 * A datagram with a forged source address may announce any number. So a second number replaces
 * none: the sender forgets both, and sends its next data by UDP. That datagram goes to the peer's
 * own address, and the peer answers with its number. A forged answer is as good as a true one, but
 * only until the true one arrives.
 */
void rs_dest_learn(struct rsocket *s, struct rs_dest *dest, uint32_t qpn)
{
	/* Refuse QP 0 and QP 1, the special queue pairs. */
	if (qpn <= 1 || dest->disputed)
		return;
	if (dest->qpn != 0 && dest->qpn != qpn) {
		dest->qpn = 0;
		dest->disputed = true;
		return;
	}
	dest->qpn = qpn;
	if (!dest->ah)
		look_for_way(s, dest);
}

void rs_dest_asked(struct rs_dest *dest)
{
	dest->disputed = false;
}

/* Create the address handle. The call does not block, because the link address is known. */
static void take_way(const struct rsocket *s, struct rs_dest *dest)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = dest->pair->id->port_num,
		.grh = {.sgid_index = dest->pair->sgid_index,
			.hop_limit = WIRE_HOP_LIMIT,
			.traffic_class = (uint8_t)s->options.tos},
	};

	address_gid((const struct sockaddr *)&dest->addr, attr.grh.dgid.raw);
	dest->ah = ibv_create_ah(dest->pair->id->pd, &attr);
}

void rs_dest_take_events(struct rsocket *s)
{
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(s->datagrams->channel, &event) == 0) {
		const bool found = event->event == RDMA_CM_EVENT_ADDR_RESOLVED;
		const bool failed = event->event == RDMA_CM_EVENT_ADDR_ERROR;
		struct rs_dest *dest = event->id->context;

		rdma_ack_cm_event(event);
		/* The context of a pair's id, which gets other events, is the pair. */
		if (!found && !failed)
			continue;
		if (found && !dest->ah)
			take_way(s, dest);
		stop_looking(dest);
	}
}
