/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Reads klink's CONFIG. Every message names the line and what was tried. */
#include "klink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

static int line_number;

/* The next word of a line, or NULL at its end. */
static char *word(char **rest)
{
	return strtok_r(NULL, " \t\r\n", rest);
}

static char *need_word(char **rest, const char *what)
{
	char *found = word(rest);

	if (!found)
		die("line %d: %s is missing", line_number, what);
	return found;
}

static void set_name(char *to, size_t size, const char *from, const char *what)
{
	if (strlen(from) >= size)
		die("line %d: %s '%s' is longer than %zu characters", line_number, what, from,
		    size - 1);
	strcpy(to, from);
}

static double number(const char *key, const char *value, double low, double high)
{
	char *end;
	double parsed = strtod(value, &end);

	if (end == value || *end || !(parsed >= low && parsed <= high))
		die("line %d: %s=%s is not a number from %g to %g", line_number, key, value, low,
		    high);
	return parsed;
}

static uint32_t address(const char *key, const char *value)
{
	struct in_addr parsed;

	if (inet_pton(AF_INET, value, &parsed) != 1)
		die("line %d: %s=%s is not an IPv4 address", line_number, key, value);
	return parsed.s_addr;
}

static int find_netns(const struct lab *lab, const char *name)
{
	for (int i = 0; i < lab->netns_count; i++)
		if (!strcmp(lab->netns[i].name, name))
			return i;
	die("line %d: no netns '%s' was named above", line_number, name);
}

static int find_stage(const struct lab *lab, const char *name)
{
	for (int i = 0; i < lab->stage_count; i++)
		if (!strcmp(lab->stages[i].name, name))
			return i;
	die("line %d: no stage '%s' was named above", line_number, name);
}

/* DEV, or NETNS:DEV where two devices share a name. */
static int find_device(const struct lab *lab, const char *reference)
{
	const char *colon = strchr(reference, ':');
	int found = -1;

	for (int i = 0; i < lab->device_count; i++) {
		const struct device *device = &lab->devices[i];
		const char *netns = lab->netns[device->netns].name;
		size_t length = strlen(netns);

		if (colon) {
			if ((size_t)(colon - reference) == length &&
			    !strncmp(netns, reference, length) && !strcmp(device->name, colon + 1))
				return i;
		} else if (!strcmp(device->name, reference)) {
			if (found >= 0)
				die("line %d: several devices are named '%s': write NETNS:%s",
				    line_number, reference, reference);
			found = i;
		}
	}
	if (found < 0)
		die("line %d: no tun '%s' was named above", line_number, reference);
	return found;
}

static void read_netns(struct lab *lab, char **rest)
{
	if (lab->netns_count == MAX_DEVICES)
		die("line %d: more than %d namespaces", line_number, MAX_DEVICES);
	int i = lab->netns_count++;

	set_name(lab->netns[i].name, NAME_BYTES, need_word(rest, "the namespace's name"), "netns");
	set_name(lab->netns[i].file, sizeof(lab->netns[i].file),
		 need_word(rest, "the namespace's path"), "path");
}

static void read_tun(struct lab *lab, char **rest)
{
	if (lab->device_count == MAX_DEVICES)
		die("line %d: more than %d devices", line_number, MAX_DEVICES);
	struct device *device = &lab->devices[lab->device_count];

	set_name(device->name, IFNAMSIZ, need_word(rest, "the device's name"), "device");
	device->netns = find_netns(lab, need_word(rest, "the device's namespace"));
	device->fd = -1;
	for (int i = 0; i < lab->device_count; i++)
		if (lab->devices[i].netns == device->netns &&
		    !strcmp(lab->devices[i].name, device->name))
			die("line %d: tun %s stands twice in netns %s", line_number, device->name,
			    lab->netns[device->netns].name);
	lab->device_lines[lab->device_count++] = line_number;
}

/* Stages of one seed must not lose the same packets: the name is mixed in (FNV-1a). */
static uint64_t seed_of(const char *name, uint64_t seed)
{
	uint64_t hash = 14695981039346656037ULL;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 1099511628211ULL;
	return hash ^ (seed * 0x9e3779b97f4a7c15ULL);
}

static void one_rate(const struct stage *stage)
{
	if (stage->rate.kind != RATE_NONE)
		die("line %d: stage %s has more than one of rate_mbps, trace, steps", line_number,
		    stage->name);
}

