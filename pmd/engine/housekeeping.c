/* SPDX-License-Identifier: BSD-3-Clause */
/* What an engine and its device need from time to time: a look at the link, addresses, reports and
 * their commands. */
#include <errno.h>

#include "attach/attach.h"
#include "base/guard.h"
#include "base/log.h"
#include "base/own.h"
#include "base/reason.h"
#include "device/device.h"
#include "device/xrc_share.h"
#include "publish.h"
#include "engine/engines.h"
#include "engine/engine.h"
#include "engine_poll.h"
#include "qp/qp.h"
#include "queue/cq.h"
#include "report/report_command.h"
#include "report/write.h"

#define LINK_PERIOD_NS	      UINT64_C(10000000)
#define WATCH_PERIOD_NS	      UINT64_C(200000000)
#define LINK_PERIOD_KERNEL_NS UINT64_C(100000000) /* asking the kernel is a system call */
#define HASTEN_NS	      UINT64_C(100000000)

static void engine_fail_qp(struct qp *qp, void *arg)
{
	const struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	const struct engine *engine = arg;

	if (qp_home(qp) != engine->home)
		return;
	qp_modify(qp, &attr, IBV_QP_STATE, NULL);
	engine_mark_ready(arg, qp);
}

/* Return why a port is lost. */
static const char *engine_lost_why(const struct engine *engine)
{
	if (__atomic_load_n(&engine->lost_fds, __ATOMIC_RELAXED))
		return "this program has closed descriptors of the device";
	return engine->link->remote ? "uroced, which owns its port, has ended or has lost it"
				    : "its NIC or interface was removed";
}

/* Handle a port that is lost for ever: fail all queue pairs, so that no program waits for packets.
 */
static void engine_lose(struct engine *engine)
{
	__atomic_store_n(&engine->lost, true, __ATOMIC_RELAXED);
	if (engine_is_first(engine))
		__atomic_store_n(&engine->device->lost_why, engine_lost_why(engine),
				 __ATOMIC_RELEASE);
	if (engine_is_first(engine) && __atomic_load_n(&engine->lost_fds, __ATOMIC_RELAXED))
		log_error("this program has closed descriptors of '%s': the device is lost",
			  engine->device->config.name);
	else if (engine_is_first(engine) && !engine->link->remote)
		log_error("%s was removed: '%s' is lost", link_name(engine->link),
			  engine->device->config.name);
	/* No other engine may use its queue of a port that is closed. If one cannot be stopped, the
	 * process ends. */
	if (!engine_is_first(engine) || engines_stop_others(engine->engines))
		port_lose(&engine->link->port);
	if (engine_is_first(engine)) {
		engines_start_others(engine->engines);
		device_raise(engine->device, IBV_EVENT_DEVICE_FATAL);
	}
	device_each_qp(engine->device, engine_fail_qp, engine);
}

/* Return true if the program has closed our descriptors. A program that closes one of them closes
 * all. */
static bool engine_has_lost_fds(struct engine *engine)
{
	if (engine->canary_fd >= 0 && !own_is(engine->canary_fd))
		__atomic_store_n(&engine->lost_fds, true, __ATOMIC_RELAXED);
	return __atomic_load_n(&engine->lost_fds, __ATOMIC_RELAXED);
}

static void engine_hasten_qp(struct qp *qp, void *arg)
{
	struct engine *engine = arg;

	if (qp_home(qp) != engine->home)
		return;
	qp_hasten(qp, engine->now_ns);
	engine_mark_ready(engine, qp);
}

/* Let queue pairs send again what may be lost, if it is due. A connection that comes and goes must
 * not make them do so all the time. */
static void engine_hasten(struct engine *engine)
{
	if (engine->hastened_ns != 0 && engine->now_ns - engine->hastened_ns < HASTEN_NS)
		return;
	engine->hastens = false;
	engine->hastened_ns = engine->now_ns;
	device_each_qp(engine->device, engine_hasten_qp, engine);
}

/* Note if packets that are sent now can reach a receiver. */
static void engine_check_connected(struct engine *engine)
{
	const struct port *port = &engine->link->port;
	const bool now = port_connected(port);

	engine->hastens |=
		(now && !engine->tx.connected) || port->connections != engine->connections;
	engine->connections = port->connections;
	/* Another thread may read this at any time. */
	__atomic_store_n(&engine->tx.connected, now, __ATOMIC_RELAXED);
	if (unlikely(engine->hastens && now))
		engine_hasten(engine);
}

static int engine_check_other(struct engine *engine, void *arg)
{
	(void)arg;
	engine_check_connected(engine);
	return 0;
}

static int engine_give_back(struct engine *engine, void *arg)
{
	(void)arg;
	tx_give_back(&engine->tx);
	return 0;
}

static int engine_follow_port(struct engine *engine, void *arg)
{
	(void)arg;
	/* It may have another way to other hosts now. */
	engine_set_holds(engine);
	/* The port of an isolated program is not connected yet. */
	engine->hastens |= !port_has_conn(&engine->link->port);
	return 0;
}

/* Use what the next owner of the port has given. What the engines have not sent yet is lost, as
 * packets on a network are. */
static void engine_renew(struct engine *first)
{
	struct port *port = &first->link->port;

	if (engines_stop_others(first->engines)) {
		engine_give_back(first, NULL);
		(void)engines_each_other(first->engines, engine_give_back, NULL);
		if (port->ops->renew(port->ops_arg) == 0) {
			engine_follow_port(first, NULL);
			(void)engines_each_other(first->engines, engine_follow_port, NULL);
		}
		if (first->report)
			first->report->facts.owner_pid = share_owner_pid(first->link);
	}
	engines_start_others(first->engines);
}

