/* SPDX-License-Identifier: BSD-3-Clause */
/* Structs and functions that the files of the room share. */
#ifndef CM_INTERNAL_H
#define CM_INTERNAL_H

#include <sys/queue.h>

#include "cm/cm.h"
#include "grey.h"
#include "timers.h"

#define CM_BUCKETS	     4096u /* of each table; a power of two */
#define CM_RESPONSE_EXPONENT 20	   /* for answers whose sender gives no time; Linux's value */
#define CM_MRA_EXPONENT	     24	   /* time that our MRA asks for; Linux's value */
#define CM_EXPONENT_MAX	     22 /* limit of a peer's time by which we repeat or keep messages: 17 s */
#define CM_BACKLOG_DEFAULT   1024
#define CM_HALF_OPEN_DEFAULT 16384
#define CM_LINGERING_DEFAULT 4096

LIST_HEAD(cm_bucket, cm_conn);
TAILQ_HEAD(cm_conn_list, cm_conn);
TAILQ_HEAD(cm_pending_list, cm_pending);
LIST_HEAD(cm_listener_list, cm_listener);
LIST_HEAD(cm_backlog, cm_conn);

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
	bool active;	/* we have sent the REQ or SIDR_REQ */
	bool owned;	/* the caller has the pointer; else it is freed when it is over */
	bool abandoned; /* ended by cm_abandon, and the caller may still destroy it */
	bool sidr;
	struct cm_listener *listener; /* its backlog has the connection; NULL: none */
	bool told;		      /* cm_next_event has returned its request */
	bool has_answered_dreq;	      /* a DREP was sent, which the peer may not have received */
	uint8_t pendings;	      /* events that wait for cm_next_event */
	void *user;

	struct gsi_address peer;
	uint32_t local_id;
	uint32_t remote_id;   /* active side: 0 until the REP */
	bool in_remote;	      /* the peer's id is known, and it is in table by_remote */
	bool in_qpn;	      /* it is in table by_qpn */
	bool has_ip;	      /* the request has the IP header */
	uint64_t remote_guid; /* passive side: from the REQ */
	uint64_t tid;	      /* TID of the exchange REQ, REP, RTU; a DREQ has its own */
	uint64_t peer_tid;    /* TID of the peer's newest DREQ, for the DREP */

	struct cm_agreed agreed;
	uint8_t offered_resources; /* REQ: responder resources of its sender */
	uint8_t offered_depth;	   /* REQ: initiator depth of its sender */
	bool extended;		   /* REQ: it is for XRC */
	bool alternate;		   /* REQ: it has an alternate path, which we do not support */
	uint64_t service_id;	   /* of the request; SIDR: is returned in the reply */

	uint64_t response_ns; /* time between repetitions of our message */
	uint64_t life_ns;     /* packet life time, added to the time of an MRA */
	uint64_t wait_ns;     /* timewait */
	uint64_t linger_ns;
	uint64_t mra_ns; /* time of the newest MRA */
	uint8_t max_retries;
	uint8_t retries; /* retries left */
	struct cm_timer_entry timer;

	LIST_ENTRY(cm_conn) by_local;
	LIST_ENTRY(cm_conn) by_remote;
	LIST_ENTRY(cm_conn) by_qpn;
	LIST_ENTRY(cm_conn) in_backlog;
	TAILQ_ENTRY(cm_conn) in_lingering;
	uint8_t kept[MAD_LEN]; /* the last message that was sent, except a DREP, to repeat it */
};

struct cm_listener {
	LIST_ENTRY(cm_listener) next;
	struct cm *cm;
	uint32_t number;
	struct cm_listen_attr attr;
	struct cm_backlog backlog; /* requests until cm_conn_take */
	uint32_t *waiting;	   /* number of requests that have a place; atomic */
	uint32_t own_waiting;	   /* *waiting of a listener that shares no backlog */
};

struct cm {
	struct cm_config config;
	struct cm_stats stats;
	rte_be64_t guid_be;
	uint32_t hash_seed;
	uint32_t conns;
	uint32_t listened; /* listeners so far */
	uint32_t half_open;
	uint32_t lingering_count;
	struct cm_timers timers;
	struct cm_pending_list events;
	struct cm_conn_list lingering; /* oldest first */
	struct cm_listener_list listeners;
	struct grey grey;
	struct cm_bucket by_local[CM_BUCKETS];
	struct cm_bucket by_remote[CM_BUCKETS]; /* key: the peer's communication id and address */
	struct cm_bucket by_qpn[CM_BUCKETS];	/* key: the peer's queue pair and address */
};

