# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Real programs with deterministic work, for the tests and benchmarks of the heap profiler.

At scale 1 each one executes 1 G to 2 G instructions. All but cc1 do the same again and again, and
free what they allocate, so that a leak that a test plants in them is the only growth.
"""
import json
import os
import random
import shutil
import subprocess
import time

START_LIMIT_S = 120


class Program:
    """One program: its command, its input, and the client that gives a server its work."""

    def __init__(self, name, argv, stdin=None, env=(), client=None, socket=None, steady=True):
        self.name, self.argv, self.stdin = name, argv, stdin
        self.env, self.client, self.socket, self.steady = dict(env), client, socket, steady

    def installed(self):
        return shutil.which(self.argv[0]) is not None

    def start(self, env=(), prefix=()):
        """Starts the program with more variables in its environment, below a command."""
        plain = {k: v for k, v in os.environ.items() if not k.startswith("MEMWATCH_HEAP_")}
        with open(self.stdin or os.devnull, "rb") as stdin:
            return subprocess.Popen([*prefix, *self.argv], stdin=stdin, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, env={**plain, **self.env, **dict(env)})

    def work(self, process):
        """Lets a client give the server its work and stop it. Other programs need no client."""
        if not self.client:
            return
        limit = time.monotonic() + START_LIMIT_S
        while not os.path.exists(self.socket):
            if process.poll() is not None or time.monotonic() > limit:
                return
            time.sleep(0.01)
        for command in self.client:
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           check=False)

    def run(self, env=(), prefix=()):
        """Runs the program to its end. Returns its messages, its CPU time and its exit status."""
        process = self.start(env, prefix)
        self.work(process)
        messages = process.stderr.read().decode(errors="replace")
        process.stderr.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return messages, usage.ru_utime + usage.ru_stime, process.returncode


def _text(rng, low, high):
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz ", k=rng.randint(low, high)))


def _write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return path


def _document(rng, size):
    return {"id": rng.randrange(10**6), "name": _text(rng, 5, 20), "text": _text(rng, 10, 200),
            "list": [rng.random() for _ in range(size)],
            "tree": {_text(rng, 3, 8): [_text(rng, 3, 30)] * 3 for _ in range(size)}}


def _sqlite(folder, rng, scale):
    lines = ["create table t (a integer primary key, b text, c real);"]
    # Half of the keys, as many as the work keeps.
    lines += [f"insert into t values ({n}, '{_text(rng, 5, 200)}', 0);" for n in range(0, 800, 2)]
    for n in range(int(12000 * scale)):
        a, b = rng.randrange(800), rng.randrange(800)
        lines.append(rng.choice([
            f"insert or replace into t values ({a}, '{_text(rng, 5, 200)}', {n} / 7.0);",
            f"select count(*), max(b), sum(c) from t where a between {a} and {a + 90};",
            f"delete from t where a = {b};",
            f"select upper(b) || c from t where a in ({a}, {b}) order by b desc;",
            f"select a % 7 as g, group_concat(b) from t where a < {b % 200} group by g;"]))
    script = _write(folder, "work.sql", "\n".join(lines) + "\n")
    return Program("sqlite3", ["sqlite3", "-batch", ":memory:"], stdin=script)


def _xmllint(folder, rng, scale):
    rows = "".join(f'<row id="{n}" kind="{_text(rng, 3, 9)}"><name>{_text(rng, 5, 30)}</name>'
                   f"<!-- {_text(rng, 5, 50)} --><text>{_text(rng, 20, 300)}</text></row>\n"
                   for n in range(int(800 * scale)))
    file = _write(folder, "work.xml", f"<?xml version='1.0'?>\n<rows>{rows}</rows>\n")
    return Program("xmllint", ["xmllint", "--noout", "--repeat", file])


def _jq(folder, rng, scale):
    file = _write(folder, "work.json",
                  "".join(json.dumps(_document(rng, 8)) + "\n" for _ in range(int(8000 * scale))))
    wanted = '{id, n: (.list | add), k: (.tree | keys | sort | join(",")), u: (.text | length)}'
    return Program("jq", ["jq", "-c", wanted, file])


PERL_WORK = r"""use strict;
my $sum = 0;
for my $n (1 .. ROUNDS) {
    my %h = map { ("key$_" => { value => $_ * $n, text => "text $n $_" }) } 1 .. 40;
    my @sorted = sort { $h{$a}{text} cmp $h{$b}{text} } keys %h;
    my $joined = join ',', map { sprintf '%s=%d', $_, $h{$_}{value} } @sorted;
    $joined =~ s/key(\d+)/k$1/g;
    $sum += length($joined) + scalar(split /,/, $joined);
}
print "$sum\n";
"""


def _perl(folder, _rng, scale):
    file = _write(folder, "work.pl", PERL_WORK.replace("ROUNDS", str(int(1500 * scale))))
    return Program("perl", ["perl", file], env={"PERL_HASH_SEED": "0"})


def _git(folder, rng, scale):
    home = os.path.join(folder, "repository")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": True}
    git = ["git", "-C", home, "-c", "user.name=a", "-c", "user.email=a@example.org"]
    os.mkdir(home)
    subprocess.run(["git", "init", home], **quiet)
    for n in range(200):
        _write(home, f"file{n}", "\n".join(_text(rng, 5, 90) for _ in range(rng.randint(5, 400))))
    subprocess.run([*git, "add", "."], **quiet)
    subprocess.run([*git, "commit", "-m", "work"], **quiet)
    subprocess.run([*git, "repack", "-adq"], **quiet)
    names = subprocess.run([*git, "ls-tree", "-r", "HEAD"], check=True, capture_output=True,
                           text=True).stdout.split("\n")
    blobs = [line.split()[2] for line in names if line]
    wanted = _write(folder, "blobs", "".join(rng.choice(blobs) + "\n"
                                              for _ in range(int(3600 * scale))))
    return Program("git", ["git", "-C", home, "cat-file", "--batch"], stdin=wanted)


PYTHON_WORK = r"""import json, re
data = {"list": [[n, str(n), n / 7] for n in range(200)], "text": "word " * 50}
total = 0
for n in range(ROUNDS):
    text = json.dumps(data, indent=1, sort_keys=True)
    total += len(json.loads(text)["list"]) + len(re.findall(r"\d+", text))
    total += sum(len(w) for w in sorted(text.split(), key=str.lower))
