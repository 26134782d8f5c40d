/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection manager of a device in operation: sent and received MADs, timers, events. */
#include "cm/agent.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>

#include "agent_parts.h"
#include "device/limits.h"

#define END_BATCH 256u

static struct agent *agent_of_sink(struct cm_sink *sink)
{
	return container_of(sink, struct agent, sink);
}

/* Queue a MAD for sending. Without memory it is lost, as networks lose MADs: the timers repeat it.
 */
static void queue_mad(struct cm_sink *sink, const struct gsi_address *to, const uint8_t *mad)
{
	outbox_push(&agent_of_sink(sink)->outbox, to, mad);
}

static void tell_events(struct agent *agent, uint64_t now_ns)
{
	struct cm_event event;

	while (cm_next_event(agent->cm, &event))
		agent->notify.event(&event, now_ns);
}

/* Tell events now, or leave them to gsi_tell. */
static void tell_or_leave(struct agent *agent, uint64_t now_ns)
{
	if (agent->device->gsi_holds)
		agent->device->gsi_untold = true;
	else
		tell_events(agent, now_ns);
}

static void agent_receive(void *user, const struct gsi_address *from, const uint8_t *mad,
			  size_t len, uint64_t now_ns)
{
	struct agent *agent = user;

	cm_receive(agent->cm, mad, len, from, now_ns);
	tell_or_leave(agent, now_ns);
}

static void agent_tell(void *user, uint64_t now_ns)
{
	tell_events(user, now_ns);
}

/* Send as many MADs as the sink takes. */
static unsigned int send_mads(struct agent *agent, struct packet_sink *sink)
{
	const struct outbox_mad *mad;
	unsigned int sent = 0;

	while ((mad = outbox_first(&agent->outbox)) != NULL) {
		/* Wait only for room in the sink. Drop a MAD that cannot be sent for another
		 * reason. */
		if (gsi_send(agent->device, &mad->to, mad->bytes, sink) == -EAGAIN)
			break;
		outbox_pop(&agent->outbox);
		sent++;
	}
	return sent;
}

static unsigned int agent_run(void *user, uint64_t now_ns, struct packet_sink *sink)
{
	struct agent *agent = user;
	unsigned int work = 0;

	if (cm_deadline_ns(agent->cm) <= now_ns) {
		cm_expire(agent->cm, now_ns);
		tell_or_leave(agent, now_ns);
		work++;
	}
	work += queries_run(agent, now_ns);
	work += send_mads(agent, sink);
	return work;
}

static uint64_t agent_deadline_ns(void *user)
{
	const struct agent *agent = user;

	if (outbox_first(&agent->outbox))
		return 0;
	return RTE_MIN(cm_deadline_ns(agent->cm), queries_deadline_ns(agent));
}

/* Tell peers that connections end. They would otherwise wait for answers, or not notice the end.
 * End a batch at a time, so that the MADs of a batch need not wait for many others. */
static unsigned int agent_end(void *user, uint64_t now_ns)
{
	struct agent *agent = user;

	return cm_abandon(agent->cm, END_BATCH, now_ns);
}

static void agent_device_event(void *user, enum ibv_event_type type)
{
	struct agent *agent = user;
	const struct agent_notify *notify = &agent->notify;

	if (type == IBV_EVENT_DEVICE_FATAL && notify->lost)
		notify->lost(agent, device_engine_now(device_first(agent->device)));
	else if (type == IBV_EVENT_GID_CHANGE && notify->addresses)
		notify->addresses(agent);
}

static void agent_each_conn(void *user, gsi_tell_conn *tell, void *arg)
{
	const struct agent *agent = user;

	cm_each(agent->cm, tell, arg);
}

static const struct gsi_ops agent_gsi_ops = {
	.receive = agent_receive,
	.run = agent_run,
	.tell = agent_tell,
	.deadline_ns = agent_deadline_ns,
	.end = agent_end,
	.device_event = agent_device_event,
	.each_conn = agent_each_conn,
};

const struct cm_ports_ops *agent_ports(const struct agent *agent, void **user)
{
	*user = agent->device->cm_ports_user;
	return agent->device->cm_ports ? agent->device->cm_ports : &cm_ports_local;
}

static int make(struct device *device, const struct agent_notify *notify, struct agent **out)
{
	struct agent *agent = calloc(1, sizeof(*agent));
	struct cm_config config = {
		.ca_guid = rte_be_to_cpu_64(device->node_guid_be),
		.ack_delay = DEVICE_LOCAL_ACK_DELAY,
	};
	void *ports_user;
	int rc;

	if (!agent)
		return -ENOMEM;
	agent->device = device;
	agent->notify = *notify;
	agent->sink.send = queue_mad;
	LIST_INIT(&agent->queries);
	agent->look_ns = UINT64_MAX;
	config.sink = &agent->sink;
	rc = agent_ports(agent, &ports_user)->ids(ports_user, &config.id_mask, &config.id_value);
	if (rc == 0)
		rc = cm_create(&config, &agent->cm);
	if (rc != 0)
		free(agent);
	else
		*out = agent;
	return rc;
}

static void destroy(struct agent *agent)
{
	cm_destroy(agent->cm);
	outbox_fini(&agent->outbox);
	free(agent);
}

int agent_get(struct device *device, const struct agent_notify *notify, struct agent **agent)
{
	struct agent *made;
	int rc = make(device, notify, &made);

	if (rc != 0)
		return rc;
	device_lock(device);
	if (!device->gsi) {
		device->gsi_user = made;
		device->gsi = &agent_gsi_ops;
		*agent = made;
		made = NULL;
	} else if (device->gsi == &agent_gsi_ops) {
		*agent = device->gsi_user;
	} else {
		rc = -EBUSY;
	}
	device_unlock(device);
	/* The device has an agent already, or another receiver. */
	if (made)
		destroy(made);
	return rc;
}

void agent_destroy(struct agent *agent)
{
	struct device *device = agent->device;

	device_lock(device);
	device->gsi = NULL;
	device->gsi_user = NULL;
	device_unlock(device);
	destroy(agent);
}

struct cm *agent_enter(struct agent *agent, uint64_t *now_ns)
{
	struct device *device = agent->device;

	device_lock(device);
	*now_ns = device_engine_now(device_first(device));
	return agent->cm;
}

void agent_leave(struct agent *agent)
{
	struct device *device = agent->device;

	tell_events(agent, device_engine_now(device_first(device)));
	device_unlock(device);
}

void agent_wait(struct agent *agent)
{
	device_engine_wait(device_first(agent->device));
}
