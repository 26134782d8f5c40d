/* SPDX-License-Identifier: BSD-3-Clause */
/* Our handlers of SIGSEGV and SIGBUS, which run before the program's own. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/log.h"
#include "guard_catch.h"
#include "hold.h"

/*
 * A place in front of a program's handler. Each signal has several places. A program that sets a
 * handler after us usually remembers our handler and calls it from its own. If we then install
 * ourselves in front of that handler again, we need another function, which calls that handler.
 * With the same function the two handlers would call each other for ever.
 */
#define PLACES 32

enum { SEGV, BUS, SIGNALS };

static const int signals[SIGNALS] = {[SEGV] = SIGSEGV, [BUS] = SIGBUS};

struct place {
	bool used;
	struct sigaction next; /* the handler that this place stands in front of */
};

static struct place places[SIGNALS][PLACES];
static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;

static void set_default(int sig)
{
	const struct sigaction standard = {.sa_handler = SIG_DFL};

	sigaction(sig, &standard, NULL);
}

/* Run the default action with the original cause of the signal. After a fault the instruction runs
 * again and faults again; any other signal is sent once more. */
static void die(int sig, siginfo_t *info)
{
	set_default(sig);
	if (!guard_is_fault(sig, info))
		syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), sig, info);
}

/* Do what the kernel would have done without us. Signal mask and stack are already right (see
 * set_flags). */
static void go_on(const struct sigaction *next, int sig, siginfo_t *info, void *context)
{
	void **frame;

	if (next->sa_handler == SIG_DFL) {
		die(sig, info);
		return;
	}
	if (next->sa_flags & (int)SA_RESETHAND)
		set_default(sig);
	/* Suspend the copy, if the signal interrupted one: the handler may leave by siglongjmp. */
	frame = guard_suspend();
	/* A handler with one argument ignores the other two where arguments are in registers. */
	next->sa_sigaction(sig, info, context);
	guard_resume(frame);
}

/*
 * Set the flags that our handlers need; take over those that decide mask and stack from the next
 * handler, so that it finds what it asked for.
 */
static void set_flags(const struct place *place, struct sigaction *action)
{
	action->sa_flags &= ~(int)SA_RESETHAND;
	action->sa_flags |= SA_SIGINFO;
	if (place->next.sa_handler == SIG_DFL)
		action->sa_flags |= SA_ONSTACK;
}

/*
 * Return true if the flag SA_SIGINFO was missing because signal(3) had restored our handler without
 * it; the handler's arguments besides the signal number are then invalid. Set the flags again.
 */
static bool lacked_info(const struct place *place, int sig, void (*self)(int, siginfo_t *, void *))
{
	struct sigaction now;

	if (sigaction(sig, NULL, &now) != 0 || now.sa_sigaction != self ||
	    (now.sa_flags & SA_SIGINFO))
		return false;
	set_flags(place, &now);
	sigaction(sig, &now, NULL);
	return true;
}

/*
 * Handle a signal of which only the number is known. During a copy, assume that the copy faulted:
 * if so, it faults again as soon as the handler returns, now with all arguments. Otherwise call the
 * program's handler, which gets no less than it would have got without us.
 */
static void handle_blindly(const struct place *place, int sig, void *context)
{
	siginfo_t none = {.si_signo = sig};

	if (!guard_is_in_copy(context))
		go_on(&place->next, sig, &none, context);
}

static void handle(const struct place *place, int sig, siginfo_t *info, void *context,
		   void (*self)(int, siginfo_t *, void *))
{
	if (lacked_info(place, sig, self)) {
		handle_blindly(place, sig, context);
		return;
	}
	if (guard_catch(sig, info, context))
		return;
	if (guard_is_fault(sig, info) || !hold_keep(sig, info))
		go_on(&place->next, sig, info, context);
}

