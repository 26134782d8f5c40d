/* SPDX-License-Identifier: BSD-3-Clause */
/* How the input of fuzz_cm is read: records, each a head and so many bytes. */
#ifndef FUZZ_CM_RECORD_H
#define FUZZ_CM_RECORD_H

#include <stdint.h>

enum cm_record_kind {
	CM_RECORD_MAD, /* the bytes stand behind a good header; ids and addresses are made to fit */
	CM_RECORD_MAD_2, /* the same, so that most of what a fuzzer makes up are messages */
	CM_RECORD_MAD_3,
	CM_RECORD_RAW, /* the bytes are all of a MAD */
	CM_RECORD_CALL,
	CM_RECORD_WAIT,
	CM_RECORD_TIMER, /* until the next deadline */
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
	CM_CALL_LISTEN, /* again, after an end of all listeners */
	CM_CALLS,
};

#define CM_RECORD_KEEP_IDS 0x01 /* else those of the connection `conn` */
#define CM_RECORD_KEEP_FIELDS \
	0x02 /* else a REQ is one that can be taken, a DREQ has the right queue pair */
#define CM_RECORD_OTHER_HOST 0x04 /* from another host */
#define CM_RECORD_PATCH	     0x08 /* the MAD's byte `patch_at` is changed by `patch` */

/* CONNECT and RESOLVE: bit 0 of the flags is an IP header, the upper four bits are the retries. */
struct cm_record {
	uint8_t kind;
	uint8_t flags;
	uint8_t conn;
	uint8_t what; /* message, call, or exponent of a time */
	uint8_t patch_at;
	uint8_t patch;
	uint8_t len;
};

/* Print what the inputs have reached; how much is missing. */
unsigned int cm_coverage_report(void);

#endif
