/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager (IBTA chapter 12). Its input is MADs and calls; its output is MADs, events
 * and a deadline. It has no clock and does no I/O.
 *
 * Timers, each of one connection and in nanoseconds of the caller's clock:
 *
 * - response: REQ, REP, DREQ and SIDR_REQ are repeated until they are answered, `max_cm_retries`
 * times (12.9)
 *
 * - MRA: the peer has asked for more time (12.6.6); then response again
 *
 * - timewait: until no packet of the connection can be in the network (12.9)
 *
 * - linger: a REJ or SIDR_REP is kept for a peer that repeats its request, because the first answer
 * may be lost
 *
 * Nothing here is MT-safe: the caller holds the manager's lock.
 */
#ifndef CM_CM_H
#define CM_CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/state.h"
#include "device/gsi.h"
#include "wire/cm.h"
#include "wire/cm_ip.h"

struct cm;
struct cm_conn;
struct cm_listener;

/*
 * Receiver of MADs to send, each of MAD_LEN bytes. A MAD that cannot be sent is lost; the timers
 * repeat it. `send` must not call the manager: a MAD to this host itself must wait until the
 * manager's call has returned.
 */
struct cm_sink {
	void (*send)(struct cm_sink *sink, const struct gsi_address *to, const uint8_t *mad);
};

struct cm_config {
	uint64_t ca_guid;
	uint8_t ack_delay; /* the device's, for the REP */
	/* The communication ids that we may use: those with `id_value` in the bits of `id_mask`. 0,
	 * 0: all. */
	uint32_t id_mask;
	uint32_t id_value;
	uint32_t half_open_max; /* most connections that a peer has requested but not confirmed; 0:
				   16384 */
	uint32_t lingering_max; /* most answers that are kept for peers that repeat a request; 0:
				   4096 */
	struct cm_sink *sink;
};

/* Counters of a manager. */
struct cm_stats {
	uint64_t received;  /* MADs */
	uint64_t sent;	    /* MADs sent the first time */
	uint64_t resent;    /* MADs repeated by a timer, or because the peer repeated its request */
	uint64_t malformed; /* dropped: not the connection manager's, or an impossible field */
	uint64_t unknown;   /* dropped: no such connection, or not from its peer */
	uint64_t unexpected; /* dropped: not expected in the connection's state */
	uint64_t no_room;    /* dropped: too many half-open connections, or no memory */
	uint64_t grey;	     /* dropped: requests of a flood, until they are repeated */
	uint64_t full;	     /* dropped REQs, and rejected SIDR_REQs: the backlog is full */
};

/* Why private data is refused: its length, the room, the message's name, and "" or what follows the
 * clause. */
#define CM_SAY_PRIVATE_LONG \
	"%u bytes of private data are more than the %u that a %s has room for (IBTA 12.6%s)"

/** Create a manager. 0, -ENOMEM, or -EIO if the system has no random numbers. */
int cm_create(const struct cm_config *config, struct cm **cm);

/** Destroy it, with all connections and listeners. Nothing is sent; the caller's pointers become
 * invalid. */
void cm_destroy(struct cm *cm);

/** Process a MAD to QP 1, of any content and length. */
void cm_receive(struct cm *cm, const uint8_t *mad, size_t len, const struct gsi_address *from,
		uint64_t now_ns);

/** Return when cm_expire is due; UINT64_MAX: never. */
uint64_t cm_deadline_ns(const struct cm *cm);

/** Run the timers that are due. */
void cm_expire(struct cm *cm, uint64_t now_ns);

const struct cm_stats *cm_stats(const struct cm *cm);

/** Return the number of connections, including those that their user has destroyed and that are not
 * over yet. */
uint32_t cm_conn_count(const struct cm *cm);

/** Call `tell` for each listener and connection, also for those whose user has destroyed them. */
void cm_each(const struct cm *cm, gsi_tell_conn *tell, void *arg);

