/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings of a user. They come from a command line and an INI file, and go to the program's
 * process in environment variables. */
#ifndef CONFIG_SETTINGS_H
#define CONFIG_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SETTINGS_IPS_MAX	  16
#define SETTINGS_PORTS_MAX	  16 /* of one uroced */
#define SETTINGS_DEFAULT_FILE	  "/etc/uroce/uroce.conf"
#define SETTINGS_DEFAULT_SOCKET	  "/run/uroce/uroced.sock"
#define SETTINGS_DEFAULT_ISOLATED "/run/uroce/isolated.sock"
#define SETTINGS_DEFAULT_NAME	  "uroce0"
#define SETTINGS_DEFAULT_PREFIX	  "uroced"
#define SETTINGS_QP_MAX		  8192 /* of a process that attaches: what its numbers are enough for */
/* Packet buffers of a process: less would be too few for what one port and its own queues hold. */
#define SETTINGS_BUFFERS_MIN 768
#define SETTINGS_BUFFERS_MAX 1536
#define SETTINGS_SOCKET_MAX  108 /* with its end: what the kernel takes */

enum settings_progress {
	SETTINGS_PROGRESS_HYBRID, /* the default */
	SETTINGS_PROGRESS_INLINE,
	SETTINGS_PROGRESS_DEDICATED,
};

/* How packets go from a process of uroced's to another. */
enum settings_hand_over {
	SETTINGS_HAND_OVER_DIRECT,  /* the default: past uroced, without ICRC */
	SETTINGS_HAND_OVER_CHECKED, /* past uroced; the ICRC is made and verified */
	SETTINGS_HAND_OVER_OWNER,   /* through uroced; the ICRC is made and verified */
};

/* Packets that dpdk-dumpcap may capture at uroced. */
enum settings_capture {
	SETTINGS_CAPTURE_NO,
	SETTINGS_CAPTURE_PORT, /* what comes and goes through ports */
	SETTINGS_CAPTURE_ALL,  /* and what goes from process to process */
};

struct settings_ip {
	uint8_t gid[16];    /* ::ffff:a.b.c.d for IPv4 */
	uint8_t prefix_len; /* of the address as written: 24 in 10.0.0.1/24 */
	int16_t vlan;	    /* 802.1Q VLAN id, 5 in 10.0.0.1/24@5; -1: untagged */
};

struct settings {
	char netdev[64]; /* a kernel interface, or "" */
	char port[512];	 /* DPDK device arguments, or ""; at most one of the two is set */
	char kernel[16]; /* uroced: an interface of the kernel's, whose end of the port it is and
			    whose addresses are used; or "" */
	char socket[SETTINGS_SOCKET_MAX]; /* uroced's: to attach to, where no port is set; to listen
					     on */
	char socket_owner[64]; /* user who may attach, by name or number; "": the user of uroced */
	char socket_group[64];
	uint32_t socket_mode;
	char isolated[SETTINGS_SOCKET_MAX]; /* the same for programs that are not trusted with
					       shared memory; "": none */
	uint32_t isolated_mode;
	enum settings_hand_over hand_over; /* uroced's */
	struct settings_ip ips[SETTINGS_IPS_MAX];
	size_t ip_count;
	uint32_t secondary; /* our number among the processes of the DPDK primary that has the port;
			       0: it is ours */
	char name[64];	    /* "uroce0" */
	uint32_t mtu; /* bytes of IP packet the port is told to carry; 0: as the port has it */
	enum settings_progress progress;
	int log_level;	      /* enum log_level */
	bool telemetry;	      /* programs with a port of their own: DPDK's telemetry socket */
	uint32_t max_qp;      /* uroced: of a process; 0: as many as there are */
	uint32_t max_buffers; /* uroced: of packets, that a process holds; 0: as many as there may
				 be */
	uint64_t max_memory;  /* uroced: bytes that a process registers; 0: no limit */
	enum settings_capture capture; /* uroced's */
	char file_prefix[32]; /* of DPDK's files, as telemetry's socket; "": uroced's or DPDK's
				 default */
	char without[256];    /* optimisations to do without (base/tuning.h), or "" */
};

/** The defaults. Functions on one struct settings are not MT-safe unless they say so. */
void settings_init(struct settings *settings);

/**
 * Set one thing by its name ("netdev", "port", "socket", "socket-owner", "socket-group",
 * "socket-mode", "isolated", "isolated-mode", "hand-over", "ip", "name", "mtu", "progress",
 * "log-level", "telemetry", "file-prefix", "max-qp", "max-memory", "max-buffers", "capture",
 * "without", "secondary", "kernel"), as the command line and the file both do. "ip" may be set
 * several times.
 *
 * @param error
 *   On failure one line that says what is wrong with the value and what would be right.
 * @return
 *   0, or -EINVAL, -ENOENT for an unknown name.
 */
int settings_set(struct settings *settings, const char *name, const char *value, char *error,
		 size_t error_size);

/** Write a setting as settings_set takes it; "" where it is not set. 0, -ENOENT for an unknown
 * name, -ENOSPC. MT-safe. */
int settings_get(const struct settings *settings, const char *name, char *value, size_t value_size);

/** Read section [uroce] of an INI file (rte_cfgfile); sections [port NAME] are passed over. 0, or
 * -errno with `error`. */
int settings_read_file(struct settings *settings, const char *path, char *error, size_t error_size);

/**
 * Read the sections [port NAME] of an INI file: each is a port of uroced's, with the device's name,
 * and all else as `common` has it.
 *
 * @return
 *   How many there are, or -errno with `error`; -ENOSPC for more than `max`.
 */
int settings_read_ports(const struct settings *common, const char *path, struct settings *ports,
			size_t max, char *error, size_t error_size);

/** Check what belongs together: one of netdev, port and socket, ip with port and only with it.
 * MT-safe. 0 or -EINVAL with `error`. */
int settings_check(const struct settings *settings, char *error, size_t error_size);

/** Put them in this process's environment for the program that is executed next. Not MT-safe. 0 or
 * -ENOMEM. */
int settings_export(const struct settings *settings);

/** Read them from the environment, and check them. 0; -ENOENT where there are none; -EINVAL with
 * `error`. */
int settings_import(struct settings *settings, char *error, size_t error_size);

#endif
