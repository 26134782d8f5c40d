/* SPDX-License-Identifier: BSD-3-Clause */
/* BTH opcodes (IBTA 9.2, tables 37 and 38) and the headers of each one. */
#ifndef WIRE_OPCODE_H
#define WIRE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

/* The upper three bits of an opcode: the transport service. */
enum opcode_service {
	OPCODE_RC = 0x00,
	OPCODE_UC = 0x20,
	OPCODE_UD = 0x60,
	OPCODE_XRC = 0xa0,
	OPCODE_SERVICE_MASK = 0xe0,
};

/* The lower five bits: the operation. */
enum opcode_operation {
	OPCODE_SEND_FIRST = 0,
	OPCODE_SEND_MIDDLE,
	OPCODE_SEND_LAST,
	OPCODE_SEND_LAST_IMM,
	OPCODE_SEND_ONLY,
	OPCODE_SEND_ONLY_IMM,
	OPCODE_WRITE_FIRST,
	OPCODE_WRITE_MIDDLE,
	OPCODE_WRITE_LAST,
	OPCODE_WRITE_LAST_IMM,
	OPCODE_WRITE_ONLY,
	OPCODE_WRITE_ONLY_IMM,
	OPCODE_READ_REQUEST,
	OPCODE_READ_RESPONSE_FIRST,
	OPCODE_READ_RESPONSE_MIDDLE,
	OPCODE_READ_RESPONSE_LAST,
	OPCODE_READ_RESPONSE_ONLY,
	OPCODE_ACKNOWLEDGE,
	OPCODE_ATOMIC_ACKNOWLEDGE,
	OPCODE_COMPARE_SWAP,
	OPCODE_FETCH_ADD,
	OPCODE_SEND_LAST_INV = 22,
	OPCODE_SEND_ONLY_INV,
	OPCODE_FLUSH = 28, /* annex A19; the next one too */
	OPCODE_ATOMIC_WRITE,
	OPCODE_OPERATION_MASK = 0x1f,
};

#define OPCODE_CNP 0x81 /* congestion notification packet, annex A17.9 */
/* Our selective acknowledgement (transport/sack.h), of a manufacturer-defined opcode (9.2, table
 * 37: C0h to FFh). */
#define OPCODE_SACK 0xd8

/* Kind of an opcode, and the extended headers that follow its BTH, in the order of the wire. */
enum opcode_flag {
	OPCODE_KNOWN = 1 << 0,
	OPCODE_REQUEST = 1 << 1, /* to the responder; else to the requester */
	OPCODE_FIRST = 1 << 2,	 /* first or only packet of a message */
	OPCODE_LAST = 1 << 3,	 /* last or only packet of a message */
	OPCODE_IS_SEND = 1 << 4,
	OPCODE_IS_WRITE = 1 << 5,
	OPCODE_IS_READ_RESPONSE = 1 << 6,
	OPCODE_IS_ATOMIC = 1 << 7, /* an atomic request */
	OPCODE_PAYLOAD = 1 << 8,   /* may carry payload */
	OPCODE_HAS_XRCETH = 1 << 9,
	OPCODE_HAS_DETH = 1 << 10,
	OPCODE_HAS_FETH = 1 << 11,
	OPCODE_HAS_RETH = 1 << 12,
	OPCODE_HAS_ATOMICETH = 1 << 13,
	OPCODE_HAS_AETH = 1 << 14,
	OPCODE_HAS_ATOMICACKETH = 1 << 15,
	OPCODE_HAS_IMM = 1 << 16,
	OPCODE_HAS_IETH = 1 << 17,
	OPCODE_HAS_SACKETH = 1 << 18,
};

struct opcode_info {
	uint32_t flags;	  /* enum opcode_flag */
	uint8_t ext_len;  /* bytes of all extended headers */
	const char *name; /* as in the specification, e.g. "RC SEND Only" */
};

extern const struct opcode_info opcode_infos[256], opcode_undefined;

/** Return enum opcode_flag of an opcode; 0 if it is not defined. MT-safe. */
static inline uint32_t opcode_flags(uint8_t opcode)
{
	return opcode_infos[opcode].flags;
}

/** Return the description of an opcode; its flags are 0 if the opcode is not defined. MT-safe,
 * never NULL. */
static inline const struct opcode_info *opcode_info(uint8_t opcode)
{
	const struct opcode_info *info = &opcode_infos[opcode];

	return info->flags ? info : &opcode_undefined;
}

#endif
