/* SPDX-License-Identifier: BSD-3-Clause */
/* The prompt: DPDK's command line, with help and completion, and the thread that runs the tests. */
#include "main.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmdline.h>
#include <cmdline_parse.h>
#include <cmdline_parse_string.h>
#include <cmdline_rdline.h>
#include <cmdline_socket.h>

#include "nic.h"
#include "telemetry/counters.h"
#include "testroce_options.h"

#define ERROR_MAX 256
#define POLL_NS	  1000000 /* longest time between polls of the device while no test runs */

enum worker_state { WORKER_IDLE, WORKER_WANTED, WORKER_RUNNING, WORKER_QUIT };

/* The thread that runs tests while the prompt waits for commands. */
static struct {
	struct nic *nic;
	struct control *control;
	struct run_options how;
	pthread_t thread;
	pthread_mutex_t lock; /* protects all members below, except stop */
	pthread_cond_t changed;
	enum worker_state state;
	struct plan plan;     /* of the requested test */
	struct result result; /* of the last complete test */
	bool has_result;
	bool failed;		    /* at least one test failed */
	volatile sig_atomic_t stop; /* atomic */
} worker = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static struct {
	struct plan plan; /* the plan of the next start */
	bool has_size;	  /* the user set the size, so it no longer follows the mode */
} prompt;

static void worker_test(void)
{
	const struct run_options how = worker.how;
	struct result result;
	char error[256] = "";
	int rc;

	pthread_mutex_unlock(&worker.lock);
	rc = measure_test(worker.nic, worker.control, &worker.plan, &how, &result, error,
			  sizeof(error));
	if (rc == 0)
		result_text(stdout, &result);
	else
		printf("error: %s\n", error);
	fflush(stdout);
	pthread_mutex_lock(&worker.lock);
	worker.failed |= rc != 0 || result.wrong > 0;
	if (rc == 0) {
		worker.result = result;
		worker.has_result = true;
	}
}

static void worker_idle(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += POLL_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_cond_timedwait(&worker.changed, &worker.lock, &until);
	nic_poll(worker.nic);
}

static void *worker_main(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&worker.lock);
	while (worker.state != WORKER_QUIT) {
		if (worker.state != WORKER_WANTED) {
			worker_idle();
			continue;
		}
		worker.state = WORKER_RUNNING;
		worker_test();
		worker.state = WORKER_IDLE;
		pthread_cond_broadcast(&worker.changed);
	}
	pthread_mutex_unlock(&worker.lock);
	return NULL;
}

static int worker_start(struct nic *nic, struct control *control, uint64_t period_ns, bool stages)
{
	worker.nic = nic;
	worker.control = control;
	worker.how = (struct run_options){
		.period_ns = period_ns, .stages = stages, .lines = stdout, .stop = &worker.stop};
	return -pthread_create(&worker.thread, NULL, worker_main, NULL);
}

static int worker_begin(const struct plan *plan)
{
	int rc = -EBUSY;

	pthread_mutex_lock(&worker.lock);
	if (worker.state == WORKER_IDLE) {
		worker.plan = *plan;
		__atomic_store_n(&worker.stop, 0, __ATOMIC_RELAXED);
		worker.state = WORKER_WANTED;
		pthread_cond_broadcast(&worker.changed);
		rc = 0;
	}
	pthread_mutex_unlock(&worker.lock);
	return rc;
}

static void worker_set_stages(bool on)
{
	pthread_mutex_lock(&worker.lock);
	worker.how.stages = on;
	pthread_mutex_unlock(&worker.lock);
}

static bool worker_is_busy(void)
{
	bool busy;

	pthread_mutex_lock(&worker.lock);
	busy = worker.state != WORKER_IDLE;
	pthread_mutex_unlock(&worker.lock);
	return busy;
}

static void worker_wait(void)
{
	pthread_mutex_lock(&worker.lock);
	while (worker.state != WORKER_IDLE)
		pthread_cond_wait(&worker.changed, &worker.lock);
	pthread_mutex_unlock(&worker.lock);
}

