#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Test gpunetio_plot.

The SVG has a curve for each run, whose points are at the positions of the values. JSON and CSV of
the same run give the same plot, and the same files give the same bytes. Text from the files is
shown as it is. What is no result file is refused with its name and the reason.
"""
import csv
import io
import json
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLOT = os.path.join(TOP, os.environ.get("B", "build"), "bin", "gpunetio_plot")
SVG = "{http://www.w3.org/2000/svg}"
HANDLERS = ("CPU_PROXY", "GPU_SM_DB", "GPU_SM_BF", "GPU_SM_NO_DBR")
SIZES = [1, *(64 << i for i in range(15))]
checks = errors = 0


def check(ok, text):
    global checks, errors
    checks += 1
    if not ok:
        errors += 1
        print(f"plot.py: {text}")


def properties(program, handler):
    return {"program": program, "version": "1", "time": "2026-01-01T00:00:00Z", "host": "h",
            "gpu": "host", "device": "mlx5_0", "link_layer": "Ethernet", "mtu": 4096,
            "handler_requested": handler, "handler": handler, "reason": "a, b", "queue_pairs": 1,
            "blocks": 1, "threads": 4, "scope": "thread", "payload": "host", "queues": "host"}


def bandwidth(handler="GPU_SM_DB", factor=1.0, sizes=tuple(SIZES), **changed):
    rows = []
    for size in sizes:
        seconds = (1e-6 + size / 5e9) / factor
        rows.append({"bytes": size, "messages": 2048, "gbps": 8e-9 * size / seconds,
                     "mmsgs": 1e-6 / seconds, "seconds": 2048 * seconds, "doorbells": 7,
                     "dbrec_updates": 5})
    return properties("gpunetio_verbs_put_bw", handler) | changed | {"rows": rows}


def latency(handler="GPU_SM_DB", factor=1.0, **changed):
    rows = []
    for size in SIZES:
        us = (3 + size / 1e4) * factor
        rows.append({"bytes": size, "iterations": 100, "min_us": us / 2, "median_us": us,
                     "avg_us": us * 1.1, "p99_us": us * 2, "p999_us": us * 5, "max_us": us * 9})
    return properties("gpunetio_verbs_write_lat", handler) | changed | {"rows": rows}


def write_json(name, result):
    with open(name, "w", encoding="utf-8") as f:
        json.dump(result, f)
    return name


def csv_text(result):
    text = io.StringIO()
    fixed = {name: value for name, value in result.items() if name != "rows"}
    writer = csv.DictWriter(text, [*fixed, *result["rows"][0]], lineterminator="\n")
    writer.writeheader()
    writer.writerows(fixed | row for row in result["rows"])
    return text.getvalue()


def write(name, text):
    with open(name, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())
    return name


def read(name):
    with open(name, "rb") as f:
        return f.read()


def run(*args, env=None):
    return subprocess.run([sys.executable, PLOT, *args], capture_output=True, text=True,
                          env={**os.environ, **(env or {})}, timeout=280)


def plots(*args):
    """Run the program, which has to succeed."""
    done = run(*args)
    check(done.returncode == 0 and not done.stderr, f"{args}: {done.stderr}")
    return done.returncode == 0


def fails(status, text, *args, env=None):
    done = run(*args, env=env)
    check(done.returncode == status and text in done.stderr and done.stderr.count("\n") == 1
          and not done.stdout,
          f"{args}: exit {done.returncode} (expected {status}), expected \"{text}\", printed: "
          f"{done.stderr}{done.stdout}")


# ---- plots ----

def curves(path):
    """Return {name: [(x, y), ...]} of the curves of an SVG, without their samples in the key."""
    found = {}
    for group in ET.parse(path).iter(SVG + "g"):
        if not group.get("id", "").startswith("gnuplot_plot_"):
            continue
        names = [text.text for text in group.iter(SVG + "text")]
        points = [tuple(map(float, re.search(r"translate\(([\d.]+),([\d.]+)\)",
                                             use.get("transform")).groups()))
                  for use in group.iter(SVG + "use")]
        if points:
            found[names[0] if names else ""] = points[:-1]
    return found


def is_linear(values, positions):
    """Whether the positions are a linear function of the values, to a tenth of a pixel."""
    low, high = values.index(min(values)), values.index(max(values))
    slope = (positions[high] - positions[low]) / (values[high] - values[low])
    return all(abs(positions[low] + slope * (v - values[low]) - p) < 0.1
               for v, p in zip(values, positions))


def check_curves(path, results, metric, logarithmic):
    found = curves(path)
    check(list(found) == list(HANDLERS), f"{path} has the curves {list(found)}")
    values, xs, ys = [], [], []
    for result in results:
        points = found.get(result["handler"], [])
        check(len(points) == len(SIZES), f"{path}: {len(points)} points of {result['handler']}")
        values += [row[metric] for row in result["rows"]]
        xs += [x for x, _ in points]
        ys += [y for _, y in points]
    if len(ys) == len(values):
        check(is_linear([math.log2(s) for s in SIZES] * len(results), xs), f"{path}: sizes")
        check(is_linear([math.log10(v) for v in values] if logarithmic else values, ys),
              f"{path}: values of {metric}")


def check_plots():
    results = [bandwidth(h, 1 + i / 4) for i, h in enumerate(HANDLERS)]
    files = [write_json(f"bw{i}.json", r) for i, r in enumerate(results)]
    if plots("-o", "bw.svg", *files):
        check_curves("bw.svg", results, "gbps", False)
        check(len(read("bw.svg")) < 60000, "the SVG is large")
    if plots("-o", "rate.svg", "--metric=mmsgs", *files):
        check_curves("rate.svg", results, "mmsgs", False)
    results = [latency(h, 1 + i / 4) for i, h in enumerate(HANDLERS)]
    lat = [write_json(f"lat{i}.json", r) for i, r in enumerate(results)]
    for metric in "median_us", "p99_us", "max_us":
        if plots("-o", "lat.svg", "-m", metric, *lat):
            check_curves("lat.svg", results, metric, True)
    plots("-o", "four.svg", *lat)
    plots("-o", "two.svg", *lat[:2])
    dashed = [read(name).count(b"stroke-dasharray") for name in ("four.svg", "lat.svg")]
    check(dashed[0] == dashed[1] + 8, f"{dashed} dashed lines, for p99 and p99.9 of four curves")
    check(read("two.svg").count(b"<polygon") + read("two.svg").count(b"fill-opacity")
          > read("four.svg").count(b"<polygon") + read("four.svg").count(b"fill-opacity"),
          "two curves have no filled bands")
    fails(1, "results of bandwidth and of latency programs", "-o", "x.svg", files[0], lat[0])
    fails(1, "lat0.json has no values of gbps", "-o", "x.svg", "-m", "gbps", files[0], lat[0])
    check(not os.path.exists("x.svg"), "an error leaves a file")
    return files, lat


def check_forms(files):
    """PNG; CSV as well as JSON; several runs in one CSV file; the same bytes each time."""
    plots("-o", "a.png", "-s", "640x480", *files)
    plots("-o", "b.png", "-s", "640x480", *files)
    data = read("a.png")
    check(data[:8] == b"\x89PNG\r\n\x1a\n", "a.png is no PNG")
    check(struct.unpack(">II", data[16:24]) == (640, 480), "a.png has another size")
    check(data == read("b.png"), "a PNG has other bytes the second time")
    texts = [csv_text(json.loads(read(f))) for f in files]
    plots("-o", "json.svg", *files)
    for name, parts in ("csv", texts), ("joined", ["".join(texts)]):
        inputs = [write(f"{name}{i}.csv", text) for i, text in enumerate(parts)]
        plots("-o", name + ".svg", *inputs)
        check(read("json.svg") == read(name + ".svg"), f"the plot of {name} differs from JSON")


def check_tables(files, lat):
    plots("-o", "bw.md", *files)
    table = read("bw.md").decode()
    check("| bytes | CPU_PROXY | GPU_SM_DB | GPU_SM_BF | GPU_SM_NO_DBR |\n" in table, table)
    gbps = json.loads(read(files[3]))["rows"][5]["gbps"]
    line = next(line for line in table.split("\n") if line.startswith("| 1024 |"))
    check(abs(float(line.split("|")[5]) / gbps - 1) < 1e-3, line)
    check(table.count("\n") == len(SIZES) + 4, table)
    plots("-o", "lat.md", "-t", "T", *lat)
    table = read("lat.md").decode()
    check(table.startswith("T: latency [us]: median / p99 / p99.9 ("), table)
    check("| 1 | 3.000 / 6.000 / 15.00 |" in table, table)
    check(run("-o", "n.md", files[0], env={"PATH": "/nonexistent"}).returncode == 0,
          "a table needs gnuplot")


def check_names():
    """Names of curves: what differs, then the file. Text is not interpreted."""
    def names(*results):
        files = [write_json(f"n{i}.json", r) for i, r in enumerate(results)]
        return list(curves("n.svg")) if plots("-o", "n.svg", *files) else []

    found = names(bandwidth(threads=4), bandwidth(threads=1))
    check(found == ["4 threads", "1 thread"], f"names {found}")
    found = names(bandwidth("A", threads=4), bandwidth("B", threads=32))
    check(found == ["A, 4 threads", "B, 32 threads"], f"names {found}")
    found = names(bandwidth(), bandwidth())
    check(found == ["n0.json", "n1.json"], f"names {found}")
    check(names(bandwidth("alone")) == ["alone"], "name of the only curve")
    check(names(bandwidth("alone", sizes=[4096])) == ["alone"], "a single point")
    odd = "`touch x` $(touch x) 'a' \"b\" <c> & x_1^2 {/=9 e} @f \\n ~g"
    found = names(bandwidth(odd), bandwidth("two\nlines"))
    check(found == [odd, "two lines"], f"names {found}")
    check(not os.path.exists("x"), "a command in a name was executed")
    plots("-o", "t.svg", "-t", "T " + odd, "n0.json")
    texts = [t.text for t in ET.parse("t.svg").iter(SVG + "text")]
    check("T " + odd in texts, f"title: {texts}")
    flat = bandwidth(sizes=[1 << 20, 1 << 21])
    plots("-o", "n.svg", write_json("n.json", flat))
    (_, y0), (_, y1) = next(iter(curves("n.svg").values()))
    v0, v1 = (row["gbps"] for row in flat["rows"])
    check(400 < y0 + v0 * (y0 - y1) / (v1 - v0) < 500, "the axis of the bandwidth begins above 0")
    gap = bandwidth()
    gap["rows"][3]["gbps"] = None
    check(plots("-o", "n.svg", write_json("n.json", gap))
          and [len(p) for p in curves("n.svg").values()] == [len(SIZES) - 1],
          "a row without a value is drawn")


# ---- errors ----

def check_refused(good):
    result = bandwidth()
    none, empty_rows = dict(result, rows=[]), dict(result)
    del empty_rows["rows"]
    text = csv_text(result)
    refused = {
        "empty": ("", "is empty"),
        "binary": (b"\x80\xff\x00", "it is not text"),
        "words": ("some words\n", "its first line has no column program"),
        "broken": ('{"rows": [', "is neither JSON nor CSV"),
        "list": ("[1, 2]", "it has no list of rows"),
        "no_rows": (json.dumps(empty_rows), "it has no list of rows"),
        "zero_rows": (json.dumps(none), "has no rows: the run ended before"),
        "zero_csv": (text.split("\n", maxsplit=1)[0] + "\n", "has no rows: the run ended before"),
        "no_handler": (json.dumps(dict(result, handler=None)), "it has no handler"),
        "no_size": (json.dumps(dict(result, rows=[{"gbps": 1}])), "row 1 has no size (bytes)"),
        "word": (json.dumps(dict(result, rows=[{"bytes": 1, "gbps": "much"}])),
                 "gbps of row 1 is 'much', which is not a number"),
        "short": (text + "a,b\n", "not as many cells as the first"),
        "null": (json.dumps(dict(result, rows=[{"bytes": 1}])), "has no values of"),
        "nan": ('{"program": "a", "handler": "b", "rows": [{"bytes": 1, "gbps": NaN}]}',
                "has no values of"),
    }
    for name, (content, reason) in refused.items():
        write(name, content)
        fails(1, reason, "-o", "x.svg", good, name)
        check(f" {name}" in run("-o", "x.svg", good, name).stderr.replace(":", " "),
              f"the message does not name {name}")
    fails(1, "cannot read missing.json: No such file", "-o", "x.svg", "missing.json")
    fails(1, "cannot read .: Is a directory", "-o", "x.svg", ".")
    check(not os.path.exists("x.svg"), "an error leaves a file")


def check_usage(good):
    fails(2, "no -o, --output", good)
    fails(2, "no result files", "-o", "x.svg")
    fails(2, "'x.pdf' (expected a name that ends with .svg, .png or .md)", "-o", "x.pdf", good)
    fails(2, "'0x100' (expected <width>x<height>", "-o", "x.svg", "-s", "0x100", good)
    fails(2, "invalid choice: 'speed'", "-o", "x.svg", "-m", "speed", good)
    fails(2, "see gpunetio_plot -h", "--unknown", good)
    done = run("--help")
    check(done.returncode == 0 and done.stdout.startswith("Usage: gpunetio_plot"), "--help")
    check(run("--version").stdout.startswith("gpunetio_plot (gdaki) "), "--version")


def check_output(good):
    fails(1, "gnuplot not found; install the package gnuplot-nox", "-o", "x.svg", good,
          env={"PATH": "/nonexistent"})
    fails(1, "cannot write missing/x.svg: No such file", "-o", "missing/x.svg", good)
    os.symlink("/dev/full", "full.svg")
    fails(1, "cannot write full.svg: No space left on device", "-o", "full.svg", good)
    os.mkdir("bin")
    write("bin/gnuplot", "#!/bin/sh\necho 'line 7: planted' >&2\nexit 3\n")
    os.chmod("bin/gnuplot", 0o755)
    write("old.svg", "old")
    fails(1, "gnuplot failed: line 7: planted", "-o", "old.svg", good, env={"PATH": "bin:/bin"})
    check(read("old.svg") == b"old", "an error changes the old file")
    os.symlink("old.svg", "link.svg")
    if plots("-o", "link.svg", good):
        check(os.path.islink("link.svg") and read("old.svg") != b"old", "a link is replaced")
    check(os.stat("old.svg").st_mode & 0o777 == 0o666 & ~UMASK, "mode of the file")
    left = [name for name in os.listdir() if re.search(r"\.(svg|png|md).", name)]
    check(not left, f"temporary files remain: {left}")


UMASK = os.umask(0o027)
os.umask(UMASK)


def main():
    if not shutil.which("gnuplot"):
        print("plot.py: gnuplot not found; install the Debian package gnuplot-nox")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        files, lat = check_plots()
        check_forms(files)
        check_tables(files, lat)
        check_names()
        check_refused(files[0])
        check_usage(files[0])
        check_output(files[0])
        os.chdir(TOP)
    print(f"plot.py: {checks} checks, {errors} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
