# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Included by the Makefile of each example, so that `make` in its folder builds it there: in the source
# tree with that tree's library, in a copy of the installed examples with the gdaki that pkg-config
# finds. NVCC= builds without CUDA; CUDA_ARCH selects the architecture of the GPU (native).
NAME := $(notdir $(CURDIR))
ifneq ($(wildcard ../../core/include/host/gdk_version.h),)

.PHONY: all clean
all:
	@$(MAKE) --no-print-directory -C ../.. build/bin/$(NAME) \
		$$($(MAKE) --no-print-directory -s -C ../.. example-kernel NAME=$(NAME))
	@ln -sfn ../../build/bin/$(NAME) $(NAME)
clean:
	rm -f $(NAME)

else

CXX  ?= g++
NVCC ?= $(firstword $(wildcard $(shell command -v nvcc 2>/dev/null) /usr/local/cuda/bin/nvcc))
CUDA_ARCH ?= native
CFLAGS ?= -O2 -g
KERNEL := $(wildcard $(NAME)_kernel.cu)
# hello_put needs neither all shared files nor json-c.
COMMON_hello_put := $(patsubst %,../common/%.c,connect endpoint error nic)
COMMON_gpunetio_dma_memcpy := $(patsubst %,../common/%.c,error grid)
PACKAGE_gpunetio_dma_memcpy := gdaki-doca
COMMON_gpunetio_rdma_client_server_write := $(patsubst %,../common/%.c,connect endpoint error exchange grid message nic)
PACKAGE_gpunetio_rdma_client_server_write := gdaki-doca
# The Ethernet examples also share ../ethernet.
ifneq ($(filter $(NAME),gpunetio_echo gpunetio_send_wait_time gpunetio_simple_receive gpunetio_simple_send),)
ETHERNET := -I../ethernet
COMMON_$(NAME) := $(wildcard ../ethernet/*.c) $(patsubst %,../common/%.c,connect endpoint error exchange grid message nic)
PACKAGE_$(NAME) := gdaki-doca
endif
PACKAGE := $(or $(PACKAGE_$(NAME)),gdaki)
COMMON := $(or $(COMMON_$(NAME)),$(wildcard ../common/*.c))
HEADERS := $(wildcard *.h ../common/*.h ../common/*.cuh ../ethernet/*.h)
FLAGS := -I../common $(ETHERNET) $(shell pkg-config --cflags $(PACKAGE)) -D_GNU_SOURCE -pthread $(FLAGS_$(NAME))
# The kernel is compiled for CPU threads, into the program, and for a GPU.
OBJECTS := $(patsubst %.c,%.o,$(notdir $(wildcard *.c) $(COMMON))) $(KERNEL:.cu=.o)
.PHONY: all clean
all: $(NAME) $(if $(and $(KERNEL),$(NVCC)),lib$(NAME)_cuda.so)
vpath %.c ../common ../ethernet
%.o: %.c $(HEADERS)
	$(CC) -std=gnu11 $(CFLAGS) $(FLAGS) -c -o $@ $<
%.o: %.cu $(HEADERS)
	$(CXX) -x c++ -std=c++17 $(CFLAGS) $(FLAGS) -c -o $@ $<
$(NAME): $(OBJECTS)
	$(if $(KERNEL),$(CXX),$(CC)) -pthread -o $@ $^ $(shell pkg-config --libs $(PACKAGE)) $(LIBS_$(NAME)) \
		$(if $(COMMON_$(NAME)),,-ljson-c)
lib$(NAME)_cuda.so: $(KERNEL) $(HEADERS)
	$(NVCC) -std=c++17 -O3 -arch=$(CUDA_ARCH) -I../common $(ETHERNET) $(shell pkg-config --cflags-only-I $(PACKAGE)) \
		-Xcompiler -fPIC -shared -cudart static -o $@ $<
clean:
	rm -f $(NAME) $(OBJECTS) lib$(NAME)_cuda.so

endif
