/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection manager's MADs (IBTA 12.6, 12.11): constants, structs, and the conversion between
 * bytes and structs. */
#ifndef WIRE_CM_H
#define WIRE_CM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"
#include "wire/mad.h"

#define CM_CLASS_VERSION 2  /* 16.7 */
#define CM_INFO_MAX	 72 /* additional information of REJ, SIDR_REP and APR */
#define CM_PRIVATE_MAX	 224
#define CM_TIME_MAX	 31 /* largest 5-bit time */

/* Every message: name, attribute id (16.7), bytes of private data. */
#define CM_MESSAGES(MESSAGE)         \
	MESSAGE(REQ, 0x10, 92)       \
	MESSAGE(MRA, 0x11, 222)      \
	MESSAGE(REJ, 0x12, 148)      \
	MESSAGE(REP, 0x13, 196)      \
	MESSAGE(RTU, 0x14, 224)      \
	MESSAGE(DREQ, 0x15, 220)     \
	MESSAGE(DREP, 0x16, 224)     \
	MESSAGE(SIDR_REQ, 0x17, 216) \
	MESSAGE(SIDR_REP, 0x18, 136) \
	MESSAGE(LAP, 0x19, 168)      \
	MESSAGE(APR, 0x1a, 148)

enum cm_message {
#define MESSAGE(name, attr, private_len) CM_##name = attr,
	CM_MESSAGES(MESSAGE)
#undef MESSAGE
};

#define CM_FIRST_MESSAGE CM_REQ
#define CM_LAST_MESSAGE	 CM_APR

enum cm_private_len {
#define MESSAGE(name, attr, private_len) CM_##name##_PRIVATE = private_len,
	CM_MESSAGES(MESSAGE)
#undef MESSAGE
};

/* Reasons of a REJ, 12.6.7: name, number, words. */
/* clang-format off */
#define CM_REJ_REASONS(REASON) \
	REASON(NO_QP, 1, "no queue pair available") \
	REASON(NO_EEC, 2, "no EE context available") \
	REASON(NO_RESOURCES, 3, "no resources available") \
	REASON(TIMEOUT, 4, "timeout") \
	REASON(UNSUPPORTED_REQUEST, 5, "unsupported request") \
	REASON(INVALID_COMM_ID, 6, "invalid communication id") \
	REASON(INVALID_COMM_INSTANCE, 7, "invalid communication instance") \
	REASON(INVALID_SERVICE_ID, 8, "invalid service id") \
	REASON(INVALID_TRANSPORT_TYPE, 9, "invalid transport service type") \
	REASON(STALE_CONNECTION, 10, "stale connection") \
	REASON(NO_RDC, 11, "no RDC") \
	REASON(INVALID_GID, 12, "primary remote port GID rejected") \
	REASON(INVALID_LID, 13, "primary remote port LID rejected") \
	REASON(INVALID_SL, 14, "invalid primary SL") \
	REASON(INVALID_TRAFFIC_CLASS, 15, "invalid primary traffic class") \
	REASON(INVALID_HOP_LIMIT, 16, "invalid primary hop limit") \
	REASON(INVALID_PACKET_RATE, 17, "invalid primary packet rate") \
	REASON(INVALID_ALT_GID, 18, "alternate remote port GID rejected") \
	REASON(INVALID_ALT_LID, 19, "alternate remote port LID rejected") \
	REASON(INVALID_ALT_SL, 20, "invalid alternate SL") \
	REASON(INVALID_ALT_TRAFFIC_CLASS, 21, "invalid alternate traffic class") \
	REASON(INVALID_ALT_HOP_LIMIT, 22, "invalid alternate hop limit") \
	REASON(INVALID_ALT_PACKET_RATE, 23, "invalid alternate packet rate") \
	REASON(PORT_CM_REDIRECT, 24, "port and CM redirection") \
	REASON(PORT_REDIRECT, 25, "port redirection") \
	REASON(INVALID_MTU, 26, "invalid path MTU") \
	REASON(INSUFFICIENT_RESPONDER_RESOURCES, 27, "insufficient responder resources") \
	REASON(CONSUMER_DEFINED, 28, "consumer defined") \
	REASON(INVALID_RNR_RETRY, 29, "invalid RNR retry count") \
	REASON(DUPLICATE_LOCAL_COMM_ID, 30, "duplicate local communication id") \
	REASON(INVALID_CLASS_VERSION, 31, "invalid class version") \
	REASON(INVALID_FLOW_LABEL, 32, "invalid primary flow label") \
	REASON(INVALID_ALT_FLOW_LABEL, 33, "invalid alternate flow label") \
	REASON(VENDOR_OPTION_NOT_SUPPORTED, 35, "vendor option not supported")
