# Prints what was typed of the word at the cursor, without the name of its option.
function __trayscan_typed
    string replace -r '^--[^=]*=' '' -- (commandline -ct)
end

# Offers words for the last of several values, separated by commas. Those with `-` are offered only after a `-`.
function __trayscan_list
    set -l typed (__trayscan_typed)
    set -l before (string match -r '^.*,' -- "$typed")
    set -l last (string replace -r '^.*,' '' -- "$typed")
    for word in $argv
        if contains -- $word (string split ',' -- "$before")
            continue
        else if not string match -q -- '-*' $word; or string match -q -- '-*' "$last"
            printf '%s\n' "$before$word"
        end
    end
end

# Offers the fields $argv[1], then an operator; and the fields $argv[2], which are true or false.
function __trayscan_condition
    set -l fields (string split ' ' -- $argv[1])
    set -l typed (__trayscan_typed)
    if contains -- "$typed" $fields
        printf '%s\n' $typed{=,!=,'<','<=','>','>=','~'}
    else
        # Two of each, so that fish adds no space after a field.
        printf '%s\n' $fields{=,!=}
        for field in (string split ' ' -- $argv[2])
            printf '%s\n' $field !$field
        end
    end
end

# Offers the lines that `trayscan completions $argv[1]` prints.
function __trayscan_lines
    set -l words (commandline -opc)
    for index in (seq (count $words))
        switch $words[$index]
            case --config
                set -fx TRAYSCAN_CONFIG (string replace -r '^~' $HOME -- $words[(math $index + 1)])
            case '--config=*'
                set -fx TRAYSCAN_CONFIG (string replace -r '^--config=' '' -- $words[$index] | string replace -r '^~' $HOME)
        end
    end
    $words[1] completions $argv[1] 2>/dev/null
end

# Succeeds if $argv[1] is the command on the line, such as `export` or `config show`; empty for none yet. If $argv[2] is
# given, as many arguments must follow the command.
function __trayscan_at
    set -l command
    set -l arguments 0
    set -l is_value false
    for word in (commandline -opc)[2..]
        if $is_value
            set is_value false
        else if contains -- $word $__trayscan_valued
            set is_value true
        else if string match -q -- '-*' $word
            continue
        else if test -z "$command"; or contains -- "$command" $__trayscan_parents
            set -a command $word
        else
            set arguments (math $arguments + 1)
        end
    end
    test "$command" = "$argv[1]"; and begin
        not set -q argv[2]; or test $arguments = $argv[2]
    end
end

# Files are offered only where they are wanted.
complete -c trayscan -f
