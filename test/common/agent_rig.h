/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection manager's agent on a device. The rig takes the place of the engine. It keeps the
 * frames that are sent, and the device itself may receive them. */
#ifndef TEST_COMMON_AGENT_RIG_H
#define TEST_COMMON_AGENT_RIG_H

#include "cm/agent.h"

#define AGENT_RIG_FRAMES 2048
#define AGENT_RIG_EVENTS 16

/* Entries of the device's table. */
enum agent_rig_gid {
	AGENT_RIG_LINK_LOCAL, /* fe80::1 of interface 7 */
	AGENT_RIG_IPV4,	      /* 10.0.0.1 */
	AGENT_RIG_IPV6,	      /* fd00::1 */
	AGENT_RIG_IPV6_FAR,   /* fd01::1 */
	AGENT_RIG_VLAN,	      /* 10.0.0.1 in VLAN 5 */
	AGENT_RIG_GIDS
};

struct agent_rig {
	struct device *device;
	struct agent *agent;
	uint64_t now_ns;
	bool locked;

	int route_result;
	uint32_t unrouted;     /* a bit for each address of ours that has no route to anybody */
	uint8_t routed_to[16]; /* where the last route led */
	struct device_hop hop; /* the engine's answer for every destination */
	bool answers;	       /* the neighbour's MAC address can be resolved */
	uint8_t looked_from;   /* the address with which it was asked for last */
	unsigned int looks;    /* how often the neighbour was asked for */
	int ids_result;	       /* the answer of the process that keeps the ports */

	unsigned int waits;  /* how often the engine was told that the program sleeps */
	unsigned int room;   /* frames that the sink still takes */
	unsigned int frames; /* frames that were sent */

	unsigned int events;
	enum cm_event_type event_types[AGENT_RIG_EVENTS];
	struct cm_conn *conns[AGENT_RIG_EVENTS];

	unsigned int resolved;
	int status; /* status of the query that ended last */
};

extern struct agent_rig agent_rig;

/** Create a device without an agent. */
void agent_rig_init_bare(void);

/** Create a device with an agent. */
void agent_rig_init(void);
void agent_rig_fini(void);

/** The functions that an agent of the rig calls. */
extern const struct agent_notify agent_rig_notify;

/** Run the device's receiver of MADs if it is due. The device receives the frames that it has
 * sent. Return the work of all passes. */
unsigned int agent_rig_run(void);

/** Advance the clock by `ns`, then do what agent_rig_run does. */
void agent_rig_pass(uint64_t ns);

/** Return the last byte of the IPv4 address to which a frame was sent. */
uint8_t agent_rig_dest(unsigned int frame);

const uint8_t *agent_rig_gid(enum agent_rig_gid index);

#endif
