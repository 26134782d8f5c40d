/* SPDX-License-Identifier: BSD-3-Clause */
/* Inputs that contain the packets that the attacked side expects next: every opcode of every
 * service. */
#ifndef FUZZ_DIALOGUE_H
#define FUZZ_DIALOGUE_H

#include <stdio.h>

/* Return the number of dialogues. */
#define DIALOGUES 6

/** Play a dialogue and write it. */
void dialogue_write(unsigned int which, FILE *file);

#endif
