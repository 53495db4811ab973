/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* klink CONFIG --log FILE --stats FILE [--fifo PRIO] [--queue-sample-ms N]
 *
 * What CONFIG's values mean:
 *   loss       a fraction, 0 to 1, drawn for each packet before the queue
 *   queue_*    what may wait behind the packet in service, which doesn't count
 *   jitter_ms  up to this much is added to delay_ms, evenly drawn; a packet never overtakes one
 *   trace      bytes of 1500 at each of the file's milliseconds, shared by small packets, lost when
 *              nothing waits; steps: Mbps from each line's second on, the last step as long as the
 *              one before it; both begin at "ready" and loop
 * A packet waits (queue_delay_s) from its arrival until it is first in line.
 * klink ends when the thread that started it does, and then writes nothing.
 *
 * Forwards IPv4 packets between TUN devices of several network namespaces through stages of loss,
 * queue and delay. One thread, one ppoll() per wake-up. A stage knows each packet's times when it
 * arrives, and keeps order, so the next thing to happen is at the head of one of few lists. */
#include "klink.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* What is due this soon is released now: one wake-up less, and far below any delay of interest.
 * Sleeps end as much early, for waking up takes some 10 to 40 us itself. */
#define COALESCE_NS 20000
/* Packets read from one device before what is due is looked at again. */
#define READ_BATCH 64
#define PREALLOCATED_PACKETS 256

static struct lab lab;
static struct packet *free_packets;
static volatile sig_atomic_t stopping;
static int64_t sample_period_ns = 10000000, next_sample_ns;

void die(const char *format, ...)
{
	va_list arguments;

	fputs("klink: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static struct packet *packet_new(void)
{
	struct packet *packet = free_packets;

	if (packet) {
		free_packets = packet->next;
		return packet;
	}
	packet = malloc(sizeof(*packet));
	if (!packet)
		die("take a packet: out of memory");
	return packet;
}

void packet_free(struct packet *packet)
{
	packet->next = free_packets;
	free_packets = packet;
}

/* Logs the queues at every sampling time up to until_ns. Queues only shrink between events, at
 * times known in advance, so this can be made up for at the next event: no wake-up of its own. */
static void sample_queues(int64_t until_ns)
{
	while (next_sample_ns <= until_ns) {
		bool waits = false;

		for (int i = 0; i < lab.stage_count; i++) {
			struct stage *stage = &lab.stages[i];

			stage_advance(stage, next_sample_ns);
			if (!stage->waiting)
				continue;
			waits = true;
			record_event(RECORD_QUEUE, next_sample_ns, i, 0, 0, stage->waiting_packets,
				     stage->waiting_bytes);
		}
		next_sample_ns += sample_period_ns;
		if (!waits && next_sample_ns <= until_ns)
			next_sample_ns +=
				(until_ns - next_sample_ns) / sample_period_ns * sample_period_ns;
	}
}

/* Sends a packet into its next stages, until one holds it or it leaves through a device. */
static void forward(struct packet *packet, int64_t time_ns)
{
	const struct path *path = &lab.paths[packet->path];

	if (packet->hop < path->hops) {
		stage_enter(&lab, path->stages[packet->hop], packet, time_ns);
		return;
	}
	record_lateness(now_ns() - time_ns);
	if (write(lab.devices[path->to].fd, packet->data, packet->bytes) < 0)
		lab.write_errors++;
	packet_free(packet);
}

/* The stage whose head is due first; its time in *due_ns, NEVER where all are empty. */
static struct stage *next_stage(int64_t *due_ns)
{
	struct stage *first = NULL;

	*due_ns = NEVER;
	for (int i = 0; i < lab.stage_count; i++) {
		struct stage *stage = &lab.stages[i];

		if (stage->head && stage->head->release_ns < *due_ns) {
			*due_ns = stage->head->release_ns;
			first = stage;
		}
	}
	return first;
}

/* Does all that is due, in order of time; returns when the next thing is. */
static int64_t release_due(void)
{
	int64_t until_ns = now_ns() + COALESCE_NS, due_ns;

	for (;;) {
		struct stage *stage = next_stage(&due_ns);
		struct packet *packet;

		if (due_ns > until_ns) {
			until_ns = now_ns() + COALESCE_NS; /* time passed in the writes */
			if (due_ns > until_ns)
				return due_ns;
		}
		sample_queues(due_ns);
		packet = stage_leave(stage);
		packet->hop++;
		forward(packet, due_ns);
	}
}

/* The path of a packet read from a device, or -1. */
static int match(int device, const struct packet *packet)
{
	uint32_t src, dst;

	memcpy(&src, packet->data + 12, sizeof(src));
	memcpy(&dst, packet->data + 16, sizeof(dst));
	for (int i = 0; i < lab.path_count; i++) {
		const struct path *path = &lab.paths[i];

		if (path->from == device && (!path->src || path->src == src) &&
		    (!path->dst || path->dst == dst))
			return i;
	}
	return -1;
}

/* False where the device is gone. */
static bool read_device(int index)
{
	int fd = lab.devices[index].fd;
	int64_t arrival_ns = now_ns();

	sample_queues(arrival_ns);
	for (int i = 0; i < READ_BATCH; i++) {
		struct packet *packet = packet_new();
		ssize_t bytes = read(fd, packet->data, sizeof(packet->data));
		int path;

		if (bytes < 0) {
			packet_free(packet);
			return errno == EAGAIN || errno == EINTR;
		}
		if (bytes < 20 || packet->data[0] >> 4 != 4) {
			packet_free(packet);
			continue;
		}
		packet->bytes = (uint16_t)bytes;
		path = match(index, packet);
		if (path < 0) {
			lab.unmatched++;
			packet_free(packet);
			continue;
		}
		packet->path = (uint8_t)path;
		packet->hop = 0;
		forward(packet, arrival_ns);
	}
	return true;
}

static void run(const sigset_t *waiting_signals)
{
	struct pollfd polled[MAX_DEVICES];

	for (int i = 0; i < lab.device_count; i++)
		polled[i] = (struct pollfd){.fd = lab.devices[i].fd, .events = POLLIN};
	while (!stopping) {
		int64_t due_ns = release_due(), wait_ns;
		struct timespec timeout, *limit = NULL;
		int ready;

		if (due_ns != NEVER) {
			wait_ns = due_ns - COALESCE_NS - now_ns();
			if (wait_ns < 0)
				wait_ns = 0;
			timeout.tv_sec = wait_ns / 1000000000;
			timeout.tv_nsec = wait_ns % 1000000000;
			limit = &timeout;
		}
		ready = ppoll(polled, (nfds_t)lab.device_count, limit, waiting_signals);
		for (int i = 0; ready > 0 && i < lab.device_count; i++) {
			if (!polled[i].revents)
				continue;
			ready--;
			if (!read_device(i))
				polled[i].fd = -1; /* its namespace was deleted: look no more */
		}
	}
}

static void stop(int signal)
{
	(void)signal;
	stopping = 1;
}

/* SIGTERM and SIGINT come only while ppoll() waits. */
static sigset_t catch_signals(void)
{
	struct sigaction action = {.sa_handler = stop};
	sigset_t blocked, before;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGINT);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	sigdelset(&before, SIGTERM);
	sigdelset(&before, SIGINT);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	return before;
}

static void go_realtime(int priority)
{
	struct sched_param parameters = {.sched_priority = priority};

	if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
		die("lock memory: %s", strerror(errno));
	if (sched_setscheduler(0, SCHED_FIFO, &parameters) < 0)
		die("take SCHED_FIFO priority %d: %s", priority, strerror(errno));
}

/* Ends with the process that started it, even one that was killed. Unlike a signal's end this
 * writes no files: what is next at the same place may have begun. */
static void end_with_parent(void)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		die("ask to end with the parent: %s", strerror(errno));
}