static void read_stage(struct lab *lab, char **rest)
{
	char *name = need_word(rest, "the stage's name"), *option, where[NAME_BYTES + 32];
	uint64_t seed = 1;

	if (lab->stage_count == MAX_STAGES)
		die("line %d: more than %d stages", line_number, MAX_STAGES);
	for (int i = 0; i < lab->stage_count; i++)
		if (!strcmp(lab->stages[i].name, name))
			die("line %d: stage %s stands twice", line_number, name);
	struct stage *stage = &lab->stages[lab->stage_count];

	set_name(stage->name, NAME_BYTES, name, "stage");
	snprintf(where, sizeof(where), "line %d: stage %s", line_number, name);
	stage->limit_bytes = stage->limit_packets = -1;
	while ((option = word(rest))) {
		char *value = strchr(option, '=');

		if (!value)
			die("%s: '%s' is not key=value", where, option);
		*value++ = 0;
		if (!strcmp(option, "rate_mbps")) {
			one_rate(stage);
			stage->rate.kind = RATE_CONSTANT;
			stage->rate.ns_per_byte = 8e3 / number(option, value, 1e-3, 1e5);
		} else if (!strcmp(option, "trace")) {
			one_rate(stage);
			rate_read_trace(&stage->rate, value, where);
		} else if (!strcmp(option, "steps")) {
			one_rate(stage);
			rate_read_steps(&stage->rate, value, where);
		} else if (!strcmp(option, "delay_ms")) {
			stage->delay_ns = (int64_t)(number(option, value, 0, 1e5) * 1e6);
		} else if (!strcmp(option, "jitter_ms")) {
			stage->jitter_ns = (int64_t)(number(option, value, 0, 1e5) * 1e6);
		} else if (!strcmp(option, "queue_bytes")) {
			stage->limit_bytes = (int64_t)number(option, value, 0, 1e12);
		} else if (!strcmp(option, "queue_packets")) {
			stage->limit_packets = (int64_t)number(option, value, 0, 1e9);
		} else if (!strcmp(option, "loss")) {
			stage->loss = number(option, value, 0, 1);
		} else if (!strcmp(option, "policy")) {
			aqm_open(&stage->aqm, value, where);
		} else if (!strcmp(option, "seed")) {
			seed = (uint64_t)number(option, value, 0, 9007199254740992.0);
		} else {
			die("%s: unknown key '%s' (rate_mbps, trace, steps, delay_ms, jitter_ms, "
			    "queue_bytes, queue_packets, policy, loss, seed)", where, option);
		}
	}
	if (stage->rate.kind == RATE_NONE &&
	    (stage->limit_bytes >= 0 || stage->limit_packets >= 0 || stage->aqm.policy))
		die("%s: a queue needs a rate (rate_mbps, trace or steps)", where);
	stage->random = seed_of(name, seed);
	lab->stage_count++;
}

static void read_path(struct lab *lab, char **rest)
{
	char *option;

	if (lab->path_count == MAX_PATHS)
		die("line %d: more than %d paths", line_number, MAX_PATHS);
	struct path *path = &lab->paths[lab->path_count];

	path->from = find_device(lab, need_word(rest, "the path's first device"));
	path->to = find_device(lab, need_word(rest, "the path's last device"));
	while ((option = word(rest))) {
		if (!strncmp(option, "src=", 4)) {
			path->src = address("src", option + 4);
		} else if (!strncmp(option, "dst=", 4)) {
			path->dst = address("dst", option + 4);
		} else if (!strncmp(option, "stages=", 7)) {
			char *names = option + 7, *name;

			while ((name = strsep(&names, ","))) {
				if (!*name)
					continue;
				if (path->hops == MAX_HOPS)
					die("line %d: more than %d stages in a path", line_number,
					    MAX_HOPS);
				path->stages[path->hops++] = find_stage(lab, name);
			}
		} else {
			die("line %d: unknown '%s' (src=A dst=B stages=NAME,NAME)", line_number,
			    option);
		}
	}
	lab->path_count++;
}

void config_read(struct lab *lab, const char *file)
{
	char line[4096];
	FILE *in = fopen(file, "re");

	if (!in)
		die("open config %s: %s", file, strerror(errno));
	while (fgets(line, sizeof(line), in)) {
		char *rest, *directive;

		line_number++;
		line[strcspn(line, "#")] = 0;
		directive = strtok_r(line, " \t\r\n", &rest);
		if (!directive)
			continue;
		if (!strcmp(directive, "netns"))
			read_netns(lab, &rest);
		else if (!strcmp(directive, "tun"))
			read_tun(lab, &rest);
		else if (!strcmp(directive, "stage"))
			read_stage(lab, &rest);
		else if (!strcmp(directive, "path"))
			read_path(lab, &rest);
		else
			die("line %d: unknown directive '%s' (netns, tun, stage, path)",
			    line_number, directive);
	}
	fclose(in);
	if (!lab->path_count)
		die("config %s: no path", file);
}
