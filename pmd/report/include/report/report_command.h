/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands: what a reader of a report wants the process to change. A command is one word of the
 * report (`command`), which is empty, a command, a command that is being executed, or the answer to
 * one:
 *
 *     0 -> command    a reader, if the word is empty
 *     command -> taken    the engine's thread, before it executes the command
 *     taken -> answer    the engine's thread, where it also rewrites the report
 *     answer -> 0    the reader
 *     command -> 0    the reader, if it was not taken in time: it will not be executed
 *     taken -> 0    the reader, if there is no answer in as much time again
 *     anything -> command    another reader, if nothing has changed for half of its own time
 *
 * Each step is a compare-and-swap, so readers need no lock. A reader that is killed leaves its
 * command behind; the next reader replaces it after a while. The engine checks each value.
 */
#ifndef REPORT_REPORT_COMMAND_H
#define REPORT_REPORT_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "report/layout.h"

enum report_command_kind {
	REPORT_COMMAND_PARAM, /* set a parameter of congestion control (transport/cc_params.h) */
	REPORT_COMMAND_ALGORITHM, /* set the algorithm of a queue pair, or of all and of new ones */
	REPORT_COMMAND_LOG_LEVEL, /* set the level of the process's messages (base/log.h) */
	REPORT_COMMAND_KINDS,
};

struct report_command {
	enum report_command_kind kind;
	uint8_t index;	/* of the parameter, enum cc_kind or enum log_level: any number */
	uint32_t value; /* of the parameter, or a queue pair's number; 0: all queue pairs */
	uint64_t word;	/* set by report_command_take: the command as it stands in the report */
};

/**
 * Give a command, and wait at most `ms` milliseconds until the process takes it, and as long again
 * until it answers. One thread of a process at a time.
 *
 * @return
 *   0; -ETIMEDOUT: the process did not take the command, and never will; -EINPROGRESS: it was taken
 *   and not answered, or another reader has replaced it, so it may have been executed; or the
 *   process's error:
 *   -ENOENT: it does not know this parameter or queue pair; -ERANGE, -EINVAL: the value is not
 *   allowed; -EOPNOTSUPP: a queue pair of this type cannot have this algorithm; -ENOMEM.
 */
int report_command_give(struct report *report, const struct report_command *command,
			unsigned int ms);

/** Execute REPORT_COMMAND_LOG_LEVEL. 0 or -EINVAL. MT-safe. */
int report_command_log_level(const struct report_command *command);

/** Take a command: its reader cannot withdraw it any more. Return false if there is none. Engine's
 * thread. */
bool report_command_take(struct report *report, struct report_command *command);

/** Answer the command that report_command_take returned: 0 or -errno. Engine's thread. */
void report_command_answer(struct report *report, const struct report_command *command, int rc);

#endif
