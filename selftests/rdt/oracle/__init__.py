# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""The oracle of the RDT tests: what it reads, and its checks."""
