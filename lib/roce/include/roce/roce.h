/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * libroce: RoCEv2 as a function, for programs that have a way of their own to send and receive
 * frames. Frames, work requests and the time go in; frames, completions and the next deadline come
 * out. The library starts no thread, handles no signal, reads no clock and opens no file.
 *
 * Work requests, completions and attributes are those of <infiniband/verbs.h>; nothing of
 * libibverbs is linked.
 *
 * The order of calls in one round of a program:
 *
 * 1. roce_receive for each frame that has come;
 * 2. roce_run, which sends;
 * 3. roce_poll for what has completed, roce_post_send and roce_post_recv for more work;
 * 4. wait until a frame comes or the time of roce_deadline_ns has come; do not wait if roce_run
 *    returned true and the program can send again, or if work was posted.
 *
 * A device belongs to one thread at a time: calls with the same device, or with its queue pairs,
 * must not run at the same time. Calls with different devices may. Functions that return an int
 * return 0 or a negative errno unless their comments say otherwise.
 */
#ifndef ROCE_ROCE_H
#define ROCE_ROCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A device: one address, one protection domain, one completion queue. */
struct roce;

/** A queue pair. */
struct roce_qp;

/** Bytes that every frame fits in, from the Ethernet header to the ICRC. */
#define ROCE_FRAME_MAX 4240

/** What the library needs of its host. The first argument of each function is the `user` of
 * roce_create. They are called in the thread that calls the library, and must not call it. */
struct roce_host {
	/** Return memory for one frame of ROCE_FRAME_MAX bytes, or NULL if nothing can be sent now:
	 * roce_run then returns true. It need not be a new frame until `send` has taken it. */
	uint8_t *(*frame)(void *user);
	/** Send the frame that `frame` returned last. `len` bytes are from its Ethernet header to
	 * its ICRC, without padding. A frame that is lost is sent again later. */
	void (*send)(void *user, uint8_t *frame, size_t len);
	/** An asynchronous event of a queue pair (ibv_get_async_event(3)), or of the completion
	 * queue, when `qp` is NULL: IBV_EVENT_CQ_ERR, completions were lost. NULL: not told. */
	void (*event)(void *user, struct roce_qp *qp, enum ibv_event_type type);
};

/** What congestion control lets a queue pair do. The state of an algorithm begins with it: the
 * algorithm changes it in each of its functions, as it likes. */
struct roce_cc {
	uint32_t link_kbps;   /**< of roce_config.link_mbps, or a guess; not changed */
	uint32_t window_pkts; /**< most packets in flight; 0 counts as 1 */
	uint32_t rate_kbps;   /**< most in a second; 0: no limit */
	uint64_t wait_ns;     /**< the next packet does not leave before this time */
	/** While packets must wait, `poll` is called at this time at the latest; UINT64_MAX: they
	 * wait for answers, or for the time that the rate or wait_ns gives. */
	uint64_t timer_ns;
};

/** An algorithm of congestion control. A function that it does not need is NULL. The time is that
 * of the call of roce_run or roce_receive. */
struct roce_cc_ops {
	/** Bytes of its state of one queue pair, at least those of struct roce_cc. */
	size_t bytes;
	/** Sent packets say that switches may mark them (ECN), and a peer that receives a marked
	 * one sends a notification. */
	bool marks;
	/** It needs round trips: `answered` is called. For reliable queue pairs only. */
	bool times;
	/** Begin a connection. The state is all zeros, and struct roce_cc allows everything. */
	void (*start)(struct roce_cc *cc);
	/** The queue pair may send now, or must wait no longer. */
	void (*poll)(struct roce_cc *cc, uint64_t now_ns);
	/** A packet of `bytes` was sent. It stands for `psns` packet sequence numbers: a READ
	 * request for those of its responses. */
	void (*sent)(struct roce_cc *cc, uint32_t bytes, uint32_t psns, uint64_t now_ns);
	/** A packet was answered after rtt_ns. One packet at a time is timed; `psns` sequence
	 * numbers were sent between the one that was timed before it and this one. */
	void (*answered)(struct roce_cc *cc, uint64_t rtt_ns, uint32_t psns, uint64_t now_ns);
	/** Packets were lost, for the first time in this flight. */
	void (*lost)(struct roce_cc *cc, uint64_t now_ns);
	/** The peer sent a congestion notification. */
	void (*notified)(struct roce_cc *cc, uint64_t now_ns);
};

/** A new device. */
struct roce_config {
	/** Its address: an IPv6 address, or ::ffff:a.b.c.d for an IPv4 address. */
	uint8_t gid[16];
	/** Its Ethernet address. It stands in sent frames; received frames are not compared. */
	uint8_t mac[6];
	/** The largest IP packet that its network carries, at least 338 bytes. */
	uint32_t mtu_bytes;
	/** The speed of its link in Mb/s, with which congestion control begins; 0: unknown. */
	uint64_t link_mbps;
	/** Entries of its completion queue, at least 1. */
	uint32_t completions;
	/** Congestion control of its queue pairs: "none" (also NULL), "dcqcn" or "swift". */
	const char *cc;
};

