#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Checks the messages of the commits after version 0.1.0, that is, after the tag v0.1.0, or
# without that tag after the commit that added CHANGELOG.md. Merges are not checked.
#   subject: "area: imperative", ASCII, at most 72 columns, no period at the end
#   second line: empty
#   body: required if the commit changes more than 10 lines; lines of at most 80 columns,
#         except a line that cannot be broken
# In a shallow clone, only the commits that it contains are checked.
set -u
cd "$(dirname "$0")/.." || exit 2
if [ ! -e .git ] || ! command -v git >/dev/null || ! git rev-parse -q --verify HEAD >/dev/null; then
	echo "commits.sh: no git repository, nothing to check"
	exit 0
fi

base=$(git rev-parse -q --verify 'refs/tags/v0.1.0^{commit}') ||
	base=$(git log --diff-filter=A --format=%H -- CHANGELOG.md | tail -n 1)
if [ -z "$base" ]; then
	echo "commits.sh: neither the tag v0.1.0 nor CHANGELOG.md is in the history, nothing to check"
	exit 0
fi

bad=0 checked=0
complain() { # commit, text
	echo "commits.sh: $(git log -1 --format=%h "$1"): $2"
	bad=1
}

# First words of a subject that are no imperative: other forms of common verbs, and articles.
verbs='add|fix|remove|change|update|use|make|move|rename|allow|check|test|support|handle|return'
verbs="$verbs|report|print|run|write|read|set|show|keep|call|create|describe|document|explain"
other="^(($verbs)(s|es|d|ed)|[a-z]+ing|a|an|the|this|it|no|not|each|every|all|some|there|now)$"
verb_ing='^(bring|ring|string)$'

check_subject() { # commit, subject
	local word
	[ ${#2} -le 72 ] || complain "$1" "subject of ${#2} columns, at most 72: $2"
	[[ $2 != *. ]] || complain "$1" "subject ends with a period: $2"
	if [[ ! $2 =~ ^[A-Za-z0-9_./-]+(,\ [A-Za-z0-9_./-]+)*:\ ([A-Za-z]+) ]]; then
		complain "$1" "subject is not \"area: imperative\": $2"
		return
	fi
	word=${BASH_REMATCH[2],,}
	[[ ! $word =~ $other || $word =~ $verb_ing ]] ||
		complain "$1" "subject is not imperative (\"$word\"): $2"
}

check_body() { # commit, lines after the subject
	local line text changed
	[ -z "${2%%$'\n'*}" ] || complain "$1" "the second line is not empty"
	while IFS= read -r line; do
		text=${line#"${line%%[![:space:]]*}"}
		[ ${#line} -le 80 ] || [[ $text != *\ * ]] || complain "$1" "line of ${#line} columns, at most 80: $line"
	done <<<"$2"
	grep -v -E '^[A-Z][A-Za-z-]+-by: ' <<<"$2" | grep -q '[^[:space:]]' && return
	# A line that is replaced counts once. A binary file has "-" for numbers.
	changed=$(git show --format= --numstat "$1" |
		awk '{ n += ($1 == "-") ? 1000 : ($1 > $2) ? $1 : $2 } END { print n + 0 }')
	[ "$changed" -le 10 ] || complain "$1" "no body, though the commit changes $changed lines"
}

for commit in $(git rev-list --no-merges "$base..HEAD"); do
	checked=$((checked + 1))
	message=$(git log -1 --format=%B "$commit")
	subject=${message%%$'\n'*}
	rest=${message#"$subject"}
	LC_ALL=C grep -q '[^ -~]' <<<"$subject" && complain "$commit" "subject is not ASCII: $subject"
	check_subject "$commit" "$subject"
	check_body "$commit" "${rest#$'\n'}"
done
echo "commits.sh: $checked commits after $(git log -1 --format=%h "$base")"
exit $bad
