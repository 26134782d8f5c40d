/* SPDX-License-Identifier: BSD-3-Clause */
/* Inputs for the fuzzer with the packets that the attacked side expects: every opcode of every
 * service. */
#ifndef FUZZ_DIALOGUE_H
#define FUZZ_DIALOGUE_H

#include <stdio.h>

/* The number of dialogues. */
#define DIALOGUES 6

/** Play a dialogue, and write its records to a file. */
void dialogue_write(unsigned int which, FILE *file);

#endif
