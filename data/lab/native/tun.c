/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Opens the TUN devices in their namespaces. */
#include "klink.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* A slow-start burst must find room: a drop here would stand in no log of ours. */
#define DEVICE_QUEUE_PACKETS 4000

static void open_one(struct lab *lab, int index)
{
	struct device *device = &lab->devices[index];
	const char *netns = lab->netns[device->netns].name;
	const char *file = lab->netns[device->netns].file;
	int line = lab->device_lines[index], netns_fd, control;
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};

	netns_fd = open(file, O_RDONLY | O_CLOEXEC);
	if (netns_fd < 0)
		die("line %d: open netns %s (%s): %s", line, netns, file, strerror(errno));
	if (setns(netns_fd, CLONE_NEWNET) < 0)
		die("line %d: enter netns %s (%s): %s", line, netns, file, strerror(errno));
	close(netns_fd);
	device->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (device->fd < 0)
		die("line %d: open /dev/net/tun: %s", line, strerror(errno));
	memcpy(request.ifr_name, device->name, strlen(device->name) + 1);
	if (ioctl(device->fd, TUNSETIFF, &request) < 0)
		die("line %d: open tun %s in netns %s: %s", line, device->name, netns,
		    strerror(errno));
	control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (control < 0)
		die("line %d: open a socket in netns %s: %s", line, netns, strerror(errno));
	request.ifr_qlen = DEVICE_QUEUE_PACKETS;
	if (ioctl(control, SIOCSIFTXQLEN, &request) < 0)
		die("line %d: set the queue of tun %s in netns %s: %s", line, device->name, netns,
		    strerror(errno));
	request.ifr_flags = IFF_UP;
	if (ioctl(control, SIOCSIFFLAGS, &request) < 0)
		die("line %d: bring up tun %s in netns %s: %s", line, device->name, netns,
		    strerror(errno));
	close(control);
}

void tun_open_all(struct lab *lab)
{
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	if (home < 0)
		die("open /proc/self/ns/net: %s", strerror(errno));
	for (int i = 0; i < lab->device_count; i++)
		open_one(lab, i);
	if (setns(home, CLONE_NEWNET) < 0)
		die("return to the first netns: %s", strerror(errno));
	close(home);
}
