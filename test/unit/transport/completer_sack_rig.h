/* SPDX-License-Identifier: BSD-3-Clause */
/* A completer whose peer has shown that it sends selective acknowledgements. */
#ifndef TEST_TRANSPORT_COMPLETER_SACK_RIG_H
#define TEST_TRANSPORT_COMPLETER_SACK_RIG_H

#include <stdint.h>

#include "completer_rig.h"

#define CAPABILITY (BTH_SACK_RESPONSE | 4)

/* Function for cmocka; completer_rig_tear_down is the other one. */
int completer_sack_set_up(void **state);

/* Receive a selective acknowledgement: everything before `expected` is executed, and those in
 * `kept` are kept, a bit each from the expected one on. */
void tell(uint32_t expected, uint64_t kept);
void tell_at(uint64_t now_ns, uint32_t expected, uint64_t kept);
/* The same, with a serial number of its own. */
void tell_as(uint32_t number, uint32_t expected, uint64_t kept);

/* Receive an RNR NAK for this PSN, and let the RNR timer run out. */
void refuse_once(uint32_t psn);

/* Post a WRITE of so many packets, and send them all. */
void send_write(uint64_t wr_id, unsigned int packets);

/* Send, and check the PSNs of the packets. */
void expect_sent(const uint32_t *psns, unsigned int count);
#define EXPECT_SENT(...)                             \
	expect_sent((const uint32_t[]){__VA_ARGS__}, \
		    sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* Check the byte with AckReq and the reserved bits of a packet that was sent. */
void expect_ack_byte(unsigned int i, uint8_t byte);

#endif
