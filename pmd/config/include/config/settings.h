/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings of a user. They come from a command line and an INI file, and go to the program's
 * process in environment variables. */
#ifndef CONFIG_SETTINGS_H
#define CONFIG_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SETTINGS_ENGINES_MAX	  16 /* of a device */
#define SETTINGS_ENGINES_AUTO	  UINT32_MAX
#define SETTINGS_IPS_MAX	  16
#define SETTINGS_ROUTES_MAX	  16
#define SETTINGS_PORTS_MAX	  16 /* of one uroced */
#define SETTINGS_EAL_WORDS_MAX	  32
#define SETTINGS_DEFAULT_FILE	  "/etc/uroce/uroce.conf"
#define SETTINGS_DEFAULT_SOCKET	  "/run/uroce/uroced.sock"
#define SETTINGS_DEFAULT_ISOLATED "/run/uroce/isolated.sock"
#define SETTINGS_DEFAULT_METRICS  "/run/uroce/metrics.sock"
#define SETTINGS_DEFAULT_NAME	  "uroce0"
#define SETTINGS_DEFAULT_PREFIX	  "uroced"
#define SETTINGS_QP_MAX		  8192 /* of an attached process, which has as many numbers */
/* Packet buffers of a process. Fewer than the minimum are too few for one port and the process's
 * own queues. */
#define SETTINGS_BUFFERS_MIN 768
#define SETTINGS_BUFFERS_MAX 1536
#define SETTINGS_PATH_MAX    256
#define SETTINGS_SOCKET_MAX  108 /* including the final zero: the kernel's limit */

enum settings_progress {
	SETTINGS_PROGRESS_HYBRID, /* the default */
	SETTINGS_PROGRESS_INLINE,
	SETTINGS_PROGRESS_DEDICATED,
};

/* The way of packets between two processes of uroced. */
enum settings_hand_over {
	SETTINGS_HAND_OVER_DIRECT,  /* the default: not through uroced, without ICRC */
	SETTINGS_HAND_OVER_CHECKED, /* not through uroced; the ICRC is computed and verified */
	SETTINGS_HAND_OVER_OWNER,   /* through uroced; the ICRC is computed and verified */
};

/* The way of packets between an attached process and uroced's kernel interface. */
enum settings_uplink {
	SETTINGS_UPLINK_SOCKET, /* the default: each process has a packet socket, if it can */
	SETTINGS_UPLINK_RING,	/* through uroced */
};

/* Selective acknowledgements, with peers that are uroce. */
enum settings_sack {
	SETTINGS_SACK_AUTO, /* the default: with those that have introduced themselves */
	SETTINGS_SACK_YES,  /* also before that */
	SETTINGS_SACK_NO,
};

/* How long packets are stored in memory that another CPU reads (base/meter.h). */
enum settings_stores {
	SETTINGS_STORES_AUTO, /* the default: each end of a memif measures */
	SETTINGS_STORES_ROUND,
	SETTINGS_STORES_PAST_CACHES,
};

/* Packets that dpdk-dumpcap may capture at uroced. */
enum settings_capture {
	SETTINGS_CAPTURE_NO,
	SETTINGS_CAPTURE_PORT, /* packets received and sent by ports */
	SETTINGS_CAPTURE_ALL,  /* also packets between processes */
};

/* How uroce-run shows the device in /sys/class/infiniband and /dev/infiniband. */
enum settings_view {
	SETTINGS_VIEW_YES, /* the default: by the first way that is allowed here, if one is */
	SETTINGS_VIEW_NO,
	SETTINGS_VIEW_MOUNT,   /* by a mount namespace */
	SETTINGS_VIEW_PRELOAD, /* by a preloaded library */
};

/* How a program is told of its mistakes that do no harm here and now (check/finding.h). */
enum settings_check {
	SETTINGS_CHECK_NO, /* the default */
	SETTINGS_CHECK_YES,
	SETTINGS_CHECK_ERROR, /* it ends with CHECK_STATUS, too */
};

