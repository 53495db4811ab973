/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Runs a model inside the kernel over observations: int32 rows on stdin, those to answer and then
 * those to time; for each of the first its scores and class (int64) on stdout. With a loader it
 * fills the model's map first; with another table too, it answers everything from that one as well
 * and then replaces the two by one another while the program runs, to see that every answer is
 * wholly the one's or wholly the other's. All that it loads is gone with it, however it ends.
 */
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "bpf_report.h"

#define LEAST_ROUNDS 5
#define ROUND_RUNS 4096 /* short, for some rounds to pass undisturbed on a busy machine */
#define ENOUGH_NS 400000000ULL

static struct bpf_object *object;
static void *observations;
static const char *answers;
static size_t columns, row_bytes, answer_bytes;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static struct bpf_program *program(const char *name)
{
	struct bpf_program *found = bpf_object__find_program_by_name(object, name);

	if (!found)
		die(name, ENOENT);
	return found;
}

static struct bpf_map *map(const char *name)
{
	struct bpf_map *found = bpf_object__find_map_by_name(object, name);

	if (!found)
		die(name, ENOENT);
	return found;
}

static void *mapped(const char *name, size_t rows)
{
	size_t bytes = (bpf_map__value_size(map(name)) + 7) / 8 * 8 * rows;
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map(name)), 0);

	if (at == MAP_FAILED)
		die("mapping a map", errno);
	return at;
}

static void read_rows(size_t rows)
{
	for (size_t i = 0; i < rows; i++)
		if (fread((char *)observations + i * row_bytes, sizeof(int32_t), columns, stdin) !=
		    columns)
			die("reading rows", EIO);
}

static void load(const char *path, size_t rows)
{
	int error;

	object = bpf_object__open_file(path, NULL);
	if (!object)
		die("opening the object", errno);
	bpf_map__set_max_entries(map("observations"), rows);
	bpf_map__set_max_entries(map("answers"), rows);
	keep_logs(object, program("decide"));
	error = bpf_object__load(object);
	if (error)
		refused("the verifier refuses the program", error);
	columns = bpf_map__value_size(map("observations")) / sizeof(int32_t);
	row_bytes = (columns * sizeof(int32_t) + 7) / 8 * 8;
	observations = mapped("observations", rows);
	answer_bytes = bpf_map__value_size(map("answers"));
	answers = mapped("answers", rows);
}

static void run_loader(const char *loader, const char *table, uint32_t map_id)
{
	int status;
	pid_t child;
	char id[16];

	snprintf(id, sizeof(id), "%u", map_id);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execl(loader, loader, table, id, NULL);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		die("starting the loader", errno);
	if (status) {
		fprintf(stderr, "error the loader refuses %s\n", table);
		exit(1);
	}
}

static void answer_all(uint32_t rows)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = &rows, .ctx_size_in = sizeof(rows));
	int error = bpf_prog_test_run_opts(bpf_program__fd(program("answer_all")), &options);

	if (error)
		die("running the program", error);
}

static char *copy_of_answers(size_t rows)
{
	char *copy = malloc(rows * answer_bytes + 1);

	if (!copy)
		die("memory for answers", ENOMEM);
	memcpy(copy, answers, rows * answer_bytes);
	fwrite(copy, answer_bytes, rows, stdout);
	return copy;
}

static void replace_while_running(const char *loader, const char *const tables[2],
				  uint32_t map_id, size_t rows)
{
	char *by_first = copy_of_answers(rows), *by_second;
	size_t first = 0, second = 0, mixed = 0;
	uint64_t begun;
	pid_t child;

	run_loader(loader, tables[1], map_id);
	answer_all(rows);
	by_second = copy_of_answers(rows);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int turn = 0;; turn = !turn)
			run_loader(loader, tables[turn], map_id);
	}
	if (child < 0)
		die("starting the loader", errno);
	for (begun = now_ns(); now_ns() - begun < ENOUGH_NS || !first || !second;) {
		if (waitpid(child, NULL, WNOHANG))
			die("replacing tables", ECHILD);
		answer_all(rows);
		for (size_t i = 0; i < rows * answer_bytes; i += answer_bytes) {
			int is_first = !memcmp(answers + i, by_first + i, answer_bytes);
			int is_second = !memcmp(answers + i, by_second + i, answer_bytes);

			first += is_first && !is_second;
			second += is_second && !is_first;
			mixed += !is_first && !is_second;
		}
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	fprintf(stderr, "swap_first %zu\nswap_second %zu\nswap_mixed %zu\n", first, second, mixed);
	free(by_first);
	free(by_second);
	run_loader(loader, tables[0], map_id);
}

static unsigned int ns_per_run(const char *name)
{
	static const char packet[64];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = ROUND_RUNS);
	int error = bpf_prog_test_run_opts(bpf_program__fd(program(name)), &options);

	if (error)
		die("timing the program", error);
	return options.duration;
}

/* The shortest of many rounds of each: what the machine does when nobody disturbs it. */
static void report_time(void)
{
	unsigned int decide = UINT32_MAX, baseline = UINT32_MAX;
	uint64_t begun = now_ns();

	for (int round = 0; round < LEAST_ROUNDS || now_ns() - begun < ENOUGH_NS; round++) {
		unsigned int with = ns_per_run("decide");
		unsigned int without = ns_per_run("baseline");

		decide = with < decide ? with : decide;
		baseline = without < baseline ? without : baseline;
	}
	fprintf(stderr, "decide_ns %u\nbaseline_ns %u\n", decide, baseline);
}

static void report_maps(void)
{
	struct bpf_map *each;

	bpf_object__for_each_map(each, object)
		fprintf(stderr, "map %s %lu\n", bpf_map__name(each), map_bytes(bpf_map__fd(each)));
}

int main(int argc, char **argv)
{
	size_t rows = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	size_t timed = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info);

	if (!rows || (argc != 4 && argc != 7 && argc != 8)) {
		fprintf(stderr, "usage: bpf_run OBJECT ROWS TIMED [LOADER OUTER_MAP TABLE [OTHER]] < rows\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	libbpf_set_print(only_warnings);
	load(argv[1], rows > timed ? rows : timed);
	read_rows(rows);
	if (argc > 4) {
		if (bpf_obj_get_info_by_fd(bpf_map__fd(map(argv[5])), &info, &size))
			die("reading a map's info", errno);
		run_loader(argv[4], argv[6], info.id);
	}
	answer_all(rows);
	if (argc > 7)
		replace_while_running(argv[4], (const char *[]){ argv[6], argv[7] }, info.id, rows);
	else
		free(copy_of_answers(rows));
	report_program(program("decide"));
	report_maps();
	if (timed) {
		read_rows(timed);
		report_time();
	}
	return 0;
}
