/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* klink: an emulator of shared links between network namespaces; what its files share. */
#ifndef KLINK_H
#define KLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	MAX_DEVICES = 32,
	MAX_STAGES = 64,
	MAX_PATHS = 64,
	MAX_HOPS = 16,
	NAME_BYTES = 64,
	PACKET_BYTES = 1600, /* an IP packet of MTU 1500, and some room */
};

#define NEVER INT64_MAX

/* All times are CLOCK_MONOTONIC nanoseconds. */
struct packet {
	int64_t arrival_ns; /* at the stage it is in */
	int64_t start_ns;   /* head of that stage's queue: service begins, the wait ends */
	int64_t release_ns; /* leaves that stage, propagation included */
	struct packet *next;
	uint16_t bytes;
	uint8_t path;
	uint8_t hop; /* index into the path's stages */
	unsigned char data[PACKET_BYTES];
};

enum rate_kind { RATE_NONE, RATE_CONSTANT, RATE_TRACE, RATE_STEPS };

/* When the bytes at the head of the queue are through. Rates are known in advance and queues are
 * first-in first-out, so a packet's service can be worked out as it arrives. */
struct rate {
	enum rate_kind kind;
	double ns_per_byte;  /* constant */
	int64_t *times_ns;   /* trace: delivery opportunities; steps: beginnings; from 0 */
	double *steps_ns_per_byte; /* steps: 0 where the rate is 0 */
	size_t count;
	int64_t period_ns;   /* the file loops */
	uint64_t opportunity; /* trace: the next one, counted from t0 on */
	int64_t open_ns;     /* trace: time of the opportunity in use */
	uint32_t open_bytes; /* trace: what is left of it */
};

struct path_counters {
	uint64_t packets, bytes, drops, losses;
	int64_t queue_delay_ns;
};

/* A queue's own policy, if it has one. */
struct aqm {
	const struct aqm_policy *policy;
	void *memory;
	int64_t next_ns; /* end of the present interval */
	uint64_t accepted, out; /* packets that came in, and whose service had begun at its beginning */
	uint64_t decisions, drops;
	bool dropping;
};

struct stage {
	char name[NAME_BYTES];
	struct rate rate;
	int64_t delay_ns, jitter_ns;
	int64_t limit_bytes, limit_packets; /* -1: none */
	double loss;
	uint64_t random; /* splitmix64 state */
	struct aqm aqm;

	struct packet *head, *tail; /* waiting, in service or propagating, by release time */
	struct packet *waiting;     /* first that has not begun service; NULL: none waits */
	int64_t waiting_packets, waiting_bytes;
	int64_t free_ns;         /* the server is done with all it was given */
	int64_t last_release_ns; /* order is kept */

	uint64_t forwarded_packets, forwarded_bytes, queue_drops, random_losses;
	int64_t busy_ns;
	struct path_counters paths[MAX_PATHS];
};

struct device {
	char name[NAME_BYTES];
	int netns; /* index */
	int fd;
};

struct path {
	int from, to;        /* devices */
	uint32_t src, dst;   /* network order; 0: any */
	int stages[MAX_HOPS];
	int hops;
};

struct lab {
	struct {
		char name[NAME_BYTES];
		char file[256];
	} netns[MAX_DEVICES];
	struct device devices[MAX_DEVICES];
	struct stage stages[MAX_STAGES];
	struct path paths[MAX_PATHS];
	int netns_count, device_count, stage_count, path_count;
	int device_lines[MAX_DEVICES]; /* for messages */

	int64_t t0_ns, end_ns;
	uint64_t unmatched, write_errors;
};

/* config.c */
void config_read(struct lab *lab, const char *file);

/* rate.c */
void rate_read_trace(struct rate *rate, const char *file, const char *where);
void rate_read_steps(struct rate *rate, const char *file, const char *where);
int64_t rate_finish(struct rate *rate, int64_t t0_ns, int64_t start_ns, uint32_t bytes);

/* stage.c */
void stage_advance(struct stage *stage, int64_t now_ns);
bool stage_enter(struct lab *lab, int stage, struct packet *packet, int64_t now_ns);
struct packet *stage_leave(struct stage *stage);

/* aqm.c */
void aqm_open(struct aqm *aqm, const char *file, const char *where);
bool aqm_drops(struct stage *stage, int64_t t0_ns, int64_t now_ns);

/* tun.c */
void tun_open_all(struct lab *lab);

/* record.c */
enum { RECORD_DROP = 'D', RECORD_LOSS = 'L', RECORD_QUEUE = 'Q' };
void record_event(char kind, int64_t time_ns, int stage, int path, int bytes,
		  int64_t queue_packets, int64_t queue_bytes);
void record_lateness(int64_t lateness_ns);
void record_write_log(const struct lab *lab, const char *file);
void record_write_stats(const struct lab *lab, const char *file);

/* klink.c */
__attribute__((format(printf, 1, 2), noreturn)) void die(const char *format, ...);
void packet_free(struct packet *packet);

#endif
