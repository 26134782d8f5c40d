/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the command again and again. */
#include "run_again.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "inject/inject.h"

#define SELF	     "/proc/self/exe"
#define HUNG_MS	     10000 /* longer than ten times the command's own time */
#define FIRST_MS     (24 * 3600 * 1000)
#define CALLED	     "uroce: injected: "
#define NAME_MAX_LEN 63

/* Describes one run of the command. */
struct each_one {
	pid_t pid;
	int pidfd;
	int output; /* read end of its stderr */
	int keep;   /* where its output is kept; -1: it is passed on */
	int status; /* as of waitpid */
	bool hung;
	char call[NAME_MAX_LEN + 1]; /* which failed; "" if none did */
	char line[256];		     /* the beginning of a line of its stderr */
	size_t length;
};

/* Return the errno value with which each call is to fail; 0: the settings do not ask for it.
 * MT-safe. */
static int each_error(const struct settings *settings)
{
	struct inject_rule rule;
	char error[INJECT_ERROR_MAX];

	return inject_read(settings->inject, &rule, error, sizeof(error)) == 0 && rule.each_call
		       ? rule.error
		       : 0;
}

static uint64_t now_ms(void)
{
	return monotonic_ns() / 1000000;
}

/* Start uroce-run with another value of an option, in a process group that can be ended as a
 * whole. */
static bool start(struct each_one *one, char **argv, char **program, const char *option,
		  const char *value)
{
	const size_t options = (size_t)(program - argv) - (strcmp(program[-1], "--") == 0);
	char **words, *name = strdup(option), *text = strdup(value);
	size_t count = 0;
	int ends[2];

	while (argv[count])
		count++;
	words = calloc(count + 3, sizeof(*words));
	if (!words || !name || !text || pipe(ends) != 0)
		return false;
	memcpy(words, argv, options * sizeof(*words));
	words[options] = name;
	words[options + 1] = text;
	memcpy(words + options + 2, argv + options, (count - options) * sizeof(*words));
	one->pid = fork();
	if (one->pid == 0) {
		setpgid(0, 0);
		dup2(ends[1], STDERR_FILENO);
		if (one->keep >= 0)
			dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execv(SELF, words);
		_exit(127);
	}
	free(words);
	free(name);
	free(text);
	close(ends[1]);
	one->output = ends[0];
	one->pidfd = one->pid > 0 ? pidfd_open(one->pid, 0) : -1;
	return one->pidfd >= 0;
}

/* Pass on what the command says, and note the call that failed. */
static bool pass_on(struct each_one *one)
{
	const ssize_t got =
		read(one->output, one->line + one->length, sizeof(one->line) - 1 - one->length);
	char *begin = one->line, *end;

	if (got <= 0)
		return false;
	(void)!write(one->keep >= 0 ? one->keep : STDERR_FILENO, one->line + one->length,
		     (size_t)got);
	one->length += (size_t)got;
	one->line[one->length] = '\0';
	while ((end = strchr(begin, '\n')) != NULL) {
		*end = '\0';
		if (strncmp(begin, CALLED, strlen(CALLED)) == 0)
			(void)sscanf(begin + strlen(CALLED), "%63s", one->call);
		begin = end + 1;
	}
	one->length =
		begin == one->line && one->length == sizeof(one->line) - 1 ? 0 : strlen(begin);
	memmove(one->line, begin, one->length);
	return true;
}

/* Wait until the command has ended, `limit_ms` at most. Others may keep its stderr open. */
static void await_end(struct each_one *one, uint64_t limit_ms)
{
	struct pollfd fds[] = {{.fd = one->pidfd, .events = POLLIN},
			       {.fd = one->output, .events = POLLIN}};
	const uint64_t end_ms = now_ms() + limit_ms;

	while (!(fds[0].revents & POLLIN) && now_ms() < end_ms) {
		if (poll(fds, 2, (int)(end_ms - now_ms()) + 1) > 0 && fds[1].revents &&
		    !pass_on(one))
			fds[1].fd = -1;
	}
	one->hung = !(fds[0].revents & POLLIN);
	if (one->hung)
		kill(-one->pid, SIGKILL);
	while (fds[1].fd >= 0 && poll(&fds[1], 1, 0) > 0 && pass_on(one))
		;
	waitpid(one->pid, &one->status, 0);
	close(one->pidfd);
	close(one->output);
}

