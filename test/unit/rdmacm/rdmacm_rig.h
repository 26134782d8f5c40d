/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librdmacm.so.1's objects on two devices, joined by a wire in memory. Time is virtual, and there
 * are no threads: packets are carried when a call is about to sleep, and in rig_pass.
 */
#ifndef TEST_RDMACM_RIG_H
#define TEST_RDMACM_RIG_H

#include <errno.h>
#include <string.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "id.h"
#include "test.h"

#define RIG_DEVICES 2
#define RIG_PORT    7174
#define RIG_IFINDEX 7 /* of the first device's addresses; of the second one's: one more */
#define RIG_SECOND  UINT64_C(1000000000)

struct device;

struct rig {
	struct device *devices[RIG_DEVICES];
	uint64_t now_ns;
	bool unreachable;      /* there is no way to anybody */
	bool silent;	       /* nobody answers ARP */
	bool loses;	       /* the wire loses all packets */
	unsigned int joined;   /* multicast groups */
	uint64_t wait_ns;      /* passes each time a call is about to sleep */
	void (*waiting)(void); /* called then, once the wire is quiet; NULL: nothing */
	void (*locking)(void); /* called once, before the next lock of an engine; NULL: nothing */
	void (*routing)(void); /* called once, in the next search for a route; NULL: nothing */
	unsigned int claims;   /* ports that are claimed */
	int qp_lock_rc;	       /* of rig_try_qp_lock */
};

extern struct rig rig;

/* Addresses of the two devices, with a port. */
struct sockaddr *rig_ipv4(int device, uint16_t port);
struct sockaddr *rig_ipv6(int device, uint16_t port);
struct sockaddr *rig_link_local(int device, uint16_t port, uint32_t scope);
/* The same of any text; the newest 16 stay valid. */
struct sockaddr *rig_address(const char *text, uint16_t port);

/** A fixture: a non-blocking channel, and a check that no connection and no port is left. */
extern struct rdma_event_channel *rig_channel;
int rig_set_up(void **state);
int rig_tear_down(void **state);

/** Let time pass: packets are carried, and timers run. */
void rig_pass(uint64_t ns);

struct rdma_event_channel *rig_create_channel(void);
struct rdma_cm_id *rig_create(enum rdma_port_space ps);

/** Take the next event, which must be of this type; the caller acknowledges it. */
struct rdma_cm_event *rig_event_of(struct rdma_event_channel *channel,
				   enum rdma_cm_event_type type);
/** The same on rig_channel, acknowledged: whose event it was. */
struct rdma_cm_id *rig_expect(enum rdma_cm_event_type type);
void rig_no_event(struct rdma_event_channel *channel);

/** Fails with this errno. */
#define rig_fails(call, error)                  \
	do {                                    \
		errno = 0;                      \
		assert_int_equal((call), -1);   \
		assert_int_equal(errno, error); \
	} while (0)

/** A listener on the second device, and an id with the way there. */
struct rdma_cm_id *rig_listen(enum rdma_port_space ps);
struct rdma_cm_id *rig_resolve(enum rdma_port_space ps);

/* Two sides of a connection, with the queue pairs that rig_connect makes, if any. */
struct rig_pair {
	struct rdma_cm_id *listener;
	struct rdma_cm_id *active;
	struct rdma_cm_id *passive;
};

/** Ask for a connection: the passive side is an id that has not answered. */
struct rig_pair rig_ask(void);
/** The same, accepted by a side with a queue pair. */
struct rig_pair rig_connect(void);
/** Destroy all of it, queue pairs first. */
void rig_end(struct rig_pair *pair);

/** A queue pair of an RC id. */
struct ibv_qp_init_attr rig_qp_attr(void);
void rig_create_qp(struct rdma_cm_id *id);

/** Try the lock of an id's queue pair once, before the next lock of an engine: rig.qp_lock_rc is
 * EBUSY then if a thread has it. */
void rig_try_qp_lock(struct rdma_cm_id *id);

#endif