/* clang-format on */

enum cm_rej_reason {
#define REASON(name, number, words) CM_REJ_##name = (number),
	CM_REJ_REASONS(REASON)
#undef REASON
};

/* The message that a REJ rejects or an MRA acknowledges, 12.6.6 and 12.6.7. */
enum cm_about {
	CM_ABOUT_REQ = 0,
	CM_ABOUT_REP = 1,
	CM_ABOUT_OTHER = 2, /* REJ: none of these; MRA: a LAP */
};

/* Transport services of a REQ, 12.7. */
enum cm_transport {
	CM_TRANSPORT_RC = 0,
	CM_TRANSPORT_UC = 1,
	CM_TRANSPORT_RD = 2,
	CM_TRANSPORT_EXTENDED = 3, /* annex A14: see extended_type */
};

#define CM_EXTENDED_XRC 1 /* extended_type of a REQ, annex A14 */

/* Statuses of a SIDR_REP, 12.11.2. */
enum cm_sidr_status {
	CM_SIDR_VALID = 0,
	CM_SIDR_UNSUPPORTED_SERVICE = 1,
	CM_SIDR_REJECTED = 2,
	CM_SIDR_NO_QP = 3,
	CM_SIDR_REDIRECT = 4,
	CM_SIDR_UNSUPPORTED_VERSION = 5,
};

/* Bits of the manager's ClassPortInfo, 16.7. */
#define CM_CAP_RC   (1u << 9)
#define CM_CAP_SIDR (1u << 13)

/* A path of a REQ (12.7) or LAP, as its sender sees it. */
struct cm_path {
	uint16_t local_lid; /* 0xffff on RoCE; remote_lid too */
	uint16_t remote_lid;
	uint8_t local_gid[16];
	uint8_t remote_gid[16];
	uint32_t flow_label; /* 20 bits */
	uint8_t packet_rate; /* 6 bits, of enum ibv_rate */
	uint8_t tclass;
	uint8_t hop_limit;
	uint8_t sl; /* 4 bits */
	bool subnet_local;
	uint8_t ack_timeout; /* 5 bits: 4.096 us * 2^n */
};

/* Enhanced connection establishment: options of a vendor in a REQ or REP. All zero: none. */
struct cm_ece {
	uint32_t vendor_id; /* 24 bits */
	uint32_t options;   /* the attribute modifier */
};

/* The REQ of 12.6.5. */
struct cm_req {
	uint64_t service_id;
	uint64_t ca_guid;
	uint32_t qkey;
	uint32_t qpn;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint32_t local_eecn;
	uint32_t remote_eecn;
	uint8_t remote_response_timeout; /* 5 bits: the receiver must answer within 4.096 us * 2^n
					  */
	uint8_t local_response_timeout;	 /* 5 bits: the sender answers within this time */
	uint8_t transport;		 /* enum cm_transport */
	bool flow_control;
	struct psn psn; /* the PSN with which the receiver of the REQ begins to send (12.7.31) */
	uint8_t retry_count; /* 3 bits */
	uint16_t pkey;
	uint8_t mtu; /* 4 bits, enum ibv_mtu */
	bool rdc_exists;
	uint8_t rnr_retry_count; /* 3 bits */
	uint8_t max_cm_retries;	 /* 4 bits */
	bool srq;
	uint8_t extended_type; /* 3 bits */
	bool sap_supported;
	struct cm_ece ece;
	struct cm_path primary;
	struct cm_path alternate; /* local_lid and GIDs 0: none */
};

/* The MRA of 12.6.6. */
struct cm_mra {
	uint8_t about;		 /* enum cm_about */
	uint8_t service_timeout; /* 5 bits: 4.096 us * 2^n */
};

/* The REJ of 12.6.7. */
struct cm_rej {
	uint8_t about; /* enum cm_about */
	uint16_t reason;
	const uint8_t *info;
	uint8_t info_len;
};

/* The REP of 12.6.8. */
struct cm_rep {
	uint32_t qkey;
	uint32_t qpn;	/* 0 for XRC */
	uint32_t eecn;	/* for XRC: the target queue pair (annex A14) */
	struct psn psn; /* as in a REQ */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t target_ack_delay; /* 5 bits: 4.096 us * 2^n */
	uint8_t failover;	  /* 2 bits */
	bool flow_control;
	uint8_t rnr_retry_count; /* 3 bits */
	bool srq;
	struct cm_ece ece;
	uint64_t ca_guid;
};

