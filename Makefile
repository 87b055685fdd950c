# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The library, the software NIC and the examples. The rules of the tests are in tests/tests.mk.
# Nothing needs CUDA; nvcc is used if it is installed. `make help` prints the lines that begin
# with ##: "## NAME  text" for a target, "##= NAME  text" for a variable.

##= CC                compiler for C; CC=clang also selects clang++ for CXX (gcc)
CC     ?= gcc
ifeq ($(origin CC),default)
CC     := gcc
endif
##= CXX               compiler for C++, for kernels on CPU threads (the one beside CC)
ifeq ($(origin CXX),default)
CXX    := $(foreach w,$(CC),$(if $(findstring /,$(w)),$(dir $(w)))$(patsubst cc,c++,$(subst gcc,g++,$(subst clang,clang++,$(notdir $(w))))))
endif
##= AR                archiver (the one that CC uses, also for another processor)
ifeq ($(origin AR),default)
AR     := $(or $(shell $(CC) -print-prog-name=ar 2>/dev/null),ar)
endif
VERSION := $(shell sed -n 's/^.define GDK_VERSION "\(.*\)"/\1/p' core/include/host/gdk_version.h)
##= SAN               address, undefined or thread: build with that sanitizer in build/san-SAN
SAN    ?=
##= B                 folder of everything that is built, also outside of the source tree (build)
B      := build$(if $(SAN),/san-$(SAN))
override B := $(patsubst %/,%,$(B))
# What is in B belongs to gdaki: `make` writes there, `make clean` deletes there. A folder that a build
# created has the file .gdaki-build. Any other folder must be empty, in such a folder, or `build` here.
B_IS := $(abspath $(B))
B_OWN := $(filter $(CURDIR)/build $(CURDIR)/build/%,$(B_IS))$(wildcard $(addsuffix .gdaki-build,$(B_IS)/ $(dir $(B_IS))) $(B)/settings/cc)
b-error = $(error B="$(B)" $(1): B is the folder of everything that is built)
ifneq ($(word 2,$(CURDIR))$(findstring ',$(CURDIR))$(findstring ",$(CURDIR)),)
$(error the path of this folder must not contain spaces or quotes: $(CURDIR))
endif
ifneq ($(words $(B))$(findstring ',$(B))$(findstring ",$(B))$(findstring ~,$(filter ~%,$(B))),1)
$(call b-error,is empty or / or contains spaces or quotes or begins with ~)
endif
ifneq ($(filter $(B_IS) $(B_IS)/%,$(CURDIR))$(wildcard $(B)/core/include/host/gdk_version.h),)
$(call b-error,contains the sources of gdaki)
endif
ifeq ($(B_OWN),)
ifneq ($(shell ls -A -- $(B) 2>/dev/null),)
$(call b-error,is not empty and was not created by a build of gdaki)
endif
endif
ifneq ($(filter-out clean help link-line deps uninstall,$(or $(MAKECMDGOALS),all)),)
ifeq ($(findstring n,$(filter-out --%,$(firstword -$(MAKEFLAGS))))$(wildcard $(B)/.gdaki-build),)
$(shell mkdir -p $(B) && : >$(B)/.gdaki-build)
endif
endif
##= NVCC              CUDA's compiler, 12.2 or newer; NVCC= builds without CUDA (nvcc, if it is found)
NVCC   ?= $(firstword $(wildcard $(shell command -v nvcc 2>/dev/null) /usr/local/cuda/bin/nvcc))
##= CUDA_ARCH         GPU architectures to compile for (those of 80 90 100 that nvcc supports; for `make test` alone: 90)
CUDA_ARCH ?=
##= CUDAHOSTCXX       nvcc's compiler for host code (chosen by nvcc: g++, also if CC is clang)
CUDAHOSTCXX ?=

##= OPT               optimization and debug options (-O2 -g)
OPT    ?= -O2 -g
##= CFLAGS            added to the compiler's options; also CXXFLAGS and LDFLAGS
WARN   := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
SANFLAGS_address   := -fsanitize=address -fno-omit-frame-pointer
SANFLAGS_undefined := -fsanitize=undefined -fno-sanitize-recover=undefined
SANFLAGS_thread    := -fsanitize=thread
ifneq ($(SAN),)
SANFLAGS := $(or $(SANFLAGS_$(SAN)),$(error SAN is address, undefined or thread)) -DGDK_SAN
endif
LAYERS := core umem uar cq doorbell qp
SDK_PARTS := flow eth rdma dma
SDK_ARCHIVES := $(SDK_PARTS) doca
# Public headers by their installed path, which is the path below include/; private ones from the
# root of the tree.
INC_PUBLIC := $(LAYERS:%=-I%/include)
INC := $(INC_PUBLIC) -iquote .
INC_DOCA := $(SDK_ARCHIVES:%=-Iqp/%/include)
# No file that is built contains a path of the machine that built it. gcov needs these paths.
MAP := $(if $(COVFLAGS),,'-ffile-prefix-map=$(CURDIR)=.' '-ffile-prefix-map=$(B)=build')
# Compilers, also those that nvcc starts, record $PWD. It can contain symbolic links, so that MAP
# would not replace it; CURDIR contains none.
export PWD := $(CURDIR)
CFLAGS_ALL = -std=gnu11 -D_GNU_SOURCE -fPIC -pthread $(WARN) $(OPT) $(SANFLAGS) $(COVFLAGS) \
	-MMD -MP $(INC) $(MAP) $(VISIBILITY) $(CFLAGS)
CXXFLAGS_ALL = -std=c++17 -D_GNU_SOURCE -fPIC -pthread -Wall -Wextra -Werror $(OPT) \
	$(SANFLAGS) $(COVFLAGS) -MMD -MP $(INC) $(MAP) $(CXXFLAGS)
LDFLAGS_ALL := -pthread $(SANFLAGS) $(COVFLAGS) $(LDFLAGS)

##= V                 V=1 prints each command
ifeq ($(V),)
Q := @
say = @printf '  %-5s %s\n' $(1) $(patsubst $(CURDIR)/%,%,$@)
else
say = @:
endif
define link # $(1): libraries; LINKER: compiler that links, if it is not CC
	$(call say,LD)
	@mkdir -p $(@D)
	$(Q)$(or $(LINKER),$(CC)) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(1)
endef

# ---- sources: one list per archive ----
ARCHIVES := core umem uar cq qp
SRCS_core := $(sort $(wildcard core/*.c core/*/*.c))
SRCS_umem := $(sort $(wildcard umem/*.c))
SRCS_uar  := $(sort $(wildcard uar/*.c))
SRCS_cq   := $(sort $(wildcard cq/*.c))
SRCS_qp   := $(sort $(wildcard qp/verbs/*.c qp/export/*.c qp/high_level/*.c))
# The interface of the DOCA SDK, which is not in the merged archive. An archive takes symbols only of
# those to its right.
SRCS_doca := $(sort $(wildcard qp/doca/*.c qp/doca/*/*.c))
# Its libraries on top, an archive each: folder qp/NAME, headers qp/NAME/include, doca-X.pc in
# qp/NAME/pkgconfig.
$(foreach p,$(SDK_PARTS),$(eval SRCS_$(p) := $(sort $(wildcard qp/$(p)/*.c))))
DB_STRATEGIES  := gpu_sm bf cpu_proxy
SRCS_db_gpu_sm    := doorbell/gpu_sm.c
SRCS_db_bf        := doorbell/bf.c
SRCS_db_cpu_proxy := $(sort $(wildcard doorbell/cpu_proxy*.c doorbell/service*.c))
SRCS_db_auto      := doorbell/auto.c
DB_ARCHIVES := $(addprefix db_,$(DB_STRATEGIES)) db_auto

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
LIBS := $(patsubst %,$(B)/lib/libgdaki_%.a,$(ARCHIVES) $(DB_ARCHIVES) db_none)
SDK_LIBS := $(SDK_ARCHIVES:%=$(B)/lib/libgdaki_%.a)
SDK_LINK_LIBS := $(SDK_ARCHIVES:%=-lgdaki_%)
SDK_OBJS := $(call obj,$(foreach a,$(SDK_ARCHIVES),$(SRCS_$(a))))
MERGED := $(B)/lib/libgdaki.a
LIB_OBJS := $(call obj,$(foreach a,$(ARCHIVES) $(DB_ARCHIVES),$(SRCS_$(a))))
NONE_OBJS := $(patsubst %,$(B)/obj/doorbell/none_%.o,$(DB_STRATEGIES))

# From qp down to core, with the doorbell strategies in the middle.
GDAKI_LIBS := $(patsubst %,-lgdaki_%,qp db_auto $(DB_STRATEGIES:%=db_%) db_none cq uar umem core)
LINK_LIBS := -L$(B)/lib $(GDAKI_LIBS)
SYS_LIBS := -lmlx5 -libverbs -lnuma -ldl -lpthread

.DEFAULT_GOAL := all
.PHONY: all libs stage remove-old demo run-demo deps link-line clean help
.DELETE_ON_ERROR:
# Without built-in rules, one of which would build X.d from X.d.o.
MAKEFLAGS += --no-builtin-rules
# These goals start make again, or delete what other goals build: none runs beside another goal.
ifneq ($(and $(word 2,$(MAKECMDGOALS)),$(filter demo test test-models check bench coverage fuzz clean install install_examples uninstall,$(MAKECMDGOALS))),)
.NOTPARALLEL:
endif

# ---- staged headers: what `make install` installs ----
# The headers of a layer are named by their installed path. An installed header names others relative
# to its folder, so that programs can include it by any path.
HDR := $(sort $(wildcard $(foreach d,$(LAYERS),$(addprefix $(d)/include/,*.h */*.h */*.cuh */*/*.h))))
header-path = $(strip $(foreach d,$(LAYERS),$(patsubst $(d)/include/%,%,$(filter $(d)/include/%,$(1)))))
define stage-rule # $(1): header, $(2): its path below include/
STAGED += $(B)/include/$(2)
$(B)/include/$(2): $(1)
	@mkdir -p $$(@D) && rm -f $$@ && sed 's|^\(# *include "\)|\1$(subst $(eval) ,,$(patsubst %,../,$(wordlist 2,9,$(subst /, ,$(2)))))|' $(1) >$$@
endef
$(foreach h,$(HDR),$(eval $(call stage-rule,$(h),$(call header-path,$(h)))))
# The headers of gdaki-doca: one flat folder, whose files include those of build/include.
HDR_doca := $(wildcard $(foreach a,$(SDK_ARCHIVES),qp/$(a)/include/*.h qp/$(a)/include/*.cuh))
define stage-doca-rule # $(1): header
STAGED_DOCA += $(B)/include-doca/$(notdir $(1))
$(B)/include-doca/$(notdir $(1)): | $(1)
	@mkdir -p $$(@D) && ln -sfnr $(1) $$@
endef
$(foreach h,$(HDR_doca),$(eval $(call stage-doca-rule,$(h))))
stage: $(STAGED) $(STAGED_DOCA)

# ---- compile and archive ----
define compile # $(1): added to the options
	$(call say,CC)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(1) -c -o $@ $<
endef
# A shared object that links the archives exports none of their symbols. Otherwise two such objects
# in one process, or a program with functions of the same names, would call each other's functions.
HIDDEN := -fvisibility=hidden
$(LIB_OBJS) $(NONE_OBJS) $(SDK_OBJS): VISIBILITY := $(HIDDEN)
$(SDK_OBJS): INC += $(INC_DOCA)
$(B)/obj/%.o: %.c $(B)/settings/cc | stage
	$(call compile)
$(B)/obj/doorbell/none_%.o: doorbell/none.c $(B)/settings/cc | stage
	$(call compile,-DSTRATEGY=$*)

$(LIBS) $(SDK_LIBS): $(B)/settings/ar
	$(call say,AR)
	@mkdir -p $(@D) && rm -f $@
	$(Q)$(AR) rcsD $@ $(filter %.o,$^)
$(foreach a,$(ARCHIVES) $(DB_ARCHIVES) $(SDK_ARCHIVES),$(eval $(B)/lib/libgdaki_$(a).a: $(call obj,$(SRCS_$(a)))))
$(B)/lib/libgdaki_db_none.a: $(NONE_OBJS)
# The merged archive. Its members are named after their folders, as core_error.o and qp_error.o:
# of two members with the same name, ar extracts or replaces only one.
$(MERGED): $(LIB_OBJS) $(B)/settings/ar
	$(call say,AR)
	@mkdir -p $(@D) && rm -rf $@ $(B)/obj/merged && mkdir -p $(B)/obj/merged
	@$(foreach o,$(LIB_OBJS),ln -sr $(o) $(B)/obj/merged/$(subst /,_,$(o:$(B)/obj/%=%)) &&) :
	$(Q)$(AR) rcsD $@ $(foreach o,$(LIB_OBJS),$(B)/obj/merged/$(subst /,_,$(o:$(B)/obj/%=%)))
libs: $(LIBS) $(MERGED) $(SDK_LIBS)

include core/install/install.mk tests/softnic/softnic.mk examples/examples.mk tests/fuzz/fuzz.mk tests/tests.mk

# ---- changed settings ----
# $(B)/settings/NAME contains the command that SETTINGS_NAME expands to. What the command builds
# depends on this file, which is written again only if the command has changed.
SETTINGS_cc   := $(CC) $(subst $(MAP),,$(CFLAGS_ALL)) $(HIDDEN) $(TEST_UNIT_OPT) $(TEST_OPT) $(TEST_DEV_OPT)
SETTINGS_cxx  := $(CXX) $(subst $(MAP),,$(CXXFLAGS_ALL)) $(TEST_DEV_OPT) $(KERNEL_FLAGS)
SETTINGS_ld   := $(CC) $(CXX) $(LDFLAGS_ALL) $(ALL_LIBS) $(UNLOCK)
SETTINGS_ar   := $(AR) $(LIB_OBJS) $(SDK_OBJS)
SETTINGS_fuzz := $(FUZZ_CC) $(FUZZ_CFLAGS)
# An absolute B in this folder builds the same as a relative one.
$(foreach s,cc cxx ld ar fuzz,$(eval SETTINGS_$(s) := $$(subst $$(CURDIR)/,,$$(SETTINGS_$(s)))))
# strip removes the newline that make 4.3 sometimes keeps at the end of a file.
differ = $(call unequal,x$(strip $(1)),x$(strip $(2)))
# Empty if the arguments are equal: each removes itself from the other.
unequal = $(subst $(1),,$(2))$(subst $(2),,$(1))
define settings-rule
$(B)/settings/$(1): $(if $(call differ,$(SETTINGS_$(1)),$(file <$(B)/settings/$(1))),FORCE)
	@mkdir -p $$(@D) && printf '%s\n' '$$(subst ','\'',$$(SETTINGS_$(1)))' >$$@
endef
$(foreach s,cc cxx ld ar fuzz,$(eval $(call settings-rule,$(s))))
$(SOFTNIC) $(EXAMPLES) $(PROGRAMS): $(B)/settings/ld
FORCE:

# ---- targets ----
# Kernels that this make does not build, because it has no nvcc or they were deleted. An example
# would load them.
OLD_CUDA_SO := $(filter-out $(CUDA_SO),$(wildcard $(B)/lib/lib*_cuda.so))
remove-old:
	rm -f $(OLD_CUDA_SO)
## all                build the library, the software NIC and the examples (default)
all: libs $(SOFTNIC) $(EXAMPLES) $(CUDA_SO) $(if $(OLD_CUDA_SO),remove-old)

# A recipe with $(MAKE) installs missing packages first. It starts make again so that the new make
# finds what was installed.
## demo               install missing packages, build, run the main job on the software NIC
demo:
	@tests/deps.sh build demo
	@$(MAKE) --no-print-directory all
	@$(MAKE) --no-print-directory run-demo
run-demo:
	@B=$(B) examples/demo.sh

## deps               install the packages that building and testing need
deps:
	@tests/deps.sh build demo test

## link-line          print the linker options for a program that uses this tree
link-line: ; @echo '$(LINK_LIBS) $(SYS_LIBS)'

## clean              remove everything that was built
clean:
	rm -rf $(if $(filter build build/%,$(B)),build,$(wildcard $(addprefix $(B)/,aarch64 bench bin \
		build.times captures consumers coverage doc fuzz fuzz-run.log gpu hw \
		include include-doca lib obj rdma-core run.log san-logs sanity settings soak standin test-output test-results \
		tests thread ucx-host)))
	@[ "$$(ls -A $(B) 2>/dev/null)" != .gdaki-build ] || rm -f $(B)/.gdaki-build

## help               print this text
MK := $(MAKEFILE_LIST)
help:
	@echo Targets:; sed -n 's/^## /  /p' $(MK)
	@echo 'Variables (default):'; sed -n 's/^##= /  /p' $(MK)

# No rule makes the lists of headers; the compiler writes them.
%.d: ;
-include $(shell find $(B)/obj $(B)/fuzz/obj -name '*.d' 2>/dev/null)
