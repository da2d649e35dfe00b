/* SPDX-License-Identifier: GPL-2.0 */
/* The configuration in the form that apply reads. */
#ifndef IPVSCTL_YAML_H
#define IPVSCTL_YAML_H

struct service_list;

int yaml_print(const struct service_list *list);

#endif
