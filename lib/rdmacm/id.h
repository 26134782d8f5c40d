/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The structs behind the pointers that librdmacm.so.1 returns, and the functions that its files
 * share, by file. Internal errors are -errno; a call's last line converts them to -1 and errno.
 *
 * Order of locks, the outermost first: id->qp_lock, the engine's (agent_enter), id->lock, a
 * channel's own. The engine's reports (notify.c, rdma_device.c) take id->lock while the engine's
 * is held, so no thread may enter an agent while it holds id->lock. A listener's lock comes before
 * those of its unread requests' ids. A device's ids_lock is between the engine's and id->lock.
 */
#ifndef RDMACM_ID_H
#define RDMACM_ID_H

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "cm/private.h"
#include "wire/gid.h"

#define ID_DEVICES_MAX	16 /* devices of a process */
#define ID_CONNECT_DATA 56 /* the program's private data in a REQ with the IP header */
#define ID_SIDR_DATA	180

/* The state of an id: first the active side's in their order, then the passive side's. */
/* clang-format off */
#define ID_STATES(STATE)                                                                    \
	STATE(IDLE)                                                                         \
	STATE(BOUND)                                                                        \
	STATE(RESOLVING)      /* the peer's link address is being searched */               \
	STATE(ADDR_RESOLVED)                                                                \
	STATE(ROUTE_RESOLVED)                                                               \
	STATE(CONNECTING)     /* there is a connection, which has its own state */          \
	STATE(LISTENING)                                                                    \
	STATE(REQUESTED)      /* a peer has requested, and the program has not answered */  \
	STATE(REMOVED)        /* the device is lost: the id can only be destroyed */
/* clang-format on */

enum id_state {
#define STATE(name) ID_##name,
	ID_STATES(STATE)
#undef STATE
};

/* A device that ids are bound to. Created once, and kept until the process ends. */
struct cm_device {
	struct ibv_context *verbs;
	struct agent *agent;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	pthread_mutex_t lock;  /* protects the XRC domain */
	struct ibv_pd *pd;     /* for programs without their own */
	struct ibv_xrcd *xrcd; /* the same for XRC domains; NULL while nobody uses it */
	unsigned int xrcd_users;
	bool lost;		  /* for ever; atomic, set with ids_lock */
	pthread_mutex_t ids_lock; /* protects ids */
	LIST_HEAD(, cm_id) ids;	  /* ids that are bound to the device */
};

struct event_channel {
	struct rdma_event_channel public; /* the part that the program has */
	struct channel queue;
	unsigned int users;  /* the program, and each id; atomic */
	uint32_t generation; /* devices_generation when the channel was created */
};

struct cm_id;
struct id_group;

TAILQ_HEAD(id_event_list, id_event);
LIST_HEAD(id_group_list, id_group);

/* An event from its raising until it is acknowledged. */
struct id_event {
	struct rdma_cm_event public; /* the part that the program has */
	struct channel_source source;
	TAILQ_ENTRY(id_event) next;
	struct cm_id *owner;	/* id whose destruction waits for the event */
	struct id_group *group; /* group of a multicast event */
	char *why;		/* of a failure, if somebody wants to know */
	uint8_t private_data[CM_PRIVATE_MAX];
};

/* A listener on one device: a wildcard listener has one on each device. */
struct id_listener {
	struct cm_id *id;
	struct cm_device *device;
	struct cm_listener *listener; /* NULL: none */
};

/* A port that the id has claimed. */
struct id_claim {
	const struct cm_ports_ops *ops;
	void *user;
	uint32_t id;
};

struct id_group {
	LIST_ENTRY(id_group) next;
	struct sockaddr_storage address;
	union ibv_gid mgid;
	void *context;
	bool send_only;
	bool attached; /* with qp_lock, as the next one */
	bool left;     /* the id leaves the group: the queue pair is not attached any more */
};