print(total)
"""


def _python(folder, _rng, scale):
    file = _write(folder, "work.py", PYTHON_WORK.replace("ROUNDS", str(int(100 * scale))))
    return Program("python3", ["/usr/bin/python3", "-S", file],
                   env={"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"})


REDIS_WORK = """for i = 1, ROUNDS do
  local k = i % 200
  redis.call('set', 's' .. k, string.rep('x', (i * 7) % 500))
  redis.call('rpush', 'l' .. k, 'item' .. i)
  redis.call('hset', 'h' .. k, 'f' .. (i % 30), i)
  redis.call('lpop', 'l' .. k)
end"""


def _redis(folder, _rng, scale):
    socket = os.path.join(folder, "redis.sock")
    work = REDIS_WORK.replace("ROUNDS", str(int(25000 * scale)))
    cli = ["redis-cli", "-s", socket]
    # The server is in the package of the tools too, under a name that turns it into a tool.
    server = os.path.join(folder, "redis-server")
    os.symlink(shutil.which("redis-check-rdb") or "redis-check-rdb", server)
    return Program("redis", [server, "--port", "0", "--unixsocket", socket, "--save", "",
                             "--dir", folder, "--lua-time-limit", "0", "--activerehashing", "no",
                             "--hz", "1"],
                   client=[[*cli, "eval", work, "0"], [*cli, "shutdown", "nosave"]],
                   socket=socket)


def _cc1(folder, rng, scale):
    functions = []
    for n in range(max(1, int(20 * scale))):
        lines = "\n".join(f"  for (int i = 0; i < x; i++) s += (t[i & 63] ^ {rng.randrange(999)})"
                          f" * (i > {rng.randrange(99)} ? s : x);\n"
                          f"  switch (s & 3) {{ case 0: s += x; break; case 1: s ^= {k}; break; }}"
                          for k in range(4))
        functions.append(f"int f{n}(int x, const int *t)\n{{\n  int s = {n};\n{lines}\n"
                         f"  return s;\n}}\n")
    file = _write(folder, "work.c", "".join(functions))
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], check=False, capture_output=True,
                         text=True).stdout.strip() if shutil.which("gcc") else "cc1"
    return Program("cc1", [cc1, "-quiet", "-O2", file, "-o", os.devnull], steady=False)


MAKERS = {"sqlite3": _sqlite, "redis": _redis, "python3": _python, "perl": _perl, "git": _git,
          "xmllint": _xmllint, "jq": _jq, "cc1": _cc1}


def programs_prepare(folder, only=(), scale=1):
    """Writes the inputs into a folder. Returns those of the programs that are installed."""
    found = []
    for name, make in MAKERS.items():
        if only and name not in only:
            continue
        place = os.path.join(folder, name)
        os.mkdir(place)
        try:
            program = make(place, random.Random(1), scale)
        except (FileNotFoundError, subprocess.CalledProcessError):
            continue
        if program.installed():
            found.append(program)
    return found
