/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Runs inputs through a fuzzer's function without libFuzzer. Each argument is a file
 * named *.hex with one input per line, or a file that is itself one input. If an input
 * ends the process, its name is printed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "input.h"

void __sanitizer_set_death_callback(void (*fn)(void)) __attribute__((weak));

static char name[512];
static unsigned num;

static void say_name(void)
{
	if (write(STDERR_FILENO, name, strlen(name)) < 0)
		return;
}

static void on_signal(int sig)
{
	say_name();
	signal(sig, SIG_DFL);
	raise(sig);
}

/* Copies the input to a block of its exact size, so that a sanitizer detects reads
 * beyond its end. */
static void run(const uint8_t *bytes, size_t len)
{
	uint8_t *data = malloc(len ? len : 1);

	if (!data)
		exit(2);
	memcpy(data, bytes, len);
	LLVMFuzzerTestOneInput(data, len);
	free(data);
	num++;
}

static size_t unhex(char *line)
{
	uint8_t *out = (uint8_t *)line;
	size_t n = 0;

	while (sscanf(line + 2 * n, "%2hhx", &out[n]) == 1)
		n++;
	return n;
}

static void run_lines(FILE *f, const char *path)
{
	char line[16384];
	unsigned at = 0;

	while (fgets(line, sizeof(line), f)) {
		at++;
		if (line[0] == '#')
			continue;
		snprintf(name, sizeof(name), "%s:%u\n", path, at);
		run((const uint8_t *)line, unhex(line));
	}
}

static void run_file(const char *path)
{
	static uint8_t bytes[1 << 20];
	size_t n = strlen(path);
	FILE *f = fopen(path, "rb");

	if (!f) {
		perror(path);
		exit(2);
	}
	if (n > 4 && !strcmp(path + n - 4, ".hex")) {
		run_lines(f, path);
	} else {
		snprintf(name, sizeof(name), "%s\n", path);
		run(bytes, fread(bytes, 1, sizeof(bytes), f));
	}
	fclose(f);
}

int main(int argc, char **argv)
{
	int i;

	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(say_name);
	else
		signal(SIGSEGV, on_signal), signal(SIGBUS, on_signal), signal(SIGFPE, on_signal);
	signal(SIGABRT, on_signal);
	LLVMFuzzerInitialize(&argc, &argv);
	for (i = 1; i < argc; i++)
		run_file(argv[i]);
	printf("%u inputs\n", num);
	return num ? 0 : 1;
}
