/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps what the program prints on stderr, for tests of messages. */
#include "printed.h"

#include <fcntl.h>
#include <unistd.h>

#include "test.h"

static int saved_stderr;
static int pipe_end;
static char printed[2048];

void printed_begin(void)
{
	int fds[2];

	assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
	saved_stderr = dup(STDERR_FILENO);
	assert_int_equal(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
	close(fds[1]);
	pipe_end = fds[0];
}

const char *printed_take(void)
{
	const ssize_t length = read(pipe_end, printed, sizeof(printed) - 1);

	printed[length < 0 ? 0 : length] = '\0';
	return printed;
}

void printed_end(void)
{
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	close(pipe_end);
}
