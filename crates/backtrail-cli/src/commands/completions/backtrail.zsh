#compdef backtrail
# Completes the command backtrail in zsh: put this in a directory of $fpath, as _backtrail.

_backtrail() {
    local line value
    local -a values lines
    while IFS= read -r line; do
        case $line in
            :files) _files ;;
            :dirs) _files -/ ;;
            :commands) _command_names -e ;;
            *)
                value=${line%%$'\t'*}
                values+=("$value")
                if [[ $line == *$'\t'* ]]; then
                    lines+=("$value  -- ${line#*$'\t'}")
                else
                    lines+=("$value")
                fi
                ;;
        esac
    done < <(${(Q)words[1]} __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    (( $#values )) && compadd -l -V backtrail -d lines -a values
}

if [[ ${funcstack[1]} == _backtrail ]]; then
    _backtrail "$@"
else
    compdef _backtrail backtrail
fi