struct cm_id {
	struct rdma_cm_id public; /* the part that the program has */
	uint32_t generation;	  /* devices_generation when the id was created */
	bool sync; /* synchronous: it has its own channel, and calls wait for their event */
	struct cm_device *device;    /* NULL: not bound to one */
	struct cm_device *listed_at; /* device whose list the id is in */
	LIST_ENTRY(cm_id) of_device;

	/* Protects public.qp: one thread may destroy the queue pair while another one takes an
	 * event. Nobody holds it while it waits for the program. */
	pthread_mutex_t qp_lock;
	bool over;	  /* the program has the connection's last event; with qp_lock */
	bool disconnects; /* the program has called rdma_disconnect; under the engine's lock */

	/* protects state, sync, events, groups, sgid, has_address and public.channel; groups change
	 * with qp_lock, too */
	pthread_mutex_t lock;
	pthread_cond_t acked; /* signalled when an event has left the list */
	enum id_state state;
	struct id_event_list events; /* events that are raised and not acknowledged */
	bool wait_told;		     /* that a call waits for them; with the lock */
	struct id_group_list groups;

	/* options */
	bool reuse;
	bool af_only;
	uint8_t tos;
	uint8_t ack_timeout; /* 0: the path's */

	struct id_claim claims[ID_DEVICES_MAX];
	size_t claim_count;
	struct cm_port_claim claim; /* what all of them claim */
	bool is_loopback;	    /* bound to ::1 or 127.0.0.1 */

	struct device_gid sgid; /* our address, if it is a device's */
	bool has_address;	/* the device had that address when its addresses last changed */
	int sgid_index;		/* negative: none */
	bool source_chosen;	/* rdma_resolve_addr chose the address, and may choose again */
	struct agent_query query;
	int resolve_ms;		 /* how long it may take */
	struct gsi_address peer; /* complete from ID_ADDR_RESOLVED on */

	/* under the engine's lock */
	struct cm_conn *conn;
	struct id_listener listeners[ID_DEVICES_MAX];
	uint32_t waiting; /* unread requests of all these listeners; atomic */

	/* Values that the peer allows, or that both sides agreed on; RDMA_MAX_RESP_RES: as many as
	 * the device has. */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint32_t qkey;
	struct cm_ece local_ece;
	struct cm_ece remote_ece; /* under the lock */

	/* rdma_create_ep: for ids that a listener makes, or for a connect without private data */
	struct ibv_pd *ep_pd;
	struct ibv_qp_init_attr *ep_attr;
	void *ep_data;
	uint8_t ep_data_len;

	bool uses_default_xrcd;
	struct ibv_sa_path_rec path;
	struct rdma_addrinfo
		*addrinfo; /* of rdma_resolve_addrinfo, until it is queried; under the lock */
};

static inline struct cm_id *cm_id_of(struct rdma_cm_id *id)
{
	return (struct cm_id *)id;
}

static inline struct event_channel *channel_of(struct rdma_event_channel *channel)
{
	return (struct event_channel *)channel;
}

/* Number of forks since the process had devices. Objects of an earlier generation belong to the
 * parent process. */
extern uint32_t devices_generation;

/* explain.c */

/* The user wants to know why calls fail (base/reason.h). Constant. */
extern bool explain_wanted;

/* The user has rules by which calls may fail (uroce-run --inject). Constant. */
extern bool inject_rules;

/** Say why a call fails, as reason_say. MT-safe. */
void explain_say(int error, const char *format, ...) __attribute__((cold, format(printf, 2, 3)));

/** Evaluate to `error`, a negative errno value, and say why. */
#define ID_REASON(error, ...) \
	(unlikely(explain_wanted) ? (explain_say(error, __VA_ARGS__), (error)) : (error))

void explain_state_wrong(struct cm_id *id, const char *needed) __attribute__((cold));

/** Return -EINVAL, because the id is not in the state that the call needs. MT-safe. */
static inline int explain_state(struct cm_id *id, const char *needed)
{
	if (unlikely(explain_wanted))
		explain_state_wrong(id, needed);
	return -EINVAL;
}

