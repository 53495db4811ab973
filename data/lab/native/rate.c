/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* How fast a stage serves: constant, mahimahi trace, or steps. */
#include "klink.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that one delivery opportunity of a mahimahi trace carries. */
#define OPPORTUNITY_BYTES 1500

/* Calls add(rate, line) for each line that is neither empty nor a comment. */
static void read_lines(struct rate *rate, const char *file, const char *where,
		       bool (*add)(struct rate *rate, const char *line))
{
	char line[256];
	int number = 0;
	FILE *in = fopen(file, "re");

	if (!in)
		die("%s: open %s: %s", where, file, strerror(errno));
	while (fgets(line, sizeof(line), in)) {
		const char *text = line;

		number++;
		while (isspace((unsigned char)*text))
			text++;
		if (!*text || *text == '#')
			continue;
		if ((rate->count & (rate->count - 1)) == 0) { /* full at each power of two */
			size_t room = rate->count ? 2 * rate->count : 1;

			rate->times_ns = realloc(rate->times_ns, room * sizeof(int64_t));
			rate->steps_ns_per_byte =
				realloc(rate->steps_ns_per_byte, room * sizeof(double));
			if (!rate->times_ns || !rate->steps_ns_per_byte)
				die("%s: read %s: out of memory", where, file);
		}
		if (!add(rate, text))
			die("%s: %s line %d: bad or out of order: %s", where, file, number,
			    strtok(line, "\r\n"));
		rate->count++;
	}
	fclose(in);
	if (!rate->count)
		die("%s: %s has no lines", where, file);
}

static bool add_opportunity(struct rate *rate, const char *line)
{
	char *end;
	long long time_ms = strtoll(line, &end, 10);

	if (end == line || time_ms < 0 || time_ms > 1000000000 ||
	    (*end && !isspace((unsigned char)*end)))
		return false;
	rate->times_ns[rate->count] = time_ms * 1000000;
	return !rate->count || rate->times_ns[rate->count] >= rate->times_ns[rate->count - 1];
}

void rate_read_trace(struct rate *rate, const char *file, const char *where)
{
	rate->kind = RATE_TRACE;
	read_lines(rate, file, where, add_opportunity);
	/* As mahimahi does: the last time stamp is the trace's length. */
	rate->period_ns = rate->times_ns[rate->count - 1];
	if (!rate->period_ns)
		die("%s: trace %s ends at 0 ms", where, file);
}

static bool add_step(struct rate *rate, const char *line)
{
	double time_s, mbps;

	if (sscanf(line, "%lf%*[ \t,]%lf", &time_s, &mbps) != 2 || !(mbps >= 0 && mbps <= 1e5) ||
	    !(time_s >= 0 && time_s <= 1e6))
		return false;
	rate->times_ns[rate->count] = (int64_t)(time_s * 1e9);
	rate->steps_ns_per_byte[rate->count] = mbps > 0 ? 8e3 / mbps : 0;
	return !rate->count || rate->times_ns[rate->count] > rate->times_ns[rate->count - 1];
}

void rate_read_steps(struct rate *rate, const char *file, const char *where)
{
	int64_t first;
	bool moves = false;

	rate->kind = RATE_STEPS;
	read_lines(rate, file, where, add_step);
	first = rate->times_ns[0];
	for (size_t i = 0; i < rate->count; i++) {
		rate->times_ns[i] -= first;
		moves |= rate->steps_ns_per_byte[i] > 0;
	}
	if (!moves)
		die("%s: steps %s never leave 0 Mbps", where, file);
	/* The last step lasts as long as the one before it. */
	rate->period_ns = rate->count == 1 ? 1000000000
					   : 2 * rate->times_ns[rate->count - 1] -
						     rate->times_ns[rate->count - 2];
}

/* First index whose time is >= at_ns; count where there is none. */
static size_t first_at_or_after(const struct rate *rate, int64_t at_ns)
{
	size_t low = 0, high = rate->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (rate->times_ns[middle] < at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int64_t opportunity_ns(const struct rate *rate, int64_t t0_ns)
{
	return t0_ns + (int64_t)(rate->opportunity / rate->count) * rate->period_ns +
	       rate->times_ns[rate->opportunity % rate->count];
}

/* Several small packets share one opportunity, a packet may need two; what nobody waits for
 * when an opportunity comes is lost. */
static int64_t trace_finish(struct rate *rate, int64_t t0_ns, int64_t start_ns, uint32_t bytes)
{
	if (start_ns > rate->open_ns)
		rate->open_bytes = 0;
	while (bytes > rate->open_bytes) {
		bytes -= rate->open_bytes;
		rate->open_ns = opportunity_ns(rate, t0_ns);
		if (rate->open_ns < start_ns) {
			uint64_t cycle = (uint64_t)((start_ns - t0_ns) / rate->period_ns);
			int64_t base_ns = t0_ns + (int64_t)cycle * rate->period_ns;

			rate->opportunity = cycle * rate->count +
					    first_at_or_after(rate, start_ns - base_ns);
			rate->open_ns = opportunity_ns(rate, t0_ns);
		}
		rate->opportunity++;
		rate->open_bytes = OPPORTUNITY_BYTES;
	}
	rate->open_bytes -= bytes;
	return rate->open_ns;
}

static int64_t steps_finish(const struct rate *rate, int64_t t0_ns, int64_t start_ns, double bytes)
{
	int64_t cycle_ns = (start_ns - t0_ns) / rate->period_ns * rate->period_ns;
	int64_t now_ns = start_ns - t0_ns - cycle_ns;
	size_t step = first_at_or_after(rate, now_ns + 1) - 1;

	for (;;) {
		int64_t end_ns =
			step + 1 < rate->count ? rate->times_ns[step + 1] : rate->period_ns;
		double ns_per_byte = rate->steps_ns_per_byte[step];
		double room = ns_per_byte > 0 ? (double)(end_ns - now_ns) / ns_per_byte : 0;

		if (room >= bytes && ns_per_byte > 0)
			return t0_ns + cycle_ns + now_ns + (int64_t)(bytes * ns_per_byte);
		bytes -= room;
		now_ns = end_ns;
		if (++step == rate->count) {
			step = 0;
			now_ns = 0;
			cycle_ns += rate->period_ns;
		}
	}
}

/* When the last of `bytes` is through if their service begins at start_ns (>= t0_ns, and not
 * before the finish returned last). */
int64_t rate_finish(struct rate *rate, int64_t t0_ns, int64_t start_ns, uint32_t bytes)
{
	switch (rate->kind) {
	case RATE_NONE:
		break;
	case RATE_CONSTANT:
		return start_ns + (int64_t)(bytes * rate->ns_per_byte);
	case RATE_TRACE:
		return trace_finish(rate, t0_ns, start_ns, bytes);
	case RATE_STEPS:
		return steps_finish(rate, t0_ns, start_ns, bytes);
	}
	return start_ns;
}
