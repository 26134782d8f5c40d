/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps what the program prints on stderr, for tests of messages. */
#ifndef TEST_COMMON_PRINTED_H
#define TEST_COMMON_PRINTED_H

/** Keep what is printed from now on, up to the size of a pipe. */
void printed_begin(void);

/** Return what was printed since the last call, at most 2 kB of it; valid until the next call. */
const char *printed_take(void);

/** Print on stderr again. */
void printed_end(void);

#endif
