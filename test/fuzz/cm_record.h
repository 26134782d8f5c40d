/* SPDX-License-Identifier: BSD-3-Clause */
/* The format of fuzz_cm's input: records with a head and a number of bytes. */
#ifndef FUZZ_CM_RECORD_H
#define FUZZ_CM_RECORD_H

#include <stdint.h>

enum cm_record_kind {
	CM_RECORD_MAD,	 /* the bytes follow a valid header; ids and addresses are made valid */
	CM_RECORD_MAD_2, /* the same; two values, so that most random records are messages */
	CM_RECORD_MAD_3,
	CM_RECORD_RAW, /* the bytes are a whole MAD */
	CM_RECORD_CALL,
	CM_RECORD_WAIT,
	CM_RECORD_TIMER, /* let time pass until the next deadline */
	CM_RECORD_KINDS,
};

enum cm_record_call {
	CM_CALL_CONNECT,
	CM_CALL_RESOLVE,
	CM_CALL_ACCEPT,
	CM_CALL_ESTABLISH,
	CM_CALL_REJECT,
	CM_CALL_REPLY,
	CM_CALL_DATA,
	CM_CALL_DISCONNECT,
	CM_CALL_DESTROY,
	CM_CALL_LISTEN, /* listen again, after all listeners have ended */
	CM_CALLS,
};

#define CM_RECORD_KEEP_IDS 0x01 /* else those of the connection `conn` */
#define CM_RECORD_KEEP_FIELDS \
	0x02 /* else a REQ is made acceptable, and a DREQ gets the right queue pair */
#define CM_RECORD_OTHER_HOST 0x04 /* from another host */
#define CM_RECORD_PATCH	     0x08 /* the MAD's byte at `patch_at` is changed by `patch` */

/* CONNECT and RESOLVE: bit 0 of the flags adds an IP header, the upper four bits are the
 * retries. */
struct cm_record {
	uint8_t kind;
	uint8_t flags;
	uint8_t conn;
	uint8_t what; /* message, call, or exponent of a time */
	uint8_t patch_at;
	uint8_t patch;
	uint8_t len;
};

/* Print what the inputs have reached. Return how much is missing. */
unsigned int cm_coverage_report(void);

#endif
