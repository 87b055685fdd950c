#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# docs.py and error_docs.py refuse documents that are wrong, and list the blocks that do not run.
# Each case is a document with one fault.
set -u
cd "$(dirname "$0")/.." || exit 2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0 cases=0
complain() { echo "docs_check.sh: $1"; sed 's/^/    /' "$tmp/out" | head -n 8; bad=1; }

refuses() { # expected text, then the document on standard input
	cases=$((cases + 1))
	cat >"$tmp/case.md"
	tests/docs.py "$tmp/case.md" >"$tmp/out" 2>&1 && complain "accepted: $1"
	grep -qF -e "$1" "$tmp/out" || complain "no message: $1"
}

refuses 'echo yes printed' <<'END'
```console
$ echo yes
no
```
END
refuses 'exit status 3' <<'END'
```sh
true
exit 3
```
END
refuses 'exit status 1' <<'END'
```console
$ echo text; false
text
```
END
refuses 'unknown option: needs=luck' <<'END'
```sh needs=luck
true
```
END
refuses '`tests/no_such_file.sh` does not exist' <<<'Run `tests/no_such_file.sh`.'
refuses 'make has no target no_such_target' <<<'Run `make no_such_target`.'
refuses 'differs from examples/hello_put/hello_put.c' <<'END'
```c file=examples/hello_put/hello_put.c
int main(void);
```
END
refuses 'is not in examples/common/common.h' <<'END'
```make file=examples/common/common.h
not a line of it
```
END
refuses "is not checked; use sh or console" <<'END'
```bash
true
```
END
refuses 'block without end' <<'END'
```sh
true
END

refuses 'echo 12 pears printed' <<'END'
```console
$ echo 12 pears
12 apples
```
END

cat >"$tmp/good.md" <<'END'
```console
$ echo 12 apples; echo; echo the rest
34 apples
[...]
$ echo '   1.5e-04  127.12.3.4'
  2       10.200.30.40
$ echo '  1   2000  0.001466  12.5'
  1   2000 1.947e-04  12.5
```
```sh needs=reboot
reboot  # not here
```
END
cases=$((cases + 1))
tests/docs.py "$tmp/good.md" >"$tmp/out" 2>&1 || complain "refused a correct document"
grep -q 'good.md:10: needs=reboot: reboot$' "$tmp/out" || complain "does not list the block that did not run"

# ---- the page on errors ----

refuses_page() { # expected text, then a sed script that makes the fault
	cases=$((cases + 1))
	sed "$2" core/errors.md >"$tmp/errors.md"
	cmp -s core/errors.md "$tmp/errors.md" && complain "the script changes nothing: $2"
	tests/error_docs.py "$tmp/errors.md" >"$tmp/out" && complain "accepted: $2"
	grep -qF -e "$1" "$tmp/out" || complain "no message: $1"
}

refuses_page 'no row for doca_error_t value DOCA_ERROR_IN_USE' '/^| `DOCA_ERROR_IN_USE`/d'
refuses_page 'no row for device errno -EHOSTDOWN' '/^| `-EHOSTDOWN`/d'
refuses_page 'device errno -EFAULT is not in the code' 's/^| `-EINVAL`/| `-EINVAL`, `-EFAULT`/'
refuses_page 'no row for syndrome 0x13' '/^| `0x13`/d'
refuses_page 'syndrome 0x15: the code has "transport retries exceeded"' 's/| transport retries exceeded |/| no answer |/'
refuses_page 'cause of syndrome 0x22' 's/the remote side aborted the operation/it was aborted/'
refuses_page 'status 0x06: the code has' 's/| resource busy: /| busy: /'
refuses_page 'for message "QP 0x*: cannot export it: already exported"' '/cannot export it: already exported/d'
refuses_page 'is not in the code' 's/`QP 0x\*: cannot export it: already/`QP 0x*: cannot be exported: already/'
refuses_page 'too few words' 's/`invalid \* NULL`/`invalid * NULL`, `...`/'
refuses_page 'warning in doorbell/service.c' 's/waited for it (\* times so far); give it a CPU of its own` (warning)/waited for it (* times so far); give it a CPU of its own`/'
refuses_page 'a cell is empty' 's/^\(| `no GPU is open.*|\)[^|]*|$/\1 |/'
refuses_page 'for message "cannot resolve server' '/^| `cannot resolve server/d'
refuses_page 'for reason "the UAR is not a BlueFlame page"' '/^| `the UAR is not a BlueFlame page`/d'

echo "docs_check.sh: $cases cases"
exit $bad
