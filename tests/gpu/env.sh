#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Functions for scripts on machines with a GPU but without network. The including script runs
# at the top of the repository and sets DIR, a temporary folder. use_debs unpacks the packages
# .gpu-deps/*.deb (from fetch-deps; DEBS: another folder) into DIR and sets up the environment so
# that compilers and programs use those libraries that the machine lacks. Nothing is installed.
# use_mpi does the same for Open MPI.

TRIPLET=$(uname -m)-linux-gnu

system_lib() { # SONAME: prints the path where the loader finds it
	ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }'
}

# Removes copies of libraries that the system has, so that no library is loaded twice, and
# redirects the link that the compiler uses (lib*.so) to the system's library.
prefer_system_libs() {
	for lib in "$1"/lib*.so.*; do
		[ -z "$(system_lib "$(basename "$lib")")" ] || rm -f "$lib"
	done
	for link in "$1"/lib*.so; do
		[ ! -L "$link" ] || [ -e "$link" ] || ln -sf "$(ldconfig -p | awk -v name="$(basename "$link")." \
			'index($1, name) == 1 { print $NF; exit }')" "$link"
	done
}

use_debs() {
	for deb in "${DEBS:-.gpu-deps}"/*.deb; do
		[ -e "$deb" ] || return 0
		dpkg -x "$deb" "$DIR/deps" || exit 1
	done
	libs="$DIR/deps/usr/lib/$TRIPLET"
	[ ! -d "$DIR/deps/lib/$TRIPLET" ] || mv "$DIR/deps/lib/$TRIPLET"/* "$libs"
	prefer_system_libs "$libs"
	headers="$DIR/deps/usr/include"
	export CPATH="$headers:$headers/$TRIPLET${CPATH:+:$CPATH}"
	export LIBRARY_PATH="$libs${LIBRARY_PATH:+:$LIBRARY_PATH}"
	export LD_LIBRARY_PATH="$libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
}

# To be called after use_debs. Prints the GPU, and builds the libraries and the software NIC, without
# the kernels of the examples, in $B.
build_nic() {
	nvidia-smi --query-gpu=name,driver_version,pci.bus_id --format=csv,noheader -i 0 || exit 1
	make -j"$(nproc)" NVCC= B="$B" libs "$B/bin/softnic-run" "$B/lib/libsoftnic.so" >"$DIR/log" 2>&1 || {
		tail -n 20 "$DIR/log"
		exit 1
	}
}

# To be called after use_debs. Sets MPICC, and MPIRUN to the command that starts the ranks: those of
# the machine, or of the packages. Returns 1 if there are none.
use_mpi() {
	MPICC=$(command -v mpicc)
	MPIRUN=$(command -v mpirun)
	if [ -z "$MPICC" ] || [ -z "$MPIRUN" ]; then
		MPICC=$DIR/deps/usr/bin/mpicc.openmpi MPIRUN=$DIR/deps/usr/bin/mpirun.openmpi
		[ -x "$MPICC" ] && [ -x "$MPIRUN" ] || return 1
		# The packages expect to be in /usr; there may be no ssh, which one host does not need.
		export OPAL_PREFIX="$DIR/deps/usr" PMIX_INSTALL_PREFIX="$libs/pmix2" \
			OPAL_SYSCONFDIR="$DIR/deps/etc/openmpi" OMPI_MCA_plm=isolated \
			OMPI_MCA_mtl='^ofi,psm,psm2' PMIX_MCA_pcompress_base_silence_warning=1
	fi
	export MPICC OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_pml=ob1 \
		OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none \
		OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
}

# Starts a CUDA MPS daemon if it is installed (unless NO_MPS=1). Its pipes are in a folder of this
# run, so that other programs do not use it. The caller calls mps_stop when it exits.
mps_start() {
	[ -z "${NO_MPS:-}" ] && command -v nvidia-cuda-mps-control >/dev/null || return 0
	mkdir -p "$DIR/mps"
	export CUDA_MPS_PIPE_DIRECTORY="$DIR/mps" CUDA_MPS_LOG_DIRECTORY="$DIR/mps"
	if CUDA_VISIBLE_DEVICES=0 timeout 20 nvidia-cuda-mps-control -d; then
		echo "one GPU: the processes share it through CUDA MPS"
	else
		unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
		echo "one GPU: cannot start CUDA MPS, the processes run alternately"
	fi
}

mps_stop() {
	[ -n "${CUDA_MPS_PIPE_DIRECTORY:-}" ] || return 0
	echo quit | timeout 20 nvidia-cuda-mps-control >/dev/null
	unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}
