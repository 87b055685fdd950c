/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Calls the functions that add entries in the form of version 3.2 of DOCA Flow, as Holohub's
 * manager does in C++. tests/doca_calls.sh compiles this file as C11, C++17 and CUDA, and links it.
 * It is not executed: main() does nothing without arguments.
 */
#define GDK_DOCA_FLOW_3_2

#include <doca_flow.h>

/* Programs initialize the structs in these ways. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wmissing-braces"

int main(int argc, char **argv)
{
	struct doca_flow_match match = { 0 };
	struct doca_flow_fwd fwd = {
		.type = DOCA_FLOW_FWD_PIPE,
		.next_pipe = NULL,
	};
	struct doca_flow_pipe_entry *entry;
	struct doca_flow_pipe *pipe = NULL;

	(void)argv;
	return argc > 1 && (doca_flow_pipe_add_entry(0, pipe, &match, 0, NULL, NULL, NULL,
						     DOCA_FLOW_NO_WAIT, NULL, &entry) ||
			    doca_flow_pipe_control_add_entry(0, 1, pipe, &match, NULL, NULL, NULL,
							     NULL, NULL, NULL, &fwd, NULL, &entry));
}