struct settings_ip {
	uint8_t gid[16];    /* ::ffff:a.b.c.d for IPv4 */
	uint8_t prefix_len; /* of the address as written: 24 in 10.0.0.1/24 */
	int16_t vlan;	    /* 802.1Q VLAN id, 5 in 10.0.0.1/24@5; -1: untagged */
};

/* A route of a port whose addresses are ours. */
struct settings_route {
	uint8_t prefix[16];  /* as a GID */
	uint8_t prefix_len;  /* as written: 16 in 10.2.0.0/16; 0: the gateway of all else */
	uint8_t gateway[16]; /* of the same IP version */
};

struct settings {
	char netdev[64];  /* a kernel interface, or "" */
	bool udp;	  /* its packets pass through a UDP socket */
	char port[512];	  /* DPDK device arguments, or ""; at most one of the two is set */
	char impair[256]; /* damage that the port does to packets (config/impair.h), or "" */
	char kernel[16];  /* uroced: the kernel interface at the port's kernel end, whose addresses
			     are used; or "" */
	char socket[SETTINGS_SOCKET_MAX]; /* uroced's socket: programs without a port attach to it;
					     uroced listens on it */
	char socket_owner[64]; /* user who may attach, by name or number; "": the user of uroced */
	char socket_group[64];
	uint32_t socket_mode;
	char isolated[SETTINGS_SOCKET_MAX]; /* the socket for untrusted programs, which share no
					       memory; "": none */
	uint32_t isolated_mode;
	char metrics[SETTINGS_SOCKET_MAX]; /* uroced: the socket that answers Prometheus; "": none
					    */
	enum settings_hand_over hand_over; /* uroced's */
	enum settings_uplink uplink;	   /* uroced's */
	struct settings_ip ips[SETTINGS_IPS_MAX];
	size_t ip_count;
	struct settings_route routes[SETTINGS_ROUTES_MAX];
	size_t route_count;
	uint32_t secondary; /* our number among the processes of the DPDK primary that owns the
			       port; 0: the port is ours */
	char name[64];	    /* "uroce0" */
	char cc[8];	    /* congestion control: "none", "dcqcn" or "swift"; "": the default */
	uint32_t mtu; /* largest IP packet that the port must carry, in bytes; 0: the port's own MTU
		       */
	uint32_t engines; /* SETTINGS_ENGINES_AUTO: one for each CPU; 0: one */
	enum settings_progress progress;
	enum settings_view view; /* uroce-run's */
	int log_level;		 /* enum log_level */
	bool explain;		 /* uroce-run: say why calls and queue pairs fail */
	char inject[512]; /* uroce-run: faults that a user asks for (inject/inject.h), or "" */
	char like[16];	  /* uroce-run: the device that ours resembles (like/like.h), or "" */
	char unfold[24];  /* uroce-run: the seed of what the specification leaves open, or "" */
	enum settings_check check;		/* uroce-run */
	char check_suppress[SETTINGS_PATH_MAX]; /* uroce-run: a file of what it does not tell, or
						   "" */
	bool telemetry;		 /* programs with a port of their own: DPDK's telemetry socket */
	enum settings_sack sack; /* uroce-run */
	uint32_t max_qp;	 /* uroced: limit per process; 0: as many as there are */
	uint32_t max_buffers; /* uroced: packet buffers that a process may hold; 0: the maximum */
	uint64_t max_memory;  /* uroced: bytes that a process may register; 0: no limit */
	enum settings_capture capture; /* uroced's */
	char file_prefix[32]; /* of DPDK's files, such as telemetry's socket; "": the default of
				 uroced or DPDK */
	enum settings_stores stores; /* uroce-run */
	char eal[512];		     /* further options of EAL, separated by blanks, or "" */
	char without[256]; /* optimisations that are switched off (base/tuning.h), or "" */
};

/** Set the defaults. Functions on one struct settings are not MT-safe unless they say so. */
void settings_init(struct settings *settings);

