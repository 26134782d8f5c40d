/* SPDX-License-Identifier: BSD-3-Clause */
/* The hosts, and the network between them. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cm_sim.h"

#define LATENCY_NS   2000
#define DATAGRAM_MAX 512
#define UNKNOWN_HOST 99 /* the last byte of an address that no host has */

struct datagram {
	struct cm_sim *sim;
	unsigned int to;
	struct gsi_address from; /* the addresses as the receiver sees them */
	size_t len;
	uint8_t bytes[DATAGRAM_MAX] __attribute__((aligned(16))); /* a MAD, or a frame */
};

struct wake {
	struct cm_host *host;
	unsigned int life;
};

struct gsi_address cm_address(unsigned int from, unsigned int to)
{
	struct gsi_address address = {.local = {[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(from + 1)},
				      .remote = {[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(to + 1)},
				      .vlan_id = -1,
				      .mac_known = true,
				      .mac = {2, [5] = (uint8_t)to}};

	return address;
}

static void deliver(void *context, void *argument)
{
	struct datagram *datagram = argument;
	struct cm_sim *sim = context;
	struct cm_host *host = &sim->host[datagram->to];

	if (host->device)
		cm_device_receive(host, datagram->bytes, datagram->len);
	else
		cm_receive(host->cm, datagram->bytes, MAD_LEN, &datagram->from, sim->clock.now_ns);
	cm_host_look(host);
	free(datagram);
}

static void put_on_wire(struct cm_sim *sim, unsigned int from, unsigned int to,
			const uint8_t *bytes, size_t len)
{
	struct datagram *datagram = malloc(sizeof(*datagram));
	uint64_t at_ns = sim->clock.now_ns + LATENCY_NS + rng_below(&sim->rng, LATENCY_NS);

	*datagram = (struct datagram){.sim = sim, .to = to, .from = cm_address(to, from)};
	cm_check(sim, len <= sizeof(datagram->bytes), "a long frame");
	memcpy(datagram->bytes, bytes, len);
	datagram->len = len;
	if (rng_chance(&sim->rng, sim->late_ppm))
		at_ns += rng_below(&sim->rng, sim->late_ns);
	clock_at(&sim->clock, at_ns, deliver, sim, datagram);
}

void cm_host_transmit(struct cm_host *host, unsigned int index, const uint8_t *mad,
		      const uint8_t *bytes, size_t len)
{
	struct cm_sim *sim = host->sim;
	struct cm_mad parsed;

	sim->stats_mads++;
	cm_check(sim, cm_mad_parse(mad, MAD_LEN, &parsed) == CM_MAD_OK,
		 "a MAD that does not parse");
	cm_say(sim, "%u -> %u %s %08x %08x", host->index, index, cm_message_name(parsed.message),
	       parsed.local_id, parsed.remote_id);
	if (index >= sim->hosts) /* the address belongs to no host */
		return;
	if (!host->device && rng_chance(&sim->rng, sim->replay_ppm))
		put_on_wire(sim, UNKNOWN_HOST, index, bytes, len);
	if (rng_chance(&sim->rng, sim->loss_ppm)) {
		sim->stats_lost++;
		return;
	}
	put_on_wire(sim, host->index, index, bytes, len);
	while (rng_chance(&sim->rng, sim->duplicate_ppm))
		put_on_wire(sim, host->index, index, bytes, len);
}

static void send_mad(struct cm_sink *sink, const struct gsi_address *to, const uint8_t *mad)
{
	cm_host_transmit((struct cm_host *)sink, to->remote[15] - 1u, mad, mad, MAD_LEN);
}

uint64_t cm_host_deadline_ns(const struct cm_host *host)
{
	return host->device ? cm_device_deadline_ns(host) : cm_deadline_ns(host->cm);
}

static void wake(void *context, void *argument);

/* Run the manager when its next timer is due. */
static void heed_deadline(struct cm_host *host)
{
	const uint64_t deadline_ns = cm_host_deadline_ns(host);
	struct wake *next;

	if (deadline_ns >= host->woken_ns)
		return;
	cm_check(host->sim, deadline_ns >= host->sim->clock.now_ns, "a deadline in the past");
	next = malloc(sizeof(*next));
	*next = (struct wake){host, host->life};
	host->woken_ns = deadline_ns;
	clock_at(&host->sim->clock, deadline_ns, wake, host->sim, next);
}

static void wake(void *context, void *argument)
{
	struct wake *wake = argument;
	struct cm_host *host = wake->host;
	struct cm_sim *sim = context;

	if (host->life == wake->life) {
		host->woken_ns = UINT64_MAX;
		if (!host->device)
			cm_expire(host->cm, sim->clock.now_ns);
		cm_host_look(host);
	}
	free(wake);
}

static bool next_event(struct cm_host *host, struct cm_event *event)
{
	return host->device ? cm_device_next_event(host, event) : cm_next_event(host->cm, event);
}

static void take_events(struct cm_host *host)
{
	struct cm_event event;

	while (next_event(host, &event))
		app_event(host, &event);
	if (host->device)
		cm_device_run(host);
}

static void look(void *context, void *argument)
{
	struct wake *wake = argument;
	struct cm_host *host = wake->host;

	(void)context;
	if (host->life == wake->life) {
		host->looks = false;
		take_events(host);
		heed_deadline(host);
	}
	free(wake);
}

void cm_host_look(struct cm_host *host)
{
	struct cm_sim *sim = host->sim;
	struct wake *next;

	if (host->device)
		cm_device_run(host);
	if (sim->lag_ns == 0) {
		take_events(host);
	} else if (!host->looks) {
		next = malloc(sizeof(*next));
		*next = (struct wake){host, host->life};
		host->looks = true;
		clock_at(&sim->clock, sim->clock.now_ns + rng_below(&sim->rng, sim->lag_ns), look,
			 sim, next);
	}
	heed_deadline(host);
}

void cm_host_listen(struct cm_host *host)
{
	const struct cm_listen_attr tcp = {.service_id = CM_TCP_SERVICE,
					   .any_address = true,
					   .user = host,
					   .backlog = host->sim->backlog};
	struct cm_listen_attr udp = tcp;

	if (host->tcp)
		return;
	udp.service_id = CM_UDP_SERVICE;
	udp.datagrams = true;
	cm_check(host->sim, cm_listen(host->cm, &tcp, &host->tcp) == 0, "cm_listen");
	cm_check(host->sim, cm_listen(host->cm, &udp, &host->udp) == 0, "cm_listen");
	cm_check(host->sim, cm_listen(host->cm, &udp, &host->udp) == -EADDRINUSE,
		 "two listeners on one service");
}

void cm_host_unlisten(struct cm_host *host)
{
	if (!host->tcp)
		return;
	cm_unlisten(host->tcp, host->sim->clock.now_ns);
	cm_unlisten(host->udp, host->sim->clock.now_ns);
	host->tcp = NULL;
	host->udp = NULL;
	cm_host_look(host);
}

void cm_host_start(struct cm_sim *sim, unsigned int index)
{
	struct cm_host *host = &sim->host[index];
	struct cm_config config = sim->limits;

	config.ca_guid = index + 1;
	config.ack_delay = 5;
	config.sink = &host->sink;
	host->sink.send = send_mad;
	host->sim = sim;
	host->index = index;
	host->woken_ns = UINT64_MAX;
	host->looks = false;
	host->tcp = NULL;
	host->udp = NULL;
	host->locked = false;
	host->device = NULL;
	if (sim->devices)
		cm_device_start(host);
	else
		cm_check(sim, cm_create(&config, &host->cm) == 0, "cm_create");
	if (host->listens)
		cm_host_listen(host);
}

static void end(struct cm_host *host, bool in_order)
{
	if (host->device)
		cm_device_end(host, in_order);
	else
		cm_destroy(host->cm);
	host->life++;
}

void cm_host_kill(struct cm_host *host, bool in_order)
{
	struct cm_sim *sim = host->sim;

	cm_say(sim, "%u %s", host->index, in_order ? "ends" : "killed");
	for (unsigned int i = 0; i < sim->endpoints; i++) {
		struct endpoint *endpoint = &sim->endpoint[i];

		if (endpoint->host != host || (!endpoint->conn && !endpoint->resolving))
			continue;
		endpoint->conn = NULL;
		endpoint->resolving = false;
		endpoint->due_ns = 0;
		endpoint->outcome = OUTCOME_DESTROYED;
	}
	if (in_order && !host->device)
		while (cm_abandon(host->cm, UINT_MAX, sim->clock.now_ns) > 0)
			;
	end(host, in_order);
	sim->stats_kills++;
}

void cm_host_end(struct cm_host *host)
{
	end(host, false);
}
