/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the kernel says about a loaded program, as "key value" lines on stderr. */
#ifndef CCZOO_BPF_REPORT_H
#define CCZOO_BPF_REPORT_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#define LOG_STATS 4 /* the verifier's log: instructions and stack, not its every step */
#define LOG_BYTES (1 << 16)

static inline void die(const char *what, int error)
{
	fprintf(stderr, "error %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(1);
}

/* The verifier's log of the program to report on, and of those beside it. */
static char program_log[LOG_BYTES], other_log[LOG_BYTES];

static inline void keep_logs(struct bpf_object *object, const struct bpf_program *reported)
{
	struct bpf_program *each;

	bpf_object__for_each_program(each, object) {
		bpf_program__set_log_level(each, LOG_STATS);
		bpf_program__set_log_buf(each, each == reported ? program_log : other_log,
					 LOG_BYTES);
	}
}

/* The verifier's last words before its statistics say why. */
static inline void refused(const char *what, int error)
{
	const char *reason = "", *line = strtok(*program_log ? program_log : other_log, "\n");

	for (; line && strncmp(line, "verification time", 17) && strncmp(line, "processed ", 10);
	     line = strtok(NULL, "\n"))
		reason = line;
	fprintf(stderr, "verifier %s\n", reason);
	die(what, error);
}

/* Hears libbpf's warnings, which hold the verifier's reasons. */
static inline int only_warnings(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

/* Bytes of stack: the verifier's "stack depth 40+24" names one frame per function. */
static inline unsigned int stack_bytes(void)
{
	const char *at = strstr(program_log, "stack depth ");
	unsigned int sum = 0;
	char *end;

	if (!at)
		return 0;
	at += strlen("stack depth ");
	for (;; at = end + 1) {
		sum += strtoul(at, &end, 10);
		if (*end != '+')
			return sum;
	}
}

/* Memory that the kernel counts for a map. */
static inline unsigned long map_bytes(int fd)
{
	unsigned long bytes = 0;
	char line[128];
	FILE *file;

	snprintf(line, sizeof(line), "/proc/self/fdinfo/%d", fd);
	file = fopen(line, "r");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "memlock: %lu", &bytes) == 1)
			break;
	if (file)
		fclose(file);
	return bytes;
}

static inline void report_program(const struct bpf_program *program)
{
	struct bpf_prog_info info = {};
	unsigned int size = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
		die("reading a program's info", errno);
	fprintf(stderr, "verified_insns %u\nxlated_bytes %u\njited_bytes %u\nstack_bytes %u\n",
		info.verified_insns, info.xlated_prog_len, info.jited_prog_len, stack_bytes());
}

#endif
