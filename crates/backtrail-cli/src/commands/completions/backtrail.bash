# Completes the command backtrail in bash: put this where bash-completion looks, as
# ~/.local/share/bash-completion/completions/backtrail, or source it.

_backtrail() {
    local line about current=${COMP_WORDS[COMP_CWORD]}
    local -a lines=()
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :files | :dirs | :commands)
                local kind=-f file
                [[ $line == :dirs ]] && kind=-d
                [[ $line == :commands ]] && kind=-c
                [[ $line == :commands ]] || compopt -o filenames 2>/dev/null
                while IFS= read -r file; do
                    COMPREPLY+=("$file")
                done < <(compgen "$kind" -- "$current")
                ;;
            *)
                lines+=("$line")
                ;;
        esac
    done < <("$1" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    for line in "${lines[@]}"; do
        about=
        [[ $line == *$'\t'* ]] && about=${line#*$'\t'}
        line=${line%%$'\t'*}
        # What a shell would take for more than a word is quoted.
        [[ $line == *[!A-Za-z0-9_.,:/=@%+~-]* ]] && printf -v line '%q' "$line"
        # Several are listed with what they are. A single one is typed, as are all in turn by
        # menu-complete and insert-completions.
        [[ ${#lines[@]} == 1 || $COMP_TYPE == 37 || $COMP_TYPE == 42 || -z $about ]] || line+="  ($about)"
        COMPREPLY+=("$line")
    done
}

# The newest sessions come first, where bash can keep an order.
complete -o nosort -F _backtrail backtrail 2>/dev/null || complete -F _backtrail backtrail
