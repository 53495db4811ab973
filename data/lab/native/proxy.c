/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* proxy --flows ID --events ID --settings ID --schema HEX --out FILE
 *       [--engine PATH|HOST:PORT] [--behind-ms MS] [--netns INUM] [--fifo PRIO]
 *
 * Stands between the clients in the kernel (follow.bpf.c) and a decision engine (tcco.txt section
 * III.C.1): sums up every interval's ACKs of all flows, hands them to the engine, and writes the
 * windows that come back into the flows' places. An engine that is gone is looked for again ten
 * times a second; its answers to what was asked before are forgotten. Without --engine it only
 * notes what happens. --behind-ms lets answers count so much later, as those of an engine that far
 * away would come. */
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "proxy.h"

#define LOOK_FOR_ENGINE_NS 100000000
#define MOST_WAITING 64 /* answers, of an engine far away */
#define SEQUENCE_MASK ((1U << FOLLOW_SEQUENCE_BITS) - 1)

static volatile sig_atomic_t stopping;
static struct follow_flow *flows;
static struct follow_settings settings;
static struct tick waiting[MOST_WAITING];
static __u64 first_waiting, asked, answered, behind_ns;
static __u64 asked_ns[MOST_WAITING], event_ns[MOST_WAITING], tick_at[MOST_WAITING];
static int engine = -1;
static FILE *out;

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
	va_list arguments;

	fputs("proxy: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

static __u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (__u64)now.tv_sec * 1000000000 + (__u64)now.tv_nsec;
}

static void stop(int signal)
{
	(void)signal;
	stopping = 1;
}

static int open_map(__u32 id, const char *what)
{
	int fd = bpf_map_get_fd_by_id(id);

	if (fd < 0)
		die("open the map of %s (%u): %s", what, id, strerror(errno));
	return fd;
}

static void read_schema(const char *hex, __u8 schema[32])
{
	if (strlen(hex) != 64)
		die("--schema %s: 64 hexadecimal digits are needed", hex);
	for (int i = 0; i < 32; i++) {
		unsigned int byte;

		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			die("--schema %s: 64 hexadecimal digits are needed", hex);
		schema[i] = (__u8)byte;
	}
}

static bool all_bytes(int fd, void *data, size_t bytes, bool sending)
{
	char *at = data;

	while (bytes) {
		ssize_t n = sending ? send(fd, at, bytes, MSG_NOSIGNAL) : recv(fd, at, bytes, 0);

		if (n < 0 && errno == EINTR && !stopping)
			continue;
		if (n <= 0)
			return false;
		at += n;
		bytes -= (size_t)n;
	}
	return true;
}

static int dial(const char *where)
{
	const char *colon = strrchr(where, ':');
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
	struct sockaddr_un local = {.sun_family = AF_UNIX};
	char host[256];
	int fd, one = 1;

	if (!colon) {
		if (strlen(where) >= sizeof(local.sun_path))
			die("--engine %s: too long for a socket's path", where);
		memcpy(local.sun_path, where, strlen(where) + 1);
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, (struct sockaddr *)&local, sizeof(local)) == 0)
			return fd;
	} else {
		snprintf(host, sizeof(host), "%.*s", (int)(colon - where), where);
		if (getaddrinfo(host, colon + 1, &hints, &found))
			return -1;
		fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0)
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0) {
			freeaddrinfo(found);
			return fd;
		}
		freeaddrinfo(found);
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

