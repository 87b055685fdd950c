#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
"""Translates the launches of kernels in a CUDA source, so that g++ compiles the source with
cudart_cpu.h and CPU threads run the kernels.
usage: cpu_launch.py FILE.cu >FILE.cpp"""
import re
import sys

SIZE = r"(dim3\([^()<>]*\)|(?:[^,<>]|->)+)"
LAUNCH = rf"(\w+(?:<[^;{{}}()]*?>)?)\s*<<<\s*{SIZE},\s*{SIZE},\s*0,\s*(\w+)\s*>>>\s*\("

with open(sys.argv[1]) as f:
    text, launches = re.subn(LAUNCH, r"GDK_LAUNCH((\1), \2, \3, \4, ", f.read())
if not launches or "<<<" in text:
    sys.exit("cpu_launch.py: %s: a launch is not understood" % sys.argv[1])
print('#include <cuda.h>\n#line 1 "%s"\n%s' % (sys.argv[1], text))
