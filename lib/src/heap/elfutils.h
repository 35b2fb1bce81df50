/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * elfutils, which is loaded when symbols are needed first.
 */
#ifndef MW_HEAP_ELFUTILS_H
#define MW_HEAP_ELFUTILS_H

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>

#include "base/library.h"

/* The functions that are used. A further one is added here and below. */
#define MW_ELFUTILS_CALLS(X)                                                                       \
	X(dwarf_attr)                                                                              \
	X(dwarf_attr_integrate)                                                                    \
	X(dwarf_diename)                                                                           \
	X(dwarf_filesrc)                                                                           \
	X(dwarf_formstring)                                                                        \
	X(dwarf_formudata)                                                                         \
	X(dwarf_getscopes)                                                                         \
	X(dwarf_getscopes_die)                                                                     \
	X(dwarf_getsrcfiles)                                                                       \
	X(dwarf_tag)                                                                               \
	X(dwfl_attach_state)                                                                       \
	X(dwfl_begin)                                                                              \
	X(dwfl_end)                                                                                \
	X(dwfl_frame_pc)                                                                           \
	X(dwfl_getthread_frames)                                                                   \
	X(dwfl_lineinfo)                                                                           \
	X(dwfl_module_addrdie)                                                                     \
	X(dwfl_module_addrinfo)                                                                    \
	X(dwfl_module_build_id)                                                                    \
	X(dwfl_module_getelf)                                                                      \
	X(dwfl_module_getsrc)                                                                      \
	X(dwfl_offline_section_address)                                                            \
	X(dwfl_report_begin)                                                                       \
	X(dwfl_report_elf)                                                                         \
	X(dwfl_report_end)                                                                         \
	X(dwfl_standard_find_debuginfo)                                                            \
	X(dwfl_thread_state_registers)                                                             \
	X(elf_getphdrnum)                                                                          \
	X(gelf_getphdr)

struct mw_elfutils {
	MW_LIBRARY_POINTERS(MW_ELFUTILS_CALLS)
};

extern struct mw_elfutils mw_elfutils;

/* To be called before any other function. Returns 0 or -ELIBACC. */
int mw_elfutils_load(struct memwatch_ctx *ctx);

#define dwarf_attr		     mw_elfutils.dwarf_attr
#define dwarf_attr_integrate	     mw_elfutils.dwarf_attr_integrate
#define dwarf_diename		     mw_elfutils.dwarf_diename
#define dwarf_filesrc		     mw_elfutils.dwarf_filesrc
#define dwarf_formstring	     mw_elfutils.dwarf_formstring
#define dwarf_formudata		     mw_elfutils.dwarf_formudata
#define dwarf_getscopes		     mw_elfutils.dwarf_getscopes
#define dwarf_getscopes_die	     mw_elfutils.dwarf_getscopes_die
#define dwarf_getsrcfiles	     mw_elfutils.dwarf_getsrcfiles
#define dwarf_tag		     mw_elfutils.dwarf_tag
#define dwfl_attach_state	     mw_elfutils.dwfl_attach_state
#define dwfl_begin		     mw_elfutils.dwfl_begin
#define dwfl_end		     mw_elfutils.dwfl_end
#define dwfl_frame_pc		     mw_elfutils.dwfl_frame_pc
#define dwfl_getthread_frames	     mw_elfutils.dwfl_getthread_frames
#define dwfl_lineinfo		     mw_elfutils.dwfl_lineinfo
#define dwfl_module_addrdie	     mw_elfutils.dwfl_module_addrdie
#define dwfl_module_addrinfo	     mw_elfutils.dwfl_module_addrinfo
#define dwfl_module_build_id	     mw_elfutils.dwfl_module_build_id
#define dwfl_module_getelf	     mw_elfutils.dwfl_module_getelf
#define dwfl_module_getsrc	     mw_elfutils.dwfl_module_getsrc
#define dwfl_offline_section_address mw_elfutils.dwfl_offline_section_address
#define dwfl_report_begin	     mw_elfutils.dwfl_report_begin
#define dwfl_report_elf		     mw_elfutils.dwfl_report_elf
#define dwfl_report_end		     mw_elfutils.dwfl_report_end
#define dwfl_standard_find_debuginfo mw_elfutils.dwfl_standard_find_debuginfo
#define dwfl_thread_state_registers  mw_elfutils.dwfl_thread_state_registers
#define elf_getphdrnum		     mw_elfutils.elf_getphdrnum
#define gelf_getphdr		     mw_elfutils.gelf_getphdr

#endif /* MW_HEAP_ELFUTILS_H */