struct cm_event {
	enum cm_event_type type; /* never NONE */
	struct cm_conn *conn;
	void *user; /* the connection's; for REQ and SIDR_REQ the listener's */
	/* UNREACHABLE: -ETIMEDOUT. REJECTED: the REJ's reason. SIDR_REP: its status. DISCONNECTED:
	 * 0, or -ETIMEDOUT if no DREP came. */
	int status;
	/* For an event that no message caused: how often ours was sent, and how long each was
	 * waited for */
	uint8_t tries;
	uint64_t try_ns;
	bool active;  /* we have sent the REQ or SIDR_REQ */
	bool has_mad; /* a message caused it */
	struct cm_mad mad;
	bool has_ip; /* REQ, SIDR_REQ: the message has the IP header, which is not part of
			private_data */
	struct cm_ip ip;
	const uint8_t *private_data; /* points into `bytes`, as all pointers of `mad` do */
	uint8_t private_len;
	uint8_t bytes[MAD_LEN];
};

/** Take the next event. Return false if there is none. The caller owns the connection of a REQ or
 * SIDR_REQ from then on; the request keeps its place in the backlog until cm_conn_take. */
bool cm_next_event(struct cm *cm, struct cm_event *event);

struct cm_listen_attr {
	uint64_t service_id;
	bool datagrams; /* for SIDR_REQs instead of REQs */
	/* enum cm_transport that a REQ must ask for; unused with datagrams */
	uint8_t transport;
	/* Requests must have the IP header (annex A11). */
	bool ip;
	uint8_t ip_version; /* 4, 6, or 0: both */
	bool any_address;
	uint8_t address[16]; /* GID; unused with any_address; a loopback address: this host only */
	int32_t vlan_id;     /* VLAN of the address; unused with a loopback address */
	uint32_t backlog; /* most requests that wait for cm_conn_take: more REQs are dropped, except
			     for a quarter more that come again; more SIDR_REQs are rejected; 0:
			     1024 */
	/* Count of these requests, atomic, 0 at first. Listeners of several managers that have the
	 * same counter share one backlog. The counter must exist until cm_unlisten. NULL: the
	 * listener's own. */
	uint32_t *waiting;
	void *user;
};

/**
 * Listen for requests. A listener of a request's address is preferred to one of any address.
 *
 * @return
 *   0, -ENOMEM, or -EADDRINUSE if a listener has the same service, version and address.
 */
int cm_listen(struct cm *cm, const struct cm_listen_attr *attr, struct cm_listener **listener);

/** Destroy a listener. Requests that cm_next_event has not returned are rejected. */
void cm_unlisten(struct cm_listener *listener, uint64_t now_ns);

struct cm_connect_attr {
	struct gsi_address to;
	uint64_t service_id;
	const struct cm_ip *ip; /* NULL: no IP header before the private data */
	uint32_t qpn;
	uint32_t qkey;
	uint8_t transport;     /* enum cm_transport */
	uint8_t extended_type; /* 1: XRC */
	bool srq;
	bool flow_control;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t mtu;		  /* enum ibv_mtu */
	uint8_t packet_life_time; /* 4.096 us * 2^n; Linux 6.1: 18 */
	uint8_t response_timeout; /* 4.096 us * 2^n, on either side; Linux: 20 */
	uint8_t max_cm_retries;	  /* Linux: 15 */
	uint32_t flow_label;
	uint8_t hop_limit;
	uint8_t tclass;
	struct cm_ece ece;
	const void *private_data;
	uint8_t private_len; /* at most CM_REQ_PRIVATE, less CM_IP_LEN with an IP header */
	void *user;
};

/** Send a REQ. 0, -EINVAL, or -ENOMEM: no memory, or no random numbers. */
int cm_connect(struct cm *cm, const struct cm_connect_attr *attr, uint64_t now_ns,
	       struct cm_conn **conn);

