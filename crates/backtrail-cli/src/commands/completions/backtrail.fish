# Completes the command backtrail in fish: put this in ~/.config/fish/completions.

function __backtrail_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    for line in (command $before[1] __complete -- $before[2..-1] "$current" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$current"
            case :dirs
                __fish_complete_directories "$current"
            case :commands
                complete -C "$current"
            case '*'
                printf '%s\n' $line
        end
    end
end

complete -c backtrail -f -k -a '(__backtrail_complete)'
