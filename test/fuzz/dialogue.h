/* SPDX-License-Identifier: BSD-3-Clause */
/* Inputs that know what the attacked side expects: every opcode of every service, in its turn. */
#ifndef FUZZ_DIALOGUE_H
#define FUZZ_DIALOGUE_H

#include <stdio.h>

/* How many there are. */
#define DIALOGUES 6

/** Write one of them, while it is played. */
void dialogue_write(unsigned int which, FILE *file);

#endif