/* Print how a run has ended. Return false if it crashed or hung. */
static bool tell(const struct each_one *one, const char *run)
{
	if (one->hung)
		fprintf(stderr, "uroce-run: %s: HANGS\n", run);
	else if (WIFSIGNALED(one->status))
		fprintf(stderr, "uroce-run: %s: CRASHES: %s\n", run,
			strsignal(WTERMSIG(one->status)));
	else
		fprintf(stderr, "uroce-run: %s: exit status %d\n", run, WEXITSTATUS(one->status));
	return !one->hung && !WIFSIGNALED(one->status);
}

/*
 * Run the command as it is, and then again and again: in the Nth run its Nth call fails. Stop after
 * a run in which no call was left. Print a line for each run. Return the exit status.
 */
static int each_run(char **argv, char **program, int error)
{
	unsigned int number = 0, bad = 0;
	uint64_t limit_ms = FIRST_MS;
	struct each_one one;

	do {
		const uint64_t begin_ms = now_ms();
		char rule[INJECT_TEXT_MAX] = "none", run[NAME_MAX_LEN + 32];

		if (number > 0)
			snprintf(rule, sizeof(rule), "call=any,errno=%s,nth=%u",
				 strerrorname_np(error), number);
		one = (struct each_one){.keep = -1};
		if (!start(&one, argv, program, "--inject", rule)) {
			fprintf(stderr, "uroce-run: cannot run the command: %s\n", strerror(errno));
			return EXIT_FAILURE;
		}
		await_end(&one, limit_ms);
		if (number == 0)
			limit_ms = HUNG_MS + 10 * (now_ms() - begin_ms);
		snprintf(run, sizeof(run), "call %u, %s", number, one.call[0] ? one.call : "none");
		if (number == 0 || one.call[0])
			bad += !tell(&one, run);
	} while (number++ == 0 || one.call[0]);
	fprintf(stderr, "uroce-run: each of %u calls has failed once: %u runs crashed or hung\n",
		number - 2, bad);
	return bad > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Run the command with each seed. Keep what a run that fails has said, and print how it has
 * ended. Return the exit status. */
static int seeds_run(char **argv, char **program, uint32_t first, uint32_t last)
{
	uint64_t limit_ms = FIRST_MS;
	unsigned int bad = 0;

	for (uint32_t seed = first; seed <= last; seed++) {
		const uint64_t begin_ms = now_ms();
		char text[16], path[32], run[64];
		struct each_one one;

		snprintf(text, sizeof(text), "%u", seed);
		snprintf(path, sizeof(path), "unfold-%u.log", seed);
		snprintf(run, sizeof(run), "seed %u (%s)", seed, path);
		one = (struct each_one){
			.keep = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
		if (one.keep < 0 || !start(&one, argv, program, "--unfold", text)) {
			fprintf(stderr, "uroce-run: %s: cannot run the command: %s\n", path,
				strerror(errno));
			return EXIT_FAILURE;
		}
		await_end(&one, limit_ms);
		close(one.keep);
		if (seed == first)
			limit_ms = HUNG_MS + 10 * (now_ms() - begin_ms);
		if (one.hung || one.status != 0) {
			bad++;
			tell(&one, run);
		} else {
			unlink(path);
		}
	}
	fprintf(stderr, "uroce-run: %u of %u seeds failed\n", bad, last - first + 1);
	return bad > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

bool again_wanted(const struct settings *settings)
{
	uint32_t first = 0, last = 0;

	return each_error(settings) != 0 ||
	       (settings_read_seeds(settings->unfold, &first, &last) == 0 && first != last);
}

int again_run(char **argv, char **program, const struct settings *settings)
{
	const int error = each_error(settings);
	uint32_t first = 0, last = 0;

	(void)settings_read_seeds(settings->unfold, &first, &last);
	return error != 0 ? each_run(argv, program, error) : seeds_run(argv, program, first, last);
}