static void worker_stop(void)
{
	__atomic_store_n(&worker.stop, 1, __ATOMIC_RELAXED);
	worker_wait();
}

static void worker_end(void)
{
	worker_stop();
	pthread_mutex_lock(&worker.lock);
	worker.state = WORKER_QUIT;
	pthread_cond_broadcast(&worker.changed);
	pthread_mutex_unlock(&worker.lock);
	pthread_join(worker.thread, NULL);
}

/* A parsed command, of any kind. */
struct command {
	cmdline_fixed_string_t verb;
	cmdline_fixed_string_t object;
	cmdline_fixed_string_t value;
	cmdline_fixed_string_t port;
};

static void do_start(void *parsed, struct cmdline *cl, void *data)
{
	char error[ERROR_MAX];

	(void)parsed;
	(void)data;
	if (plan_check(&prompt.plan, error, sizeof(error)) != 0)
		cmdline_printf(cl, "error: %s\n", error);
	else if (worker_begin(&prompt.plan) != 0)
		cmdline_printf(cl, "error: a test is running; stop it first\n");
}

static void do_stop(void *parsed, struct cmdline *cl, void *data)
{
	(void)parsed;
	(void)data;
	if (!worker_is_busy())
		cmdline_printf(cl, "error: no test is running\n");
	worker_stop();
}

static void do_wait(void *parsed, struct cmdline *cl, void *data)
{
	(void)parsed;
	(void)cl;
	(void)data;
	worker_wait();
}

static void do_quit(void *parsed, struct cmdline *cl, void *data)
{
	(void)parsed;
	(void)data;
	cmdline_quit(cl);
}

static int set(const char *name, const char *value, char *error)
{
	int rc;

	if (strcmp(name, "stages") == 0) {
		worker_set_stages(strcmp(value, "on") == 0);
		return 0;
	}
	if (strcmp(name, "progress") != 0) {
		rc = plan_set(&prompt.plan, name, value, error, ERROR_MAX);
		prompt.has_size |= rc == 0 && strcmp(name, "size") == 0;
		if (rc == 0 && !prompt.has_size)
			plan_default_size(&prompt.plan);
		return rc;
	}
	if (worker_is_busy()) {
		snprintf(error, ERROR_MAX, "a test is running; stop it first");
		return -EBUSY;
	}
	rc = nic_set_progress(worker.nic, value);
	if (rc != 0)
		snprintf(error, ERROR_MAX, "progress: '%s': %s", value, strerror(-rc));
	return rc;
}

static void do_set(void *parsed, struct cmdline *cl, void *data)
{
	const struct command *command = parsed;
	char error[ERROR_MAX];

	(void)data;
	if (set(command->object, command->value, error) != 0)
		cmdline_printf(cl, "error: %s\n", error);
}

static void show_device(struct cmdline *cl)
{
	struct ibv_port_attr port = {0};
	char gid[INET6_ADDRSTRLEN];

	ibv_query_port(worker.nic->context, 1, &port);
	inet_ntop(AF_INET6, worker.nic->gid.raw, gid, sizeof(gid));
	cmdline_printf(cl, "%s: %s, path MTU up to %u, progress %s, GID %u %s\n",
		       ibv_get_device_name(worker.nic->context->device),
		       ibv_port_state_str(port.state), 128u << port.active_mtu,
		       nic_progress(worker.nic), worker.nic->gid_index, gid);
}

static void show_plan(struct cmdline *cl)
{
	char value[64];

	for (size_t i = 0; plan_names[i]; i++) {
		plan_get(&prompt.plan, plan_names[i], value, sizeof(value));
		cmdline_printf(cl, "%-13s %s\n", plan_names[i], value);
	}
}

static void print_qp(uint32_t number, const char *state, uint64_t messages, void *arg)
{
	cmdline_printf(arg, "QP 0x%06x %-6s %" PRIu64 " messages\n", number, state, messages);
}

