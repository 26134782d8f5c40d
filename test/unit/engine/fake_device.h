/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs and a device that only note what an engine does with them, on a port that loops back.
 */
#ifndef FAKE_DEVICE_H
#define FAKE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "qp/qp.h"

#define FAKE_FRAME_LEN	64
#define FAKE_QPN	17 /* the number of fake_receiver, for device_change_cc */
#define FAKE_TAIL	0x7a
#define FAKE_UNREADABLE 0xee /* a first byte of dst_mac that makes payload unreadable */

/* A queue pair that sends `to_send` frames, and wants a timer at `deadline_ns`. */
struct qp {
	struct qp_sched sched; /* first, as qp_sched expects */
	unsigned int to_send;  /* atomic, as all that is counted here */
	bool only_ack;	       /* may wait for company */
	uint8_t dst_mac[6];
	enum ibv_qp_state state;
	uint64_t deadline_ns;
	unsigned int runs;
	unsigned int timeouts;
	unsigned int hastened;
	unsigned int received;
	bool ran_untold;	/* it ran while fake_cq had raised no event */
	const uint8_t *payload; /* that its frames have behind their headers, or NULL */
	uint32_t payload_len;
	bool again; /* they were sent before */
	uint8_t opcode;
	bool failed;	     /* was put into ERR */
	unsigned int faults; /* packets that could not be read */
};

/* The queue pair that device_receive_next gives every RoCE frame to, or NULL; a frame is RoCE if
 * its last byte is 0x91. */
extern struct qp *fake_receiver;
extern uint32_t fake_peer_qpn;	      /* the number to which every queue pair sends */
extern struct cq *fake_cq;	      /* gets a completion for each RoCE frame; NULL: none does */
extern unsigned int fake_looped;      /* frames that were trusted */
extern unsigned int fake_source_good; /* whose source need not be checked */
extern unsigned int fake_known_good;  /* whose checksums were verified by the port */
extern enum ibv_event_type fake_last_event;
extern enum cc_kind fake_kind;	/* the newest algorithm of the queue pair FAKE_QPN */
extern struct qp *fake_waiting; /* the one that waits for a page, or NULL */
/* Processes what other programs do with XRC domains; NULL: they do nothing. */
extern void (*fake_follow_xrc)(void);

void fake_qp_init(struct qp *qp, const uint8_t dst_mac[6]);

/** Start EAL and a port (once a process). false where that does not work here: the test is skipped.
 */
bool fake_start(void);

/** A new engine on the port, with nothing in it. */
struct engine *fake_engine(enum settings_progress progress);

/** Forget an engine; its port lives on for the next. */
void fake_engine_end(struct engine *engine);

#endif
