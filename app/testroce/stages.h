/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cycles of a test, by stage of the packet path. The packet path has no code for this. A timer
 * interrupts the thread some thousand times a second, and the handler looks up the interrupted
 * function in the program's symbols. This costs nothing while it is off and little while it is on.
 * Its precision depends on the number of samples.
 */
#ifndef TESTROCE_STAGES_H
#define TESTROCE_STAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* name, meaning */
#define STAGES(X)                                                                 \
	X(receive, "taking packets from the port")                                \
	X(parse, "headers to structs, and the checks that need no queue pair")    \
	X(icrc, "CRC; of what is sent, payload is copied in the same pass")       \
	X(transport, "queue pairs: requester, responder, completer, memory keys") \
	X(copy, "payload into memory")                                            \
	X(transmit, "building packets, and giving them to the port")              \
	X(completion, "completion queues, either end")                            \
	X(post, "work requests into queues")                                      \
	X(turn, "the engine itself: what to run next, timers")                    \
	X(wait, "giving the CPU away, for nothing comes")                         \
	X(program, "testroce itself")                                             \
	X(other, "the kernel, libraries, and what has no name")

enum stage {
#define STAGE_NAME(name, meaning) STAGE_##name,
	STAGES(STAGE_NAME)
#undef STAGE_NAME
		STAGE_COUNT
};

/* make_stages.py generates the table of all functions of this program from stages.map. The table is
 * sorted by source, then by function. */
struct stage_of_function {
	const char *source; /* source file of a local function; else "" */
	const char *function;
	enum stage stage;
};

extern const struct stage_of_function stage_table[];
extern const size_t stage_table_count;

struct stages {
	uint64_t count; /* samples; 0: no result */
	uint64_t samples[STAGE_COUNT];
};

#define STAGES_REFUSED "stages are those of one thread, not of several"

/** Begin to sample the calling thread. Only one thread can be sampled at a time. Returns 0 or
 * -errno. */
int stages_begin(void);

/** Stop, and copy the samples since stages_begin or the last stages_clear. The thread that called
 * stages_begin must call it. */
void stages_end(struct stages *stages);

/** Drop all samples. Only the thread that is sampled may call it, or any if none is. */
void stages_clear(void);

/** Copy the samples so far. MT-safe. */
void stages_peek(struct stages *stages);

/** Return the stage of a function by its name. `source` is the file name without folders for a
 * local function, whose name may occur in other files; else "". MT-safe. */
enum stage stages_of(const char *source, const char *function);

const char *stages_name(enum stage stage);
const char *stages_meaning(enum stage stage);

/* The functions of this program by address, from its own file. */
struct symbol {
	uintptr_t begin, end;
	const char *source; /* the name of the file that the function is local to, or "" */
	const char *name;
};

/** Read the symbols, once. Not MT-safe. Returns 0; -ENOENT: the program is stripped; or another
 * -errno. */
int stages_read_symbols(void);

/** Return true for an address in this program's own code, false for a library's. Call it after
 * stages_read_symbols. MT-safe. */
bool stages_is_own(uintptr_t address);

/** Return the function at an address, or NULL. Call it after stages_read_symbols. MT-safe. */
const struct symbol *stages_symbol(uintptr_t address);

#endif
