// SPDX-License-Identifier: GPL-2.0
#include "gen.h"

#include <linux/module.h>

static int __init gen_init(void)
{
	int err = gen_device_init();

	if (err)
		return err;
	err = gen_job_init();
	if (err)
		gen_device_exit();
	return err;
}

static void __exit gen_exit(void)
{
	gen_job_exit();
	gen_device_exit();
}

module_init(gen_init);
module_exit(gen_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("l4lb bench: packet generator and sink");
