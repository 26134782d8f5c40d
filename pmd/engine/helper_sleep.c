/* SPDX-License-Identifier: BSD-3-Clause */
/* How a helper sleeps: on the descriptors of all its engines' ports at once. */
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/own.h"
#include "engine/engine.h"
#include "helper_thread.h"

/* Sleep in spite of a socket error: an interface that goes down leaves an error on its socket,
 * which would end every sleep at once. Reading the error removes it, so frames can wake us again.
 * If there was none to read, do not listen to this descriptor. */
static void helper_take_error(struct pollfd *poll_fd)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (getsockopt(poll_fd->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error == 0)
		poll_fd->fd = -1;
}

/* Return true if a port's descriptor has reported an error; it does not report it again. */
static bool helper_takes_errors(struct engine *first, struct pollfd *fds, nfds_t count)
{
	bool found = false;

	for (nfds_t i = 1; i < count; i++) {
		if (!(fds[i].revents & ~POLLIN) || helper_has_lost_fds(first, first->helper.thread))
			continue;
		helper_take_error(&fds[i]);
		found = true;
	}
	return found;
}

/*
 * Prepare for sleep. Return true if frames wait already, or may wait. Only the engine's owner may
 * switch a NIC's interrupts, because only the owner releases a NIC that was pulled out.
 */
static bool helper_arm(struct engine *engine)
{
	struct port *port = &engine->link->port;
	bool waits;

	if (!port_interrupts(port))
		return port_arm(port);
	/* Another thread runs the engine: look again. */
	if (!engine_try(engine))
		return true;
	waits = port_arm(port);
	engine_release(engine);
	return waits;
}

void helper_disarm(struct engine *engine)
{
	if (!port_is_armed(&engine->link->port) || !engine_try(engine))
		return;
	port_disarm(&engine->link->port);
	engine_release(engine);
}

bool helper_has_lost_fds(struct engine *engine, const struct helper_thread *thread)
{
	if (unlikely(!own_is(thread->wake_fd)))
		__atomic_store_n(&engine->lost_fds, true, __ATOMIC_RELAXED);
	return __atomic_load_n(&engine->lost_fds, __ATOMIC_RELAXED);
}

/* Return true if the program has closed descriptors of one of these engines: then it has probably
 * closed those of all. */
static bool helper_knows_lost_fds(const struct engine *first)
{
	for (const struct engine *engine = first; engine; engine = engine->helper.next) {
		if (__atomic_load_n(&engine->lost_fds, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

/* Fill in what to sleep on. Returns the number of descriptors, or 0 if frames wait already. */
static nfds_t helper_listen(struct engine *first, struct pollfd *fds)
{
	const bool lost_fds = helper_knows_lost_fds(first);
	nfds_t count = 0;

	fds[count++] = (struct pollfd){.fd = lost_fds ? -1 : first->helper.thread->wake_fd,
				       .events = POLLIN};
	for (struct engine *engine = first; engine; engine = engine->helper.next) {
		const bool listens =
			engine->helper.listens && !lost_fds && !helper_has_ended(engine);

		fds[count++] = (struct pollfd){
			.fd = listens ? port_wake_fd(&engine->link->port) : -1, .events = POLLIN};
		if (!listens || engine->helper.armed)
			continue;
		engine->helper.heard = helper_arm(engine);
		engine->helper.armed = !engine->helper.heard;
		if (engine->helper.heard)
			return 0;
	}
	return count;
}

/* Note which ports have frames, or something else to tell. */
static void helper_hear(struct engine *first, const struct pollfd *fds)
{
	for (struct engine *engine = first; engine; engine = engine->helper.next)
		engine->helper.heard = (++fds)->revents != 0;
}

void helper_wait(struct engine *first, uint64_t ns)
{
	struct helper_thread *thread = first->helper.thread;
	const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000),
				      .tv_nsec = (long)(ns % 1000000000)};
	struct pollfd *fds = thread->fds;
	nfds_t count;
	uint64_t rings;
	sigset_t mask;

	count = helper_is_over(thread) ? 0 : helper_listen(first, fds);
	if (count == 0)
		return;
	guard_pause_in_call(&mask);
	if (ppoll(fds, count, &time, &mask) > 0 && helper_takes_errors(first, fds, count))
		ppoll(fds, count, &time, &mask);
	/* The descriptor may be closed or another file's by now: poll looks it up again when it
	 * wakes. If that file wakes nobody, helper_ring notices it. */
	if (fds[0].revents && !helper_has_lost_fds(first, thread) && (fds[0].revents & POLLIN) &&
	    read(thread->wake_fd, &rings, sizeof(rings)) < 0)
		fds[0].revents = 0;
	helper_hear(first, fds);
}
