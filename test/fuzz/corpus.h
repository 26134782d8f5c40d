/* SPDX-License-Identifier: BSD-3-Clause */
/* Seed inputs. They are made at start-up in a folder of their own, which is removed at the end. */
#ifndef FUZZ_CORPUS_H
#define FUZZ_CORPUS_H

#include <stdio.h>

/**
 * For LLVMFuzzerInitialize: write the inputs, play them all, and pass them to the fuzzer in
 * addition to the folders that its user named. End the process if `report` returns that something
 * was not reached. Do nothing if the user plays single files.
 *
 * @param write
 *   Writes inputs, each into a file of corpus_file.
 * @param report
 *   Prints what the inputs have reached, and returns how much is missing.
 */
void corpus_begin(int *argc, char ***argv, void (*write)(void), unsigned int (*report)(void));

/** Create a file in the folder, or return NULL. The caller closes it. */
FILE *corpus_file(const char *name);

#endif
