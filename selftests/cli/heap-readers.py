#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""The exports of heap profiles, opened by the programs that they are for, and profiles of other
profilers, read by their own tools and by memwatchctl.

Environment: SPEEDSCOPE is the folder with speedscope's index.html; the default is that of
"npm install -g speedscope". SCREENSHOTS is a folder for pictures of what the browser shows.
Speaks TAP; what is not installed is skipped.
"""

import base64
import csv
import glob
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.dom.minidom

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from tap import Tap  # noqa: E402

TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(TOP, os.environ.get("BUILD", "build"))
CTL = os.path.join(BUILD, "cli/memwatchctl")
# npm installs into the prefix of its node, for example /usr or /usr/local.
NODE_PREFIX = os.path.dirname(os.path.dirname(shutil.which("npm") or "/usr/local/bin/npm"))
SPEEDSCOPE = os.environ.get("SPEEDSCOPE", NODE_PREFIX + "/lib/node_modules/speedscope/dist/release")
FUNCTIONS = os.path.join(TOP, "cli/tests/functions.sh")


def run(*command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, **more)


def ctl(*arguments):
    return run(CTL, *arguments)


def flat(path, *options):
    """Functions and their flat bytes, as memwatchctl reports them."""
    text = ctl("--format", "csv", "heap", "report", path, *options).stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    return {row["name"]: float(row["flat"]) for row in rows}


class Readers:
    def __init__(self, folder):
        self.tap = Tap()
        self.folder = folder
        self.profile = None

    def path(self, name):
        return os.path.join(self.folder, name)

    def needs(self, title, *programs):
        """Whether all programs are installed; skips the test otherwise."""
        for program, package in programs:
            if not shutil.which(program) and not os.path.exists(program):
                self.tap.skip(title, f"{package} is not installed")
                return False
        return True

    def make_profile(self):
        """A program that keeps one of forty blocks of 500 bytes."""
        env = dict(os.environ, LD_PRELOAD=os.path.join(BUILD, "heap/libmemwatch-heap.so"),
                   MEMWATCH_HEAP_DIR=self.folder, MEMWATCH_HEAP_RATE="16384")
        program = [os.path.join(BUILD, "selftests/rss-answers"), "partly", self.folder]
        done = run(*program, env=env, stdin=subprocess.DEVNULL)
        found = glob.glob(self.path("rss-answers.*.mwheap"))
        self.profile = found[0] if found else None
        return self.tap.ok(self.profile, "a program is profiled", done.stderr)

    def export(self, form, name, *options):
        done = ctl("heap", "export", self.profile, "--to", form, "-o", self.path(name), *options)
        return self.tap.ok(done.returncode == 0, f"a profile is exported to {form}", done.stderr)

    def test_pprof(self):
        title = "go tool pprof shows the same functions and bytes"
        if not self.export("pprof", "profile.pb.gz") or not self.needs(title, ("go", "the package golang-go")):
            return
        done = run("go", "tool", "pprof", "-top", "-unit=B", "-sample_index=inuse_space", "-nodecount=50",
                   "-nodefraction=0", self.path("profile.pb.gz"), env=dict(os.environ, HOME=self.folder))
        theirs = {m[2]: float(m[1]) for m in re.finditer(r"^ *(\d+(?:\.\d+)?)B .*% +\S+B +\S+% +(.+?)(?: \(inline\))?$",
                                                         done.stdout, re.M)}
        ours = {name: value for name, value in flat(self.profile).items() if value}
        same = ours and all(abs(theirs.get(name, 0) - value) <= 1 + 1e-6 * value for name, value in ours.items())
        self.tap.ok(same, title, f"{ours}\n{theirs}\n{done.stdout}{done.stderr}")

    def make_imports(self):
        run("bash", "-c", f". {FUNCTIONS}; heap_profiles", cwd=self.folder)

    def test_import(self, tool, package, name, pattern):
        """The totals of a profile in the format of the tool."""
        title = f"{tool} and memwatchctl agree on the total of {name}"
        if not self.needs(title, (tool, package)):
            return
        done = run(tool, "--text", "--show_bytes", "--addresses", "/bin/true", self.path(name))
        found = re.search(pattern, done.stdout + done.stderr)
        ours = sum(flat(self.path(name), "--no-symbols").values())
        self.tap.ok(found and abs(float(found[1]) - ours) <= 2, title, f"{ours}\n{done.stdout}\n{done.stderr}")

    def browse(self, address, picture):
        """What the page at the address consists of, after its scripts have run."""
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--hide-scrollbars",
                   "--window-size=1200,700", "--virtual-time-budget=10000", f"--user-data-dir={self.path('chromium')}"]
        text = run("chromium", *options, "--dump-dom", address).stdout
        run("chromium", *options, f"--screenshot={self.path(picture)}", address)
        size = os.path.getsize(self.path(picture)) if os.path.exists(self.path(picture)) else 0
        if size and "SCREENSHOTS" in os.environ:
            shutil.copy(self.path(picture), os.environ["SCREENSHOTS"])
        return text, size

    def test_speedscope(self):
        title = "speedscope opens a profile in a browser"
        if not self.export("speedscope", "profile.json"):
            return
        content = open(self.path("profile.json"), "rb").read()
        if not self.needs(title, ("chromium", "the package chromium"),
                          (os.path.join(SPEEDSCOPE, "index.html"), "speedscope (npm install -g speedscope)")):
            return
        with open(self.path("profile.js"), "w") as script:
            script.write(f"speedscope.loadFileFromBase64('profile.json', '{base64.b64encode(content).decode()}')")
        text, size = self.browse(f"file://{SPEEDSCOPE}/index.html#localProfilePath={self.path('profile.js')}",
                                 "speedscope.png")
        name = json.loads(content)["profiles"][0]["name"]
        self.tap.ok(name in text and "Something went wrong" not in text, title, text[:2000])
        self.tap.ok(size > 10000, f"and draws it (a picture of {size} bytes)")

    def test_svg(self):
        title = "a flame graph is well-formed"
        if not self.export("svg", "flame.svg"):
            return
        document = xml.dom.minidom.parse(self.path("flame.svg"))
        frames = [g for g in document.getElementsByTagName("g") if g.hasAttribute("data-depth")]
        self.tap.ok(len(frames) >= 4, f"{title}, with {len(frames)} frames")
        title = "a browser runs the search of a flame graph"
        if not self.needs(title, ("chromium", "the package chromium")):
            return
        text, size = self.browse(f"file://{self.path('flame.svg')}#search=make_p", "flame.png")
        self.tap.ok(re.search(r"matched: (9\d|100)\.?\d*", text), title, text[:3000])
        self.tap.ok(size > 5000, f"and draws it (a picture of {size} bytes)")


def main():
    folder = tempfile.mkdtemp(prefix="heap-readers-", dir=os.environ.get("TMPDIR", "/var/tmp"))
    readers = Readers(folder)
    try:
        if readers.make_profile():
            readers.test_pprof()
            readers.test_speedscope()
            readers.test_svg()
        readers.make_imports()
        readers.test_import("google-pprof", "the package google-perftools", "gp.heap", r"Total: (\d+) B")
        readers.test_import("jeprof", "the package libjemalloc-dev", "je.heap", r"Total: (\d+) B")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return readers.tap.done()


if __name__ == "__main__":
    sys.exit(main())
