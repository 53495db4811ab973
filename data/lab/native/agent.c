/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* agent --netns INUM --port PORT --decisions MAP_ID [--wifi 0|1|-1] --out FILE [--samples FILE]:
 * shared-bottleneck detection beside a running sender. Events of probe.bpf.c become the model's features and class;
 * both go into the map "decisions" of the model's congestion control, whose own answer is read
 * back. FILE gets a line of JSON for each verdict, and a last one that sums up.
 *
 * Compiled for one model, whose headers name everything after it (data/lab/agent.py):
 * -DMODEL=x -DSBD_H='"x_sbd.h"' -DCC_H='"x_cc.h"'. */
#include "agent.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <bpf/bpf.h>

#include "probe.h"
#include "probe.skel.h"

#define LOOK_EVERY_MS 5

static volatile sig_atomic_t stopping;

void die(const char *format, ...)
{
	va_list arguments;

	fputs("agent: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

__u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (__u64)now.tv_sec * 1000000000 + (__u64)now.tv_nsec;
}

static double cpu_s(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void write_summary(const struct agent *agent, __u64 lost, double cpu, double wall)
{
	const struct {
		const char *name;
		__u64 value;
	} counts[] = {
		{"events", agent->events},
		{"lost", lost},
		{"late", agent->late},
		{"verdicts", agent->verdicts},
		{"answers", agent->answers},
		{"mismatches", agent->mismatches},
		{"features_ns", agent->features_ns},
		{"classify_ns", agent->classify_ns},
		{"state_bytes", state_bytes},
	};

	fputs("{\"end\": true, ", agent->out);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		fprintf(agent->out, "\"%s\": %" PRIu64 ", ", counts[i].name,
			(uint64_t)counts[i].value);
	fprintf(agent->out, "\"cpu_s\": %.6f, \"wall_s\": %.6f}\n", cpu, wall);
}

static void run(struct agent *agent, struct probe_bpf *skeleton)
{
	const struct timespec pause = {.tv_nsec = LOOK_EVERY_MS * 1000000};
	struct ring_buffer *ring =
		ring_buffer__new(bpf_map__fd(skeleton->maps.events), agent_event, agent, NULL);
	double cpu_before_s = cpu_s();
	__u64 begin_ns = now_ns();

	if (!ring)
		die("open the ring buffer: %s", strerror(errno));
	puts("ready");
	fflush(stdout);
	while (!stopping) {
		nanosleep(&pause, NULL);
		ring_buffer__consume(ring);
		agent_read_answers(agent);
	}
	probe_bpf__detach(skeleton);
	ring_buffer__consume(ring);
	agent_finish(agent);
	write_summary(agent, skeleton->bss->lost, cpu_s() - cpu_before_s,
		      (double)(now_ns() - begin_ns) / 1e9);
	ring_buffer__free(ring);
}

static void stop(int signal)
{
	(void)signal;
	stopping = 1;
}

static long option_number(const char *name, const char *value, long low, long high)
{
	char *end;
	long parsed = strtol(value, &end, 10);

	if (end == value || *end || parsed < low || parsed > high)
		die("--%s %s is not a whole number from %ld to %ld", name, value, low, high);
	return parsed;
}

static int open_decisions(long id)
{
	struct bpf_map_info info = {0};
	__u32 bytes = sizeof(info);
	int fd = bpf_map_get_fd_by_id((__u32)id);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &bytes))
		die("open map %ld: %s", id, strerror(errno));
	if (info.key_size != sizeof(__u32) || info.value_size != decision_bytes)
		die("map %ld holds other values than this model's: load its congestion control",
		    id);
	return fd;
}

static struct probe_bpf *load_probe(__u32 netns, __u16 port)
{
	struct probe_bpf *skeleton = probe_bpf__open();
	int error;

	if (!skeleton)
		die("open the BPF object: %s", strerror(errno));
	skeleton->rodata->wanted_netns = netns;
	skeleton->rodata->wanted_port = port;
	skeleton->rodata->senders_only = true;
	error = probe_bpf__load(skeleton);
	if (error)
		die("load the BPF programs: %s", strerror(-error));
	error = probe_bpf__attach(skeleton);
	if (error)
		die("attach the BPF programs: %s", strerror(-error));
	return skeleton;
}

static FILE *create(const char *file)
{
	FILE *made = fopen(file, "we");

	if (!made)
		die("create %s: %s", file, strerror(errno));
	return made;
}

static void finish(FILE *made, const char *file)
{
	int failed = ferror(made);

	if (fclose(made) || failed)
		die("write %s: %s", file, strerror(errno));
}

int main(int count, char **arguments)
{
	static const struct option options[] = {
		{"netns", required_argument, NULL, 'n'},
		{"port", required_argument, NULL, 'p'},
		{"decisions", required_argument, NULL, 'd'},
		{"wifi", required_argument, NULL, 'w'},
		{"out", required_argument, NULL, 'o'},
		{"samples", required_argument, NULL, 's'},
		{0},
	};
	struct agent agent = {.decisions = -1, .wifi = -1};
	long netns = 0, port = 0, map = 0;
	struct probe_bpf *skeleton;
	const char *file = NULL, *samples = NULL;
	int option;

	while ((option = getopt_long(count, arguments, "", options, NULL)) != -1) {
		switch (option) {
		case 'n':
			netns = option_number("netns", optarg, 1, 0xffffffffL);
			break;
		case 'p':
			port = option_number("port", optarg, 1, 65535);
			break;
		case 'd':
			map = option_number("decisions", optarg, 1, 0x7fffffffL);
			break;
		case 'w':
			agent.wifi = (int)option_number("wifi", optarg, -1, 1);
			break;
		case 'o':
			file = optarg;
			break;
		case 's':
			samples = optarg;
			break;
		default:
			return 2;
		}
	}
	if (optind != count || !netns || !port || !map || !file) {
		fputs("usage: agent --netns INUM --port PORT --decisions MAP_ID [--wifi 0|1|-1] "
		      "--out FILE [--samples FILE]\n", stderr);
		return 2;
	}
	agent.decisions = open_decisions(map);
	agent.out = create(file);
	agent.samples = samples ? create(samples) : NULL;
	signal(SIGTERM, stop);
	signal(SIGINT, stop);
	skeleton = load_probe((__u32)netns, (__u16)port);
	run(&agent, skeleton);
	probe_bpf__destroy(skeleton);
	finish(agent.out, file);
	if (agent.samples)
		finish(agent.samples, samples);
	return 0;
}