#define WRONG_FAMILY "the address is NULL, or not of AF_INET, AF_INET6 or AF_IB"

/** Return -EINVAL, because an argument is NULL, or has a wrong value. MT-safe. */
static inline int explain_argument(const char *what)
{
	return ID_REASON(-EINVAL, "%s", what);
}

/** Report the failure of the call that the thread is in. MT-safe; keeps errno. */
void explain_failure(int error) __attribute__((cold));

/** Add to an event why it is raised, if it is a failure. `told` is the manager's report of it, or
 * NULL. Does nothing if nobody wants to know. */
void explain_event(struct id_event *event, const struct cm_event *told);

/** Add to an event the newest reason of this thread. */
void explain_by_reason(struct id_event *event, int error);

/** Report why an event was raised, which the program takes. A synchronous call that takes it
 * reports it as its own failure (explain_result). */
void explain_taken(const struct id_event *event);

/** Return `error`, with which a synchronous call ends because of an event. */
int explain_result(const struct rdma_cm_event *event, int error);

/** Wait until an event of the id is acknowledged, and tell the user once if it takes longer than 2
 * s. Return false if that was told before: then nothing was waited for. */
bool explain_wait_locked(struct cm_id *id);

/* A call of the program that the thread is in, from ID_CALL to the end of the function. */
struct id_call {
	bool entered;
};

struct id_call explain_enter(const char *name);
void explain_leave(void);

static inline void id_call_end(struct id_call *call)
{
	if (unlikely(call->entered))
		explain_leave();
}

static inline struct id_call id_call_begin(const char *name)
{
	return unlikely(explain_wanted) ? explain_enter(name) : (struct id_call){.entered = false};
}

/* The beginning of each call of the program. A failure of the calls that it is made of is its
 * own. */
#define ID_CALL_OF(name) \
	struct id_call id_call __attribute__((unused, cleanup(id_call_end))) = id_call_begin(name)
#define ID_CALL() ID_CALL_OF(__func__)

/** Return the error with which a call is to fail, because a user asked for it (--inject), or 0. */
int id_failure(const char *call) __attribute__((cold));

static inline int id_inject(const char *call)
{
	return unlikely(inject_rules) ? id_failure(call) : 0;
}

/** Check that a call may use this id. 0; -EINVAL for NULL, -ENODEV for an id of the parent process,
 * or the error of id_inject. */
#define id_check(id) id_check_by(id, __func__)

static inline int id_check_by(const struct rdma_cm_id *id, const char *call)
{
	const int rc = id_inject(call);

	if (rc != 0)
		return rc;
	if (!id)
		return explain_argument("the id is NULL");
	if (((const struct cm_id *)id)->generation == devices_generation)
		return 0;
	return ID_REASON(-ENODEV, "the id is of the parent process: a child of fork() needs one "
				  "of its own");
}

/* Return the result of a call: 0, or -1 with errno. */
static inline int id_result(int rc)
{
	if (rc >= 0)
		return 0;
	errno = -rc;
	if (unlikely(explain_wanted))
		explain_failure(-rc);
	return -1;
}

static inline bool id_is_datagram(const struct cm_id *id)
{
	return id->public.qp_type == IBV_QPT_UD;
}

/* rdma_device.c */

/** Return the table of our libibverbs.so.1, or NULL if another one is loaded. MT-safe. */
const struct cm_private *cm_calls(void);

/** Return all devices; the first call opens them. MT-safe. Their number, or -errno. */
int devices_get(struct cm_device *const **devices);

/** Return true if a device is lost for ever. MT-safe. */
bool device_is_lost(const struct cm_device *device);

/** Tell all engines that the program is about to sleep. MT-safe. */
void devices_wait(void);

/** Get and put the XRC domain for programs without their own. MT-safe. NULL: errno. */
struct ibv_xrcd *device_get_xrcd(struct cm_device *device);
void device_put_xrcd(struct cm_device *device);

/* addrinfo.c */

