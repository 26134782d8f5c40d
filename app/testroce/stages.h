/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a test's cycles go, by stage of the packet path. The path itself knows nothing of it: a
 * timer interrupts the thread some thousand times a second, and where it was is looked up in the
 * program's symbols. So it costs nothing while it is off, little while it is on, and what it tells
 * is as exact as its number of samples.
 */
#ifndef TESTROCE_STAGES_H
#define TESTROCE_STAGES_H

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

/* make_stages.py makes the table of all functions that this program is built of, by stages.map. It
 * is in the order of these two. */
struct stage_of_function {
	const char *source; /* for functions that are local to it; else "" */
	const char *function;
	enum stage stage;
};

extern const struct stage_of_function stage_table[];
extern const size_t stage_table_count;

struct stages {
	uint64_t count; /* samples; 0: nothing is known */
	uint64_t samples[STAGE_COUNT];
};

/** Begin to look at the calling thread; of one thread at a time. 0 or -errno. */
int stages_begin(void);

/** End, and copy the samples since stages_begin or the last stages_clear. By the same thread. */
void stages_end(struct stages *stages);

/** Drop all samples. By the same thread. */
void stages_clear(void);

/** Copy the samples so far. MT-safe. */
void stages_peek(struct stages *stages);

/** The stage of a function by its name and, where others may have that name as well, the name of
 * its source without folders; else "". MT-safe. */
enum stage stages_of(const char *source, const char *function);

const char *stages_name(enum stage stage);
const char *stages_meaning(enum stage stage);

#endif
