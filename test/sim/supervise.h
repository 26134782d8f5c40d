/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running programs in processes of their own: one a job, each from seed to seed. What breaks a
 * promise, crashes or never ends is made smaller, told and, in a soak, saved; the job goes on with
 * the next seed.
 */
#ifndef SIM_SUPERVISE_H
#define SIM_SUPERVISE_H

#include <stdbool.h>
#include <stdint.h>

#include "variant.h"

#define REPORT_MESSAGE_MAX 512
#define SUPERVISE_JOBS_MAX 256

/* What the command line asks for. */
struct options {
	uint64_t seed;
	bool one;    /* only this seed */
	bool from;   /* from this seed on, without the fixed ones */
	bool vary;   /* draw the options of each program from its seed */
	bool shrink; /* make this one seed smaller, if it fails */
	bool verbose;
	unsigned int seconds; /* of CPU, for one job */
	double hours;	      /* of the clock, instead; 0: none */
	unsigned int jobs;
	int only;	  /* scenario asked for, -1 for any */
	const char *save; /* folder for failing programs, or NULL */
	struct variant variant;
	uint32_t given; /* of its options, a bit each: vary leaves them */
};

/* What a process tells of its programs; in memory that it shares with who supervises it. */
struct report {
	bool supervised; /* a failure is recorded here, and not printed */
	uint64_t seed;	 /* that runs, or failed */
	struct variant variant;
	uint64_t programs; /* that passed */
	uint64_t works;
	uint64_t packets;
	/* of a failure: the format of its message, which tells one kind from another, and the
	 * message */
	const char *kind;
	char message[REPORT_MESSAGE_MAX];
};

/** Of this process. */
extern struct report *report;

/** Memory that children share. Exits where there is none. */
struct report *report_create(void);
void report_destroy(struct report *shared);

/* How a child ended. */
struct outcome {
	bool failed;
	int status; /* as waitpid has it */
};

/** Run one program in a child, with what it prints or without. Its report is `result`. */
struct outcome supervise_try(const struct options *options, struct report *result, uint64_t seed,
			     const struct variant *variant, const char *log);

/** Run programs as the options say. Returns the exit status. */
int supervise(const struct options *options);

/** Print the command that repeats a program. */
void supervise_command(const struct options *options, uint64_t seed, const struct variant *variant,
		       char *text, size_t room);

/** Run programs in this process, from a seed on until time is up (in sim.c). */
void sim_run_seeds(const struct options *options, uint64_t seed, bool fixed);

/** Run one program in this process (in sim.c). */
void sim_run_seed(const struct options *options, uint64_t seed, const struct variant *variant);

/** A number that nobody can guess, for the first seed (in entropy.c). */
uint64_t entropy_true(void);

#endif
