/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire format of rsockets, and the same values in host byte order. The only description of the
 * format is in rdma-core: librdmacm/docs/rsocket, and librdmacm/rsocket.c where the two differ.
 *
 * Streams. Both sides send a struct rs_hello_wire in the private data of REQ and REP. After that,
 * both sides send only RDMA WRITEs: data into a window that the peer has granted, windows into the
 * peer's target list, and mappings into the peer's table of mappings. A message is the immediate
 * data of a WRITE: 3 bits of enum rs_op, 29 bits of value.
 *
 * Datagrams. A datagram sent by UDP begins with a struct rs_udp_wire, a datagram sent by a queue
 * pair with a struct rs_datagram_wire.
 */
#ifndef RDMACM_RS_WIRE_H
#define RDMACM_RS_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_byteorder.h>

#define RS_VERSION 1
#define RS_TARGET_SLOTS \
	2 /* slots of the local target list: windows that the peer can grant in advance */
#define RS_IMM_SHIFT 29
#define RS_IMM_VALUE ((1U << RS_IMM_SHIFT) - 1)
#define RS_UDP_TAG   0x55555555

enum rs_hello_flag {
	RS_HELLO_BIG_ENDIAN = 1, /* the byte order of the sender's windows and mappings */
	RS_HELLO_IOMAP = 2,	 /* the member iomaps is valid */
};

enum rs_op {
	RS_OP_DATA = 0,	   /* value: bytes of a WRITE into the window */
	RS_OP_GRANT = 4,   /* value: credits; with 16 bytes, the next slot of the target list */
	RS_OP_IOMAP = 6,   /* value: index of the mapping that was written */
	RS_OP_CONTROL = 7, /* value: enum rs_control */
};

enum rs_control {
	RS_CONTROL_DISCONNECT,
	RS_CONTROL_KEEPALIVE,
	RS_CONTROL_SHUTDOWN, /* the sender sends no more data */
};

/* A memory area. It is big endian in a hello, and in the reader's byte order elsewhere. */
struct rs_window_wire {
	uint64_t addr;
	uint32_t key;
	uint32_t length;
};
static_assert(sizeof(struct rs_window_wire) == 16, "wire format");

struct rs_iomap_wire {
	uint64_t offset;
	struct rs_window_wire window;
};
static_assert(sizeof(struct rs_iomap_wire) == 24, "wire format");

struct rs_hello_wire {
	uint8_t version;
	uint8_t flags;
	rte_be16_t credits;
	uint8_t reserved[3];
	uint8_t iomaps;		      /* scaled, see rs_wire_scale */
	struct rs_window_wire target; /* its length is the number of slots; the table of mappings
					 follows the slots */
	struct rs_window_wire data;
};
static_assert(sizeof(struct rs_hello_wire) == 40, "wire format");

/* The header of a datagram that goes by UDP. */
struct rs_udp_wire {
	rte_be32_t tag;
	uint8_t version; /* of IP */
	uint8_t op;	 /* RS_OP_DATA, or RS_OP_CONTROL without data */
	uint8_t length;	 /* of this header */
	uint8_t reserved;
	rte_be32_t qpn; /* of the sender's queue pair */
	uint8_t addr[16];
};
#define RS_UDP_IPV4_LEN 16
#define RS_UDP_IPV6_LEN 28
static_assert(sizeof(struct rs_udp_wire) == RS_UDP_IPV6_LEN, "wire format");

/* The header of a datagram that goes by a queue pair: the sender's address. */
struct rs_datagram_wire {
	uint8_t version;
	uint8_t length;
	rte_be16_t port;
	union {
		uint8_t ipv4[4];
		struct {
			rte_be32_t flowinfo;
			uint8_t addr[16];
		} ipv6;
	};
};
#define RS_DATAGRAM_IPV4_LEN 8
#define RS_DATAGRAM_IPV6_LEN 24
static_assert(sizeof(struct rs_datagram_wire) == RS_DATAGRAM_IPV6_LEN, "wire format");

struct rs_window {
	uint64_t addr;
	uint32_t key;
	uint32_t length;
};

struct rs_iomap {
	uint64_t offset;
	struct rs_window window;
};

/* The hello of a side. */
struct rs_hello {
	bool big_endian;
	uint16_t credits;
	uint16_t iomaps;
	struct rs_window target;
	struct rs_window data;
};

static inline uint32_t rs_imm(enum rs_op op, uint32_t value)
{
	return (uint32_t)op << RS_IMM_SHIFT | (value & RS_IMM_VALUE);
}

/** Return true if this host is big endian. */
bool rs_wire_is_big_endian(void);

/** Convert a count of mappings to 8 bits and back. Large counts are rounded down. */
uint8_t rs_wire_scale(uint16_t count);
uint16_t rs_wire_unscale(uint8_t scaled);

/** Write a hello. */
void rs_wire_put_hello(struct rs_hello_wire *wire, const struct rs_hello *hello);

/** Read a hello. Return 0, -ENOTSUP for another version, or -EPROTO for an invalid hello. */
int rs_wire_get_hello(const void *data, size_t len, struct rs_hello *hello);

/** Write a window or a mapping in the reader's byte order. */
void rs_wire_put_window(struct rs_window_wire *wire, const struct rs_window *window,
			bool big_endian);
void rs_wire_put_iomap(struct rs_iomap_wire *wire, const struct rs_iomap *iomap, bool big_endian);

#endif
