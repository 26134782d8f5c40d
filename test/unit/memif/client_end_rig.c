/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's end of a memif connection, with our own server at the other end. */
#include "client_end_rig.h"

#include <string.h>
#include <unistd.h>

#include "test.h"

const struct memif_client_config ends_config = {.id = 7, .log2_size = LOG2, .buffer_bytes = BUFFER};

struct memif_message ends_hello(void)
{
	struct memif_server server;
	struct memif_message message;

	memif_server_init(&server, &memif_limits_user);
	memif_server_hello(&server, &message, "test");
	return message;
}

/* Pass the messages one after the other, as over their socket. */
static void connect_both(struct ends *ends)
{
	struct memif_message to_client = ends_hello(), to_server;
	int fd;

	while (memif_client_take(&ends->client, &to_client, &to_server, &fd) == 1) {
		if (to_server.type == MEMIF_INIT)
			assert_int_equal(to_server.init.id, 7);
		assert_int_equal(memif_server_take(&ends->server, &to_server, fd < 0 ? -1 : dup(fd),
						   &to_client),
				 0);
	}
	assert_int_equal(ends->client.end.state, MEMIF_STATE_CONNECTED);
	assert_int_equal(ends->server.end.state, MEMIF_STATE_CONNECTED);
	ends->to_server = ends->server.end.rx.memory;
	ends->to_client = ends->server.end.tx.memory;
}

int ends_set_up_with(void **state, const struct memif_client_config *with)
{
	struct ends *ends = test_calloc(1, sizeof(*ends));

	memif_client_init(&ends->client, with);
	memif_server_init(&ends->server, &memif_limits_user);
	connect_both(ends);
	*state = ends;
	return 0;
}

int ends_set_up(void **state)
{
	return ends_set_up_with(state, &ends_config);
}

int ends_tear_down(void **state)
{
	struct ends *ends = *state;

	memif_client_fini(&ends->client);
	memif_server_fini(&ends->server);
	test_free(ends);
	return 0;
}

void ends_connect_again(struct ends *ends)
{
	memif_client_fini(&ends->client);
	memif_server_fini(&ends->server);
	memif_client_init(&ends->client, &ends_config);
	memif_server_init(&ends->server, &memif_limits_user);
	connect_both(ends);
}

bool ends_copy(uint8_t *to, const uint8_t *from, size_t len)
{
	memcpy(to, from, len);
	return true;
}

void fill(uint8_t *bytes, uint8_t first, size_t len)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(first + i);
}

void expect_bytes(const uint8_t *bytes, uint8_t first, size_t len)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(bytes[i], (uint8_t)(first + i));
}

int client_receives(struct ends *ends, uint8_t *room)
{
	bool right;

	return memif_end_receive(&ends->client.end, room, ROOM, ends_copy, &right);
}

int peer_receives(struct ends *ends, uint8_t *room)
{
	bool right;

	return memif_end_receive(&ends->server.end, room, ROOM, ends_copy, &right);
}