/** A new queue pair. */
struct roce_qp_init {
	enum ibv_qp_type type; /**< IBV_QPT_RC or IBV_QPT_UC */
	struct ibv_qp_cap cap; /**< the least sizes of its queues */
	bool signal_all;       /**< each send request has a completion (sq_sig_all) */
	/** Its congestion control, which lives as long as the queue pair; NULL: the device's. */
	const struct roce_cc_ops *cc;
};

/** The way to a peer, beside what struct ibv_ah_attr says. */
struct roce_hop {
	uint8_t mac[6];	    /**< Ethernet address of the peer, or of the router to it */
	uint16_t udp_sport; /**< UDP source port of sent frames */
};

/** Facts about a received frame that need not be checked again. */
enum roce_known {
	/** Somebody has verified the checksums of IPv4 and UDP, or there are none. */
	ROCE_SUMS_GOOD = 1 << 0,
	/** The frame's IPv4 identification is a guess: a socket does not say which one the packet
	 * had. Any other that makes the ICRC right is accepted. */
	ROCE_ID_UNKNOWN = 1 << 1,
};

/**
 * Create a device.
 *
 * @param host
 *   Not copied.
 * @return
 *   0; -EINVAL for a configuration that its comments exclude; -ENOMEM; or -errno of getrandom(2).
 */
int roce_create(const struct roce_config *config, const struct roce_host *host, void *user,
		struct roce **roce);

/** Destroy a device. 0, or -EBUSY if it still has queue pairs or regions. */
int roce_destroy(struct roce *roce);

/**
 * Register memory. It must stay mapped until roce_deregister: an access to a page that is missing
 * is a fault of this process.
 *
 * @param access
 *   IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
 *   IBV_ACCESS_REMOTE_ATOMIC.
 * @param key
 *   Set to the region's lkey and rkey.
 * @return
 *   0; -EINVAL for another access flag, flags that contradict each other (ibv_reg_mr(3)), or a
 *   range that wraps; -EFAULT if the range is not mapped for this access; -ENOMEM.
 */
int roce_register(struct roce *roce, void *addr, size_t length, unsigned int access, uint32_t *key);

/** Make a key invalid: no frame accesses the memory any more. 0, or -EINVAL if there is no such
 * region. */
int roce_deregister(struct roce *roce, uint32_t key);

/** Create a queue pair in RESET. 0; -EOPNOTSUPP for another type, or congestion control that the
 * type cannot have; -EINVAL for queues that are too large, or too short a state; -ENOMEM. */
int roce_qp_create(struct roce *roce, const struct roce_qp_init *init, struct roce_qp **qp);

/** Destroy a queue pair. Its work ends without completions, and its completions that were not
 * polled are dropped. */
void roce_qp_destroy(struct roce_qp *qp);

/** Return the number by which peers address a queue pair, and which its completions have. */
uint32_t roce_qp_number(const struct roce_qp *qp);

/**
 * Do what ibv_modify_qp(3) does: bring a queue pair to INIT, RTR and RTS.
 *
 * @param hop
 *   With IBV_QP_AV: the way to the peer. attr->ah_attr is global, from port 1 and GID 0.
 * @return
 *   0 or -EINVAL; on failure nothing has changed.
 */
int roce_qp_modify(struct roce_qp *qp, const struct ibv_qp_attr *attr, int mask,
		   const struct roce_hop *hop);

/** Post send requests, as ibv_post_send(3): roce_run sends them. 0, or a positive errno, with *bad
 * set to the first request that was not posted. */
int roce_post_send(struct roce_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/** Post receive requests, as ibv_post_recv(3). Returns as roce_post_send. */
int roce_post_recv(struct roce_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/** Take up to `n` completions, the oldest first. Return how many. */
int roce_poll(struct roce *roce, int n, struct ibv_wc *wc);

/**
 * Process a received frame: nothing in it is believed before it was checked. Frames that fail a
 * check are dropped.
 *
 * @param frame
 *   From its Ethernet header to its ICRC, or with padding behind it. Not used after the call. With
 *   ROCE_ID_UNKNOWN its IPv4 identification may change.
 * @param known
 *   Bits of enum roce_known.
 * @param now_ns
 *   The time of a clock that never goes back; the same clock in each call.
 * @return
 *   False if the frame is not RoCEv2: it is for somebody else.
 */
bool roce_receive(struct roce *roce, uint8_t *frame, size_t len, unsigned int known,
		  uint64_t now_ns);

/**
 * Handle the deadlines that have come, and send what can be sent: answers, requests,
 * retransmissions. Call it after roce_receive was given all frames that have come, so that no timer
 * expires for an answer that is already there.
 *
 * @return
 *   True if there is more to send: call it again as soon as roce_host.frame returns memory.
 */
bool roce_run(struct roce *roce, uint64_t now_ns);

/** Return when roce_run must be called even if no frame comes and no work is posted; UINT64_MAX:
 * never. It looks at each queue pair. */
uint64_t roce_deadline_ns(const struct roce *roce);

#ifdef __cplusplus
}
#endif

#endif