/* An engine that never answers must not keep the proxy from its ticks. */
static void bound_waits(int fd)
{
	struct timeval limit = {.tv_usec = 200000};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

static void look_for_engine(const char *where)
{
	struct proxy_hello mine = {.magic = PROXY_MAGIC,
				   .interval_us = (__u32)(settings.interval_ns / 1000)}, other;

	memcpy(mine.schema, settings.schema, sizeof(mine.schema));
	engine = dial(where);
	if (engine < 0)
		return;
	bound_waits(engine);
	if (all_bytes(engine, &mine, sizeof(mine), true) &&
	    all_bytes(engine, &other, sizeof(other), false) && other.magic == PROXY_MAGIC) {
		if (memcmp(other.schema, settings.schema, sizeof(other.schema)))
			die("the engine's policy observes something else than this control reports "
			    "(schema hash differs): export the policy again");
		fprintf(out, "C,%llu\n", (unsigned long long)now_ns());
		first_waiting = answered = asked;
		return;
	}
	close(engine);
	engine = -1;
}

static void lose_engine(void)
{
	fprintf(out, "L,%llu\n", (unsigned long long)now_ns());
	close(engine);
	engine = -1;
	first_waiting = answered = asked;
}

static void ask(__u64 tick_ns)
{
	static struct {
		struct proxy_header header;
		struct proxy_report reports[FOLLOW_FLOWS];
	} message;
	__u64 newest;
	__u32 count = tick_reports(message.reports, &newest);

	if (engine < 0 || !count)
		return;
	if (asked - answered >= MOST_WAITING)
		return; /* it is that late: it will be asked again when it has answered */
	asked++;
	tick_at[asked % MOST_WAITING] = tick_ns;
	event_ns[asked % MOST_WAITING] = newest;
	asked_ns[asked % MOST_WAITING] = now_ns();
	message.header = (struct proxy_header){PROXY_MAGIC, count, asked, asked_ns[asked % MOST_WAITING]};
	if (!all_bytes(engine, &message, sizeof(message.header) + count * sizeof(message.reports[0]),
		       true))
		lose_engine();
}

static void hear(void)
{
	struct proxy_header header;
	struct tick *tick;

	if (!all_bytes(engine, &header, sizeof(header), false) || header.magic != PROXY_MAGIC ||
	    header.count > FOLLOW_FLOWS) {
		lose_engine();
		return;
	}
	tick = &waiting[header.sequence % MOST_WAITING];
	if (!all_bytes(engine, tick->windows, header.count * sizeof(tick->windows[0]), false)) {
		lose_engine();
		return;
	}
	if (header.sequence <= answered || header.sequence > asked)
		return; /* of before the engine was lost */
	tick->sequence = answered = header.sequence;
	tick->count = header.count;
	tick->tick_ns = tick_at[header.sequence % MOST_WAITING];
	tick->event_ns = event_ns[header.sequence % MOST_WAITING];
	tick->sent_ns = asked_ns[header.sequence % MOST_WAITING];
	tick->answered_ns = now_ns();
}

/* Answers take effect when they are due; returns when the next one is, 0 for none. */
static __u64 order_due(void)
{
	while (first_waiting < answered) {
		struct tick *tick = &waiting[(first_waiting + 1) % MOST_WAITING];

		if (tick->sequence != first_waiting + 1) {
			first_waiting++; /* never answered */
			continue;
		}
		if (tick->answered_ns + behind_ns > now_ns())
			return tick->answered_ns + behind_ns;
		first_waiting++;
		if (now_ns() - tick->tick_ns > settings.late_ns + behind_ns) {
			/* What was seen so long ago is no ground to act on. */
			fprintf(out, "S,%llu\n", (unsigned long long)tick->sequence);
			continue;
		}
		for (__u32 i = 0; i < tick->count; i++) {
			const struct proxy_window *window = &tick->windows[i];

			if (window->slot < FOLLOW_FLOWS)
				__atomic_store_n(&flows[window->slot].order,
						 follow_order((__u32)tick->sequence & SEQUENCE_MASK,
							      window->generation, window->target),
						 __ATOMIC_RELEASE);
		}
		tick_write(tick, now_ns());
	}
	return 0;
}

static void run(struct ring_buffer *ring, const char *where)
{
	__u64 next_ns = now_ns() + settings.interval_ns, look_ns = 0;

	while (!stopping) {
		struct pollfd polled = {.fd = engine, .events = POLLIN};
		__u64 due_ns = order_due(), now = now_ns(), until = next_ns;
		struct timespec timeout;

		if (due_ns && due_ns < until)
			until = due_ns;
		until = until > now ? until - now : 0;
		timeout.tv_sec = (time_t)(until / 1000000000);
		timeout.tv_nsec = (long)(until % 1000000000);
		if (ppoll(&polled, 1, &timeout, NULL) > 0 && polled.revents && engine >= 0)
			hear();
		now = now_ns();
		if (where && engine < 0 && now >= look_ns) {
			look_for_engine(where);
			look_ns = now + LOOK_FOR_ENGINE_NS;
		}
		if (now < next_ns)
			continue;
		ring_buffer__consume(ring);
		ask(next_ns);
		next_ns += settings.interval_ns;
		if (next_ns < now) /* kept from running: these intervals are one */
			next_ns = now + settings.interval_ns;
	}
	ring_buffer__consume(ring);
}

static unsigned long number(const char *name, const char *value, unsigned long low, unsigned long high)
{
	char *end;
	unsigned long parsed = strtoul(value, &end, 10);

	if (end == value || *end || *value == '-' || parsed < low || parsed > high)
		die("--%s %s is not a whole number from %lu to %lu", name, value, low, high);
	return parsed;
}

int main(int count, char **arguments)
{
	static const struct option options[] = {
		{"flows", required_argument, NULL, 'f'},  {"events", required_argument, NULL, 'e'},
		{"settings", required_argument, NULL, 's'}, {"schema", required_argument, NULL, 'h'},
		{"engine", required_argument, NULL, 'g'}, {"behind-ms", required_argument, NULL, 'b'},
		{"netns", required_argument, NULL, 'n'},  {"out", required_argument, NULL, 'o'},
		{"fifo", required_argument, NULL, 'p'},   {0},
	};
	unsigned long flows_id = 0, events_id = 0, settings_id = 0, netns = 0, fifo = 0;
	const char *hex = NULL, *where = NULL, *file = NULL;
	struct sigaction action = {.sa_handler = stop};
	struct ring_buffer *ring;
	struct bpf_map_info about = {0};
	__u32 zero = 0, about_bytes = sizeof(about);
	__u8 schema[32];
	int option, fd;

	while ((option = getopt_long(count, arguments, "", options, NULL)) != -1) {
		switch (option) {
		case 'f': flows_id = number("flows", optarg, 1, 0xffffffff); break;
		case 'e': events_id = number("events", optarg, 1, 0xffffffff); break;
		case 's': settings_id = number("settings", optarg, 1, 0xffffffff); break;
		case 'h': hex = optarg; break;
		case 'g': where = optarg; break;
		case 'b': behind_ns = number("behind-ms", optarg, 0, 60000) * 1000000; break;
		case 'n': netns = number("netns", optarg, 1, 0xffffffff); break;
		case 'o': file = optarg; break;
		case 'p': fifo = number("fifo", optarg, 1, 99); break;
		default: return 2;
		}
	}
	if (optind != count || !flows_id || !events_id || !settings_id || !hex || !file) {
		fputs("usage: proxy --flows ID --events ID --settings ID --schema HEX --out FILE "
		      "[--engine PATH|HOST:PORT] [--behind-ms MS] [--netns INUM] [--fifo PRIO]\n", stderr);
		return 2;
	}
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
		die("ask to end with the parent: %s", strerror(errno));
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	read_schema(hex, schema);
	fd = open_map((__u32)settings_id, "settings");
	if (bpf_obj_get_info_by_fd(fd, &about, &about_bytes) || about.value_size != sizeof(settings))
		die("map %lu holds no settings of this proxy's control", settings_id);
	if (bpf_map_lookup_elem(fd, &zero, &settings))
		die("read the control's settings: %s", strerror(errno));
	if (memcmp(settings.schema, schema, sizeof(schema)))
		die("the control was loaded for another schema of observations (hash differs): "
		    "load it for this policy");
	fd = open_map((__u32)flows_id, "flows");
	flows = mmap(NULL, FOLLOW_FLOWS * sizeof(*flows), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (flows == MAP_FAILED)
		die("map the flows: %s", strerror(errno));
	out = fopen(file, "we");
	if (!out)
		die("create %s: %s", file, strerror(errno));
	setvbuf(out, NULL, _IOFBF, 1 << 20);
	tick_begin(flows, netns, out);
	ring = ring_buffer__new(open_map((__u32)events_id, "events"), tick_event, NULL, NULL);
	if (!ring)
		die("open the ring buffer: %s", strerror(errno));
	prctl(PR_SET_TIMERSLACK, 1UL);
	if (fifo) {
		struct sched_param parameters = {.sched_priority = (int)fifo};

		if (mlockall(MCL_CURRENT) < 0 || sched_setscheduler(0, SCHED_FIFO, &parameters) < 0)
			die("take SCHED_FIFO priority %lu: %s", fifo, strerror(errno));
	}
	if (where)
		look_for_engine(where);
	puts("ready");
	fflush(stdout);
	run(ring, where);
	if (fclose(out))
		die("write %s: %s", file, strerror(errno));
	return 0;
}
