/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * libbpf, which is loaded when a program uses BPF first. Other files of this library include this
 * header instead of those of libbpf, and call its functions by their own names.
 */
#ifndef MW_LOADER_LIBBPF_H
#define MW_LOADER_LIBBPF_H

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "base/library.h"

/*
 * The types of the kernel itself. Programs are opened with this path: without one, libbpf also
 * looks for types in the BTF of modules, which needs CAP_SYS_ADMIN.
 */
#define MW_KERNEL_BTF "/sys/kernel/btf/vmlinux"

/* The functions that are used. A further one is added here and below. */
#define MW_LIBBPF_CALLS(X)                                                                         \
	X(bpf_iter_create)                                                                         \
	X(bpf_link__destroy)                                                                       \
	X(bpf_link__fd)                                                                            \
	X(bpf_map__fd)                                                                             \
	X(bpf_map__set_max_entries)                                                                \
	X(bpf_map_create)                                                                          \
	X(bpf_map_delete_elem)                                                                     \
	X(bpf_map_lookup_batch)                                                                    \
	X(bpf_map_lookup_elem)                                                                     \
	X(bpf_map_update_elem)                                                                     \
	X(bpf_obj_get_info_by_fd)                                                                  \
	X(bpf_object__destroy_skeleton)                                                            \
	X(bpf_object__find_map_fd_by_name)                                                         \
	X(bpf_object__find_program_by_name)                                                        \
	X(bpf_object__load_skeleton)                                                               \
	X(bpf_object__next_program)                                                                \
	X(bpf_object__open_skeleton)                                                               \
	X(bpf_program__attach)                                                                     \
	X(bpf_program__attach_perf_event)                                                          \
	X(bpf_program__fd)                                                                         \
	X(bpf_program__section_name)                                                               \
	X(bpf_program__set_autoload)                                                               \
	X(btf__find_by_name_kind)                                                                  \
	X(btf__free)                                                                               \
	X(btf__load_vmlinux_btf)                                                                   \
	X(btf__type_by_id)                                                                         \
	X(libbpf_num_possible_cpus)                                                                \
	X(libbpf_set_print)

struct mw_libbpf {
	MW_LIBRARY_POINTERS(MW_LIBBPF_CALLS)
};

extern struct mw_libbpf mw_libbpf;

/* To be called before any other function. Returns 0 or -ELIBACC. */
int mw_libbpf_load(struct memwatch_ctx *ctx, const char *what);

#define bpf_iter_create			 mw_libbpf.bpf_iter_create
#define bpf_link__destroy		 mw_libbpf.bpf_link__destroy
#define bpf_link__fd			 mw_libbpf.bpf_link__fd
#define bpf_map__fd			 mw_libbpf.bpf_map__fd
#define bpf_map__set_max_entries	 mw_libbpf.bpf_map__set_max_entries
#define bpf_map_create			 mw_libbpf.bpf_map_create
#define bpf_map_delete_elem		 mw_libbpf.bpf_map_delete_elem
#define bpf_map_lookup_batch		 mw_libbpf.bpf_map_lookup_batch
#define bpf_map_lookup_elem		 mw_libbpf.bpf_map_lookup_elem
#define bpf_map_update_elem		 mw_libbpf.bpf_map_update_elem
#define bpf_obj_get_info_by_fd		 mw_libbpf.bpf_obj_get_info_by_fd
#define bpf_object__destroy_skeleton	 mw_libbpf.bpf_object__destroy_skeleton
#define bpf_object__find_map_fd_by_name	 mw_libbpf.bpf_object__find_map_fd_by_name
#define bpf_object__find_program_by_name mw_libbpf.bpf_object__find_program_by_name
#define bpf_object__load_skeleton	 mw_libbpf.bpf_object__load_skeleton
#define bpf_object__next_program	 mw_libbpf.bpf_object__next_program
#define bpf_object__open_skeleton	 mw_libbpf.bpf_object__open_skeleton
#define bpf_program__attach		 mw_libbpf.bpf_program__attach
#define bpf_program__attach_perf_event	 mw_libbpf.bpf_program__attach_perf_event
#define bpf_program__fd			 mw_libbpf.bpf_program__fd
#define bpf_program__section_name	 mw_libbpf.bpf_program__section_name
#define bpf_program__set_autoload	 mw_libbpf.bpf_program__set_autoload
#define btf__find_by_name_kind		 mw_libbpf.btf__find_by_name_kind
#define btf__free			 mw_libbpf.btf__free
#define btf__load_vmlinux_btf		 mw_libbpf.btf__load_vmlinux_btf
#define btf__type_by_id			 mw_libbpf.btf__type_by_id
#define libbpf_num_possible_cpus	 mw_libbpf.libbpf_num_possible_cpus
#define libbpf_set_print		 mw_libbpf.libbpf_set_print

#endif /* MW_LOADER_LIBBPF_H */
