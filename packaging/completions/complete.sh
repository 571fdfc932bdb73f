#!/bin/sh
# What can follow on a command line of sunproxy or sunproxyd. The completions of bash, zsh and fish
# call it:
#
#   complete.sh PROGRAM WORD... CURRENT
#
# PROGRAM is the command as typed, WORD... the words after it, CURRENT the word that the cursor is
# in, perhaps empty. Prints a candidate a line, with a tab and a description where there is one, or
# one line ":files" or ":users" for file and user names. Candidates that do not begin with CURRENT are for
# the shell to leave out.
#
# Commands, options and values come from the programs' own lists (--help, policies), so they are
# those of the installed version.
set -u

program=$1
shift

# Prints the options that a text of --help has: long name, short name or "-", value or "-",
# description, separated by tabs. A value stands one space behind the name, a description farther
# right or on the next line. A value in brackets is optional and so is no word of its own.
parse_options() {
    awk -v OFS='\t' '
    function value_of(rest) {
        if (rest !~ /^ [^ ]/)
            return "-"
        sub(/^ /, "", rest)
        sub(/ .*/, "", rest)
        return rest ~ /^[A-Z]/ || rest ~ /\|/ ? rest : "-"
    }
    function flush(    i) {
        sub(/(;|,? \(default).*/, "", text)
        for (i = 1; i <= count; i++)
            print names[i], short, value, text
        count = 0
    }
    {
        match($0, /^ */)
        indent = RLENGTH
        line = substr($0, indent + 1)
    }
    indent >= 2 && indent <= 6 && line ~ /^(-[A-Za-z], )?--[a-z]/ {
        flush()
        short = "-"
        if (line !~ /^--/) {
            short = substr(line, 1, 2)
            line = substr(line, 5)
        }
        while (match(line, /^--[a-z0-9-]+/)) {
            names[++count] = substr(line, 1, RLENGTH)
            line = substr(line, RLENGTH + 1)
            sub(/^, /, "", line)
        }
        value = value_of(line)
        text = line
        if (value != "-")
            text = substr(text, length(value) + 2)
        sub(/^\[=[^]]*\]/, "", text)
        sub(/^ +/, "", text)
        next
    }
    count && indent > 6 { text = text (text == "" ? "" : " ") line; next }
    { flush() }
    END { flush() }'
}

# The names in the first column of a list, which is indented by $1 spaces, with what stands beside
# them.
names() {
    sed -nE "s/^ {$1}([a-z][a-z0-9-]*)  +(.*)/\\1\\t\\2/p"
}

list_policies() {
    case $kind:$command in
    sunproxyd:*) "$program" --policy help | names 0 ;;
    # A server cannot run all of them.
    sunproxy:set | sunproxy:replay) "$program" policies | grep -v 'simulations only' | names 0 ;;
    *) "$program" policies | names 0 ;;
    esac
}

list_words() { # the alternatives of a value such as whole|body
    printf '%s\n' "$1" | tr '|' '\n'
}

# What a value can be, by its option and by how the help writes it.
complete_value() { # option, value
    case $1 in
    --policy) list_policies ;;
    --format) "$program" help trace | names 2 ;;
    --to) "$program" help trace convert | names 2 ;;
    --admin-uid) echo :users ;;
    --api | --via) list_words "$2" ;;
    *)
        case $2 in
        FILE | PATH) echo :files ;;
        *\|*) list_words "$2" ;;
        esac
        ;;
    esac
}

# What can stand where no option does.
complete_argument() {
    case $kind:$command in
    sunproxyd:*) ;;
    sunproxy: | sunproxy:help) "$program" --help | names 2 ;;
    sunproxy:trace | sunproxy:store | 'sunproxy:help trace' | 'sunproxy:help store')
        "$program" help "${command#help }" | names 0
        ;;
    'sunproxy:trace generate')
        "$program" help trace generate | sed -n '/^Workloads/,/^$/p' | names 2
        ;;
    sunproxy:policies) list_policies ;;
    sunproxy:passwd | sunproxy:replay | sunproxy:advise | sunproxy:simulate | sunproxy:report | \
        sunproxy:trace\ * | sunproxy:store\ *) echo :files ;;
    esac
}

kind=$(basename "$program")
command=
previous=
options=
# The command is the first word, for trace, store and help the second as well.
if [ "$kind" = sunproxy ] && [ $# -gt 1 ]; then
    case $1 in
    -*) ;;
    trace | store | help)
        command=$1
        [ $# -gt 2 ] && case $2 in -*) ;; *) command="$1 $2" ;; esac
        ;;
    *) command=$1 ;;
    esac
fi
while [ $# -gt 1 ]; do
    previous=$1
    shift
done
current=${1-}

# shellcheck disable=SC2086 # a command may be two words
options=$("$program" $command --help 2>/dev/null | parse_options)
value=$(printf '%s\n' "$options" | awk -F '\t' -v word="$previous" \
    '$3 != "-" && ($1 == word || $2 == word) { print $1, $3; exit }')
if [ -n "$value" ]; then
    complete_value "${value%% *}" "${value#* }"
else
    case $current in
    -*) printf '%s\n' "$options" | awk -F '\t' -v OFS='\t' 'NF { print $1, $4 }' ;;
    *) complete_argument ;;
    esac
fi
