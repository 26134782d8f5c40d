/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of BTH opcodes: service, operation and the extended headers of each. */
#include "wire/opcode.h"

#include "wire/headers.h"

/* Bytes of the extended headers, 9.3. */
#define EXT_LEN(flags)                                                                  \
	(((flags)&OPCODE_HAS_XRCETH ? 4 : 0) + ((flags)&OPCODE_HAS_DETH ? 8 : 0) +      \
	 ((flags)&OPCODE_HAS_FETH ? 4 : 0) + ((flags)&OPCODE_HAS_RETH ? 16 : 0) +       \
	 ((flags)&OPCODE_HAS_ATOMICETH ? 28 : 0) + ((flags)&OPCODE_HAS_AETH ? 4 : 0) +  \
	 ((flags)&OPCODE_HAS_ATOMICACKETH ? 8 : 0) + ((flags)&OPCODE_HAS_IMM ? 4 : 0) + \
	 ((flags)&OPCODE_HAS_IETH ? 4 : 0) + ((flags)&OPCODE_HAS_SACKETH ? 4 : 0))

#define ENTRY(service, operation, what, is)         \
	[OPCODE_##service | OPCODE_##operation] = { \
		.flags = OPCODE_KNOWN | (is),       \
		.ext_len = EXT_LEN(is),             \
		.name = #service " " what,          \
	}

#define ONLY	 (OPCODE_FIRST | OPCODE_LAST)
#define SEND	 (OPCODE_REQUEST | OPCODE_IS_SEND | OPCODE_PAYLOAD)
#define WRITE	 (OPCODE_REQUEST | OPCODE_IS_WRITE | OPCODE_PAYLOAD)
#define RESPONSE (OPCODE_IS_READ_RESPONSE | OPCODE_PAYLOAD)
#define IMM	 OPCODE_HAS_IMM
#define IETH	 OPCODE_HAS_IETH
#define RETH	 OPCODE_HAS_RETH
#define AETH	 OPCODE_HAS_AETH
#define FETH	 OPCODE_HAS_FETH
#define ATOMIC	 (OPCODE_REQUEST | OPCODE_IS_ATOMIC | OPCODE_HAS_ATOMICETH)

/* clang-format off */
/* The opcodes of every connected service; `x` is the header that the service adds to each
 * request. */
#define CONNECTED(s, x) \
	ENTRY(s, SEND_FIRST, "SEND First", SEND | OPCODE_FIRST | (x)), \
	ENTRY(s, SEND_MIDDLE, "SEND Middle", SEND | (x)), \
	ENTRY(s, SEND_LAST, "SEND Last", SEND | OPCODE_LAST | (x)), \
	ENTRY(s, SEND_LAST_IMM, "SEND Last with Immediate", SEND | OPCODE_LAST | IMM | (x)), \
	ENTRY(s, SEND_ONLY, "SEND Only", SEND | ONLY | (x)), \
	ENTRY(s, SEND_ONLY_IMM, "SEND Only with Immediate", SEND | ONLY | IMM | (x)), \
	ENTRY(s, WRITE_FIRST, "RDMA WRITE First", WRITE | OPCODE_FIRST | RETH | (x)), \
	ENTRY(s, WRITE_MIDDLE, "RDMA WRITE Middle", WRITE | (x)), \
	ENTRY(s, WRITE_LAST, "RDMA WRITE Last", WRITE | OPCODE_LAST | (x)), \
	ENTRY(s, WRITE_LAST_IMM, "RDMA WRITE Last with Immediate", \
	      WRITE | OPCODE_LAST | IMM | (x)), \
	ENTRY(s, WRITE_ONLY, "RDMA WRITE Only", WRITE | ONLY | RETH | (x)), \
	ENTRY(s, WRITE_ONLY_IMM, "RDMA WRITE Only with Immediate", \
	      WRITE | ONLY | RETH | IMM | (x))

/* The opcodes that only reliable services have. */
#define RELIABLE(s, x) \
	ENTRY(s, READ_REQUEST, "RDMA READ Request", OPCODE_REQUEST | ONLY | RETH | (x)), \
	ENTRY(s, READ_RESPONSE_FIRST, "RDMA READ response First", RESPONSE | OPCODE_FIRST | AETH), \
	ENTRY(s, READ_RESPONSE_MIDDLE, "RDMA READ response Middle", RESPONSE), \
	ENTRY(s, READ_RESPONSE_LAST, "RDMA READ response Last", RESPONSE | OPCODE_LAST | AETH), \
	ENTRY(s, READ_RESPONSE_ONLY, "RDMA READ response Only", RESPONSE | ONLY | AETH), \
	ENTRY(s, ACKNOWLEDGE, "Acknowledge", ONLY | AETH), \
	ENTRY(s, ATOMIC_ACKNOWLEDGE, "ATOMIC Acknowledge", ONLY | AETH | OPCODE_HAS_ATOMICACKETH), \
	ENTRY(s, COMPARE_SWAP, "CmpSwap", ATOMIC | ONLY | (x)), \
	ENTRY(s, FETCH_ADD, "FetchAdd", ATOMIC | ONLY | (x)), \
	ENTRY(s, SEND_LAST_INV, "SEND Last with Invalidate", SEND | OPCODE_LAST | IETH | (x)), \
	ENTRY(s, SEND_ONLY_INV, "SEND Only with Invalidate", SEND | ONLY | IETH | (x)), \
	ENTRY(s, FLUSH, "FLUSH", OPCODE_REQUEST | ONLY | FETH | RETH | (x)), \
	ENTRY(s, ATOMIC_WRITE, "ATOMIC WRITE", \
	      OPCODE_REQUEST | ONLY | OPCODE_PAYLOAD | RETH | (x))
/* clang-format on */

const struct opcode_info opcode_infos[256] = {
	CONNECTED(RC, 0),
	RELIABLE(RC, 0),
	CONNECTED(UC, 0),
	ENTRY(UD, SEND_ONLY, "SEND Only", SEND | ONLY | OPCODE_HAS_DETH),
	ENTRY(UD, SEND_ONLY_IMM, "SEND Only with Immediate", SEND | ONLY | OPCODE_HAS_DETH | IMM),
	CONNECTED(XRC, OPCODE_HAS_XRCETH),
	RELIABLE(XRC, OPCODE_HAS_XRCETH),
	/* A17.9.3: 16 reserved bytes follow the BTH, and nothing else. */
	[OPCODE_CNP] = {.flags = OPCODE_KNOWN, .ext_len = CNP_RESERVED_LEN, .name = "CNP"},
	[OPCODE_SACK] = {.flags = OPCODE_KNOWN | OPCODE_PAYLOAD | OPCODE_HAS_SACKETH,
			 .ext_len = EXT_LEN(OPCODE_HAS_SACKETH),
			 .name = "selective acknowledgement"},
};

const struct opcode_info opcode_undefined = {.name = "undefined opcode"};
