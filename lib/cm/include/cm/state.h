/* SPDX-License-Identifier: BSD-3-Clause */
/* States of a connection (IBTA 12.9, 12.11) and the table of all their transitions. */
#ifndef CM_STATE_H
#define CM_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/cm.h"

/* clang-format off */
#define CM_STATES(STATE)                                                                    \
	STATE(IDLE)          /* nothing is sent yet, or all is over */                      \
	/* the active side */                                                               \
	STATE(REQ_SENT)                                                                     \
	STATE(MRA_REQ_RCVD)  /* the peer needs longer for the REQ */                        \
	STATE(REP_RCVD)      /* the caller has not agreed yet */                            \
	STATE(MRA_REP_SENT)  /* the same, and the peer has repeated the REP */              \
	/* the passive side */                                                              \
	STATE(REQ_RCVD)      /* the caller has neither accepted nor rejected */             \
	STATE(MRA_REQ_SENT)  /* the same, and the peer has repeated the REQ */              \
	STATE(REP_SENT)                                                                     \
	STATE(MRA_REP_RCVD)  /* the peer needs longer for the REP */                        \
	/* both */                                                                          \
	STATE(ESTABLISHED)                                                                  \
	STATE(DREQ_SENT)                                                                    \
	STATE(DREQ_RCVD)     /* the caller has not disconnected yet */                      \
	STATE(TIMEWAIT)      /* until no packet of it can be in the network */              \
	STATE(REJ_SENT)      /* until the peer has the REJ, as far as can be known */       \
	/* service id resolution */                                                         \
	STATE(SIDR_REQ_SENT)                                                                \
	STATE(SIDR_REQ_RCVD)                                                                \
	STATE(SIDR_REP_SENT) /* until the peer has the SIDR_REP, as far as can be known */

#define CM_INPUTS(INPUT)                                                                    \
	/* calls from above */                                                              \
	INPUT(CONNECT)                                                                      \
	INPUT(RESOLVE)        /* ask for a queue pair by SIDR_REQ */                        \
	INPUT(ACCEPT)                                                                       \
	INPUT(ESTABLISH)      /* agree to a REP */                                          \
	INPUT(REJECT)                                                                       \
	INPUT(REPLY)          /* answer a SIDR_REQ */                                       \
	INPUT(DATA)           /* the queue pair has received: communication established */  \
	INPUT(DISCONNECT)                                                                   \
	INPUT(DESTROY)                                                                      \
	INPUT(END)            /* the process ends, and has answered the peer's DREQ */      \
	/* messages; each has passed the checks of ids, addresses and queue pairs */        \
	INPUT(REQ)            /* the first one */                                           \
	INPUT(REQ_AGAIN)                                                                    \
	INPUT(MRA_OF_REQ)                                                                   \
	INPUT(MRA_OF_REP)                                                                   \
	INPUT(REP)            /* the first one */                                           \
	INPUT(REP_AGAIN)                                                                    \
	INPUT(REP_STALE)      /* with the queue pair of a connection that we still have */  \
	INPUT(RTU)                                                                          \
	INPUT(REJ)                                                                          \
	INPUT(REJ_STALE)      /* REJ with reason 10 */                                      \
	INPUT(DREQ)                                                                         \
	INPUT(DREP)                                                                         \
	INPUT(SIDR_REQ)       /* the first one */                                           \
	INPUT(SIDR_REQ_AGAIN)                                                               \
	INPUT(SIDR_REP)                                                                     \
	/* the peer uses this connection's queue pair for a new one */                      \
	INPUT(STALE)                                                                        \
	/* the timer */                                                                     \
	INPUT(TIMEOUT)        /* with retries left */                                       \
	INPUT(EXPIRED)        /* with none */

/* Events for the caller, in the order in which one connection can have them, each at most once. */
#define CM_EVENTS(EVENT)                                                                    \
	EVENT(NONE)                                                                         \
	EVENT(REQ)           /* a listener's: accept, reject or destroy the connection */   \
	EVENT(SIDR_REQ)      /* a listener's: reply, or destroy the connection */           \
	EVENT(REP)           /* establish, reject or destroy */                             \
	EVENT(SIDR_REP)                                                                     \
	EVENT(ESTABLISHED)   /* RTU came, or data */                                        \
	EVENT(UNREACHABLE)   /* no answer within all retries */                             \
	EVENT(REJECTED)                                                                     \
	EVENT(DISCONNECTED)  /* where the peer began: disconnect or destroy to answer it */ \
	EVENT(TIMEWAIT_EXIT)
/* clang-format on */

enum cm_state {
#define STATE(name) CM_STATE_##name,
	CM_STATES(STATE)
#undef STATE
		CM_STATE_COUNT
};

enum cm_input {
#define INPUT(name) CM_INPUT_##name,
	CM_INPUTS(INPUT)
#undef INPUT
		CM_INPUT_COUNT
};

enum cm_event_type {
#define EVENT(name) CM_EVENT_##name,
	CM_EVENTS(EVENT)
#undef EVENT
		CM_EVENT_COUNT
};

enum cm_timer {
	CM_TIMER_KEEP, /* as it is */
	CM_TIMER_OFF,
	CM_TIMER_FIRST,	 /* the response timeout, all retries left */
	CM_TIMER_AGAIN,	 /* the response timeout, one retry less */
	CM_TIMER_MRA,	 /* as long as the peer has asked for, retries as they are */
	CM_TIMER_WAIT,	 /* timewait */
	CM_TIMER_LINGER, /* while the peer may repeat what was answered */
};

/* Not a message: repeat the message that was sent last. */
#define CM_SEND_AGAIN 1

/* The effect of an input in a state. All zero: the message is dropped, or the call fails. */
struct cm_transition {
	bool defined;
	uint8_t next;	/* enum cm_state */
	uint8_t send;	/* enum cm_message, CM_SEND_AGAIN, or 0 */
	uint8_t reason; /* reason of a REJ, unless the caller gives one */
	uint8_t timer;	/* enum cm_timer */
	uint8_t event;	/* enum cm_event_type */
};

/** Return the row of a state and an input. MT-safe. */
const struct cm_transition *cm_transition(enum cm_state state, enum cm_input input);

/** Return a state's name. MT-safe. */
const char *cm_state_name(enum cm_state state);

#endif
