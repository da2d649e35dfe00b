// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "backend.h"
#include "doctor_machine.h"
#include "exam.h"
#include "report.h"
#include "scheduler_list.h"
#include "version.h"

static bool file_has(const char *path, const char *word)
{
	char line[256] = "";
	FILE *f = fopen(path, "re");

	if (!f)
		return false;
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	fclose(f);
	return strstr(line, word);
}

/* The kernel takes only modules with a signature whose key it knows. */
static bool needs_signature(void)
{
	static const char lockdown[] = "/sys/kernel/security/lockdown";

	return file_has("/sys/module/module/parameters/sig_enforce", "Y") ||
	       file_has(lockdown, "[integrity]") ||
	       file_has(lockdown, "[confidentiality]");
}

static const char with_key[] =
	"modprobe l4lb; if its key is rejected: mokutil --import /var/lib/dkms/mok.pub";

void check_module(const struct exam *e, struct report *r)
{
	struct utsname uts;

	if (e->module)
		return;
	uname(&uts);
	if (module_on_disk("l4lb") && needs_signature()) {
		report_add(r, SEVERITY_ERROR, NULL,
			   "l4lb is not loaded, and this kernel takes signed modules only (Secure Boot)");
		report_cure(r, "%s", with_key);
	} else if (module_on_disk("l4lb")) {
		report_add(r, SEVERITY_ERROR, NULL, "l4lb is installed but not loaded");
		report_cure(r, "modprobe l4lb");
	} else {
		report_add(r, SEVERITY_ERROR, NULL,
			   "l4lb is neither loaded nor built for kernel %s",
			   uts.release);
		report_cure(r, "install this kernel's headers, then: dkms autoinstall");
	}
}

void check_other_module(const struct exam *e, struct report *r)
{
	if (!e->module || !module_loaded("ip_vs"))
		return;
	if (backend_is_l4lb()) {
		report_add(r, SEVERITY_WARNING, NULL,
			   "the kernel's own ip_vs is loaded beside l4lb, which serves nothing then");
		report_cure(r, "modprobe -r ip_vs, after its schedulers");
	} else if (module_on_disk("l4lb")) {
		report_add(r, SEVERITY_NOTE, NULL,
			   "the kernel's own ip_vs serves, though l4lb is installed");
		report_cure(r, "doc/migrating-from-ip_vs.md has the way to l4lb");
	}
}

void check_version(const struct exam *e, struct report *r)
{
	const char *version = e->module && backend_is_l4lb() ? backend_version()
							     : NULL;

	if (!version || !strcmp(version, IPVSCTL_VERSION))
		return;
	report_add(r, SEVERITY_WARNING, NULL,
		   "module l4lb is version %s, ipvsctl is " IPVSCTL_VERSION, version);
	report_cure(r, "install both of one version; the new module serves after the next boot");
}

/* Half an installation: services of a scheduler without a file are lost at the next
 * boot. Modules that were loaded from elsewhere are nobody's mistake.
 */
void check_scheduler(const struct exam *e, struct report *r)
{
	char module[80];
	size_t i, j;

	if (!e->module || !module_on_disk(backend_name()))
		return;
	for (i = 0; i < e->list.n; i++) {
		const char *name = e->list.v[i].scheduler;

		snprintf(module, sizeof(module), "%s%s", scheduler_prefix(), name);
		for (j = 0; j < i && strcmp(e->list.v[j].scheduler, name); j++)
			;
		if (j < i || !name[0] || !strcmp(name, "none") ||
		    module_on_disk(module))
			continue;
		report_add(r, SEVERITY_WARNING, svc_text(&e->list.v[i].id),
			   "module %s is not installed for this kernel",
			   module);
		report_cure(r, "install it, or the service is lost at the next boot");
	}
}

void check_loopback(const struct exam *e, struct report *r)
{
	const struct net_link *lo = net_link(&e->net, 1);

	if (!lo || !(lo->flags & IFF_LOOPBACK) || (lo->flags & IFF_UP))
		return;
	report_add(r, SEVERITY_ERROR, lo->name,
		   "the loopback device is down: nothing reaches addresses of this machine");
	report_cure(r, "ip link set %s up", lo->name);
}
