# SPDX-License-Identifier: GPL-2.0
# bash completion for ipvsctl, which knows its words itself
# shellcheck shell=bash

_ipvsctl() {
	local line=${COMP_LINE:0:COMP_POINT} cur kind words=() found=()

	# Bash splits words at colons, which service names have; so the line is
	# split here, at blanks only.
	read -ra words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=('')
	cur=${words[-1]}
	# Users other than root have no sbin in their PATH, but they may use sudo.
	mapfile -t found < <(PATH=$PATH:/usr/local/sbin:/usr/sbin \
		ipvsctl __complete "${words[@]:1}" 2>/dev/null)
	kind=${found[0]-}
	found=("${found[@]:1}")
	COMPREPLY=("${found[@]%%$'\t'*}")
	if [[ $kind == files ]]; then
		compopt -o filenames 2>/dev/null
		mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$cur")
	fi
	# Bash replaces only what follows the last colon, or the last equals sign.
	[[ $cur == *:* && $COMP_WORDBREAKS == *:* ]] && cur=${cur%"${cur##*:}"} ||
		{ [[ $cur == *=* && $COMP_WORDBREAKS == *=* ]] && cur=${cur%"${cur##*=}"}; } || return 0
	COMPREPLY=("${COMPREPLY[@]#"$cur"}")
}
complete -F _ipvsctl ipvsctl
