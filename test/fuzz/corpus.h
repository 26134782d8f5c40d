/* SPDX-License-Identifier: BSD-3-Clause */
/* Inputs to begin with: made at start-up in a folder of their own, which is removed at the end. */
#ifndef FUZZ_CORPUS_H
#define FUZZ_CORPUS_H

#include <stdio.h>

/**
 * For LLVMFuzzerInitialize: have the inputs written, play them all, and give them to the fuzzer
 * beside what its user named. Ends the process where `report` says that something was not reached.
 * Nothing where the user plays single files.
 *
 * @param write
 *   Writes inputs, each into a file of corpus_file.
 * @param report
 *   Tells what the inputs have reached; how much is missing.
 */
void corpus_begin(int *argc, char ***argv, void (*write)(void), unsigned int (*report)(void));

/** A new file in the folder, or NULL; who writes closes it. */
FILE *corpus_file(const char *name);

#endif
