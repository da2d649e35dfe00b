#compdef ipvsctl
# SPDX-License-Identifier: GPL-2.0
# zsh completion for ipvsctl, which knows its words itself

local -a found described
local line

# Users other than root have no sbin in their PATH, but they may use sudo.
found=("${(@f)$(PATH=$PATH:/usr/local/sbin:/usr/sbin \
	ipvsctl __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
for line in "${(@)found[2,-1]}"; do
	# A colon ends the word for _describe.
	described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
done
(( $#described )) && _describe -t words 'word' described
[[ $found[1] == files ]] && _files
