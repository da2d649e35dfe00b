// SPDX-License-Identifier: GPL-2.0
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "kern_ethtool.h"

static bool ask(const char *device, void *question)
{
	struct ifreq request = { .ifr_data = question };
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok;

	if (sock < 0)
		return false;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device);
	ok = !ioctl(sock, SIOCETHTOOL, &request);
	close(sock);
	return ok;
}

bool ethtool_flags(const char *device, uint32_t *flags)
{
	struct ethtool_value value = { .cmd = ETHTOOL_GFLAGS };

	if (!ask(device, &value))
		return false;
	*flags = value.data;
	return true;
}

bool ethtool_is(const char *device, const char *driver)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };

	return ask(device, &info) && !strcmp(info.driver, driver);
}
