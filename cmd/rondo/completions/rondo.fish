# Completes command lines of rondo in fish:
# rondo completion fish > ~/.config/fish/completions/rondo.fish
# The program itself answers what may come next.

function __rondo_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    for answer in ($program __complete $words "$current" 2>/dev/null)
        switch $answer
            case ':files' ':dirs'
                # --flag=path is one word for fish.
                set -l flag (string match -r -- '^--[^=]*=' "$current")
                set -l path (string replace -r -- '^--[^=]*=' '' "$current")
                if test $answer = ':files'
                    __fish_complete_path "$path" | string replace -r -- '^' "$flag"
                else
                    __fish_complete_directories "$path" '' | string replace -r -- '^' "$flag"
                end
            case '*'
                echo $answer
        end
    end
end

complete -c rondo -f -a '(__rondo_complete)'
