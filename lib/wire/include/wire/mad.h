/* SPDX-License-Identifier: BSD-3-Clause */
/* Management datagrams on QP 1 (IBTA chapter 13): their header, and responses to those that nothing
 * here handles. */
#ifndef WIRE_MAD_H
#define WIRE_MAD_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_byteorder.h>

#include "wire/build.h"

#define MAD_LEN		 256	     /* 13.4.2: every MAD, whatever it carries */
#define MAD_BASE_VERSION 1	     /* 13.4.2 */
#define GSI_QPN		 1	     /* 3.9: the general services' queue pair */
#define GSI_QKEY	 0x80010000u /* 10.2.5: the well-known Q_Key of QP 1 */

/* 13.4.4. */
#define MAD_CLASS_CM 0x07

/* 13.4.5. */
enum mad_method {
	MAD_GET = 0x01,
	MAD_SET = 0x02,
	MAD_SEND = 0x03,
	MAD_GET_RESPONSE = 0x81,
};

#define MAD_METHOD_RESPONSE 0x80 /* the R bit: never answered */

/* Status of a response, 13.4.7: bits 4:2. */
enum mad_code {
	MAD_CODE_BAD_VERSION =
		1 << 2, /* base or class version, or a class without a manager here */
	MAD_CODE_BAD_ATTRIBUTE = 3
				 << 2, /* the class does not have the method with this attribute */
};

#define MAD_ATTR_CLASS_PORT_INFO 0x0001

/* The header of every MAD, 13.4.3. */
struct mad_header {
	uint8_t base_version;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method;
	rte_be16_t status;
	rte_be16_t class_specific;
	rte_be64_t tid;
	rte_be16_t attr;
	rte_be16_t reserved;
	rte_be32_t modifier;
} __attribute__((packed));
static_assert(sizeof(struct mad_header) == 24, "a MAD's header is 24 bytes");

/* ClassPortInfo: a manager's description of itself, 13.4.8.1. */
struct mad_class_port_info {
	uint8_t base_version;
	uint8_t class_version;
	rte_be16_t capabilities;
	rte_be32_t response_time; /* the lower five bits: 4.096 us * 2^n */
	uint8_t redirect[36];	  /* none */
	uint8_t trap[28];	  /* none */
} __attribute__((packed));
static_assert(sizeof(struct mad_class_port_info) == 72, "ClassPortInfo is 72 bytes");

/**
 * Begin the response to a MAD: copy its header with another method and status, and clear all else.
 * MT-safe.
 *
 * @param mad
 *   MAD_LEN bytes, and so is `response`.
 * @return
 *   False if the MAD is to be dropped: only a Get or Set has a response (13.4).
 */
bool mad_respond(const uint8_t *mad, uint16_t status, uint8_t *response);

/**
 * Put the headers and the payload of a MAD from QP 1 to QP 1 into a packet, which packet_seal
 * completes. MT-safe.
 *
 * @param mad
 *   MAD_LEN bytes, valid until the packet is sealed.
 */
void mad_put(struct packet_out *out, const struct path *path, struct psn psn, const uint8_t *mad);

#endif