/* conn.c */

/** Create a connection in IDLE with a new communication id. It is only in table by_local. NULL if
 * there is no memory or no entropy. */
struct cm_conn *conn_create(struct cm *cm, const struct gsi_address *peer);

/** Free a connection that is over (IDLE), or the manager with it, and its events; nobody may have
 * the pointer. */
void conn_free(struct cm_conn *conn);

struct cm_conn *conn_find_local(const struct cm *cm, uint32_t local_id);

/** Find a connection by the peer's id and address. */
struct cm_conn *conn_find_remote(const struct cm *cm, const struct gsi_address *peer,
				 uint32_t remote_id, bool sidr);

/** Find a connection by the peer's queue pair and address. */
struct cm_conn *conn_find_qpn(const struct cm *cm, const struct gsi_address *peer, uint32_t qpn);

/** Enter the connection into the tables by the peer's id and, unless it is SIDR, by its queue
 * pair. */
void conn_enter_remote(struct cm_conn *conn);

/** Remove it from these tables; does nothing if it is not in them. */
void conn_leave_remote(struct cm_conn *conn);
void conn_leave_qpn(struct cm_conn *conn);

/** Return true if a MAD is from the address of the connection's peer, to our address, in its
 * VLAN. */
bool conn_is_peer(const struct cm_conn *conn, const struct gsi_address *from);

/** Return a time that a peer names, of which we use at most CM_EXPONENT_MAX. */
uint64_t conn_bounded_ns(uint8_t exponent);

/* machine.c */

/**
 * Execute the table's transition for an input.
 *
 * @param cause
 *   The MAD that is the input, or NULL.
 * @param status
 *   Status of the event that it may raise.
 * @param say
 *   The message to send, without ids and TID; NULL: a default one.
 * @return
 *   0; -EINVAL: the table has no transition, or the message cannot be built; -ENOMEM. On an error
 *   nothing has changed. After 0, the connection may be freed if nobody owns it.
 */
int conn_step(struct cm_conn *conn, enum cm_input input, const uint8_t *cause, int status,
	      const struct cm_mad *say, uint64_t now_ns);

/** Do conn_step for an input that is no MAD, and raises no event with a status: mostly a command of
 * the program. If it fails, say why. */
int conn_command(struct cm_conn *conn, enum cm_input input, const struct cm_mad *say,
		 uint64_t now_ns);

/** Send a MAD to a peer, and count it. */
void cm_send(struct cm *cm, const struct gsi_address *to, const uint8_t *mad);

/** Drop all pending events of a connection. */
void events_drop(struct cm_conn *conn);

/** Enter a request into its listener's backlog, where listener_take_place has taken a place. */
void conn_enter_backlog(struct cm_conn *conn, struct cm_listener *listener);

/** Leave the backlog, because the request is taken or over; does nothing if it is in none. */
void conn_leave_backlog(struct cm_conn *conn);

/* cm_request.c */

/** Process a REQ or SIDR_REQ; `mad` is parsed from `bytes`. */
void request_receive(struct cm *cm, const uint8_t *bytes, const struct cm_mad *mad,
		     const struct gsi_address *from, uint64_t now_ns);

/** Reject a request without making a connection: nothing is stored, and a repeated request is
 * rejected again. */
void request_reject(struct cm *cm, const struct cm_mad *mad, const struct gsi_address *to,
		    enum cm_rej_reason reason, const void *info, uint8_t info_len);

/* cm_listen.c */

/** Return the listener for a request to `target->local`, preferably one of the very address; NULL
 * if there is none. */
struct cm_listener *listener_find(struct cm *cm, uint64_t service_id, bool datagrams,
				  const struct gsi_address *target);

/** Return how many places of the backlog are taken. */
uint32_t listener_waiting(const struct cm_listener *listener);

/** Take a place in the backlog; false: `most` places are taken. Another device's engine may take
 * places of the same backlog at the same moment. */
bool listener_take_place(struct cm_listener *listener, uint32_t most);

/** Give a place back. */
void listener_give_place(struct cm_listener *listener);

#endif
