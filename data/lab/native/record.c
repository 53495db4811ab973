/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What klink keeps while it runs and writes when it ends. Nothing touches a file before that:
 * a blocked write would delay packets. */
#include "klink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_RECORDS = 1024, LATENESS_LIMIT_US = 100000 };

struct record {
	int64_t time_ns;
	int32_t queue_packets;
	uint16_t bytes;
	uint8_t stage, path;
	int64_t queue_bytes;
	char kind;
};

struct chunk {
	struct chunk *next;
	int count;
	struct record records[CHUNK_RECORDS];
};

static struct chunk *first_chunk, *last_chunk;
static uint32_t lateness_us[LATENESS_LIMIT_US + 1]; /* the last bucket: all that is longer */
static uint64_t lateness_count;
static int64_t lateness_max_ns;

void record_event(char kind, int64_t time_ns, int stage, int path, int bytes,
		  int64_t queue_packets, int64_t queue_bytes)
{
	if (!last_chunk || last_chunk->count == CHUNK_RECORDS) {
		struct chunk *chunk = malloc(sizeof(*chunk));

		if (!chunk)
			die("keep the log: out of memory");
		chunk->next = NULL;
		chunk->count = 0;
		if (last_chunk)
			last_chunk->next = chunk;
		else
			first_chunk = chunk;
		last_chunk = chunk;
	}
	last_chunk->records[last_chunk->count++] = (struct record){
		.time_ns = time_ns,
		.queue_packets = (int32_t)queue_packets,
		.bytes = (uint16_t)bytes,
		.stage = (uint8_t)stage,
		.path = (uint8_t)path,
		.queue_bytes = queue_bytes,
		.kind = kind,
	};
}

void record_lateness(int64_t lateness_ns)
{
	int64_t us;

	if (lateness_ns < 0) /* released early, with its neighbours */
		lateness_ns = 0;
	us = lateness_ns / 1000;
	lateness_us[us < LATENESS_LIMIT_US ? us : LATENESS_LIMIT_US]++;
	lateness_count++;
	if (lateness_ns > lateness_max_ns)
		lateness_max_ns = lateness_ns;
}

static double lateness_quantile_us(double quantile)
{
	uint64_t wanted = (uint64_t)(quantile * (double)lateness_count), seen = 0;

	for (int us = 0; us < LATENESS_LIMIT_US; us++) {
		seen += lateness_us[us];
		if (seen > wanted)
			return us + 0.5;
	}
	return (double)lateness_max_ns / 1e3;
}

static FILE *begin(const char *file, char *part, size_t size)
{
	FILE *out;

	snprintf(part, size, "%s.part", file);
	out = fopen(part, "we");
	if (!out)
		die("create %s: %s", part, strerror(errno));
	return out;
}

static void finish(FILE *out, const char *part, const char *file)
{
	bool failed = ferror(out);

	if (fclose(out) || failed)
		die("write %s: %s", part, strerror(errno));
	if (rename(part, file))
		die("rename %s to %s: %s", part, file, strerror(errno));
}

void record_write_log(const struct lab *lab, const char *file)
{
	char part[4096];
	FILE *out = begin(file, part, sizeof(part));

	fprintf(out, "#t0_mono_ns=%lld\n", (long long)lab->t0_ns);
	for (const struct chunk *chunk = first_chunk; chunk; chunk = chunk->next) {
		for (int i = 0; i < chunk->count; i++) {
			const struct record *record = &chunk->records[i];
			int64_t time_us = (record->time_ns - lab->t0_ns) / 1000;

			fprintf(out, "%c,%lld.%06lld,%s", record->kind,
				(long long)(time_us / 1000000), (long long)(time_us % 1000000),
				lab->stages[record->stage].name);
			if (record->kind != RECORD_QUEUE)
				fprintf(out, ",%d,%d", record->path, record->bytes);
			if (record->kind != RECORD_LOSS)
				fprintf(out, ",%d,%lld", record->queue_packets,
					(long long)record->queue_bytes);
			fputc('\n', out);
		}
	}
	finish(out, part, file);
}