static void show_result(struct cmdline *cl, void (*show)(FILE *file, const struct result *result))
{
	struct result result;
	bool has_result = measure_peek(&result);

	if (!has_result) {
		pthread_mutex_lock(&worker.lock);
		result = worker.result;
		has_result = worker.has_result;
		pthread_mutex_unlock(&worker.lock);
	}
	if (has_result)
		show(stdout, &result);
	else
		cmdline_printf(cl, "no test has run yet\n");
}

static void do_show(void *parsed, struct cmdline *cl, void *data)
{
	const struct command *command = parsed;

	(void)data;
	if (strcmp(command->object, "device") == 0)
		show_device(cl);
	else if (strcmp(command->object, "plan") == 0)
		show_plan(cl);
	else if (strcmp(command->object, "stats") == 0)
		show_result(cl, result_text);
	else if (strcmp(command->object, "stages") == 0)
		show_result(cl, result_stages);
	else if (measure_each_qp(print_qp, cl) == 0)
		cmdline_printf(cl, "no test is running\n");
}

/* testpmd's command. There is one port, whatever the number. */
static void do_show_port(void *parsed, struct cmdline *cl, void *data)
{
	const struct command *command = parsed;
	struct counters counters;

	(void)data;
	if (strcmp(command->value, "info") == 0) {
		show_device(cl);
		return;
	}
	nic_counters(worker.nic, &counters);
	for (enum counter i = 0; i < COUNTER_COUNT; i++)
		if (counters.value[i] > 0)
			cmdline_printf(cl, "%-24s %" PRIu64 "\n", counter_name(i),
				       counters.value[i]);
}

/* Commands of testpmd for what is different here. */
static void do_set_verbose(void *parsed, struct cmdline *cl, void *data)
{
	(void)parsed;
	(void)data;
	cmdline_printf(cl, "error: no packets are printed here; 'uroce-ctl capture' writes them\n");
}

static void do_start_tx_first(void *parsed, struct cmdline *cl, void *data)
{
	(void)parsed;
	(void)data;
	cmdline_printf(cl,
		       "error: nothing is forwarded here: 'start' runs the test of 'show plan'\n");
}

static void do_clear(void *parsed, struct cmdline *cl, void *data)
{
	(void)parsed;
	(void)data;
	if (!measure_clear())
		cmdline_printf(cl, "no test is running\n");
}

static void do_help(void *parsed, struct cmdline *cl, void *data);

#define TOKEN(name, field, words)                  \
	static cmdline_parse_token_string_t name = \
		TOKEN_STRING_INITIALIZER(struct command, field, words)

TOKEN(token_start, verb, "start");
TOKEN(token_stop, verb, "stop");
TOKEN(token_wait, verb, "wait");
TOKEN(token_quit, verb, "quit");
TOKEN(token_help, verb, "help");
TOKEN(token_set, verb, "set");
TOKEN(token_show, verb, "show");
TOKEN(token_clear, verb, "clear");
TOKEN(token_stats, object, "stats");
TOKEN(token_shown, object, "device#plan#qp#stats#stages");
TOKEN(token_port, object, "port");
TOKEN(token_port_shown, value, "info#stats");
TOKEN(token_port_any, port, NULL);
TOKEN(token_verbose, object, "verbose");
TOKEN(token_tx_first, object, "tx_first");
TOKEN(token_number, object,
      "size#qps#threads#depth#mtu#batch#signal#inline#read-percent#in-capsule#region#seconds#"
      "messages#seed#"
      "loss#"
      "without");
TOKEN(token_any, value, NULL);
TOKEN(token_mode, object, "mode");
TOKEN(token_modes, value, "write#read#send#atomic#latency#source#sink#null#storage#incast");
TOKEN(token_op, object, "op");
TOKEN(token_ops, value, "write#read#send#atomic");
TOKEN(token_verify, object, "verify#stages");
TOKEN(token_switch, value, "on#off");
TOKEN(token_progress, object, "progress");
TOKEN(token_progresses, value, "hybrid#inline#dedicated");

