# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The example programs, and their kernels if nvcc is found.
EXAMPLE_MAINS := $(sort $(wildcard examples/gpunetio_*.c) examples/hello_put.c)
EXAMPLE_COMMON := $(filter-out $(EXAMPLE_MAINS),$(sort $(wildcard examples/*.c)))
EXAMPLES := $(patsubst examples/%.c,$(B)/bin/%,$(EXAMPLE_MAINS))
CUDA_SO  := $(if $(SAN),,$(if $(NVCC),$(patsubst examples/%_kernel.cu,$(B)/lib/lib%_cuda.so,$(sort $(wildcard examples/*_kernel.cu)))))

# nvcc's options for the architectures, which core/cuda_arch.sh chooses when a kernel is about to be
# compiled. It changes the file, so that kernels are compiled again, only if the options or nvcc
# change.
NVCC_OPTIONS := $(B)/settings/nvcc
GENCODE = $(file <$(NVCC_OPTIONS))
# clang sees the inline functions of headers as unused functions of nvcc's generated source file.
NVCC_WARN := -Xcompiler -Wall $(if $(findstring clang,$(CUDAHOSTCXX)),-Xcompiler -Wno-unused-function)
$(NVCC_OPTIONS): FORCE
	@NVCC='$(NVCC)' CUDA_ARCH='$(CUDA_ARCH)' CUDAHOSTCXX='$(CUDAHOSTCXX)' CC='$(CC)' core/cuda_arch.sh $@

$(EXAMPLES): $(B)/bin/%: $(B)/obj/examples/%.o $(call obj,$(EXAMPLE_COMMON)) $(LIBS)
	$(call link,$(LINK_LIBS) $(SYS_LIBS))

# nvcc puts the names of its temporary files, and symbols made from the absolute path of the source,
# into the library. Both are set here, so that two builds in two folders give the same bytes.
$(B)/lib/lib%_cuda.so: examples/%_kernel.cu $(HDR_top) $(HDR_common) $(HDR_device) $(HDR_gdk) \
		$(wildcard examples/*.h) $(NVCC_OPTIONS) | stage
	$(call say,NVCC)
	@rm -rf $@.tmp && mkdir -p $@.tmp
	$(Q)$(NVCC) -std=c++17 -O3 $(GENCODE) -I$(B)/include -Xcompiler -fPIC $(NVCC_WARN) -shared \
		-keep -keep-dir $@.tmp -Xcudafe --orig_src_path_name=$< -cudart static -o $@ $<
	@rm -rf $@.tmp