/** Return the length of an address, or 0 for an unsupported family. MT-safe. */
socklen_t address_len(const struct sockaddr *address);

/** Convert an address to a GID; false for another family. MT-safe. */
bool address_gid(const struct sockaddr *address, uint8_t gid[GID_LEN]);

/** Convert a GID to an address of AF_IB if that is the family, else of its IP version; the port is
 * 0. MT-safe. */
void address_from_gid(sa_family_t family, const uint8_t gid[GID_LEN],
		      struct sockaddr_storage *address);

/** Change only the GID of an address. MT-safe. */
void address_set_gid(struct sockaddr *address, const uint8_t gid[GID_LEN]);

/** Change only the GID of an address, to the loopback address of its family. MT-safe. */
void address_set_loopback(struct sockaddr *address);

bool address_is_any(const struct sockaddr *address);
bool address_is_loopback(const struct sockaddr *address);
__be16 address_port(const struct sockaddr *address);
void address_set_port(struct sockaddr *address, __be16 port);
uint32_t address_scope(const struct sockaddr *address);

/** Give a link-local address its scope; other addresses stay as they are. MT-safe. */
void address_set_scope(struct sockaddr *address, uint32_t scope);

#define ADDRESS_NO_SPACE ((enum cm_port_space)0)

/** Return the port space of an address for an id of `ps`. ADDRESS_NO_SPACE: the address is of
 * AF_IB, and such an id may not use its service id. MT-safe. */
enum cm_port_space address_space(enum rdma_port_space ps, const struct sockaddr *address);

/** Return the service id of an address. MT-safe. */
uint64_t address_service(enum rdma_port_space ps, const struct sockaddr *address);

/** Give an address the port that was claimed for it. MT-safe. */
void address_set_service(struct sockaddr *address, enum cm_port_space space, uint16_t port);

/* id.c */

/** Create an id. NULL: errno. */
struct cm_id *id_create(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
			enum ibv_qp_type qp_type);

/** Destroy an id; waits until its events are acknowledged. */
void id_destroy(struct cm_id *id);

/** Change the state. Return false and do nothing if the id is not in state `from`. MT-safe. */
bool id_move(struct cm_id *id, enum id_state from, enum id_state to);

/** Return the state of an id. MT-safe. */
enum id_state id_state(struct cm_id *id);

/** Bind an id to a device. NULL: to none. 0, or -ENODEV: the device is lost, and the id is bound to
 * none. */
int id_set_device(struct cm_id *id, struct cm_device *device);

/* resolve.c */

/** Bind an id in ID_IDLE. 0 or -errno. */
int bind_address(struct cm_id *id, const struct sockaddr *address);

/** Bind an id to a device and its address. 0, or -ENODEV: the device is lost. */
int bind_gid(struct cm_id *id, struct cm_device *device, int sgid_index,
	     const struct device_gid *sgid);

/** Bind an id to the first device that has an address, if possible one of this IP version. For this
 * host itself: no device needs to have a loopback address. 0 or -errno. */
int bind_own(struct cm_id *id, uint8_t version);

/** Change the options of a bound id's ports. 0 or -errno. */
int bind_change(struct cm_id *id, bool reuse, bool af_only);

/** Release an id's ports. */
void bind_release(struct cm_id *id);

/* resolve.c */

/** Finish the resolution that has a query: with 0 the query's address is complete, with -errno the
 * query has failed. Agents call it. */
void resolve_finish(struct agent_query *query, int status);

/** Fill in the route of an id whose peer is known. */
void resolve_fill_route(struct cm_id *id);

/** Go from ID_ADDR_RESOLVED to ID_ROUTE_RESOLVED, and raise ROUTE_RESOLVED; if our address has
 * gone, stay there and raise ROUTE_ERROR. 0 or -errno. */
int resolve_route(struct cm_id *id);

/* rdma_event.c */

/** Take and drop a reference to a channel. Each id has one; the last one frees the channel.
 * MT-safe. */
struct rdma_event_channel *event_channel_get(struct rdma_event_channel *channel);
void event_channel_put(struct rdma_event_channel *channel);

