# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The example programs, and their kernels if nvcc is found. A folder examples/NAME with a file NAME.c
# becomes the program NAME; its NAME_kernel.cu becomes libNAME_cuda.so. A folder with its own rules
# is listed in EXAMPLES_APART, a program that needs MPI in EXAMPLES_MPI.
EXAMPLES_APART := common strategy_batching
EXAMPLES_MPI := gpunetio_verbs_alltoall
##= MPICC             MPI's compiler for C, whose options are used; MPICC= builds without MPI (mpicc, if it is found)
MPICC ?= $(shell command -v mpicc 2>/dev/null)
EXAMPLE_NAMES := $(filter-out $(EXAMPLES_APART) $(if $(MPICC),,$(EXAMPLES_MPI)),$(foreach d,$(sort $(wildcard examples/*)),$(if $(wildcard $(d)/$(notdir $(d)).c),$(notdir $(d)))))
EXAMPLE_MAINS := $(foreach n,$(EXAMPLE_NAMES),examples/$(n)/$(n).c)
EXAMPLE_COMMON := $(sort $(wildcard examples/common/*.c))
# Of examples/common, what a program needs that does not need all of it, and then no json-c.
EXAMPLE_COMMON_hello_put := $(patsubst %,examples/common/%.c,connect endpoint error nic)
EXAMPLE_COMMON_gpunetio_dma_memcpy := $(patsubst %,examples/common/%.c,error grid)
EXAMPLE_COMMON_gpunetio_rdma_client_server_write := $(patsubst %,examples/common/%.c,connect endpoint error exchange grid message nic)
# The Ethernet examples also share examples/ethernet.
EXAMPLES_ETH := gpunetio_echo gpunetio_send_wait_time gpunetio_simple_receive gpunetio_simple_send
EXAMPLE_ETH := $(sort $(wildcard examples/ethernet/*.c)) $(patsubst %,examples/common/%.c,connect endpoint error exchange grid message nic)
$(foreach n,$(EXAMPLES_ETH),$(eval EXAMPLE_COMMON_$(n) := $(EXAMPLE_ETH)))
# Programs with the interface of the DOCA SDK.
EXAMPLES_DOCA := gpunetio_dma_memcpy gpunetio_rdma_client_server_write $(EXAMPLES_ETH)
EXAMPLES := $(addprefix $(B)/bin/,$(EXAMPLE_NAMES))
EXAMPLE_KERNELS := $(if $(SAN),,$(if $(NVCC),$(notdir $(patsubst %_kernel.cu,%,$(foreach n,$(EXAMPLE_NAMES),$(wildcard examples/$(n)/$(n)_kernel.cu))))))
CUDA_SO  := $(EXAMPLE_KERNELS:%=$(B)/lib/lib%_cuda.so)
# Libraries that a program needs besides gdaki's: EXAMPLE_LIBS_NAME.
EXAMPLE_LIBS_gpunetio_doctor := -ljson-c
ifneq ($(MPICC),)
MPI_OPTIONS := $(wordlist 2,99,$(shell $(MPICC) -show))
$(foreach n,$(EXAMPLES_MPI),$(eval EXAMPLE_LIBS_$(n) := $(filter -L% -l%,$(MPI_OPTIONS))))
else
$(EXAMPLES_MPI:%=$(B)/bin/%):
	@echo '$(@F) needs MPI: install openmpi-bin and libopenmpi-dev (make deps)' >&2; exit 1
endif
# A script in a folder of its own, which gets the version.
EXAMPLES += $(B)/bin/gpunetio_plot
$(B)/bin/gpunetio_plot: examples/gpunetio_plot/gpunetio_plot core/include/host/gdk_version.h
	$(call say,GEN)
	@mkdir -p $(@D)
	$(Q)sed 's/@VERSION@/$(VERSION)/' $< >$@ && chmod +x $@

# nvcc's options for the architectures, which core/install/cuda_arch.sh chooses when a kernel is about to be
# compiled. It changes the file, so that kernels are compiled again, only if the options or nvcc
# change.
NVCC_OPTIONS := $(B)/settings/nvcc
GENCODE = $(file <$(NVCC_OPTIONS))
# clang sees the inline functions of headers as unused functions of nvcc's generated source file.
NVCC_WARN := -Xcompiler -Wall $(if $(findstring clang,$(CUDAHOSTCXX)),-Xcompiler -Wno-unused-function)
$(NVCC_OPTIONS): FORCE
	@NVCC='$(NVCC)' CUDA_ARCH='$(CUDA_ARCH)' CUDAHOSTCXX='$(CUDAHOSTCXX)' CC='$(CC)' core/install/cuda_arch.sh $@

$(B)/obj/examples/%.o: INC += -Iexamples/common
$(addsuffix /%.o,$(addprefix $(B)/obj/examples/,$(EXAMPLES_ETH) ethernet)): INC += -Iexamples/ethernet
$(addsuffix /%.o,$(addprefix $(B)/obj/examples/,$(EXAMPLES_DOCA) ethernet)): INC += $(INC_DOCA)
$(EXAMPLES_DOCA:%=$(B)/bin/%): $(SDK_LIBS)
$(addsuffix /%.o,$(addprefix $(B)/obj/examples/,$(EXAMPLES_MPI))): INC += $(filter -I%,$(MPI_OPTIONS))
# A kernel is compiled twice: by CXX for CPU threads, into the program, and by nvcc. Without variables
# in the debug information, of which few remain after inlining, CXX needs two thirds of the time.
$(B)/obj/examples/%_kernel.o: OPT = -O2 -g1
$(B)/obj/examples/%_kernel.o: examples/%_kernel.cu $(B)/settings/cxx | stage
	$(call say,CXX)
	@mkdir -p $(@D)
	$(Q)$(CXX) -x c++ $(CXXFLAGS_ALL) -c -o $@ $<
example-kernel-obj = $(patsubst %.cu,$(B)/obj/%.o,$(wildcard examples/$(1)/$(1)_kernel.cu))
define example-rule # $(1): program
$(B)/bin/$(1): private LINKER := $$(if $$(call example-kernel-obj,$(1)),$$(CXX))
$(B)/bin/$(1): $$(call obj,$$(sort $$(wildcard examples/$(1)/*.c)) $$(or $$(EXAMPLE_COMMON_$(1)),$$(EXAMPLE_COMMON))) $$(call example-kernel-obj,$(1)) $$(LIBS)
	$$(call link,$$(if $$(filter $(1),$$(EXAMPLES_DOCA)),-L$$(B)/lib $$(SDK_LINK_LIBS)) $$(LINK_LIBS) $$(EXAMPLE_LIBS_$(1)) $$(if $$(EXAMPLE_COMMON_$(1)),,-ljson-c) $$(SYS_LIBS))
endef
$(foreach n,$(EXAMPLE_NAMES),$(eval $(call example-rule,$(n))))

# nvcc puts the names of its temporary files, and symbols made from the absolute path of the source,
# into the library. Both are set here, so that two builds in two folders give the same bytes.
define kernel-rule # $(1): program
$(B)/lib/lib$(1)_cuda.so: examples/$(1)/$(1)_kernel.cu $$(HDR) $$(if $$(filter $(1),$$(EXAMPLES_DOCA)),$$(HDR_doca)) \
		$$(wildcard $$(addprefix examples/,common/*.h common/*.cuh ethernet/*.h $(1)/*.h)) $$(NVCC_OPTIONS) | stage
	$$(call say,NVCC)
	@rm -rf $$@.tmp && mkdir -p $$@.tmp
	$$(Q)$$(NVCC) -std=c++17 -O3 $$(GENCODE) $$(INC_PUBLIC) $$(if $$(filter $(1),$$(EXAMPLES_DOCA)),$$(INC_DOCA)) -Iexamples/common $$(if $$(filter $(1),$$(EXAMPLES_ETH)),-Iexamples/ethernet) -Xcompiler -fPIC $$(NVCC_WARN) \
		-shared -keep -keep-dir $$@.tmp -Xcudafe --orig_src_path_name=$$< -cudart static -o $$@ $$<
	@rm -rf $$@.tmp
endef
$(foreach n,$(EXAMPLE_KERNELS),$(eval $(call kernel-rule,$(n))))

.PHONY: example-kernel
# Prints the GPU code that belongs to the example NAME, for examples/example.mk.
example-kernel: ; @echo $(filter %/lib$(NAME)_cuda.so,$(CUDA_SO))