/** Return the queue pair of a REP, of any transport service. MT-safe. */
static inline uint32_t cm_rep_qpn(const struct cm_rep *rep)
{
	return rep->qpn != 0 ? rep->qpn : rep->eecn;
}

/* The SIDR_REQ of 12.11.1. */
struct cm_sidr_req {
	uint16_t pkey;
	uint64_t service_id;
};

/* The SIDR_REP of 12.11.2. */
struct cm_sidr_rep {
	uint8_t status; /* enum cm_sidr_status */
	uint32_t qpn;
	uint64_t service_id;
	uint32_t qkey;
	const uint8_t *info;
	uint8_t info_len;
};

/* The LAP of 12.8.1. */
struct cm_lap {
	uint32_t remote_qpn;
	uint8_t remote_response_timeout; /* 5 bits */
	struct cm_path path;
};

/* The APR of 12.8.2. */
struct cm_apr {
	uint8_t status;
	const uint8_t *info;
	uint8_t info_len;
};

/* A message in host order. Pointers point into the parsed MAD. */
struct cm_mad {
	enum cm_message message;
	uint64_t tid;
	uint32_t local_id;  /* the sender's; a SIDR message's request id */
	uint32_t remote_id; /* the receiver's; 0 in REQ, SIDR_REQ and SIDR_REP */
	union {
		struct cm_req req;
		struct cm_mra mra;
		struct cm_rej rej;
		struct cm_rep rep;
		uint32_t dreq_qpn; /* DREQ: the receiver's queue pair */
		struct cm_sidr_req sidr_req;
		struct cm_sidr_rep sidr_rep;
		struct cm_lap lap;
		struct cm_apr apr;
	};
	const uint8_t *private_data;
	uint8_t private_len; /* after parsing: the length of the message's whole field */
};

/* Outcome of cm_mad_parse, in the order of its checks. */
enum cm_mad_status {
	CM_MAD_OK,
	CM_MAD_BAD_LENGTH, /* other than MAD_LEN bytes */
	CM_MAD_BAD_BASE_VERSION,
	CM_MAD_BAD_CLASS, /* of another manager */
	CM_MAD_BAD_CLASS_VERSION,
	CM_MAD_BAD_METHOD,    /* not Send */
	CM_MAD_BAD_ATTRIBUTE, /* not in CM_MESSAGES */
	CM_MAD_BAD_FIELD,     /* a value that this message cannot have */
};

/** Parse a MAD: check all that needs no state. MT-safe. `mad` is filled on CM_MAD_OK. */
enum cm_mad_status cm_mad_parse(const uint8_t *bytes, size_t len, struct cm_mad *mad);

/**
 * Build a MAD of MAD_LEN bytes; bytes that private data and information leave free are zero.
 * MT-safe.
 *
 * @return
 *   0, or -EINVAL if private data or information are longer than their fields.
 */
int cm_mad_build(const struct cm_mad *mad, uint8_t *bytes);

/**
 * Build the answer to a MAD that is not a message of a connection (13.4.7, 16.7): a response with a
 * status, ClassPortInfo, or a REJ of a REQ of another class version. MT-safe.
 *
 * @param mad
 *   The received MAD, of MAD_LEN bytes; not read if the status is CM_MAD_BAD_LENGTH.
 * @param status
 *   The result of cm_mad_parse.
 * @param answer
 *   Room for MAD_LEN bytes.
 * @return
 *   False if the MAD is to be dropped.
 */
bool cm_mad_answer(const uint8_t *mad, enum cm_mad_status status, uint8_t *answer);

/** Return the message's name, or NULL for an unknown message. MT-safe. */
const char *cm_message_name(unsigned int message);

/** Return the bytes of private data in a message; 0 for an unknown message. MT-safe. */
uint8_t cm_private_len(unsigned int message);

/**
 * Return the exponent of a path's local ACK timeout (12.7), computed as Linux does. The timeout is
 * the longer one of two times: the round trip, and the peer's delay before an ACK. If the shorter
 * one is at least half of the longer one, the timeout is twice the longer one. MT-safe.
 */
uint8_t cm_ack_timeout(uint8_t ack_delay, uint8_t packet_life_time);

/** Nanoseconds of a 5-bit time of the connection manager, 4.096 us * 2^n (12.7). MT-safe. */
uint64_t cm_time_ns(uint8_t exponent);

#endif
