/* SPDX-License-Identifier: BSD-3-Clause */
/* uroced: owns a network port, and shares it between the processes that attach. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_eal.h>

#include "base/log.h"
#include "base/monotonic.h"
#include "confine.h"
#include "eal/cpu.h"
#include "eal/privilege.h"
#include "eal/runtime.h"
#include "netdev/early_drop.h"
#include "owner/serve.h"
#include "replace.h"
#include "report/set.h"
#include "report/metrics.h"
#include "scrape.h"
#include "service.h"
#include "share/message.h"
#include "tenant_limits.h"
#include "uroced_options.h"

#define PAUSE_S 5 /* for programs that come back, and for a further restart */

enum telemetry_state {
	TELEMETRY_OFF,
	TELEMETRY_PAUSES,
	TELEMETRY_STARTS, /* DPDK */
};

static enum telemetry_state telemetry_state; /* atomic */
static pthread_t telemetry_thread;

static bool telemetry_step(enum telemetry_state from, enum telemetry_state to)
{
	return __atomic_compare_exchange_n(&telemetry_state, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

static void *telemetry_thread_run(void *arg)
{
	const struct runtime_config config = {.telemetry = true, .file_prefix = arg};

	/* EAL fills its memory, and meanwhile no other thread can map any. */
	if (__atomic_load_n(&telemetry_state, __ATOMIC_ACQUIRE) == TELEMETRY_PAUSES) {
		sleep(PAUSE_S);
		if (!telemetry_step(TELEMETRY_PAUSES, TELEMETRY_STARTS))
			return NULL;
	}
	if (runtime_start(&config) != 0)
		log_warn("DPDK's telemetry does not answer; programs do not need it");
	__atomic_store_n(&telemetry_state, TELEMETRY_OFF, __ATOMIC_RELEASE);
	return NULL;
}

/* Start DPDK in a thread of its own, with files of this prefix: its start takes most of a second,
 * in which programs would wait. If `is_late`, programs come back now, and DPDK starts after that.
 * Without DPDK only telemetry is missing. Once per process. */
static void telemetry_thread_start(const char *file_prefix, bool is_late)
{
	int rc;

	telemetry_state = is_late ? TELEMETRY_PAUSES : TELEMETRY_STARTS;
	rc = privilege_create_same(&telemetry_thread, telemetry_thread_run,
				   (void *)(uintptr_t)file_prefix);
	if (rc == 0)
		return;
	telemetry_state = TELEMETRY_OFF;
	log_warn("no thread for DPDK's telemetry: %s", strerror(-rc));
}

/* Stop the thread. If DPDK is just starting, wait until it has started, unless `in_haste`. Return
 * false if it still starts: the process must then end without destructors, because DPDK's may not
 * run meanwhile. */
static bool telemetry_thread_stop(bool in_haste)
{
	if (telemetry_step(TELEMETRY_PAUSES, TELEMETRY_OFF) ||
	    __atomic_load_n(&telemetry_state, __ATOMIC_ACQUIRE) != TELEMETRY_STARTS)
		return true;
	if (in_haste)
		return false;
	pthread_join(telemetry_thread, NULL);
	return true;
}

#define SLEEP_MS    100
#define SPIN_NS	    20000 /* idle time before a thread sleeps, unless CPUs are short */
#define LOOK_NS	    10000000
#define POLLS_MAX   256 /* polls in a row before serve_sleep polls descriptors */
#define STATUS_MS   5000
#define DESCRIPTORS 16384
#define FAILED_S    1 /* before a start that has failed ends */

/* The command line, and what was made of it. */
struct start {
	int argc;
	char **argv;
	struct settings settings[SETTINGS_PORTS_MAX];
	size_t count;
	struct options_tenants tenants;
	bool replaces; /* another uroced that runs */
};

static struct start start;
static volatile sig_atomic_t stop, reread;
static struct server *servers[SETTINGS_PORTS_MAX];
static size_t server_count;
static struct report_set reports;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
	for (size_t i = 0; i < SETTINGS_PORTS_MAX; i++) {
		struct server *server = __atomic_load_n(&servers[i], __ATOMIC_SEQ_CST);

		if (server)
			serve_wake(server);
	}
}

static void on_hangup(int number)
{
	struct server *server = __atomic_load_n(&servers[0], __ATOMIC_SEQ_CST);

	(void)number;
	reread = 1;
	if (server)
		serve_wake(server);
}

/* Return true if this process ends with a terminal. One that a supervisor started has none,
 * whatever the supervisor: its SIGHUP asks for the file to be read again. */
static bool has_terminal(void)
{
	const int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Handle SIGHUP. nohup ignores it, and this holds here too. Without a file, SIGHUP is the end of
 * the terminal, unless this is a service. */
static void take_hangups(void)
{
	const bool reads = start.tenants.file || getenv("NOTIFY_SOCKET") || !has_terminal();
	const struct sigaction action = {.sa_handler = reads ? on_hangup : on_signal};
	struct sigaction before;

	if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
}

static int fail(const char *error)
{
	fprintf(stderr, "%suroced: %s\n", log_priority(LOG_LEVEL_ERROR), error);
	return EXIT_FAILURE;
}

/* Return true if all ports were removed. uroced then ends; until then it serves the remaining
 * ports. */
static bool all_are_lost(void)
{
	for (size_t i = 0; i < server_count; i++) {
		if (!serve_is_lost(servers[i]))
			return false;
	}
	return true;
}

/* Give each server the new settings of its port. */
static void change_all(const struct start *now, const struct serve_tenants *limits)
{
	for (size_t i = 0; i < server_count; i++) {
		const struct settings *settings =
			options_find_port(now->settings, now->count, start.settings[i].name);

		if (!settings)
			log_warn("port %s is no longer in the file: it goes on until uroced ends",
				 start.settings[i].name);
		else if (serve_change(servers[i], settings, limits) != 0)
			log_error("port %s keeps its settings: no memory", start.settings[i].name);
	}
}

/* Read the settings again, as at the start. A mistake changes nothing. */
static void read_again(void)
{
	static struct start now;
	struct serve_tenant users[TENANT_SETTINGS_MAX];
	struct serve_tenants limits;
	char error[1024], names[256];

	reread = 0;
	if (!start.tenants.file) {
		log_warn("there is nothing to read again: no file was read at the start (--config "
			 "names one)");
		return;
	}
	now = (struct start){.count = 0};
	if (options_parse(start.argc, start.argv, SETTINGS_DEFAULT_FILE, now.settings, &now.count,
			  &now.tenants, error,
			  sizeof(error)) != (start.replaces ? OPTIONS_REPLACE : OPTIONS_RUN) ||
	    tenant_limits_find(now.tenants.list, now.tenants.count, users, &limits, error,
			       sizeof(error)) != 0) {
		log_error("the settings stay as they are: %s", error);
		return;
	}
	log_set_level((enum log_level)now.settings->log_level);
	change_all(&now, &limits);
	options_name_fixed(start.settings, start.count, now.settings, now.count, names,
			   sizeof(names));
	if (names[0] != '\0')
		log_warn("%s: these settings change only when uroced is started again", names);
	log_info("settings are read again");
}

/* Return true if each port's programs have been told that another uroced takes over. */
static bool all_must_leave(void)
{
	for (size_t i = 0; i < server_count; i++) {
		if (!serve_must_leave(servers[i]))
			return false;
	}
	return true;
}

/* Serve a port until uroced ends. Each port has a thread. */
static void serve(struct server *server)
{
	uint64_t busy_ns = monotonic_ns(), looked_ns = 0, spin_ns = 0;
	unsigned int polls = 0;

	cpu_shorten_slices();
	while (!stop) {
		uint64_t now;

		if (serve_poll(server) > 0) {
			busy_ns = monotonic_ns();
			if (++polls < POLLS_MAX)
				continue;
		}
		now = monotonic_ns();
		if (now - looked_ns >= LOOK_NS) {
			/* Do not spin if CPUs are short: the processes that receive the packets
			 * wait for a CPU. */
			spin_ns = cpu_is_short() ? 0 : SPIN_NS;
			looked_ns = now;
		}
		if (now - busy_ns < spin_ns && polls < POLLS_MAX)
			continue;
		serve_sleep(server, now - busy_ns < spin_ns ? 0 : SLEEP_MS);
		if (reread && server == servers[0])
			read_again();
		polls = 0;
		if ((serve_must_leave(server) && all_must_leave()) ||
		    (serve_is_lost(server) && all_are_lost()))
			on_signal(0);
	}
}

static void *serve_thread(void *arg)
{
	serve_begin(arg);
	serve(arg);
	return NULL;
}

static void warn_of_idle_settings(const struct settings *settings)
{
	char names[128];

	options_name_idle(settings, names, sizeof(names));
	if (names[0] != '\0')
		log_warn(
			"%s: only uroce-run uses these settings, and they have no effect in uroced",
			names);
}

/* Serve all ports. The main thread serves the first port, receives all signals, and waits for the
 * other threads. */
static int serve_all(void)
{
	pthread_t threads[SETTINGS_PORTS_MAX];
	size_t started = 1;
	sigset_t all, before;
	int rc = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (started < server_count && rc == 0) {
		rc = pthread_create(&threads[started], NULL, serve_thread, servers[started]);
		started += rc == 0;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		serve_thread(servers[0]);
	else
		on_signal(0);
	while (--started > 0)
		pthread_join(threads[started], NULL);
	return rc;
}

/* Clear each pointer first, so that the signal handler never wakes a destroyed server. */
static void destroy_all(void)
{
	while (server_count > 0) {
		struct server *server = servers[--server_count];

		__atomic_store_n(&servers[server_count], NULL, __ATOMIC_SEQ_CST);
		serve_destroy(server);
	}
}

/* Prepare all ports; then let the uroced leave that this one replaces, and open them. */
static int create_all(struct serve_config *config, const struct settings *settings, size_t count)
{
	int rc = 0;

	config->settings = settings;
	while (server_count < count && rc == 0) {
		config->number = (uint32_t)server_count;
		rc = serve_prepare(config, &servers[server_count]);
		server_count += rc == 0;
	}
	/* The other uroced goes on: leave no files. */
	if (rc != 0)
		destroy_all();
	replace_take_over(rc == 0);
	for (size_t i = 0; i < server_count; i++) {
		if (serve_take_sockets(servers[i]) != 0)
			log_warn("programs see a socket of the last uroced's user");
	}
	for (size_t i = 0; i < count && rc == 0; i++) {
		config->number = (uint32_t)i;
		rc = serve_open(servers[i], config);
	}
	return rc;
}

/* Raise the limit of descriptors. Untrusted programs can take a bounded number of them, but that is
 * more than the usual limit of 1,024. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= DESCRIPTORS)
		return;
	limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		log_debug("no more descriptors: %s", strerror(errno));
}

/* Answer Prometheus, if a setting asks for it. An uroced that has taken the place of another one
 * serves its programs all the same. */
static int start_metrics(const struct settings *settings, const struct serve_config *config)
{
	const struct scrape_config scrape = {
		.path = settings->metrics,
		.mode = config->socket_mode,
		.owner = config->socket_owner,
		.group = config->socket_group,
		.reports = &reports,
	};

	if (settings->metrics[0] == '\0' || scrape_start(&scrape) == 0 || start.replaces)
		return 0;
	return -1;
}

/* Take the sockets that the service manager has opened. */
static int take_passed(struct serve_passed *passed, int *tables)
{
	char error[256];
	const int count = service_take(passed->fds, SERVE_PASSED, tables, SETTINGS_PORTS_MAX, error,
				       sizeof(error));

	if (count < 0) {
		log_error("%s", error);
		return -1;
	}
	passed->count = (size_t)count;
	return 0;
}

/* Refuse a passed socket that no port has taken: clients would connect to it and wait for ever. */
static int check_passed(const struct serve_passed *passed)
{
	for (size_t i = 0; i < passed->count; i++) {
		char path[128];

		if (passed->fds[i] < 0)
			continue;
		service_path(passed->fds[i], path, sizeof(path));
		/* The replaced uroced had more sockets. */
		if (passed->removes[i])
			(void)unlink(path);
		if (start.replaces) {
			close(passed->fds[i]);
			continue;
		}
		log_error("the service manager passes the socket %s, but no setting has this path: "
			  "see socket and isolated",
			  path);
		return -1;
	}
	return 0;
}

/* Let the service manager keep the tables that it does not have yet. */
static void keep_tables(int *const tables, const bool *are_kept, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int rc = 0;

		/* A table that is left is wrong, or its port is not there any more. */
		if (tables[i] >= 0)
			close(tables[i]);
		if (service_keeps() && serve_table(servers[i]) >= 0 &&
		    (!are_kept[i] || tables[i] >= 0))
			rc = service_keep_table(serve_table(servers[i]), i);
		if (rc != 0)
			log_warn("the service manager does not keep what programs need to go on: "
				 "%s",
				 strerror(-rc));
	}
}

/* Let this process end sooner, when its time comes. */
static void close_late(size_t count)
{
	int fds[SETTINGS_PORTS_MAX * SERVE_SLOW_FDS], rc;
	size_t found = 0;

	if (!service_keeps())
		return;
	for (size_t i = 0; i < count; i++)
		found += serve_slow_fds(servers[i], &fds[found]);
	rc = service_close_late(fds, found);
	if (rc != 0)
		log_warn("the service manager keeps nothing: %s", strerror(-rc));
}

static void confine_changes(const struct settings *settings, size_t count)
{
	const int rc = confine_files(settings, count, serve_dpdk(settings, count));

	if (rc != 0)
		log_warn("all files may be changed: %s", strerror(-rc));
}

/* From here on uroced can do no more than serve. Where the kernel does not allow to confine it, it
 * serves all the same. */
static void confine(const struct settings *settings, size_t count)
{
	const bool physical = rte_eal_iova_mode() != RTE_IOVA_VA;
	int rc = privilege_limit(confine_capabilities(settings, count, physical));

	if (rc != 0)
		log_warn("a thread keeps its capabilities: %s", strerror(-rc));
	rc = confine_filter();
	if (rc != 0)
		log_warn("no system call is forbidden: %s", strerror(-rc));
}

/* Return true if this process goes on where another one has ended. */
static bool goes_on(const bool *are_kept, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (are_kept[i])
			return true;
	}
	return start.replaces;
}

/* Serve programs. Some may come back that another uroced has served. 0 or -errno. */
static int serve_until_the_end(const struct settings *settings, size_t count, bool come_back)
{
	int rc;

	log_info("ready: programs attach at %s", settings->socket);
	replace_end_command();
	if (serve_dpdk(settings, count) == SERVE_DPDK_LATER)
		telemetry_thread_start(serve_file_prefix(settings), come_back);
	rc = serve_all();
	/* Not if the service goes on with another process. */
	if (!all_must_leave())
		service_notify("STOPPING=1");
	/* Report the loss of all ports as a failure: the service manager restarts uroced, which
	 * then opens the new port. */
	return rc == 0 && all_are_lost() ? -ENODEV : rc;
}

/* If DPDK is just starting and programs wait for the next uroced, end the process here. Unmapping
 * memory would wait until EAL has filled its own. The resume tables are complete at any time. */
static void stop_telemetry(int status)
{
	if (telemetry_thread_stop(service_keeps() || all_must_leave()))
		return;
	for (size_t i = 0; i < server_count; i++)
		serve_release_manager(servers[i]);
	fflush(NULL);
	_exit(status);
}

/* A NIC that is missing may come, or a user that a directory knows. systemd starts uroced again for
 * ever only if each start takes some time. */
static void await_next_start(void)
{
	if (getenv("NOTIFY_SOCKET") && !start.replaces)
		sleep(FAILED_S);
}

static int fail_slowly(const char *error)
{
	(void)fail(error);
	await_next_start();
	return EXIT_FAILURE;
}

static int run(const struct settings *settings, size_t count, const struct options_tenants *tenants)
{
	struct serve_tenant users[TENANT_SETTINGS_MAX];
	struct serve_tenants limits;
	char error[256];
	struct serve_passed passed = {0};
	int tables[SETTINGS_PORTS_MAX];
	bool are_kept[SETTINGS_PORTS_MAX];
	struct serve_config config = {
		.ports = (uint32_t)count,
		.socket_path = settings->socket,
		.socket_mode = (mode_t)settings->socket_mode,
		.socket_owner = (uid_t)-1,
		.socket_group = (gid_t)-1,
		.reports = &reports,
		.passed = &passed,
		.tenants = &limits,
		.tables_are_kept = service_keeps(),
	};
	const struct sigaction action = {.sa_handler = on_signal};
	bool served;
	int rc;

	if (!names_find_user(settings->socket_owner, &config.socket_owner))
		return fail_slowly("socket-owner: there is no such user");
	if (!names_find_group(settings->socket_group, &config.socket_group))
		return fail_slowly("socket-group: there is no such group");
	if (tenant_limits_find(tenants->list, tenants->count, users, &limits, error,
			       sizeof(error)) != 0)
		return fail_slowly(error);
	log_set_level((enum log_level)settings->log_level);
	warn_of_idle_settings(settings);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	take_hangups();
	/* The default timer slack ends sleeps up to 50 us late. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	raise_descriptors();
	early_drop_try_filter();
	privilege_reach();
	report_set_init(&reports);
	for (size_t i = 0; i < SETTINGS_PORTS_MAX; i++)
		tables[i] = -1;
	/* An uroced of one command ends with it. */
	config.tables = getenv("UROCED_PARENT") ? NULL : tables;
	rc = take_passed(&passed, tables);
	for (size_t i = 0; i < SETTINGS_PORTS_MAX; i++)
		are_kept[i] = tables[i] >= 0;
	if (rc == 0 && start.replaces)
		rc = replace_ask(settings, count, &passed, tables);
	if (rc == 0)
		rc = create_all(&config, settings, count);
	if (rc == 0)
		rc = check_passed(&passed);
	if (rc == 0)
		keep_tables(tables, are_kept, count);
	if (rc == 0 && report_telemetry_start(&reports) != 0)
		log_warn("cannot register /uroce with telemetry");
	/* Threads that are started from now on are confined to the files, too. */
	if (rc == 0)
		confine_changes(settings, count);
	if (rc == 0)
		rc = start_metrics(settings, &config);
	if (rc == 0)
		confine(settings, count);
	if (rc == 0 && service_notify("READY=1") != 0)
		log_warn("cannot tell the service manager at $NOTIFY_SOCKET that all is ready");
	if (rc == 0)
		close_late(count);
	served = rc == 0;
	if (served)
		rc = serve_until_the_end(settings, count, goes_on(are_kept, count));
	scrape_stop();
	stop_telemetry(rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
	destroy_all();
	if (!served)
		await_next_start();
	return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int print_status(const char *path)
{
	const struct share_message message = {.type = SHARE_STATUS, .version = SHARE_VERSION};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	char text[SHARE_STATUS_MAX];
	ssize_t len;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    message_send(fd, &message, NULL, 0) != 0 || poll(&poll_fd, 1, STATUS_MS) <= 0)
		return fail("no uroced answers there");
	len = recv(fd, text, sizeof(text), 0);
	if (len <= 0 || fwrite(text, 1, (size_t)len, stdout) != (size_t)len)
		return fail("no uroced answers there");
	return EXIT_SUCCESS;
}

/* End with the process that has started us for one command (uroce-run --local). It has asked for
 * this before exec, but the kernel forgets that if our file has capabilities. */
static bool end_with_parent(void)
{
	const char *parent = getenv("UROCED_PARENT");

	if (!parent)
		return true;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	return getppid() == atoi(parent);
}

int main(int argc, char **argv)
{
	char error[1024];

	if (!end_with_parent())
		return EXIT_FAILURE;
	start.argc = argc;
	start.argv = argv;
	switch (options_parse(argc, argv, SETTINGS_DEFAULT_FILE, start.settings, &start.count,
			      &start.tenants, error, sizeof(error))) {
	case OPTIONS_REPLACE:
		start.replaces = true;
		if (replace_leave_command() != 0)
			return EXIT_FAILURE;
		/* fall through */
	case OPTIONS_RUN:
		return run(start.settings, start.count, &start.tenants);
	case OPTIONS_STATUS:
		return print_status(start.settings[0].socket);
	case OPTIONS_HELP:
		return fputs(options_help, stdout) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	case OPTIONS_VERSION:
		return puts("uroced " UROCE_VERSION) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	case OPTIONS_BAD:
		break;
	}
	return fail(error);
}
