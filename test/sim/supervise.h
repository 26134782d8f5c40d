/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs programs in child processes: each child is a job that goes from seed to seed. A program that
 * breaks a promise, crashes or does not end is made smaller, printed and, in a soak, saved; its job
 * continues with the next seed.
 */
#ifndef SIM_SUPERVISE_H
#define SIM_SUPERVISE_H

#include <stdbool.h>
#include <stdint.h>

#include "variant.h"

#define REPORT_MESSAGE_MAX 512
#define SUPERVISE_JOBS_MAX 256

/* The command line. */
struct options {
	uint64_t seed;
	bool one;    /* only this seed */
	bool from;   /* begin at this seed, without the fixed ones */
	bool vary;   /* draw the options of each program from its seed */
	bool shrink; /* make this one seed smaller, if it fails */
	bool verbose;
	unsigned int seconds; /* CPU time of one job */
	double hours;	      /* wall clock, instead of seconds; 0: none */
	unsigned int jobs;
	int only;	  /* requested scenario; -1: any */
	const char *save; /* folder for failing programs, or NULL */
	struct variant variant;
	uint32_t given; /* a bit for each option in `variant` that the command line sets */
};

/* The report of a process to its supervisor, in shared memory. */
struct report {
	bool supervised; /* failures are recorded here, and not printed */
	uint64_t seed;	 /* of the program that runs, or that failed */
	struct variant variant;
	uint64_t programs; /* programs that passed */
	uint64_t works;
	uint64_t packets;
	/* These describe a failure. `kind` is the format of its message: two failures with one
	 * format are of one kind. It is NULL for a crash. */
	const char *kind;
	char message[REPORT_MESSAGE_MAX];
};

/** The report of this process. */
extern struct report *report;

/** Map and unmap a report that children share. Exits if there is no memory. */
struct report *report_create(void);
void report_destroy(struct report *shared);

/* The end of a child. */
struct outcome {
	bool failed;
	int status; /* as waitpid has it */
};

/** Run one program in a child that prints into a file, or, if `log` is NULL, as we do. Its report
 * is `result`. */
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

#endif
