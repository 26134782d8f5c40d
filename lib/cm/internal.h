/* SPDX-License-Identifier: BSD-3-Clause */
/* Structs and functions that the files of the room share. */
#ifndef CM_INTERNAL_H
#define CM_INTERNAL_H

#include <sys/queue.h>

#include "cm/cm.h"
#include "grey.h"
#include "timers.h"

#define CM_BUCKETS	     4096u /* of each table; a power of two */
#define CM_RESPONSE_EXPONENT 20 /* for answers whose sender has not named a time; Linux's value */
#define CM_MRA_EXPONENT	     24 /* how long a caller may take, told by MRA; Linux's value */
#define CM_EXPONENT_MAX                                                          \
	22 /* longest time that a peer may name for what we repeat or keep: 17 s \
	    */
#define CM_BACKLOG_DEFAULT   1024
#define CM_HALF_OPEN_DEFAULT 4096
#define CM_LINGERING_DEFAULT 4096

LIST_HEAD(cm_bucket, cm_conn);
TAILQ_HEAD(cm_conn_list, cm_conn);
TAILQ_HEAD(cm_pending_list, cm_pending);
LIST_HEAD(cm_listener_list, cm_listener);

/* An event that waits for cm_next_event. */
struct cm_pending {
	TAILQ_ENTRY(cm_pending) next;
	struct cm_conn *conn;
	enum cm_event_type type;
	int status;
	bool has_mad;
	uint8_t mad[MAD_LEN];
};

struct cm_conn {
	struct cm *cm;
	enum cm_state state;
	bool active; /* we have sent the REQ or SIDR_REQ */
	bool owned;  /* the caller has the pointer; else it goes when it is over */
	bool sidr;
	bool lingers;		      /* in cm->lingering */
	struct cm_listener *listener; /* while its request waits for cm_next_event */
	uint8_t pendings;	      /* events that wait for cm_next_event */
	void *user;

	struct gsi_address peer;
	uint32_t local_id;
	uint32_t remote_id;   /* of an active connection: from the REP on, else 0 */
	bool in_remote;	      /* table by_remote: the peer's id is known */
	bool in_qpn;	      /* table by_qpn */
	bool has_ip;	      /* the request has the IP header */
	uint64_t remote_guid; /* passive side: of the REQ */
	uint64_t tid;	      /* of the exchange: REQ, REP, RTU; a DREQ has one of its own */
	uint64_t peer_tid;    /* of the peer's newest DREQ, for the DREP */

	struct cm_agreed agreed;
	uint8_t offered_resources; /* REQ: the responder resources of who sent it */
	uint8_t offered_depth;	   /* and its initiator depth */
	bool alternate;		   /* REQ: with an alternate path, which we do not have */
	uint64_t service_id;	   /* SIDR: comes back in the reply */

	uint64_t response_ns; /* between retries of what we send */
	uint64_t life_ns;     /* of a packet on the way, added to a time that an MRA names */
	uint64_t wait_ns;     /* timewait */
	uint64_t linger_ns;
	uint64_t mra_ns; /* of the newest MRA */
	uint8_t max_retries;
	uint8_t retries; /* left */
	struct cm_timer_entry timer;

	LIST_ENTRY(cm_conn) by_local;
	LIST_ENTRY(cm_conn) by_remote;
	LIST_ENTRY(cm_conn) by_qpn;
	TAILQ_ENTRY(cm_conn) in_lingering;
	uint8_t kept[MAD_LEN]; /* the message sent last, other than a DREP, for retransmission */
};

struct cm_listener {
	LIST_ENTRY(cm_listener) next;
	struct cm *cm;
	struct cm_listen_attr attr;
	uint32_t waiting; /* requests that cm_next_event has not given out */
};

struct cm {
	struct cm_config config;
	struct cm_stats stats;
	rte_be64_t guid_be;
	uint32_t hash_seed;
	uint32_t conns;
	uint32_t half_open;
	uint32_t lingering_count;
	struct cm_timers timers;
	struct cm_pending_list events;
	struct cm_conn_list lingering; /* oldest first */
	struct cm_listener_list listeners;
	struct grey grey;
	struct cm_bucket by_local[CM_BUCKETS];
	struct cm_bucket by_remote[CM_BUCKETS]; /* by the peer's communication id and address */
	struct cm_bucket by_qpn[CM_BUCKETS];	/* by the peer's queue pair and address */
};

/* conn.c */

/** A connection in IDLE, with a communication id of its own, in no table but by_local. NULL without
 * memory or entropy. */
struct cm_conn *conn_create(struct cm *cm, const struct gsi_address *peer);

/** Free it, with its events; nobody may have it. */
void conn_free(struct cm_conn *conn);

struct cm_conn *conn_find_local(const struct cm *cm, uint32_t local_id);

/** By the peer's id, of a peer at this address. */
struct cm_conn *conn_find_remote(const struct cm *cm, const struct gsi_address *peer,
				 uint32_t remote_id, bool sidr);

/** A connection with this queue pair of the peer at this address. */
struct cm_conn *conn_find_qpn(const struct cm *cm, const struct gsi_address *peer, uint32_t qpn);

/** Enter the peer's id that the connection has got into the tables, and its queue pair, where it is
 * no SIDR. */
void conn_enter_remote(struct cm_conn *conn);

/** Take them out; nothing where they are not in. */
void conn_leave_remote(struct cm_conn *conn);
void conn_leave_qpn(struct cm_conn *conn);

/** Return true if a MAD comes from the address of the connection's peer, to ours, in its VLAN. */
bool conn_is_peer(const struct cm_conn *conn, const struct gsi_address *from);

/* machine.c */

/**
 * Do what the table says for an input.
 *
 * @param cause
 *   The MAD that is the input, or NULL.
 * @param status
 *   Of the event that it may raise.
 * @param say
 *   The message that the transition sends, its ids and TID aside; NULL: as it is by default.
 * @return
 *   0; -EINVAL: the table has nothing for it, or the message cannot be built; -ENOMEM. Nothing is
 * changed then. The connection may be gone after 0 where nobody owns it.
 */
int conn_step(struct cm_conn *conn, enum cm_input input, const uint8_t *cause, int status,
	      const struct cm_mad *say, uint64_t now_ns);

/** Send bytes to a peer, counted. */
void cm_send(struct cm *cm, const struct gsi_address *to, const uint8_t *mad);

/** Drop all pending events of a connection. */
void events_drop(struct cm_conn *conn);

/** Leave the listener's queue: the request is taken or over. */
void conn_leave_listener(struct cm_conn *conn);

/* request.c */

/** A REQ or SIDR_REQ, `mad` parsed from `bytes`. */
void request_receive(struct cm *cm, const uint8_t *bytes, const struct cm_mad *mad,
		     const struct gsi_address *from, uint64_t now_ns);

/** Refuse a request without a connection: nothing is kept, one that comes again is refused again.
 */
void request_reject(struct cm *cm, const struct cm_mad *mad, const struct gsi_address *to,
		    enum cm_rej_reason reason, const void *info, uint8_t info_len);

/* listen.c */

/** The listener for a request: one of its very address first. NULL: none. */
struct cm_listener *listener_find(struct cm *cm, uint64_t service_id, bool datagrams,
				  const struct gsi_address *from);

#endif
