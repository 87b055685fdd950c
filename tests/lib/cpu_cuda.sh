# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Functions for scripts that compile programs with kernels for CPU threads. The including script
# runs at the top of the repository. try_compile also uses its variables name (its own, for messages)
# and objects (a folder), and sets bad to 1 after a failure.
# shellcheck disable=SC2154 # name and objects are the including script's
# shellcheck disable=SC2034 # the including script reads bad

# Writes headers in place of CUDA's, for all kernels of the programs to run on CPU threads.
cuda_headers() { # folder, which is made
	local h
	mkdir -p "$1"
	for h in cuda.h cuda_runtime.h cuda_runtime_api.h; do
		echo "#include \"$PWD/tests/consumers/cudart_cpu.h\"" >"$1/$h"
	done
}

try_compile() { # command, whose last word is the source
	"$@" >"$objects/err" 2>&1 && return
	echo "$name: ${*: -1} does not compile"
	grep error "$objects/err" | head -n 12 | sed 's/^/    /'
	bad=1
}
