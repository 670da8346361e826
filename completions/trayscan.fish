# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_trayscan_global_optspecs
    string join \n q/quiet v/verbose color= error-format= h/help V/version
end

function __fish_trayscan_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_trayscan_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_trayscan_using_subcommand
    set -l cmd (__fish_trayscan_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c trayscan -n "__fish_trayscan_needs_command" -l color -d 'When to use colour [`NO_COLOR` turns `auto` off]' -r -f -a "auto\t'On a terminal'
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_needs_command" -l error-format -d 'How an error is shown: lines for people, or one JSON object as the last line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_needs_command" -s q -l quiet -d 'Show errors only'
complete -c trayscan -n "__fish_trayscan_needs_command" -s v -l verbose -d 'Tell more; twice: every request'
complete -c trayscan -n "__fish_trayscan_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_needs_command" -s V -l version -d 'Print version'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "serve" -d 'Run the batch scan service on this machine'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "completions" -d 'Print a completion script for a shell'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "man" -d 'Print a manual page (roff)'
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l listen -d 'Address and port to listen on; port 0 picks a free one' -r
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -s f -l format -d 'How the address and the credentials are printed: lines for people, or one JSON line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l batches -d 'How many batches to make up' -r
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l seed -d 'What the made-up batches and the faults grow from' -r
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l client-id -d 'The client identifier to accept' -r
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l client-secret -d 'The client secret to accept [default: a new random one]' -r
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l token-ttl -d 'How long a token lives' -r
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l page-size -d 'Batches in a page of version 2' -r
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l v1-limit -d 'The most that version 1 answers; more are cut off, or refused with `--fault v1-refuse` [default: no limit, or 1000 with a fault of version 1]' -r
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l fault -d 'Misbehave on purpose; repeatable (`--help` lists the faults)' -r
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l color -d 'When to use colour [`NO_COLOR` turns `auto` off]' -r -f -a "auto\t'On a terminal'
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l error-format -d 'How an error is shown: lines for people, or one JSON object as the last line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -s q -l quiet -d 'Show errors only'
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -s v -l verbose -d 'Tell more; twice: every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand completions" -l color -d 'When to use colour [`NO_COLOR` turns `auto` off]' -r -f -a "auto\t'On a terminal'
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand completions" -l error-format -d 'How an error is shown: lines for people, or one JSON object as the last line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand completions" -s q -l quiet -d 'Show errors only'
complete -c trayscan -n "__fish_trayscan_using_subcommand completions" -s v -l verbose -d 'Tell more; twice: every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand man" -l color -d 'When to use colour [`NO_COLOR` turns `auto` off]' -r -f -a "auto\t'On a terminal'
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand man" -l error-format -d 'How an error is shown: lines for people, or one JSON object as the last line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand man" -s q -l quiet -d 'Show errors only'
complete -c trayscan -n "__fish_trayscan_using_subcommand man" -s v -l verbose -d 'Tell more; twice: every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand man" -s h -l help -d 'Print help (see more with \'--help\')'
