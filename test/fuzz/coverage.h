/* SPDX-License-Identifier: BSD-3-Clause */
/* Which opcodes of which service the inputs have reached: taken in, and carried out. */
#ifndef FUZZ_COVERAGE_H
#define FUZZ_COVERAGE_H

#include <stdbool.h>
#include <stdint.h>

struct world;
struct packet;

/* What a packet would have to change to have been carried out. */
struct coverage_mark {
	const struct qp *qp; /* that it is for, or NULL */
	uint32_t msn;
	uint32_t epsn;
	uint32_t una;
	uint32_t received;
};

/** Before a packet is given to the device. */
struct coverage_mark coverage_before(const struct world *world, const struct packet *packet);

/** And after that. */
void coverage_after(const struct coverage_mark *before, const struct packet *packet);

/** Print the table. How many opcodes were never carried out. */
unsigned int coverage_report(void);

#endif
