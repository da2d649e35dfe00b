# SPDX-License-Identifier: GPL-2.0
# bash completion for ipvsctl
# shellcheck shell=bash

_ipvsctl_services() {
	ipvsctl -H -o name show -C never 2>/dev/null | sed -n \
		's/^\(tcp\|udp\|sctp\) \([^ ]*\).*/\1:\2/p; s/^fwmark \([0-9]*\) inet6.*/fwm6:\1/p; s/^fwmark \([0-9]*\) *$/fwm:\1/p'
}

_ipvsctl_servers() {
	LC_ALL=C ipvsctl -H -o name server show "$1" 2>/dev/null | sed -n 's/^[|`]-//p'
}

_ipvsctl_verbs() {
	case $1 in
	service) echo show add change replace delete flush ;;
	server) echo show add change replace delete drain undrain ;;
	conn) echo show count kill ;;
	stats) echo show rate total percpu zero ;;
	timeout) echo show set ;;
	scheduler) echo list show set ;;
	monitor) echo service server load drain table peer all ;;
	sync) echo show start stop peer set resync push wait verify ;;
	help) echo show service server conn stats top timeout scheduler sync info save restore check apply diff export monitor ;;
	esac
}

_ipvsctl_words() {
	case "$1 $2" in
	"service add" | "service change" | "service replace")
		echo scheduler flags persistent no-persistent mask pe ops no-ops option timeout \
			on-idle on-loss on-drain guard fast-path sync priority server ;;&
	"service add" | "server add" | "server change" | "server replace")
		echo nat dr tun weight max-conns min-conns type port csum no-csum remcsum ;;
	"service show" | "server show") echo proto vip port scheduler down overloaded sort ;;
	stats\ *) echo proto vip port scheduler down overloaded sort by ;;
	"conn show") echo service server client state proto template limit ;;
	"conn count") echo by service server client state proto template ;;
	"conn kill") echo service server client state proto template ;;
	top\ *) echo proto vip port scheduler down overloaded sort ;;
	"timeout set") echo tcp tcp-fin udp ;;
	"sync start") echo send receive both dev id maxlen group port ttl ;;
	"sync stop") echo send receive both ;;
	"sync peer") echo add delete port hops ;;
	"sync set") echo rate multicast port verify key on off none ;;
	"sync wait") echo peer ;;
	"server undrain") echo weight ;;
	"monitor "*) echo service server load drain table peer all ;;
	esac
}

_ipvsctl_options() {
	ipvsctl -H -o options scheduler list 2>/dev/null | tr ' ' '\n' | sort -u
}

_ipvsctl_schedulers() {
	ipvsctl -H -o name scheduler list 2>/dev/null
}

_ipvsctl() {
	local cur='' prev noun='' verb='' place=0 w i cword words=()
	local options='--json --pretty --columns --no-header --color --format --netns --watch --batch --output --ipv4
		--ipv6 --dry-run --quiet --verbose --timeout --if-exists --yes --wait --kill --timestamp
		--deadline --then --reset --prune --detailed-exitcode
		--help --version'

	# Bash splits words at colons, which service names have; so the line is
	# split here, at blanks only.
	read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
	[[ ${COMP_LINE:0:COMP_POINT} == *[[:space:]] ]] && words+=('')
	cword=$((${#words[@]} - 1))
	cur=${words[cword]} prev=${words[cword - 1]}
	for ((i = 1; i < cword; i++)); do
		w=${words[i]}
		[[ $w == -* ]] && continue
		case $place in
		0) noun=$w ;;
		1) verb=$w ;;
		esac
		((place++))
	done
	case $noun in
	svc) noun=service ;;
	rs) noun=server ;;
	sched) noun=scheduler ;;
	c) noun=conn ;;
	esac

	case $prev in
	-N | --netns) w=$(ip netns list 2>/dev/null | cut -d' ' -f1) ;;
	-F | --format) w='ipvsadm json prometheus table' ;;
	-C | --color) w='auto always never' ;;
	scheduler) [[ $place -gt 1 ]] && w=$(_ipvsctl_schedulers) || w= ;;
	sort) [[ $noun == top ]] && w='conns packets bytes active name' || w='name active rate' ;;
	by) [[ $noun == stats ]] && w='service server' || w='service server state client' ;;
	--output) w=$(compgen -f -- "$cur") ;;
	option) w=$(_ipvsctl_options) ;;
	order) w='age address' ;;
	timeout) [[ $place -gt 1 ]] && w='tcp tcp-fin udp sctp' ;;
	on-idle) w='forget reset' ;;
	on-loss) w='keep move reset default' ;;
	on-drain) w='keep move default' ;;
	guard) w='reject drop off' ;;
	fast-path) w='off on new default' ;;
	sync) [[ $place -gt 1 ]] && w='on off templates exceptions' || w= ;;
	priority) w='las off' ;;
	flags) w='fallback port flag-1 flag-2 flag-3 none' ;;
	type) w='ipip gue gre' ;;
	--then) w='stay delete reset move' ;;
	proto) w='tcp udp sctp' ;;
	*) w= ;;
	esac
	if [[ -z $w ]]; then
		case $cur,$place in
		-*) w=$options ;;
		*,0) w='show service server conn stats top timeout scheduler sync info save restore check apply diff export compat monitor help' ;;
		*,1) w=$(_ipvsctl_verbs "$noun") ;;
		*,2) [[ $noun$verb == schedulershow ]] && w=$(_ipvsctl_schedulers) ||
			w="$(_ipvsctl_services) $(_ipvsctl_words "$noun" "$verb")" ;;
		*,3) [[ $noun == server ]] && w=$(_ipvsctl_servers "${words[cword - 1]}")
			[[ $noun$verb == schedulerset ]] && w=$(_ipvsctl_schedulers)
			w+=" $(_ipvsctl_words "$noun" "$verb")" ;;
		*) w=$(_ipvsctl_words "$noun" "$verb") ;;
		esac
	fi
	if [[ $noun == @(restore|check|apply|diff) && $cur != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -W "$w" -- "$cur")
	fi
	# Bash replaces only what follows the last colon.
	if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then
		COMPREPLY=("${COMPREPLY[@]#"${cur%"${cur##*:}"}"}")
	fi
}
complete -F _ipvsctl ipvsctl
