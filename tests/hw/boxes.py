# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Reads command traces (core/log/trace.h), decodes them with the layouts of core/nic/prm.h, and
compares two. Bits that prm.h does not define get their names from the kernel's mlx5_ifc.h; if
that header is not installed, they are shown as parts of 32-bit words."""
import difflib
import glob
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
IFC = "/usr/src/linux-headers-*/include/linux/mlx5/mlx5_ifc.h"

# ---- records ----


class Record:
    def __init__(self, kind, head):
        self.kind, self.head = kind, head
        self.pid, self.seq = int(head.get("pid", 0)), int(head.get("seq", 0))
        self.name, self.opcode, self.op_mod, self.object = "", 0, 0, ""
        self.box = {"in": None, "out": None}  # bytearray
        self.hidden = {"in": None, "out": None}  # bytearray, 1 for a masked byte
        self.status = self.syndrome = None
        self.errno = 0

    def title(self):
        if self.kind != "cmd":
            return self.kind
        return "%s (%s)" % (self.name, self.object) if self.object else self.name


# In records of these kinds, the value of this name extends to the end of the line.
TAIL = {"uar": "type", "sdk": "commands"}


def pairs(text, tail=None):
    words, found, i = text.split(" "), {}, 0
    while i + 1 < len(words):
        if words[i] == tail:
            found[words[i]] = " ".join(words[i + 1:])
            break
        found[words[i]] = words[i + 1]
        i += 2
    return found


def begin_record(line):
    kind, rest = line.split(" ", 1)
    if kind != "cmd":
        head = pairs(rest, TAIL.get(kind))
        for name in ("reg", "base", "addr"):
            if name in head:  # "0x7f0012345800" or, masked, "**+0x800"
                head[name + " offset"] = hex(int(head[name].rpartition("+")[2], 16) & 0xfff)
        return Record(kind, head)
    head, _, obj = rest.partition(" object ")
    words = head.split(" ")  # pid N seq N t T dev D NAME 0xOPCODE op_mod 0xN
    record = Record(kind, dict(zip(words[0:8:2], words[1:8:2])))
    record.name, record.opcode, record.op_mod = words[8], int(words[9], 16), int(words[11], 16)
    record.object = obj
    return record


def read_row(box, hidden, line):
    at, _, text = line.strip().partition(":")
    at, text = int(at, 16), text.replace(" ", "")
    for i in range(0, len(text), 2):
        if text[i:i + 2] == "**":
            hidden[at + i // 2] = 1
        else:
            box[at + i // 2] = int(text[i:i + 2], 16)


def read_trace(path):
    """Returns all records of a trace, in order. Raises ValueError for an invalid line."""
    records, side = [], None
    with open(path, encoding="utf-8", errors="replace") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            try:
                if line and line[0] != " ":
                    records.append(begin_record(line))
                elif line.startswith(" in ") or line.startswith(" out "):
                    side, length = line.split()
                    records[-1].box[side] = bytearray(int(length))
                    records[-1].hidden[side] = bytearray(int(length))
                elif line.startswith(" end "):
                    end = pairs(line.strip())
                    records[-1].errno = int(end["errno"])
                    if "status" in end:
                        records[-1].status = int(end["status"], 16)
                        records[-1].syndrome = int(end["syndrome"], 16)
                else:
                    read_row(records[-1].box[side], records[-1].hidden[side], line)
            except (ValueError, IndexError, KeyError, TypeError):
                raise ValueError("%s:%d: invalid line of a trace: %s" % (path, number, line[:80]))
    return records


# ---- layouts: a field is (first bit, width, name) ----


def prm_fields():
    """Returns the fields of core/nic/prm.h by name, without the prefix PRM_."""
    fields = {}
    text = open(os.path.join(ROOT, "core", "nic", "prm.h"), encoding="utf-8").read()
    for name, off, high, low in re.findall(
            r"#define PRM_(\w+)\s+PRM\((0x[0-9a-f]+), (\d+), (\d+)\)", text):
        width = int(high) - int(low) + 1
        fields[name] = (int(off, 16) * 8 + 31 - int(high), width)
    for name, off in re.findall(r"#define PRM_(\w+)\s+PRM64\((0x[0-9a-f]+)\)", text):
        fields[name] = (int(off, 16) * 8, 64)
    fields["ADS_RGID"] = (0x10 * 8, 128)
    return fields


HEAD_IN = [("CMD_OPCODE", 0), ("CMD_UID", 0), ("CMD_OP_MOD", 0)]
HEAD_OUT = [("CMD_STATUS", 0), ("CMD_SYNDROME", 0)]
QPC_AT, PATH_AT, CQC_AT, RMPC_AT, WQ_AT, CAP_AT = 0x18, 0x18, 0x10, 0x20, 0x30, 0x10
QP = [("QPC_", QPC_AT), ("ADS_", QPC_AT + PATH_AT)]
CAPS = {0: ("HCA_", "cmd_hca_cap"), 4: ("ROCE_", "roce_cap"), 0x20: ("HCA2_", "cmd_hca_cap_2")}

# The structures in each box: their prefix in prm.h, and their byte offset.
LAYOUTS = {
    ("CREATE_CQ", "in"): [("CREATE_CQ_", 0), ("CQC_", CQC_AT)],
    ("QUERY_CQ", "out"): [("CQC_", CQC_AT)],
    ("CREATE_QP", "in"): [("CREATE_QP_", 0)] + QP,
    ("QUERY_QP", "out"): [("QUERY_QP_", 0)] + QP,
    ("CREATE_RMP", "in"): [("RMPC_", RMPC_AT), ("WQ_", RMPC_AT + WQ_AT)],
    ("QUERY_LAG", "out"): [("LAGC_", 8)],
}
for step in ("RST2INIT", "INIT2INIT", "INIT2RTR", "RTR2RTS", "RTS2RTS"):
    LAYOUTS[step + "_QP", "in"] = [("MODIFY_QP_", 0)] + QP


def parts_of(record, side):
    head = HEAD_IN if side == "in" else HEAD_OUT
    if record.name == "QUERY_HCA_CAP":
        group = CAPS.get(record.op_mod >> 1)
        return head + ([(group[0], CAP_AT)] if group and side == "out" else [])
    rest = LAYOUTS.get((record.name, side), [])
    if record.name.startswith("CREATE_") and side == "out":
        rest = [("CMD_OUT_OBJECT", 0)]
    elif not rest and side == "in":
        rest = [("CMD_OBJECT", 0)]
    return head + rest


class Ifc:
    """The structs of mlx5_ifc.h, flattened on demand. Of unions, only the first member."""

    def __init__(self, path):
        text = re.sub(r"/\*.*?\*/", "", open(path, encoding="utf-8").read(), flags=re.S)
        self.structs, self.flat = {}, {}
        for kind, name, body in re.findall(r"^(struct|union) (mlx5_ifc_\w+)_bits \{\n(.*?)^\};",
                                           text, re.S | re.M):
            self.structs[name] = (kind, re.findall(
                r"^\t(?:u8|(?:struct|union) (mlx5_ifc_\w+)_bits)\s+(\w+)((?:\[[^\]]*\])*);",
                body, re.M))

    def fields(self, name):
        if name not in self.flat:
            self.flat[name] = self.flatten("mlx5_ifc_" + name)[0]
        return self.flat[name]

    def flatten(self, struct):
        kind, members = self.structs.get(struct, ("struct", []))
        found, at, longest = [], 0, 0
        for nested, name, dims in members:
            if kind == "union":
                at = 0
            size = 1
            for d in re.findall(r"\[([^\]]*)\]", dims):
                size *= int(d, 0) if re.fullmatch(r"0x[0-9a-fA-F]+|\d+", d) else 0
            if nested:
                inner, width = self.flatten(nested)
                for copy in range(size if dims else 1):
                    found += [(at + b, w, "%s.%s" % (name, n)) for b, w, n in inner
                              if kind == "struct" or not longest]
                    at += width
            elif size and (kind == "struct" or not longest):
                found.append((at, size, name))
                at += size
            else:
                at += size
            longest = max(longest, at)
        return found, longest if kind == "union" else at


class Layouts:
    def __init__(self, ifc=None):
        """ifc: path of mlx5_ifc.h; "": none; default: the newest installed one."""
        if ifc is None:
            ifc = (sorted(glob.glob(IFC)) or [""])[-1]
        self.prm = prm_fields()
        self.ifc = Ifc(ifc) if ifc else None
        self.cache = {}

    def ifc_fields(self, record, side):
        if not self.ifc:
            return []
        if record.name == "QUERY_HCA_CAP" and side == "out":
            group = CAPS.get(record.op_mod >> 1)
            inner = self.ifc.fields(group[1]) if group else []
            return [(CAP_AT * 8 + b, w, n) for b, w, n in inner]
        return self.ifc.fields("%s_%s" % (record.name.lower(), side))

    def fields(self, record, side):
        """Returns fields (first bit, width, name) that cover the box without overlap."""
        bits = len(record.box[side]) * 8
        key = (record.name, record.op_mod if record.name == "QUERY_HCA_CAP" else 0, side, bits)
        if key in self.cache:
            return self.cache[key]
        found, covered = [], bytearray(bits)

        def add(bit, width, name):
            if bit + width <= bits and not any(covered[bit:bit + width]):
                covered[bit:bit + width] = b"\1" * width
                found.append((bit, width, name))

        for prefix, at in parts_of(record, side):
            for name, (bit, width) in self.prm.items():
                if name == prefix or (prefix[-1] == "_" and name.startswith(prefix)):
                    add(at * 8 + bit, width, name)
        for bit, width, name in self.ifc_fields(record, side):
            for part in range(0, width, 64):
                add(bit + part, min(64, width - part),
                    name if width <= 64 else "%s+0x%x" % (name, part // 8))
        self.rest(bits, covered, found)
        found.sort()
        self.cache[key] = found
        return found

    @staticmethod
    def rest(bits, covered, found):
        bit = 0
        while bit < bits:
            end = bit
            while end < bits and end // 32 == bit // 32 and not covered[end]:
                end += 1
            if end > bit:
                high, low = 31 - bit % 32, 31 - (end - 1) % 32
                found.append((bit, end - bit, "word 0x%x bits %d..%d" % (bit // 32 * 4, high, low)))
            bit = max(end, bit + 1)

    def values(self, record, side):
        """Returns {field: value, None if it is masked}, without fields that are zero."""
        if record.box[side] is None:
            return {}
        whole, length = int.from_bytes(record.box[side], "big"), len(record.box[side]) * 8
        values = {}
        for bit, width, name in self.fields(record, side):
            if any(record.hidden[side][bit // 8:(bit + width + 7) // 8]):
                values[name] = None
            else:
                value = whole >> (length - bit - width) & ((1 << width) - 1)
                if value:
                    values[name] = value
        return values


def show(value):
    return "masked" if value is None else "0x%x" % value


# ---- comparison ----

# Fields that differ between two runs on one device: objects, addresses, sequence numbers.
EXPECTED = {
    "CMD_UID", "CMD_OBJECT", "CMD_OUT_OBJECT", "CREATE_CQ_UMEM_ID", "CQC_DBR_UMEM_ID",
    "CQC_UAR_PAGE", "CQC_C_EQN", "CQC_CONSUMER_COUNTER", "CQC_PRODUCER_COUNTER",
    "CREATE_QP_WQ_UMEM_ID", "MODIFY_QP_QPN", "QPC_PD", "QPC_UAR_PAGE", "QPC_REMOTE_QPN",
    "QPC_CQN_SND", "QPC_CQN_RCV", "QPC_SRQN_RMPN_XRQN", "QPC_DBR_UMEM_ID",
    "QPC_NEXT_SEND_PSN", "QPC_NEXT_RCV_PSN", "QPC_LAST_ACKED_PSN", "QPC_HW_SQ_WQEBB_COUNTER",
    "QPC_SW_SQ_WQEBB_COUNTER", "ADS_RGID", "ADS_RLID", "ADS_UDP_SPORT", "ADS_SRC_ADDR_INDEX",
    "ADS_RMAC_47_32", "ADS_RMAC_31_0", "WQ_PD", "WQ_UAR_PAGE", "WQ_DBR_UMEM_ID", "WQ_UMEM_ID",
}
EXPECTED_IFC = re.compile(r"(^|\.)(q_key|ssn|deth_sqpn|rmsn|xrcd|hw_rq_counter|sw_rq_counter|"
                          r"hw_counter|sw_counter|dc_access_key|headers_mkey|pas\b.*)")
FACTS = {
    "umem": ("size", "access", "pgsz_bitmap", "by", "errno"),
    "uar": ("type", "reg offset", "base offset", "errno"),
    "eqn": ("vector", "errno"),
    "events": ("of", "types", "errno"),
    "sdk": (),
}


def is_expected(name):
    return name in EXPECTED or EXPECTED_IFC.search(name) is not None


def key_of(record):
    text = re.sub(r"0x[0-9a-f]+", "#", record.object)
    detail = record.head.get("type", "") if record.kind == "uar" else ""
    if record.kind == "umem":
        detail = record.head.get("size", "")
    return record.kind, record.name, record.op_mod, text, detail


def align(a, b):
    """Returns pairs of corresponding records, in order; None stands for a missing one."""
    matcher = difflib.SequenceMatcher(None, [key_of(r) for r in a], [key_of(r) for r in b], False)
    matched, left_a, left_b = [], [], []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            matched += zip(a[i1:i2], b[j1:j2])
        else:
            left_a += a[i1:i2]
            left_b += b[j1:j2]
    for record in left_a:  # threads may have sent their commands in another order
        same = next((r for r in left_b if key_of(r) == key_of(record)), None)
        if same:
            left_b.remove(same)
        matched.append((record, same))
    return matched + [(None, r) for r in left_b]


def by_process(records):
    found = {}
    for r in records:
        if r.kind not in ("start", "device"):
            found.setdefault(r.pid, []).append(r)
    return list(found.values())


def diff_pair(layouts, a, b, everything):
    """Yields (field, value in a, value in b) for each difference of one pair of records."""
    if a.kind != "cmd":
        for name in FACTS.get(a.kind, ()):
            if a.head.get(name) != b.head.get(name):
                yield name, a.head.get(name, "-"), b.head.get(name, "-")
        return
    for name in ("status", "syndrome", "errno"):
        if getattr(a, name) != getattr(b, name):
            yield (name,) + tuple("-" if v is None else str(v) if name == "errno" else show(v)
                                  for v in (getattr(a, name), getattr(b, name)))
    for side in ("in", "out"):
        if len(a.box[side] or b"") != len(b.box[side] or b""):
            yield (side + " length", str(len(a.box[side] or b"")), str(len(b.box[side] or b"")))
        va, vb = layouts.values(a, side), layouts.values(b, side)
        for name in dict.fromkeys(list(va) + list(vb)):
            x, y = va.get(name, 0), vb.get(name, 0)
            if name in ("CMD_STATUS", "CMD_SYNDROME") or x == y:
                continue
            if everything or not is_expected(name):
                yield "%s %s" % (side, name), show(x), show(y)


def compare(layouts, a, b, everything=False):
    """Returns the differences of two lists of records as [(text, count)], in order."""
    found, pa, pb = {}, by_process(a), by_process(b)

    def note(text):
        found[text] = found.get(text, 0) + 1

    if len(pa) != len(pb):
        note("processes that sent commands: %d, %d" % (len(pa), len(pb)))
    for one, other in zip(pa, pb):
        for x, y in align(one, other):
            if x is None or y is None:
                note("%s: %s" % ((x or y).title(), "only in the first" if x else
                                 "only in the second"))
                continue
            for place, u, v in diff_pair(layouts, x, y, everything):
                note("%s: %s %s, %s" % (re.sub(r"0x[0-9a-f]+", "#", x.title()), place, u, v))
    return list(found.items())


def answers(records):
    """Returns the set of (command, status, syndrome, errno) of a trace."""
    return {(r.name, r.status, r.syndrome, r.errno) for r in records if r.kind == "cmd"}
