/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transmit timeout: the time that packets wait for a process that does not take them. For a
 * trusted process, each packet that it takes renews the full time. An isolated process could take
 * one packet now and then, and so make all others wait. Therefore it earns only a little time with
 * each packet that it takes.
 */
#ifndef OWNER_TRANSMIT_TIMEOUT_H
#define OWNER_TRANSMIT_TIMEOUT_H

#include <stdbool.h>
#include <stdint.h>

/* Longer than a process waits for a CPU where CPUs are not short. Meanwhile all other packets of
 * the sender wait, too, so it is not longer: where CPUs are short, packets are dropped and sent
 * again. */
#define TRANSMIT_TIMEOUT_NS UINT64_C(4000000)

/* Time that a taken packet earns. A process that takes packets more slowly uses up its timeout. */
#define TRANSMIT_TIMEOUT_CREDIT_NS UINT64_C(20000)

/* All zero: no packet has waited for the process. */
struct transmit_timeout {
	uint64_t since_ns; /* time since which it has taken no packet; 0: it takes packets */
	uint64_t spent_ns; /* time of earlier waits that was not earned again */
};

/** Note that the process took no packet. Return true if the packet must wait, or false if it must
 * be dropped. */
static inline bool transmit_timeout_waits(struct transmit_timeout *timeout, uint64_t now_ns)
{
	if (timeout->since_ns == 0)
		timeout->since_ns = now_ns;
	return timeout->spent_ns + (now_ns - timeout->since_ns) < TRANSMIT_TIMEOUT_NS;
}

/** Note that a trusted process took a packet. */
static inline void transmit_timeout_reset(struct transmit_timeout *timeout)
{
	timeout->since_ns = 0;
}

/** Note that an untrusted process took a packet. */
static inline void transmit_timeout_credit(struct transmit_timeout *timeout, uint64_t now_ns)
{
	if (timeout->since_ns != 0) {
		const uint64_t left = TRANSMIT_TIMEOUT_NS - timeout->spent_ns;
		const uint64_t waited = now_ns - timeout->since_ns;

		timeout->spent_ns += waited < left ? waited : left;
		timeout->since_ns = 0;
	}
	timeout->spent_ns -= timeout->spent_ns < TRANSMIT_TIMEOUT_CREDIT_NS
				     ? timeout->spent_ns
				     : TRANSMIT_TIMEOUT_CREDIT_NS;
}

#endif