/** Create an event for an id; NULL if there is no memory. The caller fills in its status and
 * parameters. */
struct id_event *event_create(struct cm_id *owner, struct cm_id *id, enum rdma_cm_event_type type,
			      int status);

/** Pass the event to the readers of the owner's channel. MT-safe; may be called with the engine's
 * lock. */
void event_raise(struct id_event *event);

/** Return true if a reader has the event. Under the owner's lock. */
bool event_is_read_locked(const struct id_event *event);

/** Free an event that is in no list. */
void event_free(struct id_event *event);

/** Create and raise an event without parameters. */
int event_tell(struct cm_id *id, enum rdma_cm_event_type type, int status);

/** Copy private data into an event, for its parameters to point to. */
const void *event_put_data(struct id_event *event, const void *data, uint8_t len);

/** Wait until an event of the id is acknowledged, with id->lock held. The thread cannot be
 * cancelled meanwhile. */
void event_wait_locked(struct cm_id *id);

/** Drop unread events, and wait until read ones are acknowledged. */
void event_drain(struct cm_id *id);

/** Acknowledge the event that a synchronous id keeps for its program, if there is one. */
void event_ack_kept(struct rdma_cm_id *public);

/** Wait for the event that ends a synchronous call; does nothing for an asynchronous id. 0 or
 * -errno. */
int event_complete(struct cm_id *id);

/* notify.c */

/** Functions that agents call. */
extern const struct agent_notify notify_agent;

/* rdma_device.c */

/** Move an id to the list of a device. Return false if the device is lost; then the id is in no
 * list. */
bool id_list(struct cm_id *id, struct cm_device *device);

/** Remove an id from the list that it is in. After this call it gets no event of the device. */
void id_unlist(struct cm_id *id);

/** Tell all ids of an agent's device that the device is lost. Engine's lock; agents call it. */
void device_event_lost(struct agent *agent, uint64_t now_ns);

/** Tell the ids whose address was removed from an agent's device. Engine's lock; agents call it. */
void device_event_addresses(struct agent *agent);

/* rdma_listen.c */

/** End an id's listeners; requests that nobody has accepted are rejected. */
void listen_end(struct cm_id *id);

/* rdma_connect.c */

/** Return the enum cm_transport of an id's queue pair. MT-safe. */
uint8_t connect_transport(const struct cm_id *id);

/** Answer a REP by an RTU; the queue pair is ready. 0 or -errno. */
int connect_establish(struct cm_id *id);

/** Reject a REP because the queue pair could not be made ready. */
void connect_refuse(struct cm_id *id);

/* rdma_qp.c */

/**
 * Lock an id's queue pair: until qp_unlock no other thread creates or destroys it, and the calling
 * thread cannot be cancelled.
 *
 * @return
 *   The queue pair, or NULL: the id has none.
 */
struct ibv_qp *qp_lock(struct cm_id *id, int *cancel_state);
void qp_unlock(struct cm_id *id, int cancel_state);

/** Return true if the id has a queue pair. MT-safe. */
bool qp_exists(struct cm_id *id);

/** Move an id's queue pair, which exists, to a state, with the values that both sides agreed on. 0
 * or -errno. */
int qp_to_rtr_locked(struct cm_id *id, uint8_t responder_resources);
int qp_to_rts_locked(struct cm_id *id, uint8_t initiator_depth);
void qp_to_error_locked(struct cm_id *id);

/** Move an id's queue pair, if there is one, to the error state. MT-safe. */
void qp_to_error(struct cm_id *id);

/* multicast.c */

/** Attach the queue pair to the group of an event. MT-safe. 0 or -errno. */
int multicast_attach(struct cm_id *id, struct id_group *group);

/** Detach the queue pair from all groups, with qp_lock held; the id stays a member. */
void multicast_detach_all_locked(struct cm_id *id);

/** Leave all groups. */
void multicast_leave_all(struct cm_id *id);

#endif
