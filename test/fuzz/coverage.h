/* SPDX-License-Identifier: BSD-3-Clause */
/* Records which opcodes of which service the inputs have reached: received, and executed. */
#ifndef FUZZ_COVERAGE_H
#define FUZZ_COVERAGE_H

#include <stdbool.h>
#include <stdint.h>

struct world;
struct packet;

/* Values that change if a packet is executed. */
struct coverage_mark {
	const struct qp *qp; /* its queue pair, or NULL */
	uint32_t msn;
	uint32_t epsn;
	uint32_t una;
	uint32_t received;
};

/** Call before a packet is given to the device. */
struct coverage_mark coverage_before(const struct world *world, const struct packet *packet);

/** Call after that. */
void coverage_after(const struct coverage_mark *before, const struct packet *packet);

/** Print the table. Return how many opcodes were never executed. */
unsigned int coverage_report(void);

#endif