/* A parent that was gone before end_with_parent() shows here: nobody reads. */
static void say_ready(void)
{
	if (puts("ready") < 0 || fflush(stdout) == EOF)
		die("say ready on stdout: %s", strerror(errno));
}

static int option_number(const char *name, const char *value, long low, long high)
{
	char *end;
	long parsed = strtol(value, &end, 10);

	if (end == value || *end || parsed < low || parsed > high)
		die("--%s %s is not a whole number from %ld to %ld", name, value, low, high);
	return (int)parsed;
}

int main(int count, char **arguments)
{
	static const struct option options[] = {
		{"log", required_argument, NULL, 'l'},
		{"stats", required_argument, NULL, 's'},
		{"fifo", required_argument, NULL, 'f'},
		{"queue-sample-ms", required_argument, NULL, 'q'},
		{0},
	};
	const char *log = NULL, *stats = NULL;
	int option, priority = 0;
	sigset_t waiting_signals;

	while ((option = getopt_long(count, arguments, "", options, NULL)) != -1) {
		switch (option) {
		case 'l':
			log = optarg;
			break;
		case 's':
			stats = optarg;
			break;
		case 'f':
			priority = option_number("fifo", optarg, 1, 99);
			break;
		case 'q':
			sample_period_ns =
				option_number("queue-sample-ms", optarg, 1, 60000) * 1000000LL;
			break;
		default:
			return 2;
		}
	}
	if (optind + 1 != count || !log || !stats) {
		fputs("usage: klink CONFIG --log FILE --stats FILE [--fifo PRIO] "
		      "[--queue-sample-ms N]\n", stderr);
		return 2;
	}
	end_with_parent();
	config_read(&lab, arguments[optind]);
	waiting_signals = catch_signals();
	tun_open_all(&lab);
	prctl(PR_SET_TIMERSLACK, 1UL); /* for those who run without --fifo */
	if (priority)
		go_realtime(priority);
	for (int i = 0; i < PREALLOCATED_PACKETS; i++) {
		struct packet *packet = malloc(sizeof(*packet));

		if (!packet)
			die("take packets: out of memory");
		packet_free(packet);
	}
	lab.t0_ns = now_ns();
	next_sample_ns = lab.t0_ns + sample_period_ns;
	say_ready();
	run(&waiting_signals);
	lab.end_ns = now_ns();
	sample_queues(lab.end_ns);
	record_write_log(&lab, log);
	record_write_stats(&lab, stats);
	return 0;
}