#define HANDLER(name, which, n)                                            \
	static void name##_##n(int sig, siginfo_t *info, void *context)    \
	{                                                                  \
		handle(&places[which][n], sig, info, context, name##_##n); \
	}
/* Define four handlers; define all handlers. */
#define HANDLER_4(name, which, a, b, c, d) \
	HANDLER(name, which, a)            \
	HANDLER(name, which, b)            \
	HANDLER(name, which, c)            \
	HANDLER(name, which, d)
#define HANDLERS(name, which)                  \
	HANDLER_4(name, which, 0, 1, 2, 3)     \
	HANDLER_4(name, which, 4, 5, 6, 7)     \
	HANDLER_4(name, which, 8, 9, 10, 11)   \
	HANDLER_4(name, which, 12, 13, 14, 15) \
	HANDLER_4(name, which, 16, 17, 18, 19) \
	HANDLER_4(name, which, 20, 21, 22, 23) \
	HANDLER_4(name, which, 24, 25, 26, 27) \
	HANDLER_4(name, which, 28, 29, 30, 31)
#define NAMES_8(name, a, b, c, d, e, f, g, h)                                               \
	name##_##a, name##_##b, name##_##c, name##_##d, name##_##e, name##_##f, name##_##g, \
		name##_##h
#define NAMES(name)                                                    \
	{                                                              \
		NAMES_8(name, 0, 1, 2, 3, 4, 5, 6, 7),                 \
			NAMES_8(name, 8, 9, 10, 11, 12, 13, 14, 15),   \
			NAMES_8(name, 16, 17, 18, 19, 20, 21, 22, 23), \
			NAMES_8(name, 24, 25, 26, 27, 28, 29, 30, 31)  \
	}

HANDLERS(on_segv, SEGV)
HANDLERS(on_bus, BUS)

static void (*const handlers[SIGNALS][PLACES])(int, siginfo_t *, void *) = {
	[SEGV] = NAMES(on_segv),
	[BUS] = NAMES(on_bus),
};

/* Compare signal by signal: the C library's set has bytes behind the last signal that mean
 * nothing. */
static bool same_mask(const sigset_t *a, const sigset_t *b)
{
	for (int sig = 1; sig < NSIG; sig++) {
		if (sigismember(a, sig) != sigismember(b, sig))
			return false;
	}
	return true;
}

/* Compare two actions. The C library adds a flag of its own to what it returns. */
static bool same_action(const struct sigaction *a, const struct sigaction *b)
{
	static const int meant =
		SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER | (int)SA_RESETHAND;

	return a->sa_sigaction == b->sa_sigaction &&
	       (a->sa_flags & meant) == (b->sa_flags & meant) &&
	       same_mask(&a->sa_mask, &b->sa_mask);
}

/* Return the place in front of this action, which may be one that we used before, or a new place;
 * -1 if there is none left. */
static int find_place_locked(int which, const struct sigaction *next)
{
	for (int i = 0; i < PLACES; i++) {
		if (places[which][i].used && same_action(&places[which][i].next, next))
			return i;
	}
	for (int i = 0; i < PLACES; i++) {
		if (!places[which][i].used)
			return i;
	}
	return -1;
}

/* Return the place whose handler this is, or NULL. */
static struct place *place_of(int which, const struct sigaction *action)
{
	for (int i = 0; i < PLACES; i++) {
		if (action->sa_sigaction == handlers[which][i])
			return &places[which][i];
	}
	return NULL;
}

/*
 * Choose the action to set in the place of `next`: one of ours that calls it. If `next` ignores the
 * signal, choose `next` itself, because an ignored signal stays ignored after exec and a handled
 * one does not. If `next` is one of ours, restore its flags, because signal(3) restores a handler
 * without them.
 */
static int choose_locked(int which, const struct sigaction *next, struct sigaction *chosen)
{
	const struct place *ours = place_of(which, next);
	int i;

	*chosen = *next;
	if (next->sa_handler == SIG_IGN)
		return 0;
	if (ours) {
		set_flags(ours, chosen);
		return 0;
	}
	i = find_place_locked(which, next);
	if (i < 0)
		return -ENOSPC;
	if (!places[which][i].used)
		places[which][i] = (struct place){.used = true, .next = *next};
	set_flags(&places[which][i], chosen);
	chosen->sa_sigaction = handlers[which][i];
	return 0;
}

static int stand_in_front_locked(int which)
{
	struct sigaction next, chosen, expected, found;
	int rc;

	if (sigaction(signals[which], NULL, &next) != 0)
		return -errno;
	expected = next;
	for (;;) {
		rc = choose_locked(which, &next, &chosen);
		if (same_action(&chosen, &expected))
			return rc;
		if (sigaction(signals[which], &chosen, &found) != 0)
			return -errno;
		if (same_action(&found, &expected))
			return rc;
		/* Another thread has set a handler meanwhile: stand in front of that one. */
		expected = chosen;
		next = found;
	}
}

static void warn_once_locked(void)
{
	static bool warned;

	if (!warned)
		log_warn("this program has set more than %d handlers of SIGSEGV or SIGBUS: from "
			 "now on the program ends if memory disappears under a region",
			 PLACES);
	warned = true;
}

static void lock_places(void)
{
	pthread_mutex_lock(&places_lock);
}

static void unlock_places(void)
{
	pthread_mutex_unlock(&places_lock);
}

/* Make a child of fork() find the places complete and unlocked. */
static void watch_fork_locked(void)
{
	static bool watching;

	if (!watching)
		watching = pthread_atfork(lock_places, unlock_places, unlock_places) == 0;
}

int guard_install(void)
{
	int rc, cancel_state;

	/* Do not let this thread be cancelled inside log_warn: it would leave the lock locked. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	lock_places();
	watch_fork_locked();
	rc = stand_in_front_locked(SEGV);
	if (rc == 0)
		rc = stand_in_front_locked(BUS);
	if (rc == -ENOSPC)
		warn_once_locked();
	unlock_places();
	pthread_setcancelstate(cancel_state, NULL);
	return rc;
}