static void write_stage(FILE *out, const struct lab *lab, const struct stage *stage)
{
	const char *comma = "";

	fprintf(out,
		"    \"%s\": {\"forwarded_packets\": %llu, \"forwarded_bytes\": %llu, "
		"\"queue_drops\": %llu, \"random_losses\": %llu, \"busy_s\": %.6f, "
		"\"policy_decisions\": %llu, \"policy_drops\": %llu, \"paths\": {",
		stage->name, (unsigned long long)stage->forwarded_packets,
		(unsigned long long)stage->forwarded_bytes, (unsigned long long)stage->queue_drops,
		(unsigned long long)stage->random_losses, (double)stage->busy_ns / 1e9,
		(unsigned long long)stage->aqm.decisions, (unsigned long long)stage->aqm.drops);
	for (int i = 0; i < lab->path_count; i++) {
		const struct path_counters *counters = &stage->paths[i];
		bool through = false;

		for (int hop = 0; hop < lab->paths[i].hops; hop++)
			through |= &lab->stages[lab->paths[i].stages[hop]] == stage;
		if (!through)
			continue;
		fprintf(out,
			"%s\"%d\": {\"packets\": %llu, \"bytes\": %llu, \"drops\": %llu, "
			"\"losses\": %llu, \"queue_delay_s\": %.6f}",
			comma, i, (unsigned long long)counters->packets,
			(unsigned long long)counters->bytes, (unsigned long long)counters->drops,
			(unsigned long long)counters->losses,
			(double)counters->queue_delay_ns / 1e9);
		comma = ", ";
	}
	fputs("}}", out);
}

static void write_address(FILE *out, const char *key, uint32_t address)
{
	char text[INET_ADDRSTRLEN];

	if (address)
		fprintf(out, ", \"%s\": \"%s\"", key,
			inet_ntop(AF_INET, &address, text, sizeof(text)));
	else
		fprintf(out, ", \"%s\": null", key);
}

/* As CONFIG writes it: with its namespace only where the name alone is ambiguous. */
static void write_device(FILE *out, const struct lab *lab, const char *key, int index)
{
	const struct device *device = &lab->devices[index];
	bool ambiguous = false;

	for (int i = 0; i < lab->device_count; i++)
		ambiguous |= i != index && !strcmp(lab->devices[i].name, device->name);
	fprintf(out, "\"%s\": \"%s%s%s\"", key, ambiguous ? lab->netns[device->netns].name : "",
		ambiguous ? ":" : "", device->name);
}

static void write_path(FILE *out, const struct lab *lab, const struct path *path)
{
	fputs("    {", out);
	write_device(out, lab, "from", path->from);
	fputs(", ", out);
	write_device(out, lab, "to", path->to);
	write_address(out, "src", path->src);
	write_address(out, "dst", path->dst);
	fputs(", \"stages\": [", out);
	for (int hop = 0; hop < path->hops; hop++)
		fprintf(out, "%s\"%s\"", hop ? ", " : "", lab->stages[path->stages[hop]].name);
	fputs("]}", out);
}

void record_write_stats(const struct lab *lab, const char *file)
{
	char part[4096];
	FILE *out = begin(file, part, sizeof(part));

	fprintf(out,
		"{\n  \"duration_s\": %.6f,\n  \"unmatched\": %llu,\n  \"write_errors\": %llu,\n"
		"  \"lateness_us\": {\"p50\": %.1f, \"p99\": %.1f, \"max\": %.1f, \"count\": %llu},\n"
		"  \"stages\": {\n",
		(double)(lab->end_ns - lab->t0_ns) / 1e9, (unsigned long long)lab->unmatched,
		(unsigned long long)lab->write_errors, lateness_quantile_us(0.5),
		lateness_quantile_us(0.99), (double)lateness_max_ns / 1e3,
		(unsigned long long)lateness_count);
	for (int i = 0; i < lab->stage_count; i++) {
		write_stage(out, lab, &lab->stages[i]);
		fputs(i + 1 < lab->stage_count ? ",\n" : "\n", out);
	}
	fputs("  },\n  \"paths\": [\n", out);
	for (int i = 0; i < lab->path_count; i++) {
		write_path(out, lab, &lab->paths[i]);
		fputs(i + 1 < lab->path_count ? ",\n" : "\n", out);
	}
	fputs("  ]\n}\n", out);
	finish(out, part, file);
}
