// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A library of C++ that is loaded and unloaded by a program in C.
 */
extern "C" int plugin_use()
{
	int *volatile number = new int(7);
	int wrong = *number != 7;

	delete number;
	return wrong;
}