#define COMMAND(name, function, help, ...)     \
	static cmdline_parse_inst_t name = {   \
		.f = function,                 \
		.help_str = help,              \
		.tokens = {__VA_ARGS__, NULL}, \
	}

COMMAND(command_start, do_start, "start: run the test that was set", (void *)&token_start);
COMMAND(command_stop, do_stop, "stop: end the test that is running", (void *)&token_stop);
COMMAND(command_wait, do_wait, "wait: until the test has ended by itself", (void *)&token_wait);
COMMAND(command_show, do_show, "show device|plan|qp|stats|stages", (void *)&token_show,
	(void *)&token_shown);
COMMAND(command_show_port, do_show_port,
	"show port info|stats all: the device; its counters that are not 0", (void *)&token_show,
	(void *)&token_port, (void *)&token_port_shown, (void *)&token_port_any);
COMMAND(command_set_verbose, do_set_verbose, "set verbose N: testpmd's, not here",
	(void *)&token_set, (void *)&token_verbose, (void *)&token_any);
COMMAND(command_start_tx_first, do_start_tx_first, "start tx_first: testpmd's, not here",
	(void *)&token_start, (void *)&token_tx_first);
COMMAND(command_clear, do_clear, "clear stats: count from here on", (void *)&token_clear,
	(void *)&token_stats);
COMMAND(command_set, do_set,
	"set "
	"size|qps|threads|depth|mtu|batch|signal|inline|read-percent|in-capsule|region|seconds|"
	"messages|"
	"seed|loss "
	"NUMBER, set without LIST",
	(void *)&token_set, (void *)&token_number, (void *)&token_any);
COMMAND(command_set_mode, do_set, "set mode MODE", (void *)&token_set, (void *)&token_mode,
	(void *)&token_modes);
COMMAND(command_set_op, do_set, "set op write|read|send|atomic: what latency measures",
	(void *)&token_set, (void *)&token_op, (void *)&token_ops);
COMMAND(command_set_verify, do_set, "set verify|stages on|off", (void *)&token_set,
	(void *)&token_verify, (void *)&token_switch);
COMMAND(command_set_progress, do_set, "set progress hybrid|inline|dedicated", (void *)&token_set,
	(void *)&token_progress, (void *)&token_progresses);
COMMAND(command_help, do_help, "help: this list", (void *)&token_help);
COMMAND(command_quit, do_quit, "quit", (void *)&token_quit);

static cmdline_parse_ctx_t commands[] = {
	&command_start,	       &command_stop,	     &command_wait,	      &command_show,
	&command_show_port,    &command_set_verbose, &command_start_tx_first, &command_clear,
	&command_set,	       &command_set_mode,    &command_set_op,	      &command_set_verify,
	&command_set_progress, &command_help,	     &command_quit,	      NULL,
};

static void do_help(void *parsed, struct cmdline *cl, void *data)
{
	(void)parsed;
	(void)data;
	for (size_t i = 0; commands[i]; i++)
		cmdline_printf(cl, "%s\n", commands[i]->help_str);
}

int prompt_run(struct nic *nic, struct control *control, const struct options *options)
{
	struct cmdline *cl;
	int rc;

	prompt.plan = options->plan;
	prompt.has_size = options->has_size;
	rc = worker_start(nic, control, options->period_ns, options->stages);
	cl = rc == 0 ? cmdline_stdin_new(commands, "testroce> ") : NULL;
	if (!cl) {
		fprintf(stderr, "testroce: no prompt: %s\n", strerror(rc ? -rc : ENOMEM));
		if (rc == 0)
			worker_end();
		return EXIT_FAILURE;
	}
	cmdline_interact(cl);
	cmdline_stdin_exit(cl);
	worker_end();
	return worker.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
