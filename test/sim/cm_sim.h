/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection managers that communicate over a bad network: hosts, their applications, and the
 * model's record of both. */
#ifndef SIM_CM_SIM_H
#define SIM_CM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "cm/agent.h"
#include "cm/cm.h"
#include "rng.h"
#include "transport/sink.h"
#include "wire/build.h"

#define CM_HOSTS_MAX	 4
#define CM_ENDPOINTS_MAX 400
#define CM_TCP_SERVICE	 0x0000000001061000
#define CM_UDP_SERVICE	 0x0000000001111000

struct cm_sim;

/* The end of an endpoint's connection, as its application sees it. */
enum outcome {
	OUTCOME_NONE,
	OUTCOME_REJECTED,
	OUTCOME_UNREACHABLE,
	OUTCOME_DISCONNECTED,
	OUTCOME_TIMED_OUT, /* disconnected, and no DREP came */
	OUTCOME_RESOLVED,
	OUTCOME_DESTROYED, /* by the application, or because its host was killed */
};

/* A side of a connection as its application sees it. */
struct endpoint {
	struct cm_sim *sim;
	struct cm_host *host;
	uint32_t number;      /* index among all endpoints */
	struct cm_conn *conn; /* NULL: destroyed */
	struct agent_query query;
	bool resolving; /* resolving the peer's link address */
	unsigned int to;
	bool active;
	bool sidr;
	bool keeper;	  /* its application disconnects only at the end */
	bool established; /* connected, as far as its application knows */
	uint32_t qpn;	  /* the peer's endpoint, or an earlier one of the host if that has ended */
	struct endpoint *peer; /* passive side: the endpoint that asked; active side: the one that
				  accepted last */
	unsigned int events;   /* one bit for each type */
	enum outcome outcome;
	uint64_t since_ns;
	uint64_t due_ns; /* active side: the time by which the application must have got an event */
};

struct cm_host {
	struct cm_sink sink; /* first, so that the sink is the host */
	struct cm_sim *sim;
	struct cm *cm;
	unsigned int index;
	unsigned int life; /* number of kills so far */
	bool listens;
	struct cm_listener *tcp;
	struct cm_listener *udp;
	uint64_t woken_ns; /* time of the scheduled wake-up; UINT64_MAX: none */
	bool looks;	   /* the application will take its events soon */
	/* the device of a host that has one; else NULL */
	struct device *device;
	struct agent *agent;
	struct packet_sink packets;
	struct packet_out out;
	TAILQ_HEAD(, cm_told) told; /* events that the application has not taken */
	bool locked;
};

struct cm_sim {
	uint64_t seed;
	bool verbose;
	struct rng rng;
	struct clock clock;
	/* the network */
	uint32_t loss_ppm;
	uint32_t duplicate_ppm;
	uint32_t late_ppm; /* probability that a MAD is delayed, so that others overtake it */
	uint64_t late_ns;
	uint32_t replay_ppm; /* probability that a MAD is sent once more from a wrong address */
	/* the applications */
	uint64_t think_ns; /* longest time until it does what it has decided */
	uint64_t lag_ns;   /* longest time until it takes an event */
	uint32_t reject_ppm;
	uint32_t destroy_ppm;
	uint32_t data_ppm;   /* data arrives before the RTU */
	uint32_t reuse_ppm;  /* a queue pair that was connected before is connected again */
	uint32_t both_ppm;   /* both sides ask at the same time */
	bool devices;	     /* the hosts have an agent on a device */
	uint64_t resolve_ns; /* longest time to resolve a link address */
	uint32_t kills;
	uint32_t pauses; /* listeners end, and start again */
	struct cm_config limits;
	uint32_t backlog;
	bool ending; /* at the end: connections are released, and no new ones begin */
	bool sure;   /* no MAD is lost, and no host or application ends early */
	unsigned int hosts;
	struct cm_host host[CM_HOSTS_MAX];
	unsigned int endpoints;
	struct endpoint endpoint[CM_ENDPOINTS_MAX];
	uint8_t response_timeout;
	uint8_t packet_life_time;
	uint8_t max_cm_retries;

	uint64_t stats_runs;
	uint64_t stats_connects;
	uint64_t stats_established;
	uint64_t stats_outcomes[OUTCOME_DESTROYED + 1];
	uint64_t stats_mads;
	uint64_t stats_lost;
	uint64_t stats_kills;
	uint64_t stats_stale;
};

/** Report a failure and how to repeat the run, and exit. */
void cm_fail(const struct cm_sim *sim, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

#define cm_check(sim, condition, ...)              \
	do {                                       \
		if (!(condition))                  \
			cm_fail(sim, __VA_ARGS__); \
	} while (0)

/** Print a line of the trace, if it was asked for. */
void cm_say(const struct cm_sim *sim, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* cm_net.c */

/** Start a host, or the next life of one that was killed. */
void cm_host_start(struct cm_sim *sim, unsigned int index);

/** Kill a host: all its state is gone, and nobody is told, unless its process ends in order. */
void cm_host_kill(struct cm_host *host, bool in_order);

/** End the listeners, with the requests that wait there. */
void cm_host_unlisten(struct cm_host *host);

/** Listen, unless the host listens already. */
void cm_host_listen(struct cm_host *host);

/** Return the addresses of a packet from one host to another. */
struct gsi_address cm_address(unsigned int from, unsigned int to);

/**
 * Handle a host's events, and schedule its next deadline. Call this after every call on its
 * manager.
 */
void cm_host_look(struct cm_host *host);

/** Send a MAD to a host, in a frame if the host has a device. It may be lost, or arrive more than
 * once. */
void cm_host_transmit(struct cm_host *host, unsigned int to, const uint8_t *mad,
		      const uint8_t *bytes, size_t len);

/** End a host at the end of a run. */
void cm_host_end(struct cm_host *host);

/** Return the time at which a host's manager or agent has something to do. */
uint64_t cm_host_deadline_ns(const struct cm_host *host);

/* cm_device.c: a host with a device */

void cm_device_start(struct cm_host *host);
void cm_device_end(struct cm_host *host, bool in_order);
void cm_device_receive(struct cm_host *host, const uint8_t *frame, size_t len);

/** Do what is due, after calls on the manager, and at the deadline. */
void cm_device_run(struct cm_host *host);
uint64_t cm_device_deadline_ns(const struct cm_host *host);
bool cm_device_next_event(struct cm_host *host, struct cm_event *event);

/** Drop the events of a connection that the application has destroyed; NULL: all. */
void cm_device_forget(struct cm_host *host, const struct cm_conn *conn);

/** Resolve a link address, as agent_resolve. */
int cm_device_resolve(struct endpoint *endpoint, unsigned int to, uint64_t timeout_ns);

/* cm_app.c */

/** The link address of the peer is known (0), or the peer has not answered. */
void app_resolved(struct endpoint *endpoint, int status);

/** Ask for a connection, or for the queue pair of a datagram service. */
void app_connect(struct cm_sim *sim, unsigned int from, unsigned int to, bool sidr);

/** Make an endpoint for a request; it is the user of the connection's events from then on. */
struct endpoint *app_admit(struct cm_host *host, const struct cm_event *event);

/** Take an event; with a device, a request has been admitted already. */
void app_event(struct cm_host *host, const struct cm_event *event);

/** Release the application's end, if it still has it. */
void app_destroy(struct endpoint *endpoint);

/** The application disconnects, if it still has its end. */
void app_disconnect(struct endpoint *endpoint);

#endif
