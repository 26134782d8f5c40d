/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce-run: runs an unmodified RDMA program on uroce's libibverbs, or runs it once for each call
 * that can fail (--inject every=call). */
#include <errno.h>
#include <limits.h>
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
#include "config/settings.h"
#include "inject/inject.h"
#include "launch.h"
#include "run_check.h"
#include "run_local.h"
#include "run_options.h"
#include "run_view.h"

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

/* Start uroce-run with another rule, in a process group that can be ended as a whole. */
static bool start(struct each_one *one, char **argv, char **program, const char *rule)
{
	const size_t options = (size_t)(program - argv) - (strcmp(program[-1], "--") == 0);
	char **words, inject[] = "--inject", *text = strdup(rule);
	size_t count = 0;
	int ends[2];

	while (argv[count])
		count++;
	words = calloc(count + 3, sizeof(*words));
	if (!words || !text || pipe(ends) != 0)
		return false;
	memcpy(words, argv, options * sizeof(*words));
	words[options] = inject;
	words[options + 1] = text;
	memcpy(words + options + 2, argv + options, (count - options) * sizeof(*words));
	one->pid = fork();
	if (one->pid == 0) {
		setpgid(0, 0);
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		execv(SELF, words);
		_exit(127);
	}
	free(words);
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
	(void)!write(STDERR_FILENO, one->line + one->length, (size_t)got);
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
static bool tell(const struct each_one *one, unsigned int number)
{
	const char *call = one->call[0] ? one->call : "none";

	if (one->hung)
		fprintf(stderr, "uroce-run: call %u, %s: HANGS\n", number, call);
	else if (WIFSIGNALED(one->status))
		fprintf(stderr, "uroce-run: call %u, %s: CRASHES: %s\n", number, call,
			strsignal(WTERMSIG(one->status)));
	else
		fprintf(stderr, "uroce-run: call %u, %s: exit status %d\n", number, call,
			WEXITSTATUS(one->status));
	return !one->hung && !WIFSIGNALED(one->status);
}

/*
 * Run the command as it is, and then again and again: in the Nth run its Nth call fails. Stop after
 * a run in which no call was left. Print a line for each run. Not MT-safe.
 *
 * @param program
 *   Where the command begins in argv.
 * @return
 *   The exit status: 0, or 1 if a run crashed or hung.
 */
static int each_run(char **argv, char **program, int error)
{
	unsigned int number = 0, bad = 0;
	uint64_t limit_ms = FIRST_MS;
	struct each_one one;

	do {
		const uint64_t begin_ms = now_ms();
		char rule[INJECT_TEXT_MAX] = "none";

		if (number > 0)
			snprintf(rule, sizeof(rule), "call=any,errno=%s,nth=%u",
				 strerrorname_np(error), number);
		one = (struct each_one){0};
		if (!start(&one, argv, program, rule)) {
			fprintf(stderr, "uroce-run: cannot run the command: %s\n", strerror(errno));
			return EXIT_FAILURE;
		}
		await_end(&one, limit_ms);
		if (number == 0)
			limit_ms = HUNG_MS + 10 * (now_ms() - begin_ms);
		if (number == 0 || one.call[0])
			bad += !tell(&one, number);
	} while (number++ == 0 || one.call[0]);
	fprintf(stderr, "uroce-run: each of %u calls has failed once: %u runs crashed or hung\n",
		number - 2, bad);
	return bad > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

#ifdef UROCE_BUNDLE
#define RESERVED_TLS_BYTES 8192
#else
#define RESERVED_TLS_BYTES 0
#endif

static int fail(int code, const char *error)
{
	fprintf(stderr, "uroce-run: %s\n", error);
	return code;
}

/* Launch the program. It inherits no open descriptor, signal mask, ignored signal or CPU affinity
 * from uroce-run; only its environment differs. */
static int run(struct settings *settings, const struct run_request *request)
{
	const uint32_t local = request->local;
	char self[PATH_MAX], library[PATH_MAX], error[1024];
	struct local_network network;
	int ret, code;

	view_leave();
	ret = launch_find_self(self, sizeof(self));
	if (ret < 0) {
		snprintf(error, sizeof(error),
			 "cannot tell where uroce-run is: %s; is /proc mounted?", strerror(-ret));
		return fail(EXIT_FAILURE, error);
	}
	ret = local > 0 ? local_start(&network, settings, local, self, error, sizeof(error))
			: check_settings(settings, error, sizeof(error));
	if (ret < 0)
		return fail(EXIT_FAILURE, error);
	if (launch_find_library(self, library, sizeof(library), error, sizeof(error)) < 0 ||
	    launch_prepend_library_path(library, error, sizeof(error)) < 0)
		return fail(EXIT_FAILURE, error);
	if (settings_export(settings) < 0 ||
	    (RESERVED_TLS_BYTES > 0 && launch_reserve_tls(RESERVED_TLS_BYTES) < 0))
		return fail(EXIT_FAILURE, "no memory");
	if (view_start(settings, library, error, sizeof(error)) < 0)
		return fail(EXIT_FAILURE, error);
	/* The uroced starts while the view is made. */
	if (local > 0 && local_wait(&network, error, sizeof(error)) < 0)
		return fail(EXIT_FAILURE, error);
	code = launch_exec(request->program, error, sizeof(error));
	return fail(code, error);
}

int main(int argc, char **argv)
{
	struct settings settings;
	struct run_request request;
	char error[1024];
	int each;

	switch (options_parse(argc, argv, SETTINGS_DEFAULT_FILE, SETTINGS_DEFAULT_SOCKET, &settings,
			      &request, error, sizeof(error))) {
	case OPTIONS_RUN:
		each = each_error(&settings);
		return each != 0 ? each_run(argv, request.program, each) : run(&settings, &request);
	case OPTIONS_HELP:
		return fputs(options_help, stdout) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	case OPTIONS_VERSION:
		return puts("uroce-run " UROCE_VERSION) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	case OPTIONS_BAD:
		break;
	}
	return fail(EXIT_FAILURE, error);
}