struct cm_resolve_attr {
	struct gsi_address to;
	uint64_t service_id;
	const struct cm_ip *ip;
	uint8_t response_timeout;
	uint8_t max_cm_retries;
	const void *private_data;
	uint8_t private_len; /* at most CM_SIDR_REQ_PRIVATE, less CM_IP_LEN with an IP header */
	void *user;
};

/** Send a SIDR_REQ for the queue pair of a service. Errors as cm_connect. */
int cm_resolve(struct cm *cm, const struct cm_resolve_attr *attr, uint64_t now_ns,
	       struct cm_conn **conn);

struct cm_accept_attr {
	uint32_t qpn;
	uint32_t qkey;
	bool srq;
	bool flow_control;
	uint8_t responder_resources; /* reduced to the peer's initiator depth */
	uint8_t initiator_depth;     /* reduced to the peer's responder resources */
	uint8_t rnr_retry_count;
	struct cm_ece ece;
	const void *private_data;
	uint8_t private_len;
	void *user;
};

/*
 * Calls on a connection. They return 0; -EINVAL if the connection's state does not allow the call,
 * or private data is too long; -ENOMEM if nothing has changed. Private data may be NULL with a
 * length of 0.
 */

int cm_accept(struct cm_conn *conn, const struct cm_accept_attr *attr, uint64_t now_ns);
int cm_establish(struct cm_conn *conn, const void *private_data, uint8_t private_len,
		 uint64_t now_ns);
int cm_reject(struct cm_conn *conn, uint16_t reason, const void *private_data, uint8_t private_len,
	      uint64_t now_ns);
int cm_disconnect(struct cm_conn *conn, const void *private_data, uint8_t private_len,
		  uint64_t now_ns);

/** Report that the queue pair has received from the peer: the connection is established although
 * the RTU has not arrived yet. */
int cm_data_arrived(struct cm_conn *conn, uint64_t now_ns);

struct cm_reply_attr {
	uint8_t status; /* enum cm_sidr_status */
	uint32_t qpn;
	uint32_t qkey;
	const void *private_data;
	uint8_t private_len;
};

/** Answer a SIDR_REQ. */
int cm_reply(struct cm_conn *conn, const struct cm_reply_attr *attr, uint64_t now_ns);

/** Give up a connection in any state; the peer is told. The pointer becomes invalid, and its events
 * are dropped. */
void cm_conn_destroy(struct cm_conn *conn, uint64_t now_ns);

/**
 * Give connections up, as at the end of a process. First tell each peer once; when all are told,
 * repeat the DREPs of connections in timewait. Nobody will answer a peer that has lost its DREP and
 * repeats its DREQ. The pointers stay valid for cm_conn_destroy.
 *
 * @return
 *   The number of peers that were told, at most `most`; 0: there is none left.
 */
unsigned int cm_abandon(struct cm *cm, unsigned int most, uint64_t now_ns);

enum cm_state cm_conn_state(const struct cm_conn *conn);

/** Give back a request's place in the backlog, because the program has seen the request. Does
 * nothing after the first time, or after cm_unlisten. */
void cm_conn_take(struct cm_conn *conn);

/** Set the user of a connection's later events. */
void cm_conn_set_user(struct cm_conn *conn, void *user);

/* Values that both sides have agreed on, for the queue pair's attributes. */
struct cm_agreed {
	struct gsi_address address;
	uint32_t local_qpn;
	uint32_t remote_qpn;
	uint32_t remote_qkey;
	struct psn sq_psn;
	struct psn rq_psn;
	uint8_t max_rd_atomic;	    /* our initiator depth */
	uint8_t max_dest_rd_atomic; /* our responder resources */
	uint8_t ack_timeout;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t mtu;
	bool remote_srq;
	uint32_t flow_label;
	uint8_t hop_limit;
	uint8_t tclass;
};

/** Fill them in. They are complete from REP_RCVD (active side) or REQ_RCVD (passive side) on; the
 * passive side's own values from REP_SENT on. */
void cm_conn_agreed(const struct cm_conn *conn, struct cm_agreed *agreed);

#endif
