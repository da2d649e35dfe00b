# SPDX-License-Identifier: GPL-2.0
# fish completion for ipvsctl, which knows its words itself

function __ipvsctl_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    # Users other than root have no sbin in their PATH, but they may use sudo.
    set -lx PATH $PATH /usr/local/sbin /usr/sbin
    set -e before[1]
    set -l found (ipvsctl __complete $before "$current" 2>/dev/null)
    set -q found[1]; or return
    test $found[1] = files; and __fish_complete_path "$current"
    set -e found[1]
    printf '%s\n' $found
end

complete -c ipvsctl -f -a '(__ipvsctl_complete)'
