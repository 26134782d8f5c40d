/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine on the fake's port, and two queue pairs. */
#include "rig.h"

bool have_port;
struct engine *engine;
struct qp qp, other;
const uint8_t peer_mac[6] = {2, 0, 0, 0, 0, 0x99};
const struct engine_ops *const ops = &engine_ops_pmd;

int rig_group_set_up(void **state)
{
	(void)state;
	have_port = fake_start();
	return 0;
}

int rig_begin(enum settings_progress progress)
{
	if (!have_port)
		return 0;
	engine = fake_engine(progress);
	fake_qp_init(&qp, peer_mac);
	fake_qp_init(&other, peer_mac);
	return engine ? 0 : -1;
}

int rig_set_up(void **state)
{
	(void)state;
	return rig_begin(SETTINGS_PROGRESS_INLINE);
}

int rig_tear_down(void **state)
{
	(void)state;
	if (have_port)
		fake_engine_end(engine);
	return 0;
}

uint64_t rig_count(enum counter counter)
{
	return counters_get(&engine->device->counters, counter);
}
