// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The variable is static, so that not every kernel tells programs its address. But both variables
 * exist once for each CPU, in the same section, and BTF has their places in it.
 */
#include "loader/stolen.h"

#include <string.h>

#include "loader/libbpf.h"

#define PER_CPU ".data..percpu"

/* The place of the variable in the section, or -1. */
static int64_t find_variable(const struct btf *btf, const struct btf_type *section,
			     const char *name)
{
	const struct btf_var_secinfo *info = btf_var_secinfos(section);
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_VAR);

	for (uint16_t i = 0; id > 0 && i < btf_vlen(section); i++)
		if (info[i].type == (uint32_t)id)
			return info[i].offset;
	return -1;
}

int64_t mw_bpf_stolen_distance(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *section = NULL;
	int64_t queue, stolen, distance = 0;
	int id;

	id = btf ? btf__find_by_name_kind(btf, PER_CPU, BTF_KIND_DATASEC) : -1;
	if (id > 0)
		section = btf__type_by_id(btf, (uint32_t)id);
	if (section) {
		queue = find_variable(btf, section, "runqueues");
		stolen = find_variable(btf, section, "steal_time");
		if (queue >= 0 && stolen >= 0)
			distance = stolen - queue;
	}
	btf__free(btf);
	return distance;
}
