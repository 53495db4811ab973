/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* probe --netns INUM --port PORT [--sender] --out FILE: the events of probe.bpf.c as CSV. */
#include <errno.h>
#include <getopt.h>
#include <linux/types.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "probe.h"
#include "probe.skel.h"

#define LOOK_EVERY_MS 50
#define OUT_BUFFER_BYTES (1 << 20)
#define HEADER                                                                                     \
	"ts,ev,cookie,token,netns,sfid,sport,dport,ca_state,arg,ack_seq,snd_una,snd_nxt,"          \
	"data_len,cwnd,ssthresh,srtt_us,rtt_us,min_rtt_us,delivered,lost,retrans_out,"             \
	"sacked_out,packets_out,total_retrans\n"

static const char *const kind_names[] = {
	[EVENT_PROBE] = "probe",
	[EVENT_STATE] = "state",
	[EVENT_RETRANSMIT] = "rtx",
};

static volatile sig_atomic_t stopping;

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
	va_list arguments;

	fputs("probe: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

/* printf would take most of the probe's time: 25 columns an event. */
static char *put_number(char *to, __u64 value)
{
	char digits[20];
	int count = 0;

	do
		digits[count++] = (char)('0' + value % 10);
	while (value /= 10);
	while (count)
		*to++ = digits[--count];
	return to;
}

static char *put_hex(char *to, __u64 value, int least_digits)
{
	int shift = 60;

	while (shift > 0 && shift >= 4 * least_digits && !(value >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		*to++ = "0123456789abcdef"[value >> shift & 15];
	return to;
}

static char *put_time(char *to, __u64 ns)
{
	__u64 fraction = ns % 1000000000, unit = 100000000;

	to = put_number(to, ns / 1000000000);
	*to++ = '.';
	for (; unit; unit /= 10)
		*to++ = (char)('0' + fraction / unit % 10);
	return to;
}

static int write_event(void *out, void *data, size_t size)
{
	const struct event *event = data;
	const __u32 columns[] = {
		event->netns, event->sfid, event->sport, event->dport, event->ca_state, event->arg,
		event->ack_seq, event->snd_una, event->snd_nxt, event->data_len, event->cwnd,
		event->ssthresh, event->srtt_us, event->rtt_us, event->min_rtt_us,
		event->delivered, event->lost, event->retrans_out, event->sacked_out,
		event->packets_out, event->total_retrans,
	};
	char line[512], *to = line;

	(void)size;
	to = put_time(to, event->ts_ns);
	*to++ = ',';
	to = stpcpy(to, kind_names[event->kind]);
	*to++ = ',';
	to = put_hex(to, event->cookie, 1);
	*to++ = ',';
	to = put_hex(to, event->token, 8);
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		*to++ = ',';
		to = put_number(to, columns[i]);
	}
	*to++ = '\n';
	fwrite_unlocked(line, 1, (size_t)(to - line), out);
	return 0;
}

static void stop(int signal)
{
	(void)signal;
	stopping = 1;
}

static unsigned long option_number(const char *name, const char *value, unsigned long high)
{
	char *end;
	unsigned long parsed = strtoul(value, &end, 10);

	if (end == value || *end || *value == '-' || !parsed || parsed > high)
		die("--%s %s is not a whole number from 1 to %lu", name, value, high);
	return parsed;
}

static void run(struct probe_bpf *skeleton, FILE *out)
{
	const struct timespec pause = {.tv_nsec = LOOK_EVERY_MS * 1000000};
	struct ring_buffer *ring =
		ring_buffer__new(bpf_map__fd(skeleton->maps.events), write_event, out, NULL);

	if (!ring)
		die("open the ring buffer: %s", strerror(errno));
	puts("ready");
	fflush(stdout);
	while (!stopping) {
		nanosleep(&pause, NULL);
		ring_buffer__consume(ring);
	}
	probe_bpf__detach(skeleton);
	ring_buffer__consume(ring);
	ring_buffer__free(ring);
}

int main(int count, char **arguments)
{
	static const struct option options[] = {
		{"netns", required_argument, NULL, 'n'},
		{"port", required_argument, NULL, 'p'},
		{"sender", no_argument, NULL, 's'},
		{"out", required_argument, NULL, 'o'},
		{0},
	};
	const char *file = NULL;
	char part[4096];
	unsigned long netns = 0, port = 0;
	bool sender = false, failed;
	struct probe_bpf *skeleton;
	FILE *out;
	int option, error;

	while ((option = getopt_long(count, arguments, "", options, NULL)) != -1) {
		switch (option) {
		case 'n':
			netns = option_number("netns", optarg, 0xffffffffUL);
			break;
		case 'p':
			port = option_number("port", optarg, 65535);
			break;
		case 's':
			sender = true;
			break;
		case 'o':
			file = optarg;
			break;
		default:
			return 2;
		}
	}
	if (optind != count || !netns || !port || !file) {
		fputs("usage: probe --netns INUM --port PORT [--sender] --out FILE\n", stderr);
		return 2;
	}
	skeleton = probe_bpf__open();
	if (!skeleton)
		die("open the BPF object: %s", strerror(errno));
	skeleton->rodata->wanted_netns = (__u32)netns;
	skeleton->rodata->wanted_port = (__u16)port;
	skeleton->rodata->senders_only = sender;
	error = probe_bpf__load(skeleton);
	if (error)
		die("load the BPF programs: %s", strerror(-error));
	snprintf(part, sizeof(part), "%s.part", file);
	out = fopen(part, "we");
	if (!out)
		die("create %s: %s", part, strerror(errno));
	setvbuf(out, NULL, _IOFBF, OUT_BUFFER_BYTES);
	fputs(HEADER, out);
	signal(SIGTERM, stop);
	signal(SIGINT, stop);
	error = probe_bpf__attach(skeleton);
	if (error)
		die("attach the BPF programs: %s", strerror(-error));
	run(skeleton, out);
	fprintf(out, "#lost=%llu\n", (unsigned long long)skeleton->bss->lost);
	probe_bpf__destroy(skeleton);
	failed = ferror(out);
	if (fclose(out) || failed)
		die("write %s: %s", part, strerror(errno));
	if (rename(part, file))
		die("rename %s to %s: %s", part, file, strerror(errno));
	return 0;
}