/* Let the other engines look at the port. The program may use any of them as soon as it hears that
 * the link is up, which it may hear from the first engine's tx.connected, and an engine drops
 * packets while it does not know of that. So the first engine looks last. */
static void engine_check_others(struct engine *first)
{
	if (engines_stop_others(first->engines))
		(void)engines_each_other(first->engines, engine_check_other, NULL);
	engines_start_others(first->engines);
}

void engine_check_link(struct engine *engine)
{
	struct port *port = &engine->link->port;
	bool up;

	/* Ask the queue of a further engine, too: it may use the call to look after itself. */
	if (!engine->lost &&
	    unlikely(port_lost(port) || engines_lost_port(engine) || engine_has_lost_fds(engine)))
		engine_lose(engine);
	if (unlikely(port_returned(port)) && engine_is_first(engine) && !engine->lost)
		engine_renew(engine);
	if (engine_is_first(engine) && port_connected(port) != engine->tx.connected)
		engine_check_others(engine);
	engine_check_connected(engine);
	if (!engine_is_first(engine))
		return;
	up = port_link_up(port, engine->tx.connected);
	if (up == __atomic_load_n(&engine->device->link_up, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&engine->device->link_up, up, __ATOMIC_RELEASE);
	/* The owner of another process's port tells this once for all. */
	if (!engine->link->remote)
		log_info("%s: the link is %s", link_name(engine->link), up ? "up again" : "down");
	device_raise(engine->device, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

/* Send the due reports on our multicast groups. */
static void engine_report_groups(struct engine *engine)
{
	uint8_t frame[LINK_REPLY_MAX];
	size_t len;

	while ((len = link_report(engine->link, engine->now_ns, frame)) > 0)
		engine_send_frame(engine, frame, len);
}

/* Process what other programs do with our XRC domains. It may destroy queue pairs. */
static void engine_follow_xrc(struct engine *engine)
{
	if (likely(!xrc_share_is_due(engine->device)))
		return;
	if (engines_stop_others(engine->engines))
		xrc_share_follow(engine->device);
	engines_start_others(engine->engines);
}

/* Packets that congestion control held may be allowed now. */
static void run_changed(struct qp *qp, void *arg __rte_unused)
{
	engine_mark_ready(qp_home(qp)->driver, qp);
}

static int execute(struct engine *engine, const struct report_command *command)
{
	struct device *device = engine->device;

	switch (command->kind) {
	case REPORT_COMMAND_PARAM:
		return cc_param_set(&device->cc_params, command->index, command->value);
	case REPORT_COMMAND_ALGORITHM:
		return device_change_cc(device, command->value, (enum cc_kind)command->index,
					run_changed, NULL);
	case REPORT_COMMAND_LOG_LEVEL:
		return report_command_log_level(command);
	case REPORT_COMMAND_KINDS:
		break;
	}
	return -EINVAL;
}

/* Execute and answer the command of the report, if there is one. Another process wrote it, so each
 * value is checked. */
static void execute_command(struct engine *engine)
{
	struct report_command command;
	int rc;

	if (!engine->report || !report_command_take(engine->report, &command))
		return;
	engines_stop_others(engine->engines);
	rc = execute(engine, &command);
	engines_start_others(engine->engines);
	report_command_answer(engine->report, &command, rc);
}

static void watch_qp(struct qp *qp, void *arg)
{
	const struct engine *engine = arg;

	qp_watch(qp, engine->now_ns);
}

static void watch_cq_first(const struct device_object *object, void *arg)
{
	const struct engine *engine = arg;

	cq_watch_first(object->what, engine->now_ns);
}

static void watch_cq(const struct device_object *object, void *arg)
{
	const struct engine *engine = arg;

	cq_watch((struct cq *)(uintptr_t)object->what, QP_WATCH_NS, engine->now_ns);
}

/* Tell a user who wants reasons what waits in vain. */
static void engine_watch(struct engine *engine)
{
	if (engine->now_ns < engine->watch_due_ns)
		return;
	engine->watch_due_ns = engine->now_ns + WATCH_PERIOD_NS;
	if (engines_stop_others(engine->engines)) {
		device_each_qp(engine->device, watch_qp, engine);
		objects_each(engine->device, DEVICE_OBJECT_CQ, watch_cq_first, engine);
		objects_each(engine->device, DEVICE_OBJECT_CQ, watch_cq, engine);
	}
	engines_start_others(engine->engines);
}

/* Do what a device needs from time to time. */
static void engine_housekeeping_device(struct engine *engine)
{
	gids_follow(engine);
	engine_follow_xrc(engine);
	engine_report_groups(engine);
	publish_update(engine);
	execute_command(engine);
	if (unlikely(reason_wanted))
		engine_watch(engine);
	if (!engine->report || !report_is_wanted(engine->report))
		return;
	engines_stop_others(engine->engines);
	report_write_device(engine->report, engine->device);
	engines_start_others(engine->engines);
}

void engine_housekeeping(struct engine *engine)
{
	const int cancel_state = cancel_disable();

	engine->link_due_ns =
		engine->now_ns +
		(engine->link->port.through_kernel ? LINK_PERIOD_KERNEL_NS : LINK_PERIOD_NS);
	engine_check_link(engine);
	if (engine_is_first(engine))
		engine_housekeeping_device(engine);
	/* Install again: the program may have replaced signal handlers meanwhile. */
	guard_install();
	cancel_restore(cancel_state);
}
