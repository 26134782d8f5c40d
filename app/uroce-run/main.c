/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce-run: runs an unmodified RDMA program on uroce's libibverbs, or runs it once for each call
 * that can fail (--inject every=call) or for each of several seeds (--unfold 1..500). */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/settings.h"
#include "launch.h"
#include "run_again.h"
#include "run_check.h"
#include "run_local.h"
#include "run_options.h"
#include "run_view.h"

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

/* With a seed, packets of a port are late and overtake each other, unless the user damages them in
 * another way. */
static void unfold_network(struct settings *settings)
{
	if (settings->unfold[0] != '\0' && settings->impair[0] == '\0')
		snprintf(settings->impair, sizeof(settings->impair),
			 "delay=20us,reorder=0.05,depth=6,seed=%s", settings->unfold);
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
	unfold_network(settings);
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

	switch (options_parse(argc, argv, SETTINGS_DEFAULT_FILE, SETTINGS_DEFAULT_SOCKET, &settings,
			      &request, error, sizeof(error))) {
	case OPTIONS_RUN:
		return again_wanted(&settings) ? again_run(argv, request.program, &settings)
					       : run(&settings, &request);
	case OPTIONS_HELP:
		return fputs(options_help, stdout) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	case OPTIONS_VERSION:
		return puts("uroce-run " UROCE_VERSION) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	case OPTIONS_BAD:
		break;
	}
	return fail(EXIT_FAILURE, error);
}
