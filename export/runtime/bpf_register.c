/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Registers the congestion control of an object, says what the kernel says about its program that
 * sees every ACK, and unregisters it. A link holds the registration, so that it ends with this
 * process, however that ends.
 */
#include <signal.h>
#include <sys/prctl.h>

#include "bpf_report.h"

/* Of kernels younger than libbpf's headers. */
#define F_LINK (1U << 13)
#define STRUCT_OPS 44

static struct bpf_map *operations(struct bpf_object *object)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
		if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS)
			return map;
	die("the object has no congestion control", ENOENT);
	return NULL;
}

static int offered(const char *name)
{
	char names[1024] = " ";
	FILE *file = fopen("/proc/sys/net/ipv4/tcp_available_congestion_control", "r");
	int found = 0;

	while (file && fscanf(file, "%1023s", names) == 1)
		found |= !strcmp(names, name);
	if (file)
		fclose(file);
	return found;
}

int main(int argc, char **argv)
{
	struct bpf_program *program;
	struct bpf_object *object;
	struct bpf_map *map;
	int error, link;

	if (argc != 3) {
		fprintf(stderr, "usage: bpf_register OBJECT NAME\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	libbpf_set_print(only_warnings);
	object = bpf_object__open_file(argv[1], NULL);
	if (!object)
		die("opening the object", errno);
	program = bpf_object__find_program_by_name(object, "sbd_cong_avoid");
	if (!program)
		die("sbd_cong_avoid", ENOENT);
	map = operations(object);
	bpf_map__set_map_flags(map, F_LINK);
	keep_logs(object, program);
	error = bpf_object__load(object);
	if (error)
		refused("the verifier refuses the congestion control", error);
	if (!bpf_map__attach_struct_ops(map))
		die("preparing the congestion control", errno);
	link = bpf_link_create(bpf_map__fd(map), 0, STRUCT_OPS, NULL);
	if (link < 0)
		die("registering the congestion control", link);
	if (!offered(argv[2]))
		die(argv[2], ENOENT);
	report_program(program);
	close(link);
	if (offered(argv[2]))
		die("unregistering the congestion control", EBUSY);
	return 0;
}
