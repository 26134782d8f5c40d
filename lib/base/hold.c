/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals that a thread of ours keeps until it can return them to the process. */
#include "hold.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Both are standard signals, of which the kernel queues at most one each. */
enum { HELD_SEGV, HELD_BUS, HELD };

struct held {
	volatile bool any;
	bool keeps;		/* this thread is ours */
	siginfo_t signal[HELD]; /* si_signo is 0 if none is kept */
};

/* The signal handler uses this variable, so its thread-local model needs no call to find it. */
static __thread struct held held __attribute__((tls_model("initial-exec")));

void hold_begin(void)
{
	held.keeps = true;
}

bool hold_keep(int sig, const siginfo_t *info)
{
	if (!held.keeps)
		return false;
	memcpy(&held.signal[sig == SIGBUS ? HELD_BUS : HELD_SEGV], info, sizeof(*info));
	held.any = true;
	return true;
}

bool hold_has(void)
{
	return held.any;
}

void hold_give_back(void)
{
	/* The kernel lets a thread send a signal with another sender's information only to itself,
	 * so the id is this thread's; the signal still goes to the whole process. */
	const pid_t self = (pid_t)syscall(SYS_gettid);

	held.any = false;
	for (int i = 0; i < HELD; i++) {
		const int sig = held.signal[i].si_signo;

		if (sig != 0)
			syscall(SYS_rt_sigqueueinfo, self, sig, &held.signal[i]);
		held.signal[i].si_signo = 0;
	}
}
