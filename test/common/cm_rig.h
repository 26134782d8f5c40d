/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection manager, the MADs that it sends, and the messages of a peer that the test plays. */
#ifndef TEST_COMMON_CM_RIG_H
#define TEST_COMMON_CM_RIG_H

#include "cm/cm.h"

#define RIG_SENT_MAX  64
#define RIG_SERVICE   0x0000000001061c06 /* TCP port space, port 7174 */
#define RIG_DATAGRAMS 0x0000000001111c06 /* the same port in the UDP space */
#define RIG_OUR_GUID  0x1111111111111111
#define RIG_PEER_GUID 0x2222222222222222
#define RIG_OUR_QPN   0x111
#define RIG_PEER_QPN  0x222
#define RIG_PEER_ID   0x50515253
#define RIG_PEER_TID  0x1234567890abcdef
#define RIG_TIME      20 /* response timeouts of both sides */
#define RIG_LIFE      16
#define RIG_RETRIES   3

struct cm_rig {
	struct cm_sink sink; /* first: the sink is the rig */
	struct cm *cm;
	uint64_t now_ns;
	struct gsi_address peer;
	struct gsi_address other; /* another host */
	unsigned int sent;
	struct {
		struct gsi_address to;
		uint8_t bytes[MAD_LEN];
	} mads[RIG_SENT_MAX]; /* the newest MADs, at sent % RIG_SENT_MAX */
	struct cm_listener *listener;
	struct cm_listener *datagrams;
	struct cm_conn *conn;  /* the connection of rig_bring */
	uint32_t our_id;       /* its communication id, after a message has told it */
	struct cm_event event; /* the newest event of rig_event */
};

/** Create a manager with a listener of any address for each service. */
void rig_init(struct cm_rig *rig);
void rig_init_with(struct cm_rig *rig, const struct cm_config *config);
void rig_fini(struct cm_rig *rig);

/** Receive a message from an address. */
void rig_receive_from(struct cm_rig *rig, const struct gsi_address *from, const struct cm_mad *mad);
void rig_receive(struct cm_rig *rig, const struct cm_mad *mad);

/**
 * Return the message that was sent last; its pointers are valid until RIG_SENT_MAX more are sent.
 */
struct cm_mad rig_sent(const struct cm_rig *rig);

/** Take an event, and check that it is of this type. */
void rig_event(struct cm_rig *rig, enum cm_event_type type);
void rig_no_event(struct cm_rig *rig);

/** Messages of the peer. Their private data is "peer". */
struct cm_mad rig_req(void);
struct cm_mad rig_sidr_req(void);
/** Return a message to a connection: from its peer, with the right ids and queue pair. */
struct cm_mad rig_message(const struct cm_rig *rig, enum cm_message message);

/** Return the attributes of calls to the peer; the private data is "ours". */
struct cm_connect_attr rig_connect_attr(const struct cm_rig *rig);
struct cm_accept_attr rig_accept_attr(void);

/** Bring rig->conn into this state as the standard says; no event is left. */
void rig_bring(struct cm_rig *rig, enum cm_state state);

/** Advance the time to the next deadline and run the timers. */
void rig_expire(struct cm_rig *rig);

#endif