/**
 * Set one setting by its name ("netdev", "udp", "port", "impair", "socket", "socket-owner",
 * "socket-group", "socket-mode", "isolated", "isolated-mode", "metrics", "hand-over", "ip", "name",
 * "mtu", "engines", "progress", "log-level", "explain", "inject", "like", "unfold", "check",
 * "check-suppress", "telemetry", "file-prefix", "max-qp", "max-memory", "max-buffers", "capture",
 * "cc", "sack", "stores", "without", "secondary", "kernel", "view", "uplink", "gateway", "route",
 * "eal"). The command line and the file both use it. "ip", "gateway" and "route" may be set several
 * times. "netdev" and "port" also take "impair,ARGS,next=PORT", which sets "impair" too.
 *
 * @param error
 *   On failure: one line that says what is wrong with the value and what would be right.
 * @return
 *   0, or -EINVAL, -ENOENT for an unknown name.
 */
int settings_set(struct settings *settings, const char *name, const char *value, char *error,
		 size_t error_size);

/** Read the value of "unfold": a seed, or the first and the last one as in 1..500. MT-safe. 0 or
 * -EINVAL. */
int settings_read_seeds(const char *text, uint32_t *first, uint32_t *last);

/** Write a setting in the form that settings_set accepts; "" if it is not set. 0, -ENOENT for an
 * unknown name, -ENOSPC. MT-safe. */
int settings_get(const struct settings *settings, const char *name, char *value, size_t value_size);

/** Read section [uroce] of an INI file (rte_cfgfile); sections [port NAME] are skipped. 0, or
 * -errno with `error`. */
int settings_read_file(struct settings *settings, const char *path, char *error, size_t error_size);

/**
 * Read the sections [port NAME] of an INI file. Each is a port of uroced and has the device's name;
 * all other settings are those of `common`.
 *
 * @return
 *   Their number, or -errno with `error`; -ENOSPC if there are more than `max`.
 */
int settings_read_ports(const struct settings *common, const char *path, struct settings *ports,
			size_t max, char *error, size_t error_size);

/** Check that the settings are consistent: one of netdev, port and socket is set, and ip is set
 * exactly with port. MT-safe. 0 or -EINVAL with `error`. */
int settings_check(const struct settings *settings, char *error, size_t error_size);

/** Put the settings in this process's environment, for the program that is executed next. Not
 * MT-safe. 0 or -ENOMEM. */
int settings_export(const struct settings *settings);

/** Read the settings from the environment, and check them. 0; -ENOENT if there are none; -EINVAL
 * with `error`. */
int settings_import(struct settings *settings, char *error, size_t error_size);

#define TENANT_SETTINGS_MAX	   64 /* of one uroced */
#define TENANT_WEIGHT_MAX	   1000
#define TENANT_RATE_MIN		   UINT64_C(1000000)
#define TENANT_RATE_MAX		   UINT64_C(1000000000000)
#define TENANT_CONNECTION_RATE_MAX 1000000

enum tenant_kind {
	TENANT_USER,	 /* the isolated programs of a user */
	TENANT_OTHERS,	 /* those of each user or container without settings of its own */
	TENANT_ATTACHED, /* all attached programs */
};

struct tenant_settings {
	enum tenant_kind kind;
	char user[64];		  /* TENANT_USER: by name or number */
	uint32_t weight;	  /* 0: one */
	uint64_t rate;		  /* bytes a second; 0: no limit */
	uint32_t max_qp;	  /* queue pairs of all its programs on a port; 0: no limit */
	uint32_t connection_rate; /* requests for connections a second; 0: no limit */
};

/**
 * Read the sections [tenant USER], [tenants] and [attached] of an INI file.
 *
 * @return
 *   Their number, or -errno with `error`; -ENOSPC if there are more than `max`.
 */
int tenant_read_file(const char *path, struct tenant_settings *tenants, size_t max, char *error,
		     size_t error_size);

#endif
